"""Training of segmenters and refiners without their estimators: the same models, Ctrl-C, no scikit-learn."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from crfkit import L2, ImageSegmenter, Refiner
from crfkit.graph.encoding.graphs import SampleEncoder
from crfkit.graph.encoding.grids import GridEncoder
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.images.features import ImageFeatures
from crfkit.images.pairs import Pairs
from crfkit.images.training import refiner as refiner_training
from crfkit.images.training.refiner import RefinerTraining
from crfkit.images.training.segmenter import SegmenterTraining
from crfkit.result import Status
from crfkit.synthetic import disc_images
from crfkit.training.options import SolverOptions

FEATURES = ImageFeatures(4, (), True, False, None)
OPTIONS = SolverOptions(n_threads=1, tolerance=1e-3)
SAME = {"block_size": 4, "features": (), "colour": True, "n_threads": 1, "tolerance": 1e-3}


@pytest.fixture(scope="module")
def discs():
    return disc_images(4, shape=(24, 32))


@pytest.fixture(scope="module")
def maps(discs):
    rng = np.random.default_rng(5)
    images, masks = discs
    return (
        [np.clip(0.3 + 0.4 * (mask > 0) + rng.normal(0, 0.15, mask.shape), 0.01, 0.99) for mask in masks],
        images,
        masks,
    )


def test_a_segmenter_is_its_training(discs):
    done = SegmenterTraining(features=FEATURES, options=OPTIONS).run(*discs)
    estimator = ImageSegmenter(**SAME).fit(*discs)
    np.testing.assert_array_equal(done.model.field.w, estimator.model_.field.w)
    assert (done.n_images, done.path, done.interrupted) == (4, (), False)
    assert done.result.value == estimator.result_.value


def test_a_refiner_is_its_training(maps):
    done = RefinerTraining(block_size=2, options=OPTIONS).run(*maps)
    estimator = Refiner(block_size=2, n_threads=1, tolerance=1e-3).fit(*maps)
    np.testing.assert_array_equal(done.model.field.w, estimator.model_.field.w)
    assert done.model.detail == estimator.detail_
    assert not done.interrupted


def search(strengths=(100.0, 10.0, 1.0)):
    return SegmenterTraining(
        features=FEATURES,
        loss="pseudo-likelihood",
        strengths=strengths,
        validation_fraction=0.25,
        options=SolverOptions(penalty=L2(), n_threads=1, tolerance=1e-3),
    )


def test_ctrl_c_in_a_later_strength_keeps_the_best_so_far(discs):
    whole = search().run(*discs)
    begun = []

    def interrupt(iteration):
        if iteration.row.iteration == 0:
            begun.append(iteration)
        if len(begun) == 3:
            raise KeyboardInterrupt

    done = search().run(*discs, callbacks=[interrupt])
    assert done.interrupted
    first = whole.path[:2]
    assert [point.strength for point in done.path] == [100.0, 10.0]
    assert [point.score for point in done.path] == [point.score for point in first]
    best = min(range(2), key=lambda k: first[k].score)
    assert done.result.value == first[best].value
    assert done.result.status is not Status.INTERRUPTED  # that of the model that is kept


def test_ctrl_c_while_a_strength_is_tested(discs, monkeypatch):
    """Between two runs of the solver nobody else catches it."""
    tested = []
    error = Pairs.error

    def count(self, found):
        tested.append(self)
        if len(tested) == 2:
            raise KeyboardInterrupt
        return error(self, found)

    monkeypatch.setattr(Pairs, "error", count)
    segmenter = ImageSegmenter(
        **SAME, loss="pseudo-likelihood", strengths=[100.0, 10.0, 1.0], validation_fraction=0.25, penalty=L2()
    )
    with pytest.raises(KeyboardInterrupt):
        segmenter.fit(*discs)
    assert [point.strength for point in segmenter.path_] == [100.0]
    assert segmenter.result_.value == segmenter.path_[0].value
    assert segmenter.predict(discs[0][:1])[0].shape == (24, 32)


def test_ctrl_c_before_there_is_a_model(discs, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("crfkit.graph.training.train.GraphTraining.make_loss", interrupt)
    segmenter = ImageSegmenter(**SAME)
    with pytest.raises(KeyboardInterrupt):
        segmenter.fit(*discs)
    assert not hasattr(segmenter, "model_")


def test_ctrl_c_while_the_detail_of_a_refiner_is_chosen(maps, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(refiner_training, "choose_detail", interrupt)
    refiner = Refiner(block_size=2, n_threads=1, tolerance=1e-3)
    with pytest.raises(KeyboardInterrupt):
        refiner.fit(*maps)
    assert refiner.detail_ == 1.0
    assert refiner.result_.status.converged


def test_training_and_models_need_no_scikit_learn():
    rooms = ("training.segmenter", "training.refiner", "model.segmenter", "model.refiner")
    names = ", ".join(f"crfkit.images.{room}" for room in rooms)
    code = f"import sys, {names}; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("encoder", [TableEncoder, SampleEncoder, GridEncoder])
def test_encoders_take_their_options_by_name(encoder):
    with pytest.raises(TypeError, match="positional"):
        encoder(np.array([0, 1]), 1, 1, True)
