"""python-crfsuite's interface (0.9.12) on top of crfkit: change ``import pycrfsuite`` to this module.

>>> from crfkit.compat import pycrfsuite
>>> trainer = pycrfsuite.Trainer("lbfgs", params={"c2": 0.1}, verbose=False)
>>> trainer.append([["it", "rains"], ["sun"]], ["wet", "dry"])
>>> sorted(trainer.params())[:2]
['c1', 'c2']

Model files are CRFsuite's own, read and written, so both packages open them.
"""

from crfkit.compat.pycrfsuite import _dumpparser, _logparser, _pycrfsuite
from crfkit.compat.pycrfsuite._pycrfsuite import (
    CRFSUITE_VERSION,
    BaseTrainer,
    CRFSuiteError,
    ItemSequence,
    Tagger,
    Trainer,
)

__version__ = "0.9.12"  # of the interface

__all__ = [
    "CRFSUITE_VERSION",
    "BaseTrainer",
    "CRFSuiteError",
    "ItemSequence",
    "Tagger",
    "Trainer",
    "_dumpparser",
    "_logparser",
    "_pycrfsuite",
]
