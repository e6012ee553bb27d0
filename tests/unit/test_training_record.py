"""Every entry of the record in a model file, with values of other types: an error of crfkit, or a model that works."""

import json
from contextlib import redirect_stdout, suppress
from io import StringIO

import pytest
from fuzz import chains, fields
from fuzz.containers import put_together, take_apart

from crfkit import ChainCRF, GraphCRF, ImageSegmenter, Refiner, StructureLearner
from crfkit.cli.commands.inspect import inspect as show
from crfkit.errors import CrfkitError, ModelFileError
from crfkit.files.training_record import SCHEMA, checked_record

TARGETS = {target.name: target for module in (chains, fields) for target in module.TARGETS}
VALUES = ["x", "", {}, [], [[]], {"a": 1}, None, True, -1, 0, 10**400, 1e308, "\x1b[2J", [None], [["x"]]]
STRUCTURE = {
    "method": "ebic",
    "loss": "pseudo-likelihood",
    "rule": "ebic",
    "strength": 1.0,
    "critical_strength": 2.0,
    "path": [[1.0, 1, 0.5, None, 1.0, 3]],
    "chosen": 0,
    "refit": {"by": "exact"},
    "stability": [],
    "entries": [],
    "input_scales": {"shared": [1.0], "own": [], "shared_means": [0.0], "own_means": None},
    "bins": {"y0": [1.0]},
}
RECORD = {
    "structure": STRUCTURE,
    "auto": {"solver": "lbfgs"},
    "min_frequency": 1,
    "precision": "single",
    "encoding": "utf-8",
    "frame": {"sequence": "s", "token": ["t"], "label": "y"},
    "standardised": True,
    "convex": False,
    "iterations": 3,
    "penalty_choice": {"folds": 3, "images": 9, "held_out_error": 0.2, "training_error": 0.1},
}


def places(value, path=()):
    """Yield the path of every entry of JSON, of lists the first two."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, entry in inside:
        yield from places(entry, (*path, key))


def changed(metadata, path, value):
    copy = json.loads(json.dumps(metadata))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return copy


def open_and_show(path):
    """Open a model file in every way that reads its record, and show it."""
    for kind in (ChainCRF, GraphCRF, StructureLearner, Refiner, ImageSegmenter):
        with suppress(CrfkitError):
            kind.load(path)
    with suppress(CrfkitError), redirect_stdout(StringIO()):
        show(path, top=1)


@pytest.mark.parametrize("name", ["chain-items", "chain-text", "graph-table", "structure", "grid", "segmenter"])
def test_every_entry(name, tmp_path):
    metadata, tensors = take_apart(TARGETS[name].seed())
    metadata["training"] = {**(metadata.get("training") or {}), **RECORD}
    path = tmp_path / "m.crf"
    for place in places({"training": metadata["training"]}):
        for value in VALUES:
            path.write_bytes(put_together(changed(metadata, place, value), tensors))
            open_and_show(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_other_entry_of_every_kind_of_model(name, tmp_path):
    metadata, tensors = take_apart(TARGETS[name].seed())
    path = tmp_path / "m.crf"
    for place in places({key: value for key, value in metadata.items() if key != "training"}):
        for value in VALUES:
            path.write_bytes(put_together(changed(metadata, place, value), tensors))
            open_and_show(path)


@pytest.mark.parametrize("name", sorted(SCHEMA))
def test_other_types_are_refused(name):
    with pytest.raises(ModelFileError, match=name):
        checked_record({"training": {name: [[["x"]], 10**400]}})


def test_an_entry_that_is_not_known_may_hold_anything():
    assert checked_record({"training": {"later": [{"x": None}]}}) == {"later": [{"x": None}]}
    assert checked_record({}) == {}
    with pytest.raises(ModelFileError, match="expected an object"):
        checked_record({"training": ["x"]})
