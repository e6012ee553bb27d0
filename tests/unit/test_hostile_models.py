"""Model files and checkpoints whose checksums are right and whose contents are not: what `make fuzz` found, by hand."""

import json
import time

import numpy as np
import pytest
from fuzz import chains, checkpoints, fields
from fuzz.containers import put_together, take_apart

from crfkit import ChainModel, Graph, GraphCRF, ImageSegmenter, Refiner
from crfkit.cli.commands.inspect import _json as inspect_json
from crfkit.errors import CrfkitError, LimitError, ModelFileError, ParameterError
from crfkit.files import limits
from crfkit.files.checkpoint import Checkpoint
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.decoding import decode
from crfkit.solvers import SOLVERS

SEEDS = {target.name: target for module in (chains, fields, checkpoints) for target in module.TARGETS}


@pytest.fixture
def changed(tmp_path):
    """Returns a function that writes a valid file of the fuzzer with other metadata or tensors."""

    def write(name, change):
        metadata, tensors = take_apart(valid(name))
        change(metadata, tensors)
        path = tmp_path / "m.crf"
        path.write_bytes(put_together(metadata, tensors))
        return path

    return write


_made = {}


def valid(name):
    if name not in _made:
        _made[name] = SEEDS[name].seed()
    return _made[name]


# --- shapes of tensors


@pytest.mark.parametrize("shape", [(1,) * 65, (1,) * 33, (0, 2**40, 2**40)])
def test_shapes_that_no_array_has(changed, tmp_path, shape):
    metadata, tensors = take_apart(valid("chain-items"))
    size = 0 if 0 in shape else 1
    blob = put_together(metadata, {**tensors, "weights": np.zeros(size)})
    path = tmp_path / "m.crf"
    old = b'"dtype": "F64", "shape": [%d]' % size
    assert blob.count(old) == 1
    new = b'"dtype": "F64", "shape": %s' % str(list(shape)).encode()
    head = int.from_bytes(blob[:8], "little") + len(new) - len(old)
    path.write_bytes(head.to_bytes(8, "little") + blob[8:].replace(old, new))
    with pytest.raises(ModelFileError, match="weights"):
        ChainModel.load(path)


# --- small files that ask for much


def many_labels(n, order):
    def change(metadata, tensors):
        metadata.update(labels=[f"l{k}" for k in range(n)], order=order, n_transition=0, n_triple=0)
        tensors["field.transition_codes"] = np.zeros(0, np.int32)

    return change


def entry(name, value, *path):
    """A change of one entry of the metadata, inside others that `path` names."""

    def change(metadata, tensors):
        for key in path:
            metadata = metadata[key]
        metadata[name] = value

    return change


GREEDY = {
    "30,000 labels": ("chain-observed", many_labels(30_000, 1), ChainModel.load),
    "1,000 labels at order 2": ("chain-order2", many_labels(1_000, 2), ChainModel.load),
    "buckets": ("chain-hashed", entry("hash_bits", 28), ChainModel.load),
    "sweeps": ("graph-gibbs", entry("n_sweeps", 10**12, "inference", "options"), GraphCRF.load),
    "annealing": ("graph-gibbs", entry("ais_steps", 10**12, "inference", "options"), GraphCRF.load),
    "trees": ("graph-trw", entry("n_trees", 10**12, "inference", "options"), GraphCRF.load),
    "messages": ("graph-bp", entry("max_iterations", 2**31 - 1, "inference", "options"), GraphCRF.load),
    "tables": ("graph-junction", entry("max_table", 2**40, "inference", "options"), GraphCRF.load),
    "labellings": ("graph-enumerate", entry("max_labellings", 2**40, "inference", "options"), GraphCRF.load),
    "image size": ("segmenter", entry("size", [60_000, 60_000], "image_features"), ImageSegmenter.load),
}


@pytest.mark.parametrize("name", GREEDY)
def test_small_files_that_ask_for_much(changed, name):
    seed, change, load = GREEDY[name]
    path = changed(seed, change)
    assert path.stat().st_size < 500_000
    begin = time.process_time()
    with pytest.raises(LimitError, match=f"{path}.*CRFKIT_LIMITS=(memory|steps)="):
        load(path)
    assert time.process_time() - begin < 2


def test_limits_can_be_raised_for_a_file(changed):
    path = changed("graph-gibbs", entry("n_sweeps", 2_000_000, "inference", "options"))
    with limits.raised(steps=10**8):
        assert GraphCRF.load(path).inference.n_sweeps == 2_000_000


@pytest.mark.parametrize("n", [300_000_000, 2**70, -1, True])
def test_features_that_have_no_weights(changed, n):
    path = changed("graph-inputs", entry("own_features", n))
    with pytest.raises(ModelFileError, match="own_features"):
        GraphCRF.load(path)


# --- options of other kinds


@pytest.mark.parametrize("name", ["engine", "graph", "n_states", "self", "n_threads", "\ud800"])
def test_options_that_an_engine_does_not_have(changed, name):
    path = changed("graph-trw", entry(name, 4, "inference", "options"))
    with pytest.raises(ModelFileError, match="has no option"):
        GraphCRF.load(path)


@pytest.mark.parametrize(
    "change",
    [
        entry("block_size", 10**30, "nodes"),
        entry("superpixels", 10**12, "nodes"),
        entry("neighbours", 5, "nodes"),
        entry("detail", 10**400),
        entry("column_labels", [[0], 1]),
        entry("inference", {"name": "auto", "options": {"x": 1}}),
    ],
)
def test_refiners_that_cannot_be(changed, change):
    with pytest.raises(ModelFileError):
        Refiner.load(changed("refiner", change))


@pytest.mark.parametrize(
    ("seed", "change", "load"),
    [
        ("chain-calibrated", entry("conformal", {"0.9": -(10**400)}, "calibration"), ChainModel.load),
        ("graph-enumerate", entry("max_labellings", {"a": 1}, "inference", "options"), GraphCRF.load),
        ("graph-junction", entry("max_table", 10**300, "inference", "options"), GraphCRF.load),
        ("graph-table", lambda m, t: t.update(weights=np.full_like(t["weights"], 1.7e308)), GraphCRF.load),
    ],
)
def test_numbers_without_end(changed, seed, change, load):
    with pytest.raises(CrfkitError, match=r"m\.crf: .{,300}$"):
        load(changed(seed, change))


# --- checkpoints


def resumed(name, path):
    target = SEEDS[name]
    target.use(path, target.random(0, 0))


BROKEN = {
    "lbfgs-0": {"slots": [9], "sy": np.zeros((3, 3)), "products": np.zeros(2), "gamma": -1.0, "pending": 77},
    "bfgs-0": {"inverse": np.eye(2), "steps": -1, "best_norm": 10**300, "stalls": 0.5},
    "pqn-1": {"s": np.zeros((2, 9)), "y": np.zeros(4)},
    "sgd-0": {"step_size": -1.0, "updates": 10**30, "epoch": -1, "theta": np.zeros(1)},
    "arow-0": {"theta": "x"},
    "newton-0": {"first_norm": 0.0},
    "tron-0": {"radius": float("nan"), "value": [1]},
    "admm-1": {"rho": -1.0, "k": 10**400, "residual": "x", "u": np.full(9, np.inf)},
    "fista-0": {"t": -1.0, "L": "1", "lipschitz": float("inf")},
    "adam-0": {"v": np.full(4, -1.0), "t": -3},
}


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, entries in BROKEN.items() for key in entries])
def test_states_that_no_solver_could_have_saved(changed, name, key):
    value = BROKEN[name][key]

    def change(metadata, tensors):
        metadata["state"].pop(key, None)
        tensors.pop(f"state.{key}", None)
        if isinstance(value, np.ndarray):
            tensors[f"state.{key}"] = value
        else:
            metadata["state"][key] = value

    with pytest.raises(CrfkitError, match=r"saved state|sequences of numbers|weights"):
        resumed(f"checkpoint-{name}", changed(f"checkpoint-{name}", change))


def singular(metadata, tensors):
    for key in ("state.sy", "state.s"):
        if key in tensors:
            tensors[key] = 0 * tensors[key]


def test_singular_pairs_are_forgotten(changed):
    resumed("checkpoint-lbfgs-0", changed("checkpoint-lbfgs-0", singular))


@pytest.mark.parametrize("name", ["admm-1", "pqn-1"])
def test_pairs_without_curvature_are_refused(changed, name):
    with pytest.raises(ParameterError, match="positive curvature"):
        resumed(f"checkpoint-{name}", changed(f"checkpoint-{name}", singular))


def test_every_solver_has_a_checkpoint_in_the_fuzzer():
    assert {name.removeprefix("checkpoint-")[:-2] for name in SEEDS if name.startswith("checkpoint-")} == (
        set(SOLVERS) - {"toy"}  # of tests/recipes
    )


def test_a_checkpoint_of_lists_is_refused(changed):
    path = changed("checkpoint-lbfgs-0", entry("state", [1, 2]))
    with pytest.raises(ModelFileError, match="state"):
        Checkpoint.load(path)


@pytest.mark.parametrize("name", ["engine", "graph", "n_states", "self", "options"])
def test_options_of_a_decoder_are_those_of_its_engine(name):
    field = Potentials.from_tables(Graph.path(2), np.zeros((2, 2)), np.eye(2))
    with pytest.raises(ParameterError, match="tree"):
        decode(field, "tree", **{name: 4})


def test_json_of_a_lone_surrogate_can_be_printed_and_read():
    text = inspect_json({"label": "\ud800"})
    text.encode("utf-8")
    assert json.loads(text) == {"label": "\ud800"}
