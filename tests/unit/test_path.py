"""Paths of solutions: every point is an optimum of its own, the first is zero, and bad strengths are refused."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import make_problem

import crfkit
from crfkit.errors import CapabilityError, ParameterError, StopTraining
from crfkit.losses import ChainLikelihood
from crfkit.penalties import L1, L2, ElasticNet, NoPenalty
from crfkit.result import Status
from crfkit.solvers import LBFGS, GradientNorm, make_solver
from crfkit.training.path import regularisation_path

SPARSE = [L1(7.0), ElasticNet(0.5, 0.1), ElasticNet(1.0, 4.0)]
every_sparse = pytest.mark.parametrize("penalty", SPARSE, ids=lambda p: p.name)


def likelihood(seed=0):
    made = make_problem(seed, lengths=(6, 4, 8, 5, 7, 3), n_attributes=12, weights=True, values=True)
    return ChainLikelihood(made.data, made.field, 1)


def tight(penalty=SPARSE[0]):
    return make_solver("lbfgs" if isinstance(penalty, L2) else "owlqn", stopping=GradientNorm(1e-6))


@every_sparse
def test_from_all_zeros_down_a_geometric_grid(penalty):
    loss = likelihood()
    path = regularisation_path(loss, penalty, n=8, ratio=0.01, solver=tight())
    strengths = np.array([point.strength for point in path])
    assert len(path) == 8
    assert_allclose(strengths[1:] / strengths[:-1], 0.01 ** (1 / 7))
    assert strengths[0] == np.abs(loss.at(np.zeros(loss.size)).grad).max()
    assert path[0].nonzeros == 0
    assert not path[0].w.any()
    # a little less is enough for the first weight
    below = regularisation_path(loss, penalty, [0.999 * strengths[0]], solver=tight())
    assert below[0].nonzeros >= 1


@pytest.mark.parametrize("penalty", [*SPARSE, L2(3.0)], ids=lambda p: p.name)
def test_every_point_is_the_optimum_from_a_cold_start(penalty):
    loss = likelihood(1)
    strengths = [8.0, 2.0, 0.5, 0.1] if isinstance(penalty, L2) else None
    path = regularisation_path(loss, penalty, strengths, n=6, ratio=0.02, solver=tight(penalty))
    for point in path:
        cold = tight(penalty).minimize(loss, penalty.at(point.strength), np.zeros(loss.size))
        assert point.result.status is Status.CONVERGED
        assert_allclose(point.value, cold.value, rtol=1e-6)
        assert point.value == point.result.value
        assert point.nonzeros == np.count_nonzero(point.w)
        assert point.result.objective == f"chain likelihood + {penalty.at(point.strength).name}"
    # the optimal value falls with the strength, the loss by itself too
    losses = [loss.at(point.w).value for point in path]
    assert [p.value for p in path] == sorted((p.value for p in path), reverse=True)
    assert losses == sorted(losses, reverse=True)


@every_sparse
def test_weights_come_in_as_the_strength_falls(penalty):
    path = regularisation_path(likelihood(2), penalty, n=10, solver=tight())
    nonzeros = [point.nonzeros for point in path]
    assert nonzeros[0] == 0
    assert nonzeros[-1] > 10
    assert sum(np.diff(nonzeros) < 0) <= 2  # now and then one leaves


def test_warm_starts_save_evaluations():
    loss, solver = likelihood(), tight()
    path = regularisation_path(loss, L1(), n=20, ratio=0.01, solver=solver)
    warm = sum(point.result.evaluations for point in path)
    cold = sum(solver.minimize(loss, L1(point.strength), np.zeros(loss.size)).evaluations for point in path)
    assert warm < 0.8 * cold


def test_an_elastic_net_keeps_its_proportion():
    path = regularisation_path(likelihood(), ElasticNet(0.5, 2.0), [1.0, 0.25], solver=tight())
    assert [p.result.objective for p in path] == [
        "chain likelihood + ElasticNet(1, 4)",
        "chain likelihood + ElasticNet(0.25, 1)",
    ]


def test_the_solver_is_chosen_by_the_penalty_or_given():
    loss = likelihood()

    def used(penalty, solver=None):
        return regularisation_path(loss, penalty, [2.0], solver=solver)[0].result.state["solver"]

    assert used(L1()) == "owlqn"
    assert used(ElasticNet()) == "owlqn"
    assert used(L2()) == "lbfgs"
    assert used(L2(), "tron") == "tron"
    assert used(L2(), LBFGS(memory=3)) == "lbfgs"
    with pytest.raises(CapabilityError, match="not smooth"):
        used(L1(), "lbfgs")
    with pytest.raises(ParameterError, match="unknown solver 'fast'"):
        used(L1(), "fast")


def test_scores_and_callbacks():
    seen = []

    def callback(point):
        seen.append(point)
        if point.score > 3:
            raise StopTraining

    path = regularisation_path(likelihood(), L1(), n=15, score=lambda w: np.count_nonzero(w), callback=callback)
    assert list(path) == seen
    assert len(path) < 15
    assert [p.score for p in path] == [float(p.nonzeros) for p in path]
    assert isinstance(path[0].score, float)
    assert [p.score > 3 for p in path] == [False] * (len(path) - 1) + [True]
    assert regularisation_path(likelihood(), L1(), n=1)[0].score is None


def test_an_interrupted_path_ends_there():
    class Interrupting(LBFGS):
        runs = 0

        def step(self, objective, state):
            type(self).runs += 1
            if self.runs == 5:
                raise KeyboardInterrupt
            return super().step(objective, state)

    path = regularisation_path(likelihood(), L2(), [3.0, 2.0, 1.0], solver=Interrupting(max_iterations=3))
    assert [p.result.status for p in path] == [Status.MAX_ITERATIONS, Status.INTERRUPTED]


# --- strengths


def test_strengths_are_sorted_and_used_once():
    path = regularisation_path(likelihood(), L2(), (s for s in (0.5, 4, 2.0, 0.5)))
    assert [p.strength for p in path] == [4.0, 2.0, 0.5]
    assert regularisation_path(likelihood(), L2(), [0.0, 1.0], solver=LBFGS(max_iterations=2))[-1].strength == 0.0


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_impossible_strengths_are_refused(bad):
    with pytest.raises(ParameterError, match=f"strengths must be finite numbers >= 0, not {bad}"):
        regularisation_path(likelihood(), L1(), [1.0, bad])


def test_a_path_that_cannot_be_made_is_refused():
    loss = likelihood()
    nothing = ChainLikelihood(loss.data.with_weights(np.zeros(len(loss.data))), loss.field, 1)
    cases = [
        ((loss, L1(), []), {}, "list of strengths is empty"),
        ((loss, L2()), {}, r"no strength of L2\(1\) makes all weights zero: give the strengths"),
        ((loss, NoPenalty(), [1.0]), {}, "a penalty that has a strength .*, not no penalty"),
        ((loss, ElasticNet(0.0, 1.0), [1.0]), {}, "without an L1 part"),
        ((loss, L1()), {"n": 0}, "n must be an integer >= 1"),
        ((loss, L1()), {"ratio": 1.0}, "ratio must be between 0 and 1"),
        ((loss, L1()), {"ratio": math.nan}, "ratio must be between 0 and 1"),
        ((nothing, L1()), {}, "largest slope of the loss at zero weights is 0"),
    ]
    for arguments, options, message in cases:
        with pytest.raises(ParameterError, match=message):
            regularisation_path(*arguments, **options)


def test_at_the_top_of_the_package():
    assert crfkit.regularisation_path is regularisation_path
    assert {"regularisation_path", "PathPoint"} <= set(dir(crfkit))
