"""Estimates of `crfkit train --dry-run`; benchmarks/memory.py compares them with trainings of millions of weights."""

from __future__ import annotations

import pytest

from crfkit import L1, L2
from crfkit.chain.training import dry_run
from crfkit.chain.training.train import ChainTraining
from crfkit.losses import ChainLikelihood
from crfkit.synthetic import entity_words

X, Y = entity_words(250)


def estimate(**options) -> dry_run.Estimate:
    training = ChainTraining(features="ner", **options)
    corpus, weights, _ = training._learn(X, Y, None, None, None)
    return dry_run.Estimate.of(training, corpus, weights)


def test_nothing_is_evaluated_where_training_does_not_fit(monkeypatch):
    monkeypatch.setattr(dry_run, "available_memory", lambda: 1000)

    def refuse(*_):
        raise AssertionError("memory was taken")

    monkeypatch.setattr(ChainLikelihood, "at", refuse)
    monkeypatch.setattr(ChainLikelihood, "online", refuse)
    found = estimate()
    assert found.seconds is None
    assert found.memory > 1000
    assert "has only 1 kB left" in str(found)
    assert "--observed-states" in str(found)


@pytest.mark.parametrize("system", ["", "MemTotal: 5 kB\n"])
def test_a_system_that_does_not_say_what_is_left(monkeypatch, tmp_path, system):
    """Training is estimated as before."""
    path = tmp_path / "meminfo"
    if system:
        path.write_text(system, encoding="ascii")
    real = open
    monkeypatch.setattr("builtins.open", lambda name, *a, **k: real(path if name == "/proc/meminfo" else name, *a, **k))
    assert dry_run.available_memory() is None
    assert estimate().seconds > 0


def test_the_solver_counts():
    """Beyond evaluations: L-BFGS by its memory, a matrix of all pairs of weights for BFGS."""

    def solver_bytes(**options):
        training = ChainTraining(features="ner", **options)
        corpus, weights, _ = training._learn(X, Y, None, None, None)
        problem = training.make_problem(corpus, weights)
        return problem.loss.size, dry_run._solver_bytes(problem)

    n, default = solver_bytes()
    assert solver_bytes(penalty=L2(1.0), solver="bfgs")[1] > 8 * n * n
    assert solver_bytes(penalty=L1(1.0))[1] > default > 8 * n
