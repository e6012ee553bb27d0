"""A function whose extra is not installed raises one error, which names the command that installs it."""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np
import pytest

import crfkit
from crfkit.errors import CrfkitError, MissingPackageError, ParameterError
from crfkit.explain import learning_curve
from crfkit.extras import PACKAGES, how_to_install, is_installed, load
from crfkit.plots import plot_explanation, plot_graph, plot_label_probabilities, plot_reliability, plot_trace
from crfkit.plots.tuning import plot_tuning

X, Y = 4 * [[["w=the"], ["w=cat"]], [["w=a"], ["w=dog"]]], 8 * [["DET", "NOUN"]]


def chain():
    return crfkit.ChainCRF().fit(X, Y)


def structure():
    return crfkit.StructureLearner(edge_strength=5.0).fit(np.random.default_rng(1).integers(2, size=(40, 3)))


def curve():
    return learning_curve(crfkit.ChainCRF(), X, Y, X, Y, sizes=[4], seeds=1)


def attractive_grid():
    from crfkit.graph.fields.potentials import Potentials
    from crfkit.graph.graph import Graph

    return Potentials.from_tables(Graph.path(3), [[1, 0], [0, 0.5], [1, 0]], np.eye(2))


def decoded(method):
    from crfkit.graph.inference.decoding import decode

    return decode(attractive_grid(), method)


def open_image(folder):
    from crfkit.files.images import read_image

    return read_image(folder / "a.png")


def refined():
    images, maps = [np.zeros((8, 8, 3), np.uint8)], [np.full((8, 8, 2), 0.5)]
    return crfkit.Refiner(superpixels=4).fit(maps, images, [np.eye(8, dtype=np.uint8)])


# extra: what needs it, given a folder
USES = {
    "plots": [
        lambda folder: plot_trace(chain().result_),
        lambda folder: plot_reliability({}),
        lambda folder: plot_graph([("a", "b", 1.0)]),
        lambda folder: plot_tuning(None),
        lambda folder: plot_label_probabilities(chain(), X[0]),
        lambda folder: plot_explanation(chain().explain(X[0])[0]),
        lambda folder: curve().plot(),
    ],
    "frames": [lambda folder: curve().to_frame(), lambda folder: structure().edges_frame()],
    "graphs": [lambda folder: structure().graph_],
    "cuts": [lambda folder: decoded("graph-cut"), lambda folder: decoded("qpbo")],
    "images": [open_image],
    "superpixels": [lambda folder: refined()],
    "torch": [
        lambda folder: crfkit.ChainCRF(device="cuda").fit([[["a"]]], [["X"]]),
        lambda folder: import_module("crfkit.torch").CRF,
    ],
    "distributed": [
        lambda folder: crfkit.StructureLearner(edge_strength="cv", cluster="local:1").fit([[0, 1], [1, 0]])
    ],
}
MODULES = {extra: [m for m, (_, own) in PACKAGES.items() if own == extra] for _, extra in PACKAGES.values()}


def test_every_extra_is_tried():
    assert set(USES) == set(MODULES)


@pytest.mark.parametrize(("extra", "use"), [(extra, use) for extra, uses in USES.items() for use in uses])
def test_a_missing_extra_is_named(extra, use, monkeypatch, tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    for module in MODULES[extra]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=rf"install it with pip install 'crfkit\[{extra}\]'") as caught:
        use(tmp_path)
    assert isinstance(caught.value, (CrfkitError, ParameterError, ImportError))


@pytest.mark.parametrize("module", PACKAGES)
def test_whether_a_package_is_installed(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    assert not is_installed(module)
    with pytest.raises(MissingPackageError, match=r"^plots need .*; or draw it by hand$") as caught:
        load(f"{module}.part", "plots need", "or draw it by hand")
    assert how_to_install(module) in str(caught.value)


@pytest.mark.parametrize("line", ["import a_package_that_nobody_has", "raise ImportError('a_package_that_nobody_has')"])
def test_a_package_that_is_there_but_broken_is_not_called_missing(line, monkeypatch, tmp_path):
    (tmp_path / "networkx.py").write_text(line, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "networkx"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match="a_package_that_nobody_has") as caught:
        load("networkx", "graphs need")
    assert not isinstance(caught.value, MissingPackageError)


def test_a_frame_of_another_library():
    with pytest.raises(ParameterError, match=r"pip install 'crfkit\[frames\]'"):
        crfkit.ChainCRF().fit_frame([1, 2], sequence="s", token="t", label="y")
