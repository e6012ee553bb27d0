"""Tests that `test_kernels.py` runs with Triton's interpreter, or a machine with a GPU runs as they are."""

import numpy as np
import pytest
import torch
from oracle import make_problem
from tensor_cases import chains, tensor_loss
from test_chain_loss import near

from crfkit.losses import ChainLikelihood
from crfkit.torch import kernels
from crfkit.torch.chain_first_order import FirstOrder
from crfkit.torch.chain_scores import Lists
from crfkit.torch.kernels.sums import CHUNK, ListSums

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def test_they_are_what_is_tested():
    assert kernels.usable(torch.device(DEVICE), 256)
    assert not kernels.usable(torch.device(DEVICE), 257)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("n_labels", [1, 3, 22, 32, 33, 64, 65, 128, 200, 256])
def test_label_counts(n_labels, precision):
    problem = make_problem(n_labels, n_labels, (3, 1, 0, 5), n_attributes=7, weights=True, values=True)
    loss = tensor_loss(problem.data, problem.field, precision)
    found, native = loss.at(loss.vector(problem.w)), ChainLikelihood(problem.data, problem.field).at(problem.w)
    near(found.value, native.value, precision)
    near(found.grad, native.grad, precision)
    assert found._chains is None  # not those of plain PyTorch


@pytest.mark.parametrize("n", [1, 15, 16, 17, 40])
def test_numbers_of_sequences(n):
    data, field = chains(n, n=max(n, 3), states="all")
    loss, w = tensor_loss(data, field), np.random.default_rng(n).normal(size=field.size)
    rows = loss.data
    potentials = rows.scores.potentials(loss.vector(w))
    fast, safe = FirstOrder.fast(rows, *potentials), FirstOrder.safe(rows, *potentials)
    assert fast.numbers() == (pytest.approx(safe.numbers()[0], rel=1e-12), False)
    torch.testing.assert_close(fast.residuals, safe.residuals)
    torch.testing.assert_close(fast.pair_sums, safe.pair_sums)


@pytest.mark.parametrize("most", [1, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK**2 + 5])
def test_sums_of_long_lists(most):
    """Chunks, and chunks of chunks."""
    rng = np.random.default_rng(0)
    counts = np.array([0, 1, most, 3, most // 2, 0, most, 2])
    offsets = torch.asarray(np.concatenate([[0], np.cumsum(counts)]))
    rows = torch.asarray(rng.integers(0, 9, counts.sum()))
    table = torch.asarray(rng.normal(size=(9, 5)))
    for factors in (None, torch.asarray(rng.normal(size=len(rows)))):
        for power in (1, 2):
            scale = torch.ones(len(rows), dtype=torch.float64) if factors is None else factors**power
            expected = torch.zeros(len(counts), 5, dtype=torch.float64)
            expected.index_add_(0, torch.repeat_interleave(torch.asarray(counts)), scale[:, None] * table[rows])
            found = ListSums(offsets, rows, factors, gap=3).buffer(table, power)[: len(counts)]
            torch.testing.assert_close(found, expected)


def test_lists_without_rows_sum_to_zero():
    empty = Lists(torch.zeros(4, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    assert float(empty.sums(torch.ones(2, 3)).abs().max()) == 0.0


def test_scores_that_probabilities_cannot_hold_are_found():
    problem = make_problem(1, 3, (5, 2, 4))
    loss = tensor_loss(problem.data, problem.field, "single")
    w = 250.0 * np.random.default_rng(1).uniform(-1, 1, problem.field.size)
    here = loss.at(loss.vector(w))
    near(here.value, ChainLikelihood(problem.data, problem.field).at(w).value, "single")
    assert here._lost is False  # what was computed at last
    assert here._chains is not None
