"""`crfkit segment train | apply | eval`: a person's path, and wrong inputs, each named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import replacing
from optional import optional

from crfkit import L2, GridCRF, ImageSegmenter
from crfkit.images.model.segmenter import SegmenterModel

pillow = optional("PIL.Image")

TRAIN = ["segment", "train", "images", "masks", "--model", "s.crf", "--loss", "pl", "--threads", "1", "-q"]
EVEN = ["--l2", "1", "--edge-l2", "1"]  # given, so that no strength is searched for


def scene(H, W, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:H, :W]
    cy, cx = rng.uniform(0.4, 0.6, 2) * (H, W)
    mask = (y - cy) ** 2 + (x - cx) ** 2 < (0.35 * H) ** 2
    values = np.where(mask, 0.65 + 0.2 * np.sin(x), 0.3) + rng.normal(0, 0.05, (H, W))
    return np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8), np.where(mask, 255, 0).astype(np.uint8)


def save(path, array, **options):
    pillow.fromarray(array).save(path, **options)


def load(path):
    return np.asarray(pillow.open(path))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Images and masks of several kinds, and a model of them."""
    folder = tmp_path_factory.mktemp("segment")
    (folder / "images").mkdir()
    (folder / "masks").mkdir()
    for k, (name, mask_name) in enumerate(
        (("a.png", "a.png"), ("b.jpg", "b.jpg"), ("c.tif", "c.PNG"), ("d.png", "d.tif"))
    ):
        image, mask = scene(24 + k, 30, k)
        if name == "d.png":
            image = np.stack([image, image, image], axis=-1)
        save(folder / "images" / name, image)
        save(folder / "masks" / mask_name, mask)
    pairs = [(folder / "images" / a, folder / "masks" / b) for a, b in (("a.png", "a.png"), ("c.tif", "c.PNG"))]
    segmenter = ImageSegmenter(loss="pseudo-likelihood", penalty=L2(1.0), n_threads=1, colour=True)
    segmenter.fit(*map(list, zip(*pairs, strict=True))).save(folder / "s.crf")
    return folder


@pytest.fixture
def folders(workspace, made):
    """images/, masks/ and s.crf in the current folder."""
    import shutil

    shutil.copytree(made, workspace, dirs_exist_ok=True)
    return workspace


def test_train_apply_eval(folders, call):
    (folders / "s.crf").unlink()
    outcome = call(*TRAIN, *EVEN, "--colour", "--cache", "cache", "--log", "log.jsonl")
    assert outcome.code == 0, outcome.err
    assert "4 images, classes 0 255, 168 features" in outcome.out
    assert outcome.err == ""
    assert len(list(Path("cache").iterdir())) == 4
    assert json.loads(Path("log.jsonl").read_text().splitlines()[0])["iteration"] >= 0
    outcome = call("segment", "apply", "s.crf", "images", "--output", "deep/out", "--cache", "cache")
    assert outcome.code == 0, outcome.err
    assert "4 images segmented" in outcome.out
    kinds = ("mask", "overlay", "probability")
    assert {p.name for p in Path("deep/out").iterdir()} == {f"{s}_{kind}.png" for s in "abcd" for kind in kinds}
    mask, p, overlay = (load(f"deep/out/b_{kind}.png") for kind in ("mask", "probability", "overlay"))
    assert mask.shape == p.shape == overlay.shape[:2] == (25, 30)
    assert set(np.unique(mask)) <= {0, 255}
    np.testing.assert_array_equal(mask[p != 127] > 0, p[p != 127] > 127)
    image = load("images/b.jpg")
    np.testing.assert_allclose(overlay[mask == 0].astype(int), np.repeat(image[mask == 0][:, None], 3, axis=1), atol=1)
    assert (overlay[mask > 0, 0].astype(int) > overlay[mask > 0, 2]).all()

    outcome = call("segment", "eval", "s.crf", "images", "masks", "--json")
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    wrong = {
        s: np.mean(load(f"deep/out/{s}_mask.png") != np.where(load(m) > 127, 255, 0))
        for s, m in zip("abcd", ("masks/a.png", "masks/b.jpg", "masks/c.PNG", "masks/d.tif"), strict=True)
    }
    assert {Path(row["image"]).stem: row["error"] for row in report["per_image"]} == pytest.approx(wrong)
    assert report["accuracy"] > 0.9
    assert report["accuracy"] + report["error"] == pytest.approx(1)
    assert set(report["iou"]) == {"0", "255"}
    text = call("segment", "eval", "s.crf", "images", "masks").out
    assert f"4 images, pixel accuracy {report['accuracy']:.4f}" in text


def test_a_dry_run_writes_nothing(folders, call):
    (folders / "s.crf").unlink()
    before = sorted(path.name for path in folders.rglob("*"))
    outcome = call(*TRAIN, "--colour", "--dry-run")
    assert "4 images, 2 classes, " in outcome.out
    assert "blocks of 2×2 pixels, 168 features, 338 weights" in outcome.out
    assert "memory at the peak: about" in outcome.out
    assert "one evaluation of the objective" in outcome.out
    assert sorted(path.name for path in folders.rglob("*")) == before


def test_penalties_that_were_chosen_are_shown(folders, call):
    command = ["segment", "train", "images", "masks", "--model", "c.crf", "--features", "c1", "--block", "4", "-q"]
    outcome = call(*command, "--threads", "1", "--tolerance", "1e-3")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("L2 of c1 5400: error ")  # 100 times the mean of 54 blocks of an image
    line = next(line for line in outcome.out.splitlines() if line.startswith("penalties of groups of features: "))
    assert "chosen in 3 folds of 4 images; error 0." in line
    shown = call("inspect", "c.crf").out
    assert line in shown.splitlines()
    assert "node c1 L2(" in shown
    assert "edge c1 L2(" in shown


def test_options_reach_the_model(folders, call):
    outcome = call(
        *TRAIN, "--size", "16x20", "--block", "4", "--features", "c1", "--position", "--l1", "1", "--solver", "owlqn"
    )
    assert outcome.code == 0, outcome.err
    model = SegmenterModel.load("s.crf")
    assert (model.features.size, model.features.block_size, model.features.kinds) == ((16, 20), 4, ("c1",))
    assert len(model.features.names) == 36
    assert "+ L1(1)" in outcome.out
    outcome = call(*TRAIN, "--strengths", "100,1", "--validation", "0.3")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("strength ") == 2
    outcome = call(*TRAIN, "--max-iterations", "1", "--solver", "lbfgs")  # not converged: said, not hidden
    assert outcome.code == 0
    assert "limit" in outcome.out or "not converged" in outcome.out


def test_more_classes(folders, call, fails):
    three = load("masks/a.png").copy()
    three[:4, :4] = 128
    save("masks/a.png", three)
    Path("masks/b.jpg").unlink()
    save("masks/b.png", scene(25, 30, 1)[1])
    assert fails(*TRAIN).startswith("masks/a.png has 3 distinct values (0, 128, 255), expected 2")
    assert call(*TRAIN, *EVEN, "--multi-class").code == 0
    assert call("segment", "apply", "s.crf", "images", "-o", "out", "-q").code == 0
    assert set(np.unique(load("out/a_mask.png"))) <= {0, 128, 255}


def test_maps_have_all_classes_and_can_be_refined(folders, call):
    for name in ("b.jpg", "c.PNG", "d.tif"):
        Path("masks", name).unlink()
    for k, stem in enumerate("abcd"):
        mask = scene(24 + k, 30, k)[1]
        mask[:, :8] = 128
        save(f"masks/{stem}.png", mask)
    assert call(*TRAIN, *EVEN, "--multi-class").code == 0
    outcome = call("segment", "apply", "s.crf", "images", "-o", "out", "-q", "--maps")
    assert outcome.code == 0, outcome.err
    segmenter = ImageSegmenter.load("s.crf", n_threads=1)
    for stem, path in (("a", "images/a.png"), ("b", "images/b.jpg")):
        found = np.load(f"out/{stem}_probabilities.npy")
        assert found.dtype == np.float32
        assert found.shape == (*load(path).shape, 3)
        np.testing.assert_allclose(found, segmenter.predict_marginals([path])[0], atol=1e-6)
        np.testing.assert_array_equal(segmenter.classes_[found.argmax(axis=-1)], load(f"out/{stem}_mask.png"))
    # as they are, among the pictures of `segment apply`
    refine = ["--model", "r.crf", "--block", "4", "--inference", "mean-field"]
    outcome = call("refine", "train", "out", "images", "masks", *refine)
    assert outcome.code == 0, outcome.err
    outcome = call("refine", "apply", "r.crf", "out", "images", "-o", "refined", "--maps")
    assert outcome.code == 0, outcome.err
    assert np.load("refined/a_probabilities.npy").shape == (24, 30, 3)
    assert call("segment", "apply", "s.crf", "images", "-o", "without", "-q").code == 0
    assert not list(Path("without").glob("*.npy"))


def test_inspect(folders, call):
    assert call(*TRAIN, "--colour", "--position", "--size", "24x30", "--l1", "3").code == 0
    model = SegmenterModel.load("s.crf")
    out = call("inspect", "s.crf", "--top", 4).out
    assert out.startswith("2 classes: 0 255\nblocks of 2×2 pixels of images resized to 24×30, 170 features: 128 sift, ")
    assert f"{model.field.field.size} weights: 171 unary (ising), 171 pairwise (ising)" in out
    assert "trained: pseudo-likelihood + L1(3) = " in out
    names = ("intercept", *model.features.names)
    selected = model.selected()
    assert 0 < len(selected["unary"]) < 170
    for (part, used), weights, towards in zip(selected.items(), model.weights(), ("255", "equal"), strict=True):
        assert f"{part} features used: {len(used)} of 170" in out
        block = out.partition(f"strongest {part} weights, of standardised features\n")[2].partition("\n\n")[0]
        order = np.argsort(-np.abs(weights[0]), kind="stable")[:4]
        assert [line.split(maxsplit=1)[1] for line in block.splitlines()] == [
            f"{names[k]}  →  {towards}" for k in order if weights[0, k]
        ]
        np.testing.assert_allclose(
            [float(line.split()[0]) for line in block.splitlines()], weights[0, order], atol=1e-4
        )
    assert "strongest" not in call("inspect", "s.crf", "--top", 0).out


def test_inspect_more_classes(folders, call):
    three = load("masks/a.png").copy()
    three[:4, :4] = 128
    save("masks/a.png", three)
    Path("masks/b.jpg").unlink()
    save("masks/b.png", scene(25, 30, 1)[1])
    assert call(*TRAIN, "--multi-class", "--features", "c1").code == 0
    out = call("inspect", "s.crf", "--top", 1000).out
    assert out.startswith("3 classes: 0 128 255\n")
    nodes, edges = SegmenterModel.load("s.crf").weights()
    assert out.count("  →  ") == np.count_nonzero(nodes) + np.count_nonzero(edges)
    assert out.count("intercept  →  ") == 4
    assert out.count("  →  128") == np.count_nonzero(nodes[1])


# --- wrong input


def test_train_names_what_is_wrong(folders, fails):
    def restore(path, data):
        path.write_bytes(data)

    image, mask = Path("images/a.png"), Path("masks/a.png")
    good_image, good_mask = image.read_bytes(), mask.read_bytes()
    image.unlink()
    assert fails(*TRAIN).startswith("masks/a.png: there is no image named a in images")
    restore(image, good_image)
    mask.unlink()
    assert fails(*TRAIN).startswith("images/a.png: there is no mask named a in masks")
    save(mask, np.zeros((24, 29), dtype=np.uint8))
    assert fails(*TRAIN).startswith("images/a.png is 24×30 pixels (height×width), masks/a.png 24×29")
    save(mask, np.dstack([load("images/d.png")[:24, :, 0]] * 2 + [np.zeros((24, 30), dtype=np.uint8)]))
    assert fails(*TRAIN).startswith("masks/a.png has colours")
    restore(mask, b"")
    assert fails(*TRAIN).startswith("masks/a.png: the file cannot be read as an image")
    restore(mask, good_mask)
    restore(image, good_image[:100])
    assert fails(*TRAIN).startswith("images/a.png: the file cannot be read as an image")
    restore(image, b"P5\n0 0\n255\n")
    assert "images/a.png" in fails(*TRAIN)
    restore(image, good_image)
    for path in Path("masks").iterdir():
        shape = load(path).shape
        save(path, np.zeros(shape, dtype=np.uint8))
    assert fails(*TRAIN).startswith("every pixel of the masks is 0")
    Path("none").mkdir()
    assert fails("segment", "train", "none", "masks", "--model", "m.crf").startswith("none: the folder has no images")
    assert fails("segment", "train", "images", "nowhere", "--model", "m.crf").startswith(
        "nowhere: there is no such folder"
    )
    assert "folder" in fails("segment", "train", "images/a.png", "masks", "--model", "m.crf")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--size", "80"), "--size must be HEIGHTxWIDTH"),
        (("--size", "0x10"), "--size must be"),
        (("--block", "0"), "--block must be"),
        (("--features", "hog"), "features must be"),
        (("--features", ""), "no features"),
        (("--inference", "magic"), "unknown inference 'magic'"),
        (("--loss", "magic"), "unknown loss 'magic'"),
        (("--solver", "magic"), "unknown solver 'magic'"),
        (("--l1", "-1"), "the strength of L1"),
        (("--strengths", "a,b"), "--strengths must be numbers"),
        (("--strengths", "1", "--validation", "2"), "validation_fraction"),
        (("--mu", "0.1", "--solver", "lbfgs"), "the solver lbfgs has no --mu"),
        (("--model", "images"), "same file"),
        (("--model", "nowhere/m.crf"), "cannot write nowhere/m.crf"),
        (("--threads", "0"), "--threads must be"),
    ],
)
def test_options_out_of_range(folders, fails, options, said):
    assert said in fails(*replacing(TRAIN, *options))


def test_apply_goes_on_after_bad_images(folders, call):
    Path("images/bad.png").write_bytes(b"not an image")
    Path("images/empty.jpg").write_bytes(b"")
    save("images/palette.png", load("images/d.png"))
    pillow.open("images/palette.png").quantize(16).save("images/palette.png")
    save("images/deep.png", load("images/a.png").astype(np.uint16) * 257)
    save("images/one.png", np.zeros((1, 1), dtype=np.uint8))
    outcome = call("segment", "apply", "s.crf", "images", "--output", "out", "--threads", "2")
    assert outcome.code == 1
    lines = outcome.err.splitlines()
    assert [line.split(":")[2].strip() for line in lines[:2]] == ["images/bad.png", "images/empty.jpg"]
    assert lines[2:] == ["crfkit: error: 2 of 9 images could not be segmented"]
    assert len(list(Path("out").glob("*_mask.png"))) == 7
    assert load("out/one_probability.png").shape == (1, 1)
    np.testing.assert_array_equal(load("out/deep_mask.png"), load("out/a_mask.png"))


def test_apply_and_eval_refuse_what_they_cannot_use(folders, fails):
    assert fails("segment", "apply", "model.crf", "images", "-o", "out").startswith(
        "model.crf: this is a model of kind"
    )
    crf = GridCRF(loss="pseudo-likelihood").fit([np.eye(4)[..., None]], [np.eye(4, dtype=int)])
    crf.save("grid.crf")
    for command in (("apply", "grid.crf", "images", "-o", "out"), ("eval", "grid.crf", "images", "masks")):
        assert "kind 'graph'; expected 'segmenter'" in fails("segment", *command)
    assert "cannot read" in fails("segment", "apply", "nowhere.crf", "images", "-o", "out")
    assert "same file" in fails("segment", "apply", "s.crf", "images", "-o", "images")
    assert fails("segment", "apply", "s.crf", "images", "-o", "s.crf/out").startswith(
        "s.crf/out: cannot create the folder"
    )
    Path("none").mkdir()
    assert fails("segment", "apply", "s.crf", "none", "-o", "out").startswith("none: the folder has no images")
    save("masks/a.png", load("masks/a.png") // 255)
    assert fails("segment", "eval", "s.crf", "images", "masks").startswith("masks/a.png: the value 1 is not a class")
    save("masks/a.png", np.zeros((3, 3), dtype=np.uint8))
    assert "expected equal sizes" in fails("segment", "eval", "s.crf", "images", "masks")


def test_without_pillow(folders, fails, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "pip install 'crfkit[images]'" in fails("segment", "eval", "s.crf", "images", "masks")


def test_mu_reaches_a_solver_that_has_one(monkeypatch):
    from dataclasses import dataclass

    from crfkit.cli.options.segment import make_solver
    from crfkit.solvers import LBFGS, SOLVERS

    @dataclass(frozen=True)
    class Smoothing(LBFGS):
        mu: float = 1.0

    monkeypatch.setitem(SOLVERS, "smoothing", Smoothing)
    made = make_solver("smoothing", 0.25, 1e-3, 7, 0)
    assert (made.mu, made.max_iterations) == (0.25, 7)
    assert make_solver("smoothing", None, 1e-3, 7, 0) == "smoothing"
