"""Attributes that L1 holds at zero: no weights move their derivatives past the bounds, and the optimum is the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracle import make_problem

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.fields.part import FieldPart
from crfkit.chain.fields.screened import screened
from crfkit.chain.training.screening import l1_strengths
from crfkit.losses import CandidateChain, ChainLikelihood, SoftmaxMargin
from crfkit.penalties import L1, L2, Blockwise, ByBlock, ElasticNet, GroupL2, NoPenalty
from crfkit.result import Status
from crfkit.solvers import GradientNorm, make_solver

BLOCKS = ("state", "transition", "pair", "triple", "class")
LENGTHS = (4, 0, 6, 1, 5, 3)
shapes = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "n_labels": st.integers(1, 4),
        "n_attributes": st.integers(1, 25),
        "n_pair_attributes": st.integers(0, 12),
        "values": st.booleans(),
        "weights": st.booleans(),
        "states": st.sampled_from(["all", "observed", "subset"]),
        "transitions": st.sampled_from(["all", "observed", "none"]),
        "order": st.sampled_from([1, 2]),
        "forbidden": st.sampled_from([None, 0.3]),
        "n_classes": st.sampled_from([0, 0, 2]),
        "scale": st.sampled_from([0.1, 3.0, 30.0]),
    }
)
strengths = st.sampled_from([0.3, 1.0, 2.0, 4.5])


def everywhere(strength):
    return dict.fromkeys(BLOCKS, strength)


def occurrences(rows, labels, lengths, n_labels, n_attributes, **more):
    """Return data with these attributes at each position, and the field of the pairs that occur."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    data = SequenceData(starts, offsets, np.array([a for row in rows for a in row]), labels=np.array(labels), **more)
    return data, ChainField.from_data(data, n_labels, n_attributes, all_states=False, all_transitions=True)


def left_out(whole, found):
    """Return which weights of a field are not in the smaller one."""
    out = np.ones(whole.size, dtype=bool)
    out[found.places] = False
    return out


@pytest.mark.parametrize("kind", [ChainLikelihood, SoftmaxMargin])
@given(shapes, strengths)
def test_derivatives_of_what_is_left_out_never_exceed_the_strength(kind, shape, strength):
    made = make_problem(lengths=LENGTHS, **shape)
    found = screened(made.data, made.field, everywhere(strength))
    if found is None:
        return
    gradient = kind(made.data, made.field, n_threads=1).at(made.w).grad
    out = left_out(made.field, found)
    assert (np.abs(gradient[out]) <= strength + 1e-9).all()


@given(shapes, strengths)
def test_the_rest_is_the_same_loss(shape, strength):
    made = make_problem(lengths=LENGTHS, **{**shape, "scale": 1.0})
    found = screened(made.data, made.field, everywhere(strength))
    if found is None:
        return
    w = made.w[found.places]
    assert_array_equal(found.in_full(w)[found.places], w)
    assert np.count_nonzero(found.in_full(np.ones(len(w)))) == found.field.size == len(w)
    small = ChainLikelihood(found.data(made.data), found.field, n_threads=1).at(w)
    whole = ChainLikelihood(made.data, made.field, n_threads=1).at(found.in_full(w))
    assert_allclose(small.value, whole.value, rtol=1e-12, atol=1e-12)
    assert_allclose(small.grad, whole.grad[found.places], rtol=1e-9, atol=1e-10)


@given(shapes, strengths, st.sampled_from([L1, lambda s: ElasticNet(s, 0.2)]))
def test_the_optimum_is_the_same(shape, strength, kind):
    made = make_problem(lengths=LENGTHS, **{**shape, "scale": 1.0})
    found = screened(made.data, made.field, everywhere(strength))
    if found is None:
        return
    solver = make_solver("owlqn", stopping=GradientNorm(1e-9), max_iterations=3000)
    whole = ChainLikelihood(made.data, made.field, n_threads=1)
    small = ChainLikelihood(found.data(made.data), found.field, n_threads=1)
    best = solver.minimize(whole, kind(strength), np.zeros(whole.size))
    less = solver.minimize(small, kind(strength), np.zeros(small.size))
    assert not best.w[left_out(made.field, found)].any()
    assert_allclose(less.value, best.value, rtol=1e-10, atol=1e-10)
    # and the smaller one's solution is optimal among all weights
    w = found.in_full(less.w)
    smooth, rest = kind(strength).split()
    gradient = whole.at(w).grad
    if smooth is not None:
        smooth.add_gradient(w, gradient)
    if less.status is Status.CONVERGED:
        assert np.linalg.norm(rest.min_norm_subgradient(w, gradient)) < 1e-8


def test_the_steps_are_the_same():
    made = make_problem(3, lengths=(5, 6, 4, 7), n_attributes=30, n_pair_attributes=9, states="observed")
    found = screened(made.data, made.field, everywhere(1.0))
    solver = make_solver("owlqn", stopping=GradientNorm(1e-7))
    losses = (
        ChainLikelihood(made.data, made.field, n_threads=1),
        ChainLikelihood(found.data(made.data), found.field, n_threads=1),
    )
    runs = [solver.minimize(loss, L1(1.0), np.zeros(loss.size)) for loss in losses]
    assert found.field.size < made.field.size
    assert_allclose([row.value for row in runs[0].trace], [row.value for row in runs[1].trace], rtol=1e-11)
    assert runs[0].evaluations == runs[1].evaluations


def test_what_is_left_out_at_strength_one():
    rows = [[0, 1, 2], [1, 2, 3], [2, 3], [0, 4]]
    #   0 twice with labels 0 and 1; 1 twice with 0; 2 three times; 3 twice with 0 and 1; 4 once
    data, field = occurrences(rows, [0, 0, 1, 1], [4], 2, 5)
    assert screened(data, field, everywhere(1.0)).attributes.tolist() == [1, 2]
    assert screened(data, field, everywhere(0.9)) is None
    # with all labels there is one that attribute 0 never has, and its derivative reaches 2
    full = ChainField.from_data(data, 3, 5, all_states=True, all_transitions=True)
    assert screened(data, full, everywhere(1.0)).attributes.tolist() == [0, 1, 2, 3]
    # a sequence of weight 3 counts three times
    assert screened(replace(data, weights=[3.0]), field, everywhere(1.0)) is None
    assert screened(replace(data, weights=[3.0]), field, everywhere(3.0)).attributes.tolist() == [1, 2]


def test_values_below_zero():
    # +1 with label 0 and −1 with label 1: both push the weight of label 0 up, and that of label 1 down
    data, field = occurrences([[0], [0], []], [0, 1, 0], [3], 2, 1, values=np.array([1.0, -1.0]))
    assert screened(data, field, everywhere(1.5)) is None
    steep = ChainLikelihood(data, field, n_threads=1).at(np.array([-40.0, 40.0, 0.0, 0.0, 0.0, 0.0])).grad
    assert_allclose(np.abs(steep[:2]), 2.0, rtol=1e-6)
    assert screened(data, field, everywhere(2.0)).field.n_attributes == 0


def test_blocks_without_l1_stay():
    made = make_problem(1, lengths=LENGTHS, n_attributes=30, n_pair_attributes=12, states="observed")
    by_state, by_pair = (screened(made.data, made.field, {name: 1.0}) for name in ("state", "pair"))
    assert by_state.field.n_attributes < 30
    assert by_state.field.n_pair_attributes == 12
    assert by_pair.field.n_attributes == 30
    assert by_pair.field.n_pair_attributes < 12
    assert screened(made.data, made.field, {}) is None
    classes = make_problem(1, lengths=LENGTHS, n_attributes=30, n_classes=2, states="observed")
    assert screened(classes.data, classes.field, {"state": 1.0}) is None  # their other weights are not under L1
    assert isinstance(screened(classes.data, classes.field, everywhere(1.0)), FieldPart)


def test_something_is_always_left():
    made = make_problem(1, lengths=LENGTHS, states="observed", transitions="none")
    assert screened(made.data, made.field, everywhere(1e6)) is None


def test_labels_known_in_part_and_weights_of_positions_have_no_such_bounds():
    made = make_problem(1, lengths=LENGTHS, n_attributes=30, states="observed")
    some = np.ones((made.data.n_positions, 3), dtype=bool)
    assert screened(replace(made.data, labels=None, targets=some), made.field, everywhere(1.0)) is None
    twice = replace(made.data, token_weights=np.full(made.data.n_positions, 2.0))
    assert screened(twice, made.field, everywhere(1.0)) is None


def test_candidates_keep_their_ids():
    made = make_problem(4, lengths=LENGTHS, n_attributes=30, n_pair_attributes=12)
    found = screened(made.data, made.field, everywhere(1.0))
    small = CandidateChain(found.data(made.data), found.field, 1, names=found.names)
    whole = CandidateChain(made.data, made.field, 1)
    assert small.n_candidates < whole.n_candidates
    for loss in (small, whole):  # those that can be selected are the same, in the same order
        ids, scores = loss.candidates(loss.at(np.zeros(loss.size)), "max", 1.0)
        if loss is small:
            expected = ids, scores
    assert_array_equal(ids, expected[0])
    assert_allclose(scores, expected[1])
    more, _ = occurrences([[0]] * made.data.n_positions, made.data.labels, LENGTHS, 3, 1)
    larger = small.add_candidates(more)
    assert larger.pool.ids["state"][-1] == 30 + found.pair_attributes[-1] + 1


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        (L1(0.5), {"state": 0.5, "pair": 0.5}),
        (ElasticNet(0.5, 2.0), {"state": 0.5, "pair": 0.5}),
        (L2(1.0), {}),
        (NoPenalty(), {}),
        (Blockwise({"state": L1(0.5), "pair": L2(1.0)}), {"state": 0.5}),
        (Blockwise({"state": L1(0.5)}, {"state": slice(0, 3)}), {}),
        (ByBlock(L1, 0.5, L2(1.0)), {"state": 0.5, "pair": 0.5}),
        (ByBlock(GroupL2, 0.5), {}),
    ],
    ids=lambda part: part.name if hasattr(part, "name") else "",
)
def test_strengths_by_block(penalty, expected):
    assert l1_strengths(penalty, ["state", "pair"]) == expected
