"""Features of blocks: laws of SIFT and C1 units, names, options, the cache; images and masks from files and arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optional import optional

from crfkit.errors import DataError, ParameterError
from crfkit.images import features as image_features
from crfkit.images.c1 import BANDS, C1_NAMES, block_means, c1_units
from crfkit.images.features import ImageFeatures, intensity, lab
from crfkit.images.sift import CELL, CELLS, ORIENTATIONS, SIFT_NAMES, dense_sift

pillow = optional("PIL.Image")


def noise(*shape, seed=0):
    return np.random.default_rng(seed).random(shape).astype(np.float32)


def sift_by_hand(grey, block, r, c, cell=CELL):
    """One descriptor, pixel by pixel."""
    H, W = grey.shape
    around = np.pad(grey.astype(float), 1, mode="edge")
    cy, cx = r * block + (block - 1) / 2, c * block + (block - 1) / 2
    out = np.zeros((CELLS, CELLS, ORIENTATIONS))
    for y in range(H):
        for x in range(W):
            dy = (around[y + 2, x + 1] - around[y, x + 1]) / 2
            dx = (around[y + 1, x + 2] - around[y + 1, x]) / 2
            o = np.arctan2(dy, dx) / (2 * np.pi) * ORIENTATIONS % ORIENTATIONS
            for a in range(CELLS):
                for b in range(CELLS):
                    wy = 1 - abs(y - (cy + cell * (a - 1.5))) / cell
                    wx = 1 - abs(x - (cx + cell * (b - 1.5))) / cell
                    if wy <= 0 or wx <= 0:
                        continue
                    for k in range(ORIENTATIONS):
                        distance = min((o - k) % ORIENTATIONS, (k - o) % ORIENTATIONS)
                        out[a, b, k] += max(0, 1 - distance) * np.hypot(dx, dy) * wy * wx
    window = np.exp(-0.5 * ((np.arange(CELLS) - 1.5) / 2) ** 2)
    flat = (out * window[:, None, None] * window[None, :, None]).ravel()
    flat /= np.linalg.norm(flat)
    flat = np.minimum(flat, 0.2)
    return flat / np.linalg.norm(flat)


@pytest.mark.parametrize(("block", "cell"), [(1, 4), (2, 4), (3, 4), (4, 4), (1, 2), (2, 8), (3, 6)])
def test_sift_is_the_histogram_of_its_definition(block, cell):
    grey = noise(19, 23)
    found = dense_sift(grey, block, cell)
    assert found.shape == (-(-19 // block), -(-23 // block), 128)
    for r, c in ((0, 0), (found.shape[0] // 2, found.shape[1] // 2), (found.shape[0] - 1, found.shape[1] - 2)):
        np.testing.assert_allclose(found[r, c], sift_by_hand(grey, block, r, c, cell), atol=2e-5)


def test_sift_follows_contrast_shifts_and_mirrors():
    grey = noise(40, 48)
    found = dense_sift(grey, 2)
    np.testing.assert_allclose(dense_sift(0.5 * grey + 0.2, 2), found, atol=1e-5)  # brightness and contrast
    np.testing.assert_allclose(dense_sift(grey[8:, 12:], 2)[6:10, 6:10], found[10:14, 12:16], atol=1e-5)
    # mirrored: columns of cells in reverse, angles to 180° − angle
    cells = found.reshape(20, 24, 4, 4, 8)[:, ::-1, :, ::-1]
    mirrored = cells[..., [(4 - k) % 8 for k in range(8)]].reshape(20, 24, 128)
    np.testing.assert_allclose(dense_sift(np.ascontiguousarray(grey[:, ::-1]), 2), mirrored, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1, atol=1e-5)
    assert not dense_sift(np.full((9, 9), 0.7, dtype=np.float32), 2).any()


def test_a_gradient_to_the_right_is_orientation_zero():
    ramp = np.tile(np.linspace(0, 1, 40, dtype=np.float32), (40, 1))
    for grey, angle in ((ramp, 0), (ramp.T, 90), (ramp[:, ::-1], 180)):
        strongest = dense_sift(np.ascontiguousarray(grey), 2)[10, 10].argmax()
        assert SIFT_NAMES[strongest].endswith(f",{angle}°]")


def test_c1_units_answer_to_their_orientation_and_scale():
    y, x = np.mgrid[:64, :64]
    for angle, phase in ((0, x), (90, y), (45, (x + y) / np.sqrt(2)), (135, (y - x) / np.sqrt(2))):
        for band, wavelength in ((1, 4.0), (4, 11.0)):
            stripes = (0.5 + 0.4 * np.cos(2 * np.pi * phase / wavelength)).astype(np.float32)
            units = c1_units(stripes, stripes, 2)[16, 16, :16]
            assert C1_NAMES[units.argmax()] == f"c1[band {band},{angle}°]"


def test_s1_responses_are_correlations_with_gabor_filters():
    """The first unit of a band, from its definition; every second pixel is enough for long waves."""
    from scipy.ndimage import correlate, gaussian_filter, maximum_filter, uniform_filter

    grey = gaussian_filter(noise(30, 37), 1.5)
    grey = (grey - grey.min()) / np.ptp(grey)
    found = c1_units(grey, grey, 2)
    for band, (scales, side) in enumerate(BANDS):
        best = 0
        for size, sigma, wavelength in scales:
            y, x = np.mgrid[-(size // 2) : size // 2 + 1, -(size // 2) : size // 2 + 1]
            gabor = np.exp(-(x**2 + 0.09 * y**2) / (2 * sigma**2)) * np.cos(2 * np.pi * x / wavelength)
            disc = np.hypot(x, y) <= size / 2
            gabor = np.where(disc, gabor - gabor[disc].mean(), 0)
            response = np.abs(correlate(grey.astype(float), gabor / np.linalg.norm(gabor), mode="reflect"))
            norm = np.sqrt(uniform_filter(grey.astype(float) ** 2, size)) * size
            response /= norm + 1e-3 * size
            padded = np.pad(response, ((0, 0), (0, 1)), mode="edge").reshape(15, 2, 19, 2)
            best = np.maximum(best, padded[:, 0, :, 0] if band >= 2 else padded.max(axis=(1, 3)))
        pool = round(side / 2)
        expected = maximum_filter(best, (pool, pool), mode="nearest")
        rough = band >= 2
        np.testing.assert_allclose(found[..., 4 * band], expected, rtol=0.03 * rough, atol=2e-3 if rough else 1e-5)


def test_c1_units_are_maxima_over_places():
    """A unit changes little when the image moves by a pixel; responses do not depend on brightness scale."""
    grey = noise(60, 60)
    units = c1_units(grey, grey, 2)
    assert units.shape == (30, 30, 34)
    assert len(C1_NAMES) == len(set(C1_NAMES)) == 34
    moved = c1_units(np.roll(grey, 2, axis=1), np.roll(grey, 2, axis=1), 2)
    np.testing.assert_allclose(moved[15, 16, :16], units[15, 15, :16], rtol=0.01)
    np.testing.assert_allclose(c1_units(grey / 2, grey / 2, 2)[..., :16], units[..., :16], rtol=0.02)


def test_colour_channels_are_zero_on_grey_and_not_on_colours():
    grey = noise(20, 20)
    assert not c1_units(grey, grey, 2)[..., 22:].any()
    same = np.repeat(grey[..., None], 3, axis=2)
    np.testing.assert_allclose(c1_units(same, intensity(same), 2), c1_units(grey, grey, 2), atol=1e-5)
    red = same.copy()
    red[5:15, 5:15] *= (1, 0.2, 0.2)
    found = c1_units(red, intensity(red), 2)
    assert found[..., 22:28].max() > 0.1


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5))
def test_any_size_has_features_of_every_block(H, W, block):
    features = ImageFeatures(block, colour=True, position=True)
    rgb = noise(H, W, 3, seed=H * 10 + W)
    found = features.compute(rgb)
    assert found.shape == (*features.blocks(rgb.shape), len(features.names)) == (-(-H // block), -(-W // block), 170)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    means = block_means(rgb, block)
    np.testing.assert_allclose(found[..., 162:165], means, rtol=1e-6)
    np.testing.assert_allclose(
        means[-1, -1], rgb[(means.shape[0] - 1) * block :, (means.shape[1] - 1) * block :].mean((0, 1)), rtol=1e-5
    )


def test_lab_agrees_with_scikit_image():
    color = optional("skimage.color")
    rgb = noise(6, 7, 3)
    np.testing.assert_allclose(lab(rgb) * 100, color.rgb2lab(rgb), atol=0.05)


def test_sift_is_close_to_that_of_opencv():
    cv2 = optional("cv2")
    from scipy.ndimage import gaussian_filter

    grey = gaussian_filter(noise(80, 80), 2)
    grey = (grey - grey.min()) / np.ptp(grey)
    points = [(r, c) for r in range(9, 18) for c in range(9, 18)]
    # Cells of OpenCV are 3/2 of the size of a key point; blocks of odd size have their centre on a pixel.
    keys = [cv2.KeyPoint(float(3 * c + 1), float(3 * r + 1), 2 * CELL / 3, 0.0, 1.0, 0) for r, c in points]
    _, theirs = cv2.SIFT_create().compute((255 * grey).astype(np.uint8), keys)
    theirs = theirs / np.linalg.norm(theirs, axis=1, keepdims=True)
    ours = dense_sift(grey.astype(np.float32), 3)[9:18, 9:18].reshape(-1, 16, 8)
    ours = ours[..., [(-k) % 8 for k in range(8)]].reshape(-1, 128)  # its angles are counted upwards
    assert np.median((ours * theirs).sum(axis=1)) > 0.93


def test_size_resizes_first_and_order_of_kinds_does_not_matter():
    features = ImageFeatures(kinds=("c1", "sift"), size=(20, 30))
    assert features.kinds == ("sift", "c1")
    assert features.compute(noise(50, 41)).shape == (10, 15, 162)
    constant = ImageFeatures(kinds=(), colour=True, size=(7, 5)).compute(np.full((31, 22, 3), 0.25, dtype=np.float32))
    np.testing.assert_allclose(constant[..., :3], 0.25, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"block_size": 0}, "block_size"),
        ({"block_size": 2.5}, "block_size"),
        ({"kinds": ("hog",)}, "features must be"),
        ({"kinds": "sift"}, "features must be"),
        ({"kinds": ("sift", "sift")}, "features must be"),
        ({"kinds": ()}, "no features"),
        ({"size": (0, 5)}, "size"),
        ({"size": "80x100"}, "size"),
        ({"colour": "yes"}, "colour"),
    ],
)
def test_options_out_of_range(options, said):
    with pytest.raises(ParameterError, match=said):
        ImageFeatures(**options)


# --- the cache


def test_cache_gives_the_same_and_spares_the_work(tmp_path, monkeypatch):
    features, picture = ImageFeatures(), noise(21, 30)
    folder = tmp_path / "deep" / "cache"
    first = features.compute_cached(picture, folder)
    monkeypatch.setattr(image_features, "dense_sift", None)
    np.testing.assert_array_equal(features.compute_cached(picture, folder), first)
    assert len(list(folder.iterdir())) == 1


def test_cache_knows_pixels_and_options_apart(tmp_path):
    picture = noise(20, 30)
    changed = picture.copy()
    changed[3, 4] += 0.01
    for image, options in ((picture, {}), (changed, {}), (picture, {"block_size": 3}), (picture, {"position": True})):
        features = ImageFeatures(**options)
        np.testing.assert_array_equal(features.compute_cached(image, tmp_path), features.compute(image))
    # as many bytes, another shape
    features = ImageFeatures()
    assert features.compute_cached(picture.reshape(30, 20), tmp_path).shape == (15, 10, 162)
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b[:-9] + b"x" + b[-8:]])
def test_a_damaged_cache_is_made_again(tmp_path, damage):
    features, picture = ImageFeatures(), noise(20, 30)
    first = np.array(features.compute_cached(picture, tmp_path))
    (path,) = tmp_path.iterdir()
    good = path.read_bytes()
    path.unlink()
    path.write_bytes(damage(good))
    np.testing.assert_array_equal(features.compute_cached(picture, tmp_path), first)
    assert path.read_bytes() == good


def test_a_cache_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file"):
        ImageFeatures().compute_cached(noise(4, 4), tmp_path / "file")
