"""Images that are small files and many pixels: refused by what their header says, before they are decoded."""

import resource
import struct
import time
import warnings
import zlib

import numpy as np
import pytest

from crfkit import ImageSegmenter
from crfkit.errors import DataError, LimitError
from crfkit.files import limits
from crfkit.files.images import MaskRules, read_image, read_mask
from crfkit.images.features import ImageFeatures
from crfkit.images.probability_maps import read_probabilities

pytestmark = pytest.mark.filterwarnings("ignore:Image size.*could be decompression bomb")


def png(width, height, rows=None):
    """A black picture of one bit per pixel; the file may have fewer rows than it says."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(b"\0" * (1 + (width + 7) // 8)) for _ in range(rows or height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    path = tmp_path_factory.mktemp("bomb") / "bomb.png"
    path.write_bytes(png(13_300, 13_300))
    assert path.stat().st_size < 22_000
    return path


def test_an_image_of_177_million_pixels(bomb):
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    for read in (read_image, read_mask, MaskRules(multiclass=True, ignore=0).read):
        with pytest.raises(LimitError, match=r"bomb\.png: the image has 13,300 × 13,300 pixels, and the limit is 80,0"):
            read(bomb)
    with pytest.raises(LimitError, match=r"bomb\.png: .*CRFKIT_LIMITS=pixels=180000000"):
        read_probabilities(bomb, (4, 4), "p")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
    assert time.process_time() - begin < 2


def test_problems_of_a_folder_name_it(bomb, tmp_path):
    good = np.zeros((8, 8), dtype=np.uint8)
    with pytest.raises(DataError, match=r"bomb\.png: the image has 13,300"):
        ImageSegmenter().fit([bomb, good], [good, good])


def test_what_pillow_takes_for_a_bomb(bomb, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LimitError, match="more pixels than the limit"):
            read_image(bomb)
    larger = tmp_path / "larger.png"
    larger.write_bytes(png(80_000, 5_000, rows=1))
    with pytest.raises(LimitError, match=r"larger\.png: the image has more pixels than the limit of 80,000,000"):
        read_image(larger)


def test_a_limit_that_was_raised_or_lowered(tmp_path, monkeypatch):
    from PIL import Image

    path = tmp_path / "x.png"
    path.write_bytes(png(300, 200))
    with limits.raised(pixels=59_999), pytest.raises(LimitError, match="CRFKIT_LIMITS=pixels=60000"):
        read_image(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20_000)  # Pillow refuses twice as many
    with limits.raised(pixels=60_000):
        assert read_image(path).shape == (200, 300)


def test_a_photograph_of_24_million_pixels(tmp_path):
    path = tmp_path / "photo.png"
    path.write_bytes(png(6000, 4000))
    assert read_image(path).shape == (4000, 6000)


def test_blocks_are_counted_before_features_are_computed():
    image = np.zeros((2002, 2000), dtype=np.float32)
    with pytest.raises(LimitError, match=r"2002×2000 pixels has 1,001,000 blocks: resize it .*CRFKIT_LIMITS=blocks="):
        ImageFeatures(block_size=2).compute(image)
    assert ImageFeatures(block_size=100, kinds=(), position=True).compute(image).shape == (21, 20, 2)
    with pytest.raises(LimitError):
        ImageFeatures(size=(60_000, 60_000)).compute(image)


def test_damaged_images_are_named(tmp_path):
    whole = png(64, 64)
    for k in (0, 7, 20, 40):
        path = tmp_path / f"{k}.png"
        path.write_bytes(whole[:k])
        for read in (read_image, read_mask):
            with pytest.raises(DataError, match=rf"{k}\.png: the file cannot be read as an image"):
                read(path)


def test_paths_that_are_no_files(tmp_path):
    (tmp_path / "loop.png").symlink_to("loop.png")
    for name, reason in {"loop.png": "Too many levels", ".": "Is a directory", "none.png": "there is no such"}.items():
        with pytest.raises(DataError, match=reason):
            read_image(tmp_path / name)


def test_arrays_that_are_smaller_than_they_say(tmp_path):
    path = tmp_path / "p.npy"
    np.save(path, np.zeros((4, 4, 2)))
    content = path.read_bytes().replace(b"(4, 4, 2), }          ", b"(40000, 40000, 200), }")
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"p\.npy: cannot be read as an array"):
        read_probabilities(path, (4, 4), "p")
    path = tmp_path / "p.npz"
    np.savez_compressed(path, p=np.zeros((4000, 400)))
    with limits.raised(memory=10**6), pytest.raises(LimitError, match=r"p\.npz: the array would take 12.8 MB"):
        read_probabilities(path, (4, 4), "p")


def test_an_image_for_which_memory_is_missing(tmp_path, monkeypatch):
    def refuse(*_):
        raise MemoryError

    path = tmp_path / "image.png"
    path.write_bytes(png(8, 8))
    monkeypatch.setattr("PIL.Image.Image.getexif", refuse)
    with pytest.raises(DataError, match=r"image\.png: there is not enough memory"):
        read_image(path)
