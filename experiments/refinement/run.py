"""Refines the probabilities of a gradient-boosted classifier on folders of images and masks.

    python experiments/refinement/run.py IMAGES MASKS [--cache FILE.npz] [--choose]

Every fourth image is for the test, fixed beforehand. The refiner learns from out-of-fold probabilities of the others;
`--choose` compares several settings on folds of the training part, which is what the setting below is chosen by.
Without it the script trains once with that setting and measures the errors on the test images. Both write what they
find to results.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # results_file

import base
import numpy as np
from results_file import read, write
from sklearn.model_selection import KFold

from crfkit import Refiner

CHOSEN = {"block_size": 4, "neighbours": 8}
SETTINGS: list[dict[str, object]] = [
    {"block_size": 4, "neighbours": 4},
    {"block_size": 4, "neighbours": 8},
    {"block_size": 4, "neighbours": 8, "edge_features": None},
    {"block_size": 8, "neighbours": 8},
    {"superpixels": 600},
]
FOLDS = 3
HERE = Path(__file__).resolve().parent


def error(masks: list[np.ndarray], found: list[np.ndarray]) -> float:
    """The mean over images of the share of wrong pixels."""
    return float(np.mean([np.mean(a != b) for a, b in zip(masks, found, strict=True)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("--cache", type=Path, help="keeps the block probabilities of the classifier")
    parser.add_argument("--choose", action="store_true", help="compare settings on folds of the training part")
    parser.add_argument("--output", type=Path, default=HERE)
    arguments = parser.parse_args()
    file = arguments.output / "results.json"
    results: dict[str, Any] = read(file)

    images, masks = base.read_pairs(arguments.images, arguments.masks)
    maps = base.maps_of(images, masks, arguments.cache)
    test = np.flatnonzero(base.is_test(len(images)))
    train = np.flatnonzero(~base.is_test(len(images)))

    def pick(ids: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        return [maps[k] for k in ids], [images[k] for k in ids], [masks[k] for k in ids]

    if arguments.choose:
        results["out_of_fold"] = error(pick(train)[2], half(pick(train)[0]))
        for setting in SETTINGS:
            errors, begin = [], time.process_time()
            for inner, rest in KFold(FOLDS, shuffle=True, random_state=0).split(train):
                refiner = Refiner(**setting).fit(*pick(train[inner]))
                p, pictures, truth = pick(train[rest])
                errors.append(error(truth, refiner.predict(p, pictures)))
            row = {"setting": setting, "errors": errors, "cpu_seconds": time.process_time() - begin}
            results.setdefault("choice", {})[json.dumps(setting)] = row
            write(file, results)
            print(row, flush=True)
        return
    begin = time.process_time()
    refiner = Refiner(**CHOSEN).fit(*pick(train))
    seconds = time.process_time() - begin
    p, pictures, truth = pick(test)
    before = np.array([np.mean(a != b) for a, b in zip(truth, half(p), strict=True)])
    after = np.array([np.mean(a != b) for a, b in zip(truth, refiner.predict(p, pictures), strict=True)])
    results["test"] = {
        "setting": CHOSEN,
        "images": len(test),
        "classifier": float(before.mean()),
        "refined": float(after.mean()),
        "better": float(np.mean(after < before)),
        "cpu_seconds": seconds,
    }
    write(file, results)
    print(results["test"])


def half(p: list[np.ndarray]) -> list[np.ndarray]:
    return [(q > 0.5).astype(int) for q in p]


if __name__ == "__main__":
    main()
