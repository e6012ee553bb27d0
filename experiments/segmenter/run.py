"""Pixel error of `ImageSegmenter` on folds of training images, and what L1 selects with and without centred edges.

    python experiments/segmenter/run.py IMAGES MASKS [--folds 0,1,2] [--variants "L2" "L2, uncentred" …]

The first 60 images by name, in the order of a seed, are divided into three folds; every fold is segmented by a model
trained on the others. Images are resized to 80×100 pixels, blocks are 2×2, SIFT cells 8 pixels; errors are of pixels at
the size of the image. The other images are never read. Variants with noise have 40 features of normal noise beside the
162 real ones. A variant of a fold that is in results.json is not computed again unless --again is given.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # results_file

import numpy as np
from results_file import read, write

from crfkit import ImageSegmenter
from crfkit.files.images import pair_folders, read_image, read_mask
from crfkit.images.blocks import UPSAMPLING, block_labels, full_size
from crfkit.images.features import ImageFeatures
from crfkit.images.training.segmenter import SegmenterTraining
from crfkit.penalties import L1, L2, Blockwise

HERE = Path(__file__).resolve().parent
FEATURES: dict[str, Any] = {"size": (80, 100), "sift_cell": 8}
COUNT, FOLDS, NOISE = 60, 3, 40
STRENGTH = 300.0  # of L1: that of the study of noise in ../robust_crf
Pair = tuple[Path, Path]


def noise(image: Any) -> Any:
    """Return features of normal noise for the blocks of an image; the image is the seed."""
    rng = np.random.default_rng(zlib.crc32(np.ascontiguousarray(image).tobytes()))
    rows, columns = (-(-side // 2) for side in image.shape[:2])
    return rng.standard_normal((rows, columns, NOISE))


noise.feature_names = tuple(f"noise{k}" for k in range(NOISE))  # type: ignore[attr-defined]


class Uncentred(ImageSegmenter):
    """Edge features |h_i − h_j| as they are, not less their mean."""

    def _training(self) -> SegmenterTraining:
        return replace(super()._training(), centred=False)


def variants() -> dict[str, tuple[type[ImageSegmenter], dict[str, Any]]]:
    """Return name → (class, options)."""
    with_noise: dict[str, Any] = {"features": ("sift", "c1", noise), "penalty": L1(STRENGTH)}
    pl: dict[str, Any] = {"loss": "pseudo-likelihood"}
    table: dict[str, tuple[type[ImageSegmenter], dict[str, Any]]] = {
        "L2": (ImageSegmenter, {}),
        "L2, uncentred": (Uncentred, {}),
        "L1, noise": (ImageSegmenter, with_noise),
        "L1, noise, uncentred": (Uncentred, with_noise),
        "pl": (ImageSegmenter, pl),
        "pl, L2(1)": (ImageSegmenter, {**pl, "penalty": L2(1.0)}),
    }
    for strength in (1e2, 1e4, 1e6):
        penalty = Blockwise({"node": L2(1.0), "edge": L2(strength)})
        table[f"pl, edges L2({strength:g})"] = (ImageSegmenter, {**pl, "penalty": penalty})
    return table


def fold_errors(name: str, train: list[Pair], test: list[Pair], cache: Path) -> dict[str, Any]:
    """Return the share of wrong pixels of the test images for each kind of upsampling, and CPU seconds of training."""
    begin = time.process_time()
    if name == "logistic regression":
        return {"nearest": logistic_regression(train, test, cache), "cpu_seconds": time.process_time() - begin}
    kind, options = variants()[name]
    segmenter = kind(cache=cache, inference="trw", n_threads=1, **FEATURES, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        segmenter.fit(*map(list, zip(*train, strict=True)))
    row: dict[str, Any] = {"cpu_seconds": time.process_time() - begin}
    selected = segmenter.selected_features_
    for part in ("unary", "pairwise"):
        kept = [each for each in selected[part] if each.startswith("noise")]
        row[part] = {"kept": len(selected[part]), "noise": len(kept)}
    for upsampling in UPSAMPLING:
        segmenter.model_ = replace(segmenter.model_, upsampling=upsampling)
        row[upsampling] = 1 - segmenter.score(*map(list, zip(*test, strict=True)))
    return row


def logistic_regression(train: list[Pair], test: list[Pair], cache: Path) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, classes = ImageFeatures(**FEATURES), np.array([0, 255])

    def values(path: Path) -> Any:
        return features.compute_cached(read_image(path), cache)

    X = np.concatenate([values(image).reshape(-1, len(features.names)) for image, _ in train])
    y = np.concatenate([block_labels(read_mask(mask), classes, features).ravel() for _, mask in train])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(X, y)
    wrong = total = 0
    for image, path in test:
        given, mask = values(image), read_mask(path)
        found = model.predict(given.reshape(-1, given.shape[-1])).reshape(given.shape[:2])
        wrong += int((full_size(found, mask.shape, features) != mask).sum())
        total += mask.size
    return wrong / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("--folds", default="0,1,2")
    parser.add_argument("--count", type=int, default=COUNT, help="images to divide, fewer for a quick look")
    parser.add_argument("--variants", nargs="+", default=["logistic regression", *variants()])
    parser.add_argument("--again", action="store_true", help="compute what is there already")
    parser.add_argument("--output", type=Path, default=HERE)
    parser.add_argument("--cache", type=Path, default=HERE / "cache")
    options = parser.parse_args()
    file = options.output / "results.json"
    results: dict[str, Any] = read(file)
    pairs = pair_folders(options.images, options.masks)[: options.count]
    order = np.random.default_rng(0).permutation(len(pairs))
    folds = np.array_split(order, FOLDS)
    results |= {"images": len(pairs), "noise": NOISE, "strength": STRENGTH}
    rows = results.setdefault("variants", {})
    for name in options.variants:
        for k in map(int, options.folds.split(",")):
            if str(k) in rows.get(name, {}) and not options.again:
                continue
            test = [pairs[i] for i in folds[k]]
            train = [pairs[i] for i in sorted(set(order.tolist()) - set(folds[k].tolist()))]
            rows.setdefault(name, {})[str(k)] = fold_errors(name, train, test, options.cache)
            print(name, k, json.dumps(rows[name][str(k)]), flush=True)
            write(file, results)


if __name__ == "__main__":
    main()
