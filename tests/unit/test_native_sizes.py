"""Arrays that do not fit each other are refused by the compiled core, not read past their ends."""

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle import make_problem

from crfkit import _core
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.errors import DataError
from crfkit.graph.graph import Graph

ROOT = Path(__file__).parents[1]

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


def test_no_array_makes_the_core_read_or_write_where_it_should_not():
    """In a process of its own, which a fault would kill; see tests/native_attack.py."""
    found = subprocess.run([sys.executable, ROOT / "native_attack.py"], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_differences_that_wrap_around(dtype):
    """Each of these numbers is the one before it plus something positive, modulo 2³² or 2⁶⁴."""
    limits = np.iinfo(dtype)
    wrapped = np.array([0, limits.max, limits.min, -1], dtype=dtype)
    assert (np.diff(wrapped) > 0).all()
    many = 46_000  # labels, so that all codes would be in range if they were what they seem
    attempts = (
        [
            lambda: ChainField(many, 1, transition_codes=wrapped, n_transition=4),
            lambda: ChainField(many, 1, 1, pair_offsets=np.array([0, 4]), pair_codes=wrapped),
        ]
        if dtype == np.int32
        else [
            lambda: ChainField(2, 3, state_offsets=wrapped, state_labels=np.zeros(0, np.int32)),
            lambda: SequenceData(wrapped, np.array([0]), np.zeros(0, np.int32)),
            lambda: Graph(3, [[0, 1]], node_offsets=wrapped, edge_offsets=[0, 1, 1, 1]),
        ]
    )
    for attempt in attempts:
        with pytest.raises(DataError, match=r"ascend|expected 0"):
            attempt()


@pytest.mark.parametrize(("order", "most"), [(1, 46_340), (2, 1_290)])
def test_the_number_of_labels_is_limited(order, most):
    """Codes of label pairs and triples are 32-bit numbers: more labels are refused before memory is taken."""
    assert most ** (order + 1) < 2**31 <= (most + 1) ** (order + 1)
    field = ChainField(most, 3, 1, order=order)
    assert field.native.size == field.size == 3 * most + most**2
    with pytest.raises(DataError, match=f"at most {most:,}"):
        ChainField(most + 1, 3, order=order)
    data = SequenceData([0, 1], [0, 0], [], labels=[0])
    with pytest.raises(DataError, match=f"at most {most:,}"):
        ChainField.from_data(data, most + 1, 1, all_states=False, all_transitions=False, order=order)
    with pytest.raises(ValueError, match=f"at most {most}"):
        _core.Field(most + 1, 3, 0, None, None, None, 0, None, None, order, None, 0, *[None] * 4, 0, None, None)


def test_sizes_are_64_bit_numbers_or_refused():
    wide = ChainField(46_340, 2**31 - 1, 2**20)
    assert wide.native.size == wide.size == (2**31 - 1) * 46_340 + 2**20 * 46_340**2
    with pytest.raises(DataError, match="n_attributes"):
        ChainField(2, 2**31)
    with pytest.raises(DataError, match="too many weights"):
        ChainField(46_340, 1, 2**31 - 1)
    with pytest.raises(DataError, match="n_transition"):
        ChainField(2, 1, n_transition=2**64)
    for name in ("attributes", "labels"):
        with pytest.raises(DataError, match=f"{name} must be between"):
            SequenceData(**{"starts": [0, 1], "offsets": [0, 1], "attributes": [0], name: [2**32]})


def test_arrays_that_others_could_write_to_are_copied():
    mine = np.array([0, 1, 2])
    starts = np.array([0, 2])
    data = SequenceData(starts, mine, np.array([0, 1], dtype=np.int32), labels=mine[:2].astype(np.int32))
    mine[1] = starts[1] = 2**62
    np.testing.assert_array_equal(data.offsets, [0, 1, 2])
    np.testing.assert_array_equal(data.starts, [0, 2])
    assert not data.offsets.flags.writeable
    codes = np.array([0, 3], dtype=np.int32)
    field = ChainField(2, 1, transition_codes=codes, n_transition=2)
    codes[:] = 2**31 - 1
    np.testing.assert_array_equal(field.transition_codes, [0, 3])
    with pytest.raises(ValueError, match="read-only"):
        field.transition_codes[0] = 5
    copied = pickle.loads(pickle.dumps((field, data)))
    np.testing.assert_array_equal(copied[0].transition_codes, [0, 3])
    assert not copied[1].offsets.flags.writeable


def test_arrays_handed_over_are_not_copied():
    arrays = np.array([0, 2]), np.array([0, 1, 2]), np.array([0, 1], dtype=np.int32)
    data = SequenceData.taking(*arrays)
    taken = data.starts, data.offsets, data.attributes
    assert all(np.shares_memory(mine, array) for mine, array in zip(arrays, taken, strict=True))
    assert np.shares_memory(replace(data, labels=np.zeros(2, np.int32)).attributes, data.attributes)


def test_misaligned_arrays_are_read_as_they_are():
    """np.frombuffer with an offset gives such arrays; loads of vectors from there would fault."""
    memory = np.zeros(8 * 65 + 1, dtype=np.uint8)[1:]
    x = memory.view(np.float64)
    x[:] = np.arange(65.0)
    assert not x.flags.aligned
    assert _core.dot(x, x, 1) == np.arange(65.0) @ np.arange(65.0)
    with pytest.raises(TypeError):
        _core.rows_combine(np.ones(1), np.ones((1, 65)), 1.0, np.ones(65), None, x, False, 1)
    edges = np.zeros(17, dtype=np.uint8)[1:].view(np.int32).reshape(2, 2)
    edges[:] = [[0, 1], [1, 2]]
    assert _core.Graph(3, edges, np.array([0, 3]), np.array([0, 2])).n_edges == 2
