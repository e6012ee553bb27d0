"""The pseudo-likelihood of a segmenter: couplings are held down as far as held-out images ask for."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit import L2, GraphCRF, ImageSegmenter
from crfkit.files.images import read_image
from crfkit.images.blocks import block_labels, full_size
from crfkit.penalties import Blockwise
from crfkit.synthetic import disc_images

OPTIONS = {"block_size": 4, "features": (), "colour": True, "loss": "pseudo-likelihood", "n_threads": 1}


@pytest.fixture(scope="module")
def discs():
    return disc_images(8, seed=20), disc_images(6, seed=21)


def block_by_block(model, images, masks, new, truth):
    """The error of logistic regression on the same features."""

    def rows(image):
        values = (model.features.compute(read_image(image)) - model.mean) / model.scale
        return values.reshape(-1, values.shape[-1])

    Y = np.concatenate([block_labels(mask, model.classes, model.features).ravel() for mask in masks])
    crf = GraphCRF(graph="none", penalty=L2(1.0), loss="pseudo-likelihood")
    crf.fit(np.concatenate([rows(image) for image in images]), Y[:, None])
    found = [
        full_size(crf.predict(rows(image)).reshape(model.features.blocks(image.shape)), image.shape, model.features)
        for image in new
    ]
    return np.mean([np.mean(a != b) for a, b in zip(found, truth, strict=True)])


@pytest.mark.parametrize("count", [4, 8])
def test_the_default_is_not_below_logistic_regression(discs, count):
    (images, masks), (new, truth) = discs
    fitted = ImageSegmenter(**OPTIONS).fit(images[:count], masks[:count])
    alone = block_by_block(fitted.model_, images[:count], masks[:count], new, truth)
    assert 1 - fitted.score(new, truth) <= alone


def test_the_strength_of_edges_is_the_best_on_held_out_images(discs):
    (images, masks), _ = discs
    fitted = ImageSegmenter(**OPTIONS, random_state=3, tolerance=1e-9).fit(images, masks)
    errors = {point.strength: point.score for point in fitted.path_}
    chosen = min(errors, key=errors.get)
    assert len(errors) == 5
    blocks = 8 * 16 * 20
    assert fitted.result_.objective == f"pseudo-likelihood + node L2(1), edge L2({chosen * blocks:g})"
    penalty = Blockwise({"node": L2(1.0), "edge": L2(chosen * blocks)})
    by_hand = ImageSegmenter(**OPTIONS, penalty=penalty, tolerance=1e-9)
    np.testing.assert_allclose(by_hand.fit(images, masks).model_.field.w, fitted.model_.field.w, atol=1e-3)


def test_a_penalty_that_was_given_is_taken(discs):
    (images, masks), _ = discs
    fitted = ImageSegmenter(**OPTIONS, penalty=L2(2.0)).fit(images[:3], masks[:3])
    assert fitted.path_ == ()
    assert fitted.result_.objective == "pseudo-likelihood + L2(2)"
