"""Refines the probabilities of a gradient-boosted classifier on folders of images and masks.

    python experiments/refinement/run.py IMAGES MASKS [--cache FILE.npz] [--choose]

Every fourth image is for the test, fixed beforehand. The refiner learns from out-of-fold probabilities of the others;
`--choose` prints the errors of several settings on folds of the training part, which is what the setting below was
chosen by. Without it the script trains once with that setting and prints the errors on the test images.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import base
import numpy as np
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


def error(masks: list[np.ndarray], found: list[np.ndarray]) -> float:
    """The mean over images of the share of wrong pixels."""
    return float(np.mean([np.mean(a != b) for a, b in zip(masks, found, strict=True)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("--cache", type=Path, help="keeps the block probabilities of the classifier")
    parser.add_argument("--choose", action="store_true", help="compare settings on folds of the training part")
    arguments = parser.parse_args()

    images, masks = base.read_pairs(arguments.images, arguments.masks)
    maps = base.maps_of(images, masks, arguments.cache)
    test = np.flatnonzero(base.is_test(len(images)))
    train = np.flatnonzero(~base.is_test(len(images)))

    def pick(ids: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        return [maps[k] for k in ids], [images[k] for k in ids], [masks[k] for k in ids]

    if arguments.choose:
        print(f"classifier on the training part, out of fold: {error(pick(train)[2], half(pick(train)[0])):.2%}")
        for setting in SETTINGS:
            errors, begin = [], time.process_time()
            for inner, rest in KFold(FOLDS, shuffle=True, random_state=0).split(train):
                refiner = Refiner(**setting).fit(*pick(train[inner]))
                p, pictures, truth = pick(train[rest])
                errors.append(error(truth, refiner.predict(p, pictures)))
            print(f"{np.mean(errors):.2%}  {time.process_time() - begin:5.0f} CPU s  {setting}", flush=True)
        return
    begin = time.process_time()
    refiner = Refiner(**CHOSEN).fit(*pick(train))
    seconds = time.process_time() - begin
    p, pictures, truth = pick(test)
    before = np.array([np.mean(a != b) for a, b in zip(truth, half(p), strict=True)])
    after = np.array([np.mean(a != b) for a, b in zip(truth, refiner.predict(p, pictures), strict=True)])
    print(
        f"classifier {before.mean():.2%}, refined {after.mean():.2%} of the pixels of {len(test)} test images are wrong"
    )
    print(f"refined better on {np.mean(after < before):.0%} of the images; trained in {seconds:.0f} CPU s")
    print(f"temperature {refiner.temperature_:.2f}, edges {dict(refiner.edge_weights_)}")


def half(p: list[np.ndarray]) -> list[np.ndarray]:
    return [(q > 0.5).astype(int) for q in p]


if __name__ == "__main__":
    main()
