"""From blocks to pixels: bilinear probabilities, labels that agree with them; centred differences on edges."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from crfkit import L2, ImageSegmenter
from crfkit.errors import ParameterError
from crfkit.files import modelfile
from crfkit.images.block_grids import average_difference
from crfkit.images.blocks import full_size, interpolate
from crfkit.images.features import ImageFeatures
from crfkit.images.model.segmenter import SegmenterModel
from crfkit.images.training.blocks import from_equal_features
from crfkit.synthetic import disc_images

OPTIONS = {"block_size": 4, "features": (), "colour": True, "n_threads": 1, "penalty": L2(1.0)}


@pytest.fixture(scope="module")
def discs():
    return disc_images(3, shape=(30, 41))


@pytest.fixture(scope="module")
def fitted(discs):
    return ImageSegmenter(**OPTIONS, inference="trw", sweeps=500).fit(*discs)


@pytest.mark.parametrize("size", [None, (12, 15), (50, 70)])
@pytest.mark.parametrize("block", [1, 2, 3, 5])
def test_interpolation_is_exact_on_planes(size, block):
    """Values that are linear in the position come back at every pixel between the outermost centres."""
    shape = (23, 31)
    features = ImageFeatures(block, (), position=True, size=size)
    H, W = size or shape
    sides = zip(features.blocks(shape), (H, W), strict=True)
    edges = [np.minimum(np.arange(n + 1) * block, length) for n, length in sides]
    rows, columns = ((e[:-1] + e[1:]) / 2 for e in edges)
    values = 0.3 * rows[:, None] - 0.2 * columns + 1
    r = np.clip((np.arange(23) + 0.5) * H / 23, rows[0], rows[-1])
    c = np.clip((np.arange(31) + 0.5) * W / 31, columns[0], columns[-1])
    np.testing.assert_allclose(interpolate(values, shape, features), 0.3 * r[:, None] - 0.2 * c + 1, atol=1e-12)
    both = np.stack([values, 1 - values], axis=-1)
    found = interpolate(both, shape, features)
    assert found.shape == (23, 31, 2)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-12)


def test_blocks_of_one_pixel_are_the_image():
    values = np.random.default_rng(0).random((5, 7, 3))
    np.testing.assert_array_equal(interpolate(values, (5, 7), ImageFeatures(1)), values)


def test_the_mask_is_the_most_probable_label_of_each_pixel(discs, fitted):
    images, _ = discs
    for image, found in zip(images, fitted.segment(images), strict=True):
        assert found.probabilities.shape == (30, 41, 2)
        np.testing.assert_allclose(found.probabilities.sum(axis=-1), 1, atol=1e-9)
        np.testing.assert_array_equal(found.mask, fitted.classes_[found.probabilities.argmax(axis=-1)])
        np.testing.assert_array_equal(found.mask, fitted.predict([image])[0])
    blocky = ImageSegmenter(**OPTIONS, inference="trw", sweeps=500, upsample="nearest").fit(*discs)
    features = blocky.model_.features
    for smooth, blocks in zip(fitted.segment(images), blocky.segment(images), strict=True):
        states = blocks.probabilities[::4, ::4]
        np.testing.assert_array_equal(full_size(states, (30, 41), features), blocks.probabilities)
        np.testing.assert_allclose(interpolate(states, (30, 41), features), smooth.probabilities, atol=1e-12)
    with pytest.raises(ParameterError, match="upsample must be one of bilinear, nearest"):
        ImageSegmenter(**OPTIONS, upsample="cubic").fit(*discs)


def test_bilinear_masks_err_less_at_borders():
    """A border in the middle of blocks: nearest cannot follow it."""
    new, truth = disc_images(6, seed=3)
    errors = {
        how: 1
        - ImageSegmenter(**OPTIONS, inference="trw", sweeps=500, upsample=how).fit(*disc_images(6)).score(new, truth)
        for how in ("bilinear", "nearest")
    }
    assert errors["bilinear"] < errors["nearest"]


def test_labels_of_other_decoders_are_those_of_blocks(discs):
    images, masks = discs
    found = ImageSegmenter(**OPTIONS, inference="trw", sweeps=500, decode="icm").fit(images, masks).predict(images)[0]
    np.testing.assert_array_equal(found, full_size(found[::4, ::4], found.shape, ImageFeatures(4)))


def test_a_file_without_the_new_entries_predicts_as_it_did(discs, fitted, tmp_path):
    """Files of earlier versions: labels by block, weights of the differences themselves."""
    images, _ = discs
    metadata, tensors = fitted.model_.parts()
    old = {
        name: value for name, value in json.loads(json.dumps(metadata)).items() if name not in ("masks", "upsampling")
    }
    modelfile.write(tmp_path / "old.crf", "segmenter", old, {k: v for k, v in tensors.items() if k != "edge_mean"})
    model = SegmenterModel.load(tmp_path / "old.crf")
    assert model.edge_mean is None
    assert model.upsampling == "nearest"
    for image in images:
        values = model.features.compute(image / np.float32(255))
        data = model.field.encoder.encode([(values - model.mean) / model.scale])
        blocks = model.marginals(model.field.potentials(data)).nodes.reshape(*values.shape[:2], 2)
        states = full_size(model.classes[blocks.argmax(axis=-1)], image.shape, model.features)
        np.testing.assert_array_equal(model.segment(image / np.float32(255)).mask, states)


# --- edges


def test_centres_are_means_over_all_edges():
    X = [np.random.default_rng(k).random((3 + k, 4, 5)) for k in range(2)]
    differences = [
        abs(x[r, c] - x[r + dr, c + dc])
        for x in X
        for r, c in np.ndindex(x.shape[:2])
        for dr, dc in ((0, 1), (1, 0))
        if r + dr < x.shape[0] and c + dc < x.shape[1]
    ]
    np.testing.assert_allclose(average_difference(X), np.mean(differences, axis=0))
    np.testing.assert_array_equal(average_difference([np.ones((1, 1, 2))]), [0, 0])


def test_l1_selects_fewer_differences_once_they_are_centred(discs):
    """Uncentred, features of edges take a share of the coupling that all neighbours have."""
    from crfkit import L1
    from crfkit.penalties import Blockwise

    images, masks = discs
    penalty = Blockwise({"node": L2(1.0), "edge": L1(40.0)})
    options = {**OPTIONS, "penalty": penalty, "loss": "pseudo-likelihood", "tolerance": 1e-8}
    edges = ImageSegmenter(**options).fit(images, masks).model_.weights()[1]

    class Uncentred(ImageSegmenter):
        def _training(self):
            return replace(super()._training(), centred=False)

    plain = Uncentred(**options).fit(images, masks).model_.weights()[1]
    assert np.count_nonzero(edges[0, 1:]) < np.count_nonzero(plain[0, 1:])


def test_scores_are_the_same_with_and_without_the_centre(fitted):
    field = fitted.model_.field
    centre = np.random.default_rng(0).random(6)
    moved = from_equal_features(field, centre)
    rng = np.random.default_rng(1)
    differences = rng.random((20, 6))
    _, edges = field.field.unpack(field.w)
    _, new = moved.field.unpack(moved.w)
    np.testing.assert_allclose(
        edges[0, 0, 0] + (differences - centre) @ edges[0, 0, 1:], new[0, 0, 0] + differences @ new[0, 0, 1:]
    )
