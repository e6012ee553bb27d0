"""Texture features on few and many images: the default of `ImageSegmenter` against simpler ways to segment.

    python benchmarks/segment_features.py [--output results/segment_features.json] [--sizes 6,12,50,200] [--horses 40]

For each number of generated images (discs with a faint tint under strong noise, 64×80 pixels), and for horses if their
data are there, the share of wrong pixels of images that no method was trained on, of: the default penalty, which is
chosen on folds of the training images; one L2(1) for all weights, the default of version 0.2; colour alone (of grey
horses, lightness); gradient boosting on the pixels of blurred images; and calling everything background. Blocks are
4×4 pixels. Writes JSON after every data set.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, SHARED, Report, Store, say
from scipy.ndimage import gaussian_filter
from sklearn.ensemble import HistGradientBoostingClassifier

from crfkit import L2, ImageSegmenter
from crfkit.files.images import read_image, read_mask, resize, resize_nearest
from crfkit.synthetic import disc_images

HORSES = SHARED / "data" / "weizmann_horse"
SHAPE = (80, 100)  # of horses
BLURS = (0, 1, 2, 4, 8)  # standard deviations in pixels
MOST_PIXELS = 100_000  # that gradient boosting learns from
BLOCK = 4
Images = list[Any]
Data = tuple[Images, Images, Images, Images]  # images and masks to learn from, and to test on


def discs(n: int, n_test: int) -> Data:
    return *disc_images(n, seed=n), *disc_images(n_test, seed=1_000_000)


def horses(n: int, n_test: int) -> Data:
    """Return horses of 80×100 pixels, in a random order that depends on nothing."""
    files = sorted(path for path in HORSES.rglob("*") if path.suffix.lower() in (".jpg", ".png"))
    by_folder: dict[Path, dict[str, Path]] = {}
    for path in files:
        by_folder.setdefault(path.parent, {})[path.stem] = path
    first, second = sorted(by_folder.values(), key=lambda found: _greys(next(iter(found.values()))))[:2]
    names = sorted(set(first) & set(second))
    chosen = np.random.default_rng(0).permutation(len(names))[: n + n_test]
    masks = [resize_nearest((read_mask(first[names[k]]) > 0).astype(np.uint8), SHAPE) for k in chosen]
    images = [np.clip(resize(read_image(second[names[k]]), SHAPE), 0, 1) for k in chosen]
    return images[:n], masks[:n], images[n:], masks[n:]


def _greys(path: Path) -> int:
    """Return how many pixels of a picture are neither nearly black nor nearly white: few in a mask."""
    grey = read_image(path)
    return int(((grey > 0.2) & (grey < 0.8)).sum())


def blurred_pixels(image: Any) -> Any:
    values = np.asarray(read_image(image), dtype=np.float32)
    values = values[..., None] if values.ndim == 2 else values
    maps = [values if blur == 0 else gaussian_filter(values, (blur, blur, 0)) for blur in BLURS]
    return np.concatenate(maps, axis=-1).reshape(values.shape[0] * values.shape[1], -1)


def boosting(data: Data) -> tuple[float, float]:
    """Return the errors on training and test images of gradient boosting on pixels of blurred images."""
    images, masks, new, truth = data
    X, y = np.concatenate([blurred_pixels(i) for i in images]), np.concatenate([np.ravel(m) for m in masks])
    chosen = np.random.default_rng(0).permutation(len(y))[:MOST_PIXELS]
    model = HistGradientBoostingClassifier(random_state=0).fit(X[chosen], y[chosen])
    test = np.mean([np.mean(model.predict(blurred_pixels(i)) != np.ravel(m)) for i, m in zip(new, truth, strict=True)])
    return float(np.mean(model.predict(X) != y)), float(test)


def segmenter(data: Data, **options: Any) -> Report:
    images, masks, new, truth = data
    begin = time.perf_counter()
    fitted = ImageSegmenter(colour=True, block_size=BLOCK, random_state=0, **options).fit(images, masks)
    return {
        "train": 1 - fitted.score(images, masks),
        "test": 1 - fitted.score(new, truth),
        "seconds": time.perf_counter() - begin,
        "objective": fitted.result_.objective,
        "iterations": fitted.result_.iterations,
    }


def measure(data: Data) -> Report:
    """Return the errors of all methods."""
    found: Report = {"background": {"test": float(np.mean([np.mean(mask > 0) for mask in data[3]]))}}
    begin = time.perf_counter()
    train, test = boosting(data)
    found["boosting"] = {"train": train, "test": test, "seconds": time.perf_counter() - begin}
    methods: dict[str, Callable[[], Report]] = {
        "default": lambda: segmenter(data),
        "one_strength": lambda: segmenter(data, penalty=L2(1.0)),
        "colour": lambda: segmenter(data, features=()),
    }
    for name, method in methods.items():
        found[name] = method()
        say(f"  {name}: test error {found[name]['test']:.4f}, {found[name]['seconds']:.0f} s")
    say(f"  boosting: {test:.4f}; all background: {found['background']['test']:.4f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=RESULTS / "segment_features.json")
    parser.add_argument("--sizes", default="6,12,50,200", help="numbers of generated images")
    parser.add_argument("--horses", type=int, default=40, help="number of horses to learn from")
    parser.add_argument("--test", type=int, default=40, help="number of images to test on")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    store = Store(options.output, options.resume)
    for n in [int(size) for size in options.sizes.split(",") if size]:
        store.part(f"discs {n}", lambda n=n: measure(discs(n, options.test)))
    if options.horses and HORSES.is_dir():
        store.part(f"horses {options.horses}", lambda: measure(horses(options.horses, options.test)))


if __name__ == "__main__":
    main()
