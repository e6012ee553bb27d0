"""Penalties of groups of features: chosen on folds of images, recorded, and warned about where a model overfits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crfkit import L1, L2, ImageSegmenter
from crfkit.graph.fields.field import GraphField
from crfkit.images.features import ImageFeatures
from crfkit.images.model.segmenter import SegmenterModel
from crfkit.images.training.groups import (
    LEAST_IMAGES,
    MOST_BLOCKS,
    MOST_IMAGES,
    Shares,
    far_below,
    large_groups,
    windows,
)
from crfkit.images.training.search import BlockTraining
from crfkit.penalties import Blockwise
from crfkit.synthetic import disc_images

OPTIONS = {"block_size": 4, "features": ("c1",), "colour": True, "n_threads": 1, "tolerance": 1e-3}
SHAPE = (32, 40)


@pytest.fixture(scope="module")
def discs():
    return disc_images(6, seed=3, shape=SHAPE), disc_images(12, seed=4, shape=SHAPE)


@pytest.fixture(scope="module")
def fitted(discs):
    return ImageSegmenter(**OPTIONS).fit(*discs[0])


def noise(image):
    """Forty features that say nothing, and by which every block of an image can be known."""
    image = np.asarray(image)
    rng = np.random.default_rng(int(1e6 * image.sum()) % 2**32)
    return rng.normal(size=(-(-image.shape[0] // 4), -(-image.shape[1] // 4), 40))


def test_groups_are_those_of_many_features():
    groups = large_groups(ImageFeatures(colour=True, position=True).measured(np.zeros((8, 8))))
    assert {name: (ids[0], len(ids)) for name, ids in groups.items()} == {"sift": (0, 128), "c1": (128, 34)}
    own = ImageFeatures(4, (noise, "c1"), colour=True).measured(np.zeros((8, 8), dtype=np.float32))
    assert {name: (ids[0], len(ids)) for name, ids in large_groups(own).items()} == {"c1": (0, 34), "noise": (40, 40)}
    assert large_groups(ImageFeatures(4, (), colour=True, position=True)) == {}


@pytest.mark.parametrize(("states", "forms"), [(2, ("ising", "ising")), (3, ("full", "potts")), (3, ("full", "full"))])
def test_every_weight_has_the_penalty_of_its_group(states, forms):
    field = GraphField([states], 1 + 40, 1 + 40, 1, *forms)
    groups = {"c1": np.arange(34)}
    shares = Shares({"c1": 2.0}, {"c1": 5.0})
    penalty = shares.penalty(field, groups, 10.0, 1.0)
    strengths = np.zeros(field.size)
    penalty.split()[0].add_hess_diag(np.zeros(field.size), strengths)
    nodes, edges = field.unpack(strengths)
    nodes, edges = nodes[field.node_active], edges[field.edge_active]
    assert (nodes[:, 1:35] == 20).all()
    assert (edges[:, 1:35] == 50).all()
    assert (np.delete(nodes, np.s_[1:35], axis=1) == 1).all()
    assert (np.delete(edges, np.s_[1:35], axis=1) == 1).all()


def test_noise_does_no_harm(discs):
    """Features that say nothing are held down, where one strength for all weights learns them by heart."""
    (images, masks), (new, truth) = discs
    options = {**OPTIONS, "features": (noise,)}
    plain = 1 - ImageSegmenter(**{**OPTIONS, "features": ()}).fit(images, masks).score(new, truth)
    even = 1 - ImageSegmenter(**options, penalty=L2(1.0)).fit(images, masks).score(new, truth)
    chosen = 1 - ImageSegmenter(**options).fit(images, masks).score(new, truth)
    assert even > plain + 0.02
    assert chosen < plain + 0.01


def test_the_choice_has_the_fewest_errors_of_the_path(fitted):
    scores = [point.score for point in fitted.path_]
    strengths = [point.strength for point in fitted.path_]
    assert len(scores) >= 3
    assert strengths == sorted(strengths, reverse=True)
    assert fitted.penalty_choice_["held_out_error"] <= min(scores) + 1e-6
    assert fitted.penalty_choice_["images"] == 6
    assert "node L2(1), edge L2(1), node c1 L2(" in fitted.result_.objective


def test_the_choice_depends_on_the_seed_alone(discs, fitted):
    again = ImageSegmenter(**OPTIONS).fit(*discs[0])
    assert again.path_ == fitted.path_
    assert again.result_.objective == fitted.result_.objective
    np.testing.assert_array_equal(again.model_.field.w, fitted.model_.field.w)


def test_the_choice_is_in_the_model_file(fitted, tmp_path):
    fitted.save(tmp_path / "s.crf")
    record = SegmenterModel.load(tmp_path / "s.crf").field.training
    assert record["penalty_choice"] == fitted.penalty_choice_
    assert "c1 L2(" in record["objective"]


def test_few_images_get_a_strength_in_proportion_to_their_blocks(discs):
    (images, masks), _ = discs
    few = LEAST_IMAGES - 1
    small = ImageSegmenter(**OPTIONS).fit(images[:few], masks[:few])
    assert small.path_ == ()
    assert small.penalty_choice_ == {"folds": 0}
    assert "node c1 L2(800), edge c1 L2(800)" in small.result_.objective  # 10 · 8 · 10 blocks


@pytest.mark.parametrize(
    "options",
    [{"features": ()}, {"penalty": L2(2.0)}, {"strengths": [9.0, 3.0], "penalty": L1()}, {"loss": "hinge"}],
    ids=["few features", "a penalty", "strengths", "another scale"],
)
def test_nothing_is_chosen(discs, options):
    (images, masks), _ = discs
    made = ImageSegmenter(**{**OPTIONS, "max_iterations": 3, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(images, masks)
    assert made.penalty_choice_ is None
    assert "c1" not in made.result_.objective


def test_the_pseudo_likelihood_chooses_both(discs):
    (images, masks), (new, truth) = discs
    made = ImageSegmenter(**{**OPTIONS, "features": (noise,)}, loss="pseudo-likelihood").fit(images, masks)
    assert len(made.path_) == 5
    assert "node noise L2(" in made.result_.objective
    assert "edge noise" not in made.result_.objective
    plain = ImageSegmenter(**{**OPTIONS, "features": ()}, loss="pseudo-likelihood").fit(images, masks)
    assert made.score(new, truth) > plain.score(new, truth) - 0.01


def test_a_model_that_knows_its_images_by_heart_is_a_warning(discs):
    (images, masks), _ = discs
    options = {**OPTIONS, "features": (noise,), "validation_fraction": 0.3}
    with pytest.warns(ConvergenceWarning, match=r"of the training images are wrong and .* held out: the model knows"):
        ImageSegmenter(**options, strengths=[1e-3], penalty=L2()).fit(images, masks)
    assert far_below(0.01, 0.08, "here") is not None
    assert far_below(0.03, 0.04, "here") is None
    assert far_below(0.0, 0.01, "here") is None


def test_windows_bound_what_is_searched_on():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(90, 70, 2)).astype(np.float32) for _ in range(MOST_IMAGES + 5)]
    states = [rng.integers(0, 2, 90 * 70).astype(np.int32) for _ in X]
    run = BlockTraining(training=None, encoder=None, X=X, states=states, names=["x"] * len(X), make=None)
    found = windows(run, 0)
    assert len(found.X) == MOST_IMAGES
    assert sum(map(len, found.states)) <= 1.25 * MOST_BLOCKS
    for x, of in zip(found.X, found.states, strict=True):
        whole = next(k for k, image in enumerate(X) if np.shares_memory(image, x))
        top, left = np.argwhere((X[whole] == x[0, 0]).all(axis=2))[0]
        h, w = x.shape[:2]
        np.testing.assert_array_equal(states[whole].reshape(90, 70)[top : top + h, left : left + w].ravel(), of)
    small = windows(run.subset(range(3)), 0)
    assert [x.shape for x in small.X] == [x.shape for x in windows(run.subset(range(3)), 1).X]


def test_parts_of_a_penalty_may_be_any_weights():
    penalty = Blockwise({"a": L2(2.0), "b": L2(1.0)}, {"a": [0, 3], "b": slice(1, 3)})
    w = np.array([1.0, 2.0, 3.0, 4.0])
    assert penalty.value(w) == 17.0 + 6.5
    gradient = np.zeros(4)
    penalty.split()[0].add_gradient(w, gradient)
    np.testing.assert_array_equal(gradient, [2.0, 2.0, 3.0, 8.0])
