"""Arrays that do not fit each other are refused by the compiled core, not read past their ends."""

import numpy as np
import pytest
from oracle import make_problem

from crfkit import _core

STARTS, OFFSETS = np.array([0, 2, 3]), np.array([0, 1, 2, 4])  # two sequences, three positions
ATTRIBUTES = np.array([0, 1, 0, 1], dtype=np.int32)
GOOD = {
    "starts": STARTS,
    "offsets": OFFSETS,
    "attributes": ATTRIBUTES,
    "values": np.ones(4),
    "pair_offsets": np.array([0, 0, 1, 2]),
    "pair_attributes": np.array([0, 0], dtype=np.int32),
    "labels": np.array([0, 1, 0], dtype=np.int32),
    "weights": np.ones(2),
    "targets": np.ones(6, dtype=np.uint8),
    "token_weights": np.ones(3),
}


@pytest.mark.parametrize("name", [name for name in GOOD if name != "targets"])  # those fit the labels of a field
@pytest.mark.parametrize("change", ["shorter", "longer", "empty"])
def test_sizes_of_encoded_sequences(name, change):
    _core.Sequences(**GOOD)
    array = GOOD[name]
    changed = {"shorter": array[:-1], "longer": np.append(array, array[-1:]), "empty": array[:0]}[change]
    with pytest.raises(ValueError, match="must"):
        _core.Sequences(**{**GOOD, name: changed})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"starts": np.array([0, 3, 2])}, "starts must ascend"),
        ({"starts": np.array([1, 2, 3])}, "starts must ascend"),
        ({"starts": np.array([0, 4, 3])}, "starts must ascend"),
        ({"offsets": np.array([0, 5, 2, 4])}, "offsets must ascend"),
        ({"pair_offsets": np.array([0, -1, 1, 2])}, "pair_offsets must ascend"),
        ({"pair_offsets": None}, "go together"),
    ],
)
def test_offsets_ascend(change, message):
    with pytest.raises(ValueError, match=message):
        _core.Sequences(**{**GOOD, **change})


@pytest.fixture
def problem():
    return make_problem(n_labels=3)


def native(problem, **changes):
    return _core.Sequences(*(changes.get(name, getattr(problem.data, name)) for name in GOOD))


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("kind", ["Objective", "Online"])
def test_sizes_that_depend_on_the_field(problem, kind, change):
    def make(targets, cost):
        data, field = native(problem, targets=targets), problem.field.native
        if kind == "Objective":
            return _core.Objective(data, field, 1, cost=cost)
        return _core.Online(data, field, cost=cost)

    n, L = problem.data.n_positions, problem.field.n_labels
    make(np.ones(n * L, dtype=np.uint8), None)
    with pytest.raises(ValueError, match=f"targets must have {n * L} entries"):
        make(np.ones(n * (L + change), dtype=np.uint8), None)
    with pytest.raises(ValueError, match=f"cost must have {L * L} entries"):
        make(None, np.ones(L * L + change))


def test_what_labels_that_are_known_in_part_do_not_have(problem):
    weak = native(problem, labels=None, targets=np.ones(problem.data.n_positions * 3, dtype=np.uint8))
    field, w = problem.field.native, np.zeros(problem.field.size)
    with pytest.raises(ValueError, match="hinge"):
        _core.Objective(weak, field, 1, hinge=True)
    objective, gradient = _core.Objective(weak, field, 1), np.zeros(problem.field.size)
    objective.value_gradient(w, gradient)
    for method in (objective.hessian_product, objective.hessian_diagonal):
        with pytest.raises(ValueError, match="no Hessian"):
            method(w, gradient)
    online = _core.Online(weak, field)
    online.start(w)
    order = np.arange(len(problem.data))
    for method, options in [("perceptron", ()), ("measure", ()), ("mira", (1.0,)), ("arow", (1.0, 1.0))]:
        with pytest.raises(ValueError, match="mistakes are counted only where all labels are known"):
            getattr(online, method)(order, *options)


def test_the_order_names_sequences_that_are_there(problem):
    online = _core.Online(problem.data.native, problem.field.native)
    online.start(np.zeros(problem.field.size))
    for order in ([len(problem.data)], [-1]):
        with pytest.raises(IndexError, match="not there"):
            online.sgd(np.array(order), np.ones(1), 0.0, 0.0, False)
        with pytest.raises(IndexError, match="not there"):
            online.perceptron(np.array(order))
