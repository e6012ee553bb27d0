"""Images and masks: every kind of file and array, and what is wrong with a file, by name."""

from __future__ import annotations

import numpy as np
import pytest
from optional import optional

from crfkit.errors import DataError
from crfkit.files.images import as_list, list_images, pair_folders, read_image, read_mask, resize

pillow = optional("PIL.Image")

GREY = np.arange(0, 240, 10, dtype=np.uint8).reshape(4, 6)
RGB = np.stack([GREY, GREY[::-1], 255 - GREY], axis=-1)


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.bmp"])
@pytest.mark.parametrize("array", [GREY, RGB])
def test_files_without_loss_give_their_pixels(tmp_path, name, array):
    pillow.fromarray(array).save(tmp_path / name)
    np.testing.assert_allclose(read_image(tmp_path / name), array / np.float32(255))
    np.testing.assert_allclose(read_image(str(tmp_path / name)), read_image(array))


def test_every_mode_is_one_picture(tmp_path):
    """Palette, transparency, 16 bits, CMYK, JPEG: the same colours, as far as the mode can say."""
    picture = pillow.fromarray(RGB)
    for name, made, tolerance in (
        ("rgba.png", picture.convert("RGBA"), 0),
        ("palette.png", picture.quantize(256), 0.02),
        ("cmyk.tif", picture.convert("CMYK"), 0.01),
    ):
        made.save(tmp_path / name)
        np.testing.assert_allclose(read_image(tmp_path / name), RGB / 255, atol=tolerance + 1e-6)
    pillow.fromarray(GREY.astype(np.uint16) * 257).save(tmp_path / "deep.png")
    np.testing.assert_allclose(read_image(tmp_path / "deep.png"), GREY / 255, atol=1e-6)
    picture.convert("LA").save(tmp_path / "la.png")
    assert read_image(tmp_path / "la.png").shape == (4, 6)
    pillow.fromarray(GREY > 100).save(tmp_path / "bits.png")
    np.testing.assert_array_equal(read_image(tmp_path / "bits.png"), GREY > 100)
    smooth = np.tile(np.linspace(0, 255, 32, dtype=np.uint8), (16, 1))
    pillow.fromarray(smooth).save(tmp_path / "a.jpg", quality=95)
    np.testing.assert_allclose(read_image(tmp_path / "a.jpg"), smooth / 255, atol=0.02)


def test_a_photograph_is_turned_as_it_says(tmp_path):
    exif = pillow.Exif()
    exif[0x0112] = 6
    pillow.fromarray(GREY).save(tmp_path / "a.png", exif=exif)
    assert read_image(tmp_path / "a.png").shape == (6, 4)


@pytest.mark.parametrize(
    "array",
    [GREY / 255, GREY.astype(np.int64), GREY.astype(np.uint16) * 257, GREY[..., None], (GREY / 255).astype(np.float16)],
)
def test_arrays_of_all_types(array):
    np.testing.assert_allclose(read_image(array), GREY / 255, atol=1e-3)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((0, 5)), "no pixels"),
        (np.zeros(5), "shape"),
        (np.zeros((4, 4, 5)), "shape"),
        (np.full((2, 2), 255.0), "from 0 to 1"),
        (np.full((2, 2), np.nan), "not finite"),
        (np.full((2, 2), -3), "from -3"),
        (np.full((2, 2), 70000), "70000"),
        (np.full((2, 2), "x"), "expected numbers"),
    ],
)
def test_arrays_that_are_no_images(array, said):
    with pytest.raises(DataError, match=f"image 3.*{said}"):
        read_image(array, "image 3")


@pytest.mark.parametrize("read", [read_image, read_mask])
def test_files_that_are_no_images_are_named(tmp_path, read):
    whole = tmp_path / "whole.png"
    pillow.fromarray(np.random.default_rng(0).integers(0, 2, (64, 64)).astype(np.uint8)).save(whole)
    for name, data in (
        ("empty.png", b""),
        ("text.png", b"hello"),
        ("cut.png", whole.read_bytes()[:200]),
        ("zero.pgm", b"P5\n0 0\n255\n"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DataError, match=name):
            read(tmp_path / name)
    with pytest.raises(DataError, match=r"missing\.png: there is no such file"):
        read(tmp_path / "missing.png")
    pages = [pillow.fromarray(GREY), pillow.fromarray(GREY)]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(DataError, match=r"pages\.tif.*2 pages"):
        read(tmp_path / "pages.tif")


# --- masks

HALF = np.zeros((16, 24), dtype=np.uint8)
HALF[:, 12:] = 255


def test_masks_of_two_values(tmp_path):
    for array in (HALF, HALF > 0, HALF // 255, HALF.astype(float), np.repeat(HALF[..., None], 3, axis=2)):
        found = read_mask(array)
        assert len(np.unique(found)) == 2
        np.testing.assert_array_equal(found > 0, HALF > 0)
    pillow.fromarray(HALF).save(tmp_path / "a.jpg", quality=60)
    found = read_mask(tmp_path / "a.jpg")
    assert set(np.unique(found)) == {0, 255}
    np.testing.assert_array_equal(found, HALF)
    faint = pillow.fromarray((HALF > 0).astype(np.uint8) * 3)
    faint.save(tmp_path / "background.jpg")
    assert not read_mask(tmp_path / "background.jpg").any()


def test_masks_with_a_palette_are_its_numbers(tmp_path):
    mask = pillow.fromarray((HALF // 255) + 1)
    mask = mask.convert("P")
    mask.putpalette([0, 0, 0, 200, 10, 10, 30, 30, 220])
    mask.save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "a.png"), (HALF // 255) + 1)


def test_masks_that_are_none(tmp_path):
    three = HALF.copy()
    three[0] = 128
    pillow.fromarray(three).save(tmp_path / "three.png")
    with pytest.raises(
        DataError, match=r"three\.png has 3 distinct values \(0, 128, 255\), expected 2; " r"pass multiclass=True"
    ):
        read_mask(tmp_path / "three.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "three.png", multiclass=True), three)
    pillow.fromarray(three).save(tmp_path / "three.jpg")
    with pytest.raises(DataError, match=r"three\.jpg is a lossy file"):
        read_mask(tmp_path / "three.jpg", multiclass=True)
    coloured = np.stack([HALF, 255 - HALF, HALF], axis=-1)
    pillow.fromarray(coloured).save(tmp_path / "colours.png")
    with pytest.raises(DataError, match=r"colours\.png has colours"):
        read_mask(tmp_path / "colours.png")
    with pytest.raises(DataError, match="mask 2 is an array of float64"):
        read_mask(HALF + 0.5, "mask 2")
    with pytest.raises(DataError, match="mask 2 has shape"):
        read_mask(np.zeros(3, dtype=int), "mask 2")


# --- folders


def test_folders_are_paired_by_name(tmp_path):
    for folder, names in (("i", ("b.png", "a.jpg", "notes.txt", ".hidden.png")), ("m", ("a.PNG", "b.tif"))):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_bytes(b"")
    pairs = pair_folders(tmp_path / "i", tmp_path / "m")
    assert [(a.name, b.name) for a, b in pairs] == [("a.jpg", "a.PNG"), ("b.png", "b.tif")]
    (tmp_path / "m" / "c.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"c\.png: there is no image named c"):
        pair_folders(tmp_path / "i", tmp_path / "m")
    for name in ("c.png", "d.png"):
        (tmp_path / "i" / name).write_bytes(b"")
    with pytest.raises(DataError, match=r"d\.png: there is no mask named d"):
        pair_folders(tmp_path / "i", tmp_path / "m")
    (tmp_path / "i" / "d.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"d\.jpg and d\.png"):
        list_images(tmp_path / "i")
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"none: the folder has no images"):
        list_images(tmp_path / "none")
    with pytest.raises(DataError, match="no such folder"):
        list_images(tmp_path / "nowhere")


def test_lists_are_lists():
    for wrong in ("a.png", HALF, 3):
        with pytest.raises(DataError, match="must be a list"):
            as_list(wrong, "images")
    assert len(as_list(np.zeros((3, 4, 5)), "images")) == 3


def test_resizing_keeps_the_mean():
    values = np.random.default_rng(0).random((60, 80, 3)).astype(np.float32)
    small = resize(values, (15, 20))
    assert small.shape == (15, 20, 3)
    np.testing.assert_allclose(small.mean(axis=(0, 1)), values.mean(axis=(0, 1)), atol=0.01)
    assert resize(values, (60, 80)) is values
