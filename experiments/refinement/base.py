"""The classifier whose probabilities are refined: gradient boosting on features of blocks, each block by itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GroupKFold

from crfkit.files.images import read_image, read_mask, resize
from crfkit.images.features import ImageFeatures

SIZE = (96, 128)  # images are shrunk to this
BLOCK = 4
FEATURES = ImageFeatures(block_size=BLOCK, position=True, size=SIZE, sift_cell=8)
FOLDS = 3


def read_pairs(images: Path, masks: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Images (values from 0 to 1) and masks (0 and 1) by name; where numbers in names are a multiple of four: test."""
    pictures = [read_image(path) for path in sorted(images.iterdir())]
    labels = [(read_mask(path) > 0).astype(int) for path in sorted(masks.iterdir())]
    return pictures, labels


def is_test(n_images: int) -> np.ndarray:
    """Every fourth image is for the test; fixed before anything was trained."""
    return (np.arange(1, n_images + 1) % 4) == 0


def block_features(image: np.ndarray) -> np.ndarray:
    """[h, w, F] SIFT, C1, position and the grey levels around a block at three scales."""
    small = resize(image, SIZE)
    around = [gaussian_filter(small, sigma)[BLOCK // 2 :: BLOCK, BLOCK // 2 :: BLOCK] for sigma in (2, 6, 16)]
    return np.concatenate([FEATURES.compute(image), np.stack(around, axis=-1)], axis=-1).astype(np.float32)


def block_labels(mask: np.ndarray) -> np.ndarray:
    """[h, w] 1 where most pixels of a block are figure."""
    small = resize(mask.astype(np.float32), SIZE)
    h, w = SIZE[0] // BLOCK, SIZE[1] // BLOCK
    return (small.reshape(h, BLOCK, w, BLOCK).mean(axis=(1, 3)) > 0.5).astype(int)


def classifier() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=150, max_leaf_nodes=31, l2_regularization=1.0, random_state=0)


def probability_maps(values: np.ndarray, shapes: list[tuple[int, int]]) -> list[np.ndarray]:
    """Block probabilities of figure [images, h, w] as maps [H, W] of the sizes of the images."""
    return [np.clip(resize(v.astype(np.float32), shape), 0, 1) for v, shape in zip(values, shapes, strict=True)]


def out_of_fold(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """[images, h, w] probabilities of figure by classifiers that have not seen the image."""
    found = np.zeros(Y.shape)
    for train, rest in GroupKFold(FOLDS).split(X, groups=np.arange(len(X))):
        model = classifier().fit(X[train].reshape(-1, X.shape[-1]), Y[train].ravel())
        found[rest] = model.predict_proba(X[rest].reshape(-1, X.shape[-1]))[:, 1].reshape(Y[rest].shape)
    return found


def fitted(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """[images, h, w] probabilities of figure in new images by a classifier trained on all of X."""
    model = classifier().fit(X.reshape(-1, X.shape[-1]), Y.ravel())
    return model.predict_proba(new.reshape(-1, X.shape[-1]))[:, 1].reshape(new.shape[:-1])


def maps_of(images: list[np.ndarray], masks: list[np.ndarray], cache: Path | None) -> list[np.ndarray]:
    """A map per image: out of fold for the training part, by the final classifier for the test part."""
    if cache is not None and cache.exists():
        stored = np.load(cache)["blocks"]
    else:
        X = np.stack([block_features(image) for image in images])
        Y = np.stack([block_labels(mask) for mask in masks])
        test = is_test(len(images))
        stored = np.zeros(Y.shape)
        stored[~test] = out_of_fold(X[~test], Y[~test])
        stored[test] = fitted(X[~test], Y[~test], X[test])
        if cache is not None:
            np.savez_compressed(cache, blocks=stored)
    return probability_maps(stored, [image.shape[:2] for image in images])
