"""`crfkit refine train | apply | eval`: a person's path, and wrong inputs, each named."""

from __future__ import annotations

import json

import numpy as np
import pytest
from optional import optional

from crfkit import Refiner

pillow = optional("PIL.Image")

OPTIONS = ["--block", "2", "--threads", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Maps in three forms, images and masks of four scenes."""
    folder = tmp_path_factory.mktemp("refine")
    for name in ("maps", "images", "masks"):
        (folder / name).mkdir()
    for k in range(4):
        rng = np.random.default_rng(k)
        y, x = np.indices((16, 20))
        mask = (y - 8) ** 2 + (x - 6 - 2 * k) ** 2 < 25
        image = np.clip(0.3 + 0.4 * mask + rng.normal(0, 0.03, mask.shape), 0, 1)
        p = np.clip(0.3 + 0.4 * mask + rng.normal(0, 0.25, mask.shape), 0.02, 0.98)
        pillow.fromarray(np.rint(255 * image).astype(np.uint8)).save(folder / "images" / f"s{k}.png")
        pillow.fromarray(np.where(mask, 255, 0).astype(np.uint8)).save(folder / "masks" / f"s{k}.png")
        if k == 0:
            np.save(folder / "maps" / "s0.npy", np.stack([1 - p, p]))
        elif k == 1:
            np.savez(folder / "maps" / "s1.npz", np.stack([1 - p, p], axis=-1))
        else:
            pillow.fromarray(np.rint(255 * p).astype(np.uint8)).save(folder / "maps" / f"s{k}.png")
    return folder


@pytest.fixture
def run(call, folder, monkeypatch):
    monkeypatch.chdir(folder)
    return call


TRAIN = ["refine", "train", "maps", "images", "masks", "--model", "r.crf", *OPTIONS]


def test_a_persons_path(folder, run):
    trained = run(*TRAIN)
    assert trained.code == 0, trained.err
    assert "temperature" in trained.out
    assert "similar" in trained.out
    applied = run("refine", "apply", "r.crf", "maps", "images", "-o", "out", "--maps")
    assert applied.code == 0, applied.err
    assert set(np.unique(np.asarray(pillow.open(folder / "out" / "s2_mask.png")))) <= {0, 255}
    p = np.load(folder / "out" / "s2_probabilities.npy")
    refiner = Refiner.load(folder / "r.crf")
    expected = refiner.predict_proba([folder / "maps" / "s2.png"], [folder / "images" / "s2.png"])[0]
    np.testing.assert_allclose(p, expected, atol=1e-6)
    found = run("refine", "eval", "r.crf", "maps", "images", "masks", "--json")
    report = json.loads(found.out)
    assert report["images"] == 4
    assert report["error"] < report["error_before"] - 0.02
    assert "refined" in run("refine", "eval", "r.crf", "maps", "images", "masks").out
    assert "temperature" in run("inspect", "r.crf").out


def test_a_missing_map_is_named(folder, run, tmp_path, monkeypatch):
    for name in ("maps", "images"):
        (tmp_path / name).mkdir()
    pillow.new("L", (4, 4)).save(tmp_path / "images" / "a.png")
    assert run(*TRAIN).code == 0
    monkeypatch.chdir(tmp_path)
    found = run("refine", "apply", folder / "r.crf", "maps", "images", "-o", "out")
    assert found.code == 2
    assert "no probability map named a" in found.err
    np.save(tmp_path / "maps" / "a.npy", np.zeros((5, 4)))
    found = run("refine", "apply", folder / "r.crf", "maps", "images", "-o", "out")
    assert found.code == 1
    assert "its image 4×4" in found.err


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--edges", "colour"], "--edges must be contrast or none"), (["--neighbours", "5"], "neighbours must be 4 or 8")],
)
def test_wrong_options(folder, run, options, message):
    found = run(*TRAIN, *options)
    assert found.code == 2
    assert message in found.err
