"""Pixel error of `ImageSegmenter` on folds of training images, beside logistic regression block by block.

    python experiments/segmenter/folds.py IMAGES MASKS [--count 60] [--folds 3] [--variants default uncentred …]

The first `--count` images by name, in the order of a seed, are divided into folds; every fold is segmented by a model
trained on the others. Images are resized to 80×100 pixels, blocks are 2×2, SIFT cells 8 pixels; errors are of pixels at
the size of the image. The other images are never read. Writes a row per fold and variant, and the means, as JSON.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crfkit import ImageSegmenter
from crfkit.encoders.image_blocks import UPSAMPLING, block_labels, full_size
from crfkit.features.image import ImageFeatures
from crfkit.penalties import L2, Blockwise
from crfkit.readers.images import pair_folders, read_image, read_mask
from crfkit.training.segmenter import SegmenterTraining

FEATURES: dict[str, Any] = {"size": (80, 100), "sift_cell": 8}
Pair = tuple[Path, Path]


class Uncentred(ImageSegmenter):
    """Edge features |h_i − h_j| as they are, not less their mean."""

    def _training(self) -> SegmenterTraining:
        return replace(super()._training(), centred=False)


def variants() -> dict[str, tuple[type[ImageSegmenter], dict[str, Any]]]:
    """Name → (class, options)."""
    pl = {"loss": "pseudo-likelihood"}
    table: dict[str, tuple[type[ImageSegmenter], dict[str, Any]]] = {
        "default": (ImageSegmenter, {}),
        "uncentred": (Uncentred, {}),
        "pl": (ImageSegmenter, pl),
        "pl, L2(1)": (ImageSegmenter, {**pl, "penalty": L2(1.0)}),
    }
    for strength in (1e2, 1e3, 1e4, 1e5, 3e5, 1e6):
        penalty = Blockwise({"node": L2(1.0), "edge": L2(strength)})
        table[f"pl, edges {strength:g}"] = (ImageSegmenter, {**pl, "penalty": penalty})
    return table


def fold_errors(name: str, train: list[Pair], test: list[Pair], cache: Path) -> dict[str, Any]:
    """The share of wrong pixels of the test images for each kind of upsampling, and CPU seconds of training."""
    begin = time.process_time()
    if name == "logistic regression":
        return {"nearest": logistic_regression(train, test, cache), "cpu_seconds": time.process_time() - begin}
    kind, options = variants()[name]
    segmenter = kind(cache=cache, inference="trw", **FEATURES, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        segmenter.fit(*map(list, zip(*train, strict=True)))
    row: dict[str, Any] = {"cpu_seconds": time.process_time() - begin}
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
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path("cache"))
    parser.add_argument("--variants", nargs="+", default=["logistic regression", *variants()])
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    pairs = pair_folders(options.images, options.masks)[: options.count]
    order = np.random.default_rng(options.seed).permutation(len(pairs))
    folds = np.array_split(order, options.folds)
    rows = []
    for name in options.variants:
        for k, fold in enumerate(folds):
            test = [pairs[i] for i in fold]
            train = [pairs[i] for i in sorted(set(order.tolist()) - set(fold.tolist()))]
            rows.append({"variant": name, "fold": k, **fold_errors(name, train, test, options.cache)})
            print(json.dumps(rows[-1]), flush=True)
        of = [row for row in rows if row["variant"] == name]
        means = {key: float(np.mean([row[key] for row in of])) for key in (*UPSAMPLING, "cpu_seconds") if key in of[0]}
        errors = ", ".join(f"{key} {100 * means[key]:.2f} %" for key in UPSAMPLING if key in means)
        print(f"{name:24} wrong pixels: {errors}; {means['cpu_seconds']:.0f} CPU s", flush=True)
    if options.output is not None:
        options.output.write_text(json.dumps({"count": len(pairs), "folds": options.folds, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
