"""How much an epoch of stochastic gradients costs, in evaluations of value and gradient.

Solvers decide by it whether stochastic epochs pay. It is a count of the work, not a measurement of time: with the same
data, options and number of threads the same steps are made. The nanoseconds of each kind of work were fitted to
measurements (benchmarks/online_cost.py, 2 to 300 labels); only their ratios matter.
"""

from __future__ import annotations

import numpy as np

from crfkit._types import Floats
from crfkit.chain.fields.field import ChainField

# nanoseconds: of a position, of an attribute of a position and a label, of a jump at a position, of a jump of the table
EVALUATION = (75.0, 0.25, 0.25, 0.0)
EPOCH = (85.0, 0.27, 0.33, 2.5)  # jumps are exponentiated, transposed and updated once more for every sequence


def counts(n_positions: int, n_attributes: int, n_sequences: int, field: ChainField) -> Floats:
    """Return how often each kind of work is done; `n_attributes` counts those of every position."""
    jumps = float(field.n_labels) ** (1 + field.order)  # pairs of labels, in order 2 triples
    return np.array([n_positions, n_attributes * field.n_labels, n_positions * jumps, n_sequences * jumps], dtype=float)


def epoch_cost(n_positions: int, n_attributes: int, n_sequences: int, field: ChainField, n_threads: int) -> float:
    """Return the time of an epoch, which runs on one thread, over that of an evaluation on `n_threads`."""
    work = counts(n_positions, n_attributes, n_sequences, field)
    evaluation = float(work @ EVALUATION)
    return n_threads * float(work @ EPOCH) / evaluation if evaluation > 0 else float(n_threads)


FACTORING = 0.2  # nanoseconds for n³ of a symmetric matrix of n rows
EVALUATIONS = 2  # that factoring may cost: a larger matrix saves fewer more
MOST_DENSE = 1000


def dense_size(n_positions: int, n_attributes: int, n_sequences: int, field: ChainField, n_threads: int) -> int:
    """Return for how many weights a dense matrix is factored in the time of EVALUATIONS evaluations on `n_threads`."""
    evaluation = float(counts(n_positions, n_attributes, n_sequences, field) @ EVALUATION) / n_threads
    return min(MOST_DENSE, int((EVALUATIONS * evaluation / FACTORING) ** (1 / 3)))
