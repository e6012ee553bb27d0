"""Errors about images name the image, not the graph that it is inside."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit import GridCRF, ImageSegmenter
from crfkit.errors import CrfkitError, DataError

FINE = np.zeros((4, 4, 2)), np.eye(4, dtype=int)


@pytest.mark.parametrize("shape", [(4, 4, 3), (2, 8, 3)])
def test_images_with_other_features(shape):
    X, Y = FINE
    with pytest.raises(DataError, match=r"^image 1 has 3 features; expected 2"):
        GridCRF().fit([X, np.zeros(shape)], [Y, np.resize(Y, shape[:2])])
    crf = GridCRF().fit([np.random.default_rng(0).random((4, 4, 2))], [Y])
    with pytest.raises(DataError, match=r"^image 0 has 3 features"):
        crf.predict([np.zeros(shape)])


def test_images_too_wide_for_exact_inference():
    rng = np.random.default_rng(0)
    images = [rng.random((4, 5, 1)), rng.random((90, 90, 1))]
    masks = [np.arange(20).reshape(4, 5) % 2, np.arange(8100).reshape(90, 90) % 2]
    with pytest.raises(CrfkitError, match=r"^image 1\b"):
        GridCRF(inference="junction").fit(images, masks)
    options = {"features": (), "colour": True, "block_size": 1, "inference": "junction"}
    with pytest.raises(CrfkitError, match=r"^image 1\b"):
        ImageSegmenter(**options).fit([image[..., 0] for image in images], masks)
