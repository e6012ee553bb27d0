"""Short forms are accepted wherever the full name is; errors for unknown names list the nearest and the registry."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit import GraphCRF, GridCRF, ImageSegmenter, StructureLearner
from crfkit.errors import ParameterError
from crfkit.graph.inference.engines import ENGINES, make_engine
from crfkit.graph.training.train import GraphTraining
from crfkit.names import check_name, full_name, unknown_name
from crfkit.solvers import SOLVERS, make_solver
from crfkit.structure.options import StructureOptions
from crfkit.synthetic import disc_images


def test_short_forms():
    assert full_name("pl") == "pseudo-likelihood"
    assert full_name(None) is None
    assert check_name("loss", "pl", ["pseudo-likelihood"]) == "pseudo-likelihood"
    with pytest.raises(ParameterError, match="unknown loss 'pl'; expected one of hinge"):
        check_name("loss", "pl", ["hinge"])


@pytest.mark.parametrize("given", ["lbgfs", "LBFGS", "lbfg"])
def test_the_nearest_name_is_suggested(given):
    with pytest.raises(ParameterError, match=rf"unknown solver '{given}' \(did you mean 'lbfgs'\?\); expected one of"):
        make_solver(given)


def test_every_name_of_the_registry_is_listed():
    with pytest.raises(ParameterError) as raised:
        make_solver("no such")
    assert str(raised.value).endswith(", ".join(SOLVERS))
    assert "did you mean" not in str(raised.value)
    with pytest.raises(ParameterError, match=", ".join(ENGINES)):
        make_engine("no such")


def test_a_suggestion_can_be_given():
    assert "(did you mean 'iob2'?)" in str(unknown_name("constraints", "bio", ["iob2"], nearest="iob2"))


def test_the_names_of_engines_are_their_registry_names():
    assert [make_engine(name).name for name in ENGINES] == list(ENGINES)


def test_training_has_full_names():
    assert GraphTraining(loss="pl").loss == "pseudo-likelihood"
    training = StructureOptions(loss="pl", refit="pl")
    assert (training.loss, training.refit) == ("pseudo-likelihood", "pseudo-likelihood")


def test_pl_is_the_pseudo_likelihood_in_every_estimator():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (60, 3))
    X = rng.normal(size=(60, 2))
    short, full = (GraphCRF(loss=name).fit(X, Y).coef_ for name in ("pl", "pseudo-likelihood"))
    np.testing.assert_array_equal(short, full)
    images = [rng.normal(size=(4, 4, 2)) for _ in range(2)]
    masks = [(image[..., 0] > 0).astype(int) for image in images]
    short, full = (GridCRF(loss=name).fit(images, masks).coef_ for name in ("pl", "pseudo-likelihood"))
    np.testing.assert_array_equal(short, full)
    edges = [
        StructureLearner(loss=name, refit=name, edge_strength=1.0).fit(Y).edges_ for name in ("pl", full_name("pl"))
    ]
    assert edges[0] == edges[1]


def test_pl_has_the_penalty_of_edges_chosen_as_the_full_name_has():
    """Without a penalty the segmenter chooses one on held-out images, for both spellings of the loss."""
    images, masks = disc_images(5, 1)
    options = {"block_size": 8, "features": (), "colour": True, "n_threads": 1}
    paths = [ImageSegmenter(loss=name, **options).fit(images, masks).path_ for name in ("pl", "pseudo-likelihood")]
    assert len(paths[0]) > 1
    assert [point.strength for point in paths[0]] == [point.strength for point in paths[1]]
