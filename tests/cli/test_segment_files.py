"""`crfkit segment` on files as people have them: formats, names, sizes, colours, bad files; ending training early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from commands import replacing
from optional import optional

from crfkit import L2, ImageSegmenter
from crfkit.images.model.segmenter import SegmenterModel
from crfkit.synthetic import disc_images

pillow = optional("PIL.Image")

TRAIN = ["segment", "train", "images", "masks", "-m", "s.crf", "--loss", "pl", "--l2", "1", "--edge-l2", "1"]
TRAIN += ["--features", "c1", "--block", "4", "--threads", "1", "-q"]


def save(path, array, **options):
    pillow.fromarray(np.asarray(array)).save(path, **options)


def load(path):
    with pillow.open(path) as picture:
        return np.array(picture)


@pytest.fixture
def folders(workspace):
    """images/0.png … 3.png and masks/ of 0 and 255, in the current folder."""
    images, masks = disc_images(4, shape=(24, 32))
    for name, arrays in (("images", images), ("masks", [255 * mask for mask in masks])):
        (workspace / name).mkdir()
        for k, array in enumerate(arrays):
            save(workspace / name / f"{k}.png", array)
    return workspace


@pytest.fixture
def lists(call):
    """What a command that fails says, on one line or several."""

    def said(*args):
        outcome = call(*args)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        assert outcome.err.startswith("crfkit: error: ")
        return outcome.err.removeprefix("crfkit: error: ")

    return said


def weights(call, *options):
    outcome = call(*TRAIN, *options)
    assert outcome.code == 0, outcome.err
    return SegmenterModel.load("s.crf").field.w


def test_ignored_pixels_do_not_matter(folders, call, fails, lists):
    """Whatever the class below them: train and eval."""
    for k in range(4):
        mask = load(f"masks/{k}.png").copy()
        mask[:, :5] = 128
        save(f"masks/{k}.png", mask)
    assert "masks/0.png has 3 distinct values (0, 128, 255), expected 2" in lists(*TRAIN)
    w = weights(call, "--ignore", "128")
    model = SegmenterModel.load("s.crf")
    assert model.classes.tolist() == [0, 255]
    report = json.loads(call("segment", "eval", "s.crf", "images", "masks", "--json").out)  # as in training
    expected = [
        np.mean(model.segment(load(f"images/{k}.png") / np.float32(255)).mask[:, 5:] != load(f"masks/{k}.png")[:, 5:])
        for k in range(4)
    ]
    assert [row["error"] for row in report["per_image"]] == pytest.approx(expected)
    for k in range(4):
        mask = load(f"masks/{k}.png").copy()
        mask[:, :5] = np.where(np.arange(24)[:, None] < 12, 77, 128)
        save(f"masks/{k}.png", mask)
    np.testing.assert_array_equal(weights(call, "--ignore", "128,77"), w)
    again = json.loads(call("segment", "eval", "s.crf", "images", "masks", "--json", "--ignore", "77,128").out)
    assert again["error"] == pytest.approx(report["error"])
    assert "--ignore must be integers" in fails(*TRAIN, "--ignore", "white")


def test_formats_and_one_bit_masks(folders, call):
    """WebP, GIF, one bit and bytes of 0 and 255 in one folder: the model of the PNG files."""
    w = weights(call)
    pixels = load("images/0.png")
    Path("images/0.png").unlink()
    save("images/0.webp", pixels, lossless=True)
    for k, (name, options) in enumerate((("0.webp", {"lossless": True}), ("1.gif", {}))):
        mask = load(f"masks/{k}.png")
        Path(f"masks/{k}.png").unlink()
        save(f"masks/{name}", mask, **options)
    save("masks/2.png", load("masks/2.png") > 0)  # one bit
    assert load("masks/2.png").dtype == bool
    mask = load("masks/3.png")
    Path("masks/3.png").unlink()
    save("masks/3.webp", mask, quality=70)  # lossy: thresholded
    np.testing.assert_allclose(weights(call), w, atol=1e-12)
    assert SegmenterModel.load("s.crf").classes.tolist() == [0, 255]
    assert call("segment", "eval", "s.crf", "images", "masks").code == 0
    frames = [pillow.fromarray(pixels), pillow.fromarray(255 - pixels)]
    frames[0].save("images/9.gif", save_all=True, append_images=frames[1:])
    outcome = call("segment", "apply", "s.crf", "images", "-o", "out", "-q")
    assert "images/9.gif: the file has 2 frames; expected one" in outcome.err


def test_masks_of_another_size(folders, call, fails):
    w = weights(call)
    for k in range(4):
        save(f"masks/{k}.png", np.kron(load(f"masks/{k}.png"), np.ones((3, 3), dtype=np.uint8)))
    outcome = call(*TRAIN)
    assert outcome.code == 0, outcome.err
    assert "note: 4 of 4 masks have another size than their image (the first: masks/0.png)" in outcome.err
    np.testing.assert_array_equal(SegmenterModel.load("s.crf").field.w, w)
    outcome = call("segment", "eval", "s.crf", "images", "masks")
    assert outcome.code == 0
    assert "another size" in outcome.err
    save("masks/0.png", load("masks/0.png")[:, :60])
    assert fails(*TRAIN).startswith("images/0.png is 24×32 pixels (height×width), masks/0.png 72×60")


def test_names_by_pattern_in_one_folder(folders, call, fails, lists):
    w = weights(call)
    for k in range(4):
        Path(f"masks/{k}.png").rename(f"images/{k}_gt.png")
    everything = ["segment", "train", "images", "images", "-m", "s.crf", *TRAIN[6:]]
    assert call(*everything, "--mask-pattern", "{name}_gt.png").code == 0
    np.testing.assert_array_equal(SegmenterModel.load("s.crf").field.w, w)
    assert call("segment", "eval", "s.crf", "images", "images", "--mask-pattern", "{name}_gt").code == 0
    assert "must contain {name} once" in fails(*everything, "--mask-pattern", "_gt.png")
    assert "no files like {name}_mask.png" in fails(*everything, "--mask-pattern", "{name}_mask.png")
    for k in range(4):
        Path(f"images/{k}.png").rename(f"images/{k}_rgb.png")
        Path(f"images/{k}_gt.png").rename(f"masks/{k}.png")
    assert call(*TRAIN, "--image-pattern", "{name}_rgb").code == 0
    assert "--mask-pattern" in lists(*TRAIN)


def test_what_apply_writes_can_be_trained_on(folders, call):
    weights(call)
    assert call("segment", "apply", "s.crf", "images", "-o", "out", "-q").code == 0
    again = ["segment", "train", "images", "out", *TRAIN[4:]]
    outcome = call(*again)
    assert outcome.code == 0, outcome.err
    report = json.loads(call("segment", "eval", "s.crf", "images", "out", "--json").out)
    assert report["images"] == 4


def test_colours_of_masks(folders, call, fails, lists):
    w = weights(call)
    for k in range(4):
        mask = load(f"masks/{k}.png")
        rgb = np.where(mask[..., None] > 0, [200, 10, 10], [0, 0, 0]).astype(np.uint8)
        save(f"masks/{k}.png", rgb)
    assert "--mask-colours" in lists(*TRAIN)
    said = lists(*TRAIN, "--mask-colours", "black=0,red=255")
    assert said.startswith("4 problems:\n  masks/0.png has the colour #c80a0a")
    np.testing.assert_array_equal(weights(call, "--mask-colours", "black=0,#c80a0a=255"), w)
    assert call("segment", "eval", "s.crf", "images", "masks").code == 0  # the model knows the colours
    Path("colours.txt").write_text("#000000 0\n200 10 10 255\nwhite ignore\n")
    np.testing.assert_array_equal(weights(call, "--mask-colours", "colours.txt"), w)
    assert "unknown colour 'teal'" in fails(*TRAIN, "--mask-colours", "teal=1,black=0")
    assert "two classes" in fails(*TRAIN, "--mask-colours", "black=0")


def test_all_errors_at_once_and_skipping(folders, call, lists):
    for k in (4, 5, 6):
        save(f"images/{k}.png", load("images/0.png"))
    Path("images/4.png").write_bytes(b"nonsense")
    save("masks/4.png", load("masks/0.png"))
    save("masks/5.png", load("masks/0.png")[:-3])
    save("masks/7.png", load("masks/0.png"))
    said = lists(*TRAIN)
    assert said.startswith("4 problems:\n")
    for part in (
        "masks/7.png: there is no image named 7",
        "images/6.png: there is no mask named 6",
        "images/4.png: the file cannot be read as an image",
        "images/5.png is 24×32 pixels (height×width), masks/5.png 21×32",
    ):
        assert part in said
    outcome = call(*TRAIN, "--skip-bad")
    assert outcome.code == 0, outcome.err
    assert "4 images, classes 0 255" in outcome.out
    assert all(name in outcome.err for name in ("7.png", "6.png", "4.png", "5.png"))
    said = lists("segment", "eval", "s.crf", "images", "masks")
    assert said.startswith("4 problems:\n")
    outcome = call("segment", "eval", "s.crf", "images", "masks", "--skip-bad")
    assert outcome.code == 0
    assert "4 images, pixel accuracy" in outcome.out
    assert outcome.err.count("note: skipped") == 4


def test_errors_name_the_image_not_a_graph(folders, fails):
    save("images/2.png", np.zeros((400, 400), dtype=np.uint8))
    mask = np.zeros((400, 400), dtype=np.uint8)
    mask[:, 200:] = 255
    save("masks/2.png", mask)
    said = fails(*replacing(TRAIN, "--loss", "likelihood", "--inference", "junction", "--block", "2"))
    assert said.startswith("images/2.png")
    assert "graph" not in said.split(":")[0]


# --- ending early


def test_a_time_limit_ends_training(folders, call, fails):
    outcome = call(*TRAIN, "--time-limit", "1e-6", "--solver", "lbfgs")
    assert outcome.code == 0, outcome.err
    assert "after 1 iteration," in outcome.out
    assert "stopped: the time limit was reached" in outcome.out
    assert Path("s.crf").exists()
    assert "time_limit" in fails(*TRAIN, "--time-limit", "0")


def test_checkpoints_are_models_to_go_on_from(folders, call, fails):
    done = weights(call, "--tolerance", "1e-8")
    options = ["--checkpoint", "c.crf", "--checkpoint-every", "0", "--solver", "lbfgs", "--max-iterations", "6"]
    assert call(*TRAIN, *options).code == 0
    np.testing.assert_array_equal(SegmenterModel.load("c.crf").field.w, SegmenterModel.load("s.crf").field.w)
    outcome = call(*TRAIN, "--resume", "c.crf", "--tolerance", "1e-8", "--log", "steps.jsonl")
    assert outcome.code == 0, outcome.err
    np.testing.assert_allclose(SegmenterModel.load("s.crf").field.w, done, atol=2e-3)
    first = json.loads(Path("steps.jsonl").read_text().splitlines()[0])["value"]
    weights(call, "--log", "steps.jsonl")
    assert first < json.loads(Path("steps.jsonl").read_text().splitlines()[0])["value"]
    assert "other features" in fails(*TRAIN, "--resume", "c.crf", "--colour")
    assert "same file" in fails(*TRAIN, "--resume", "s.crf")


def test_a_start_scores_as_the_model_did():
    """Also where the images, and so means and scales, are others."""
    images, masks = disc_images(4, shape=(24, 32))
    options = {"block_size": 4, "features": (), "colour": True, "loss": "pseudo-likelihood", "penalty": L2(1.0)}
    first = ImageSegmenter(**options).fit(images[:2], masks[:2])
    seen = []

    def at_the_start(iteration):
        seen.append(np.array(iteration.w))
        raise KeyboardInterrupt

    second = ImageSegmenter(**options)
    with pytest.raises(KeyboardInterrupt):
        second.fit(images[2:], masks[2:], start=first.model_, callbacks=[at_the_start])
    assert not np.allclose(first.model_.mean, second.model_.mean)
    for image in images:
        values = first.model_.features.compute(image / np.float32(255))
        a, b = first.model_.potentials(values), second.model_.potentials(values)
        np.testing.assert_allclose(a.unary, b.unary, atol=1e-4)
        np.testing.assert_allclose(a.coefficients, b.coefficients, atol=1e-4)


@pytest.mark.skipif(os.name == "nt", reason="SIGTERM cannot be handled there")
def test_sigterm_keeps_the_model(folders):
    command = [sys.executable, "-m", "crfkit", *TRAIN, "--tolerance", "0", "--solver", "ista"]
    command += ["--max-iterations", "1000000", "--log", "steps.jsonl"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    steps = Path("steps.jsonl")
    for _ in range(1200):  # the first row is of the start, which is no model
        if process.poll() is not None or (steps.exists() and steps.read_bytes().count(b"\n") >= 3):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143, err.decode()
    assert b"model written to s.crf" in out
    assert b"terminated; the model so far was written" in err
    assert SegmenterModel.load("s.crf").classes.tolist() == [0, 255]
