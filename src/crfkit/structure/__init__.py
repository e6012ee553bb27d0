"""Graphs whose edges are learned from tables.

The pipeline, one step per file:

- ``options``: what can be chosen, and ``Tunables``, the constants that steer the search
- ``table``: from a person's table to ``observations``; ``encoding/`` reads its columns and cells
- ``losses/``: the pseudo-likelihood and the likelihood of a table whose edges are switched on as needed
- ``solve``: the optimum at one strength, and of given edges without their penalty
- ``select``: which edges to keep. ``price`` has the extended BIC, ``worth`` what an edge gains, ``support`` drops and
  adds edges, ``subsets`` are folds and random halves of the rows
- ``refit``: the weights of the chosen edges by likelihood; ``particles`` estimate it on dense graphs
- ``record``: what was learned, its form in the model file, and warnings
- ``train``: all of it, from a table to a model; ``estimator/`` is StructureLearner, ``scores`` the probability of rows
"""
