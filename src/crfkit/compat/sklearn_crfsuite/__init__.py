"""sklearn-crfsuite's interface (0.5.0) on top of crfkit: change ``import sklearn_crfsuite`` to this module.

>>> from crfkit.compat import sklearn_crfsuite
>>> crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100)
>>> crf = crf.fit([[{"w": "the"}, {"w": "cat"}]], [["DET", "NOUN"]])
>>> crf.predict_single([{"w": "cat"}])
['NOUN']
"""

from crfkit.compat.sklearn_crfsuite.estimator import CRF

__version__ = "0.5.0"  # of the interface

__all__ = ["CRF"]
