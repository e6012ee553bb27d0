"""How large the training of a segmenter is: features in strips, the block that fits into memory, dry runs."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

from crfkit import L2, ImageSegmenter
from crfkit.errors import DataError
from crfkit.graph.graph import Graph
from crfkit.images import block_grids
from crfkit.images.block_features import BlockFeatures, ImageBlocks
from crfkit.images.features import ImageFeatures
from crfkit.images.training import size as segmenter_size
from crfkit.images.training.size import choose_blocks, needed_memory
from crfkit.synthetic import disc_images

SHAPES = [(250, 200)] * 100
ALL = ImageFeatures()
OPTIONS = {"features": (), "colour": True, "loss": "pseudo-likelihood", "n_threads": 1, "penalty": L2(10.0)}


@pytest.fixture(scope="module")
def matrices():
    """Rows in strips, and the same written out: blocks, edges, their squares."""
    rng = np.random.default_rng(0)
    graphs = [Graph.grid((5, 7)), Graph.grid((1, 3))]
    values = [rng.normal(size=(graph.n_nodes, 4)).astype(np.float32) for graph in graphs]
    mean = rng.uniform(0.5, 1.5, 4)
    nodes = np.concatenate(values).astype(np.float64)
    ends = [(v[g.edges[:, 0]], v[g.edges[:, 1]]) for v, g in zip(values, graphs, strict=True)]
    edges = np.concatenate([np.abs(a - b) for a, b in ends]).astype(np.float64) - mean
    made = (
        BlockFeatures([ImageBlocks(v) for v in values]),
        BlockFeatures([ImageBlocks(v, g.edges) for v, g in zip(values, graphs, strict=True)], mean),
    )
    full = [np.hstack([np.ones((len(x), 1)), x]) for x in (nodes, edges)]
    return [*zip(made, full, strict=True), *((m.power(2), f**2) for m, f in zip(made, full, strict=True))]


@pytest.mark.parametrize("strip", [4, 40, 1 << 18])
@pytest.mark.parametrize("which", range(4))
def test_strips_multiply_like_the_matrix(matrices, which, strip, monkeypatch):
    monkeypatch.setattr("crfkit.images.block_features.STRIP", strip)
    strips, full = matrices[which]
    rng = np.random.default_rng(which)
    weights, values = rng.normal(size=(5, 3)), rng.normal(size=(2, len(full)))
    assert strips.shape == full.shape
    np.testing.assert_allclose(strips @ weights, full @ weights, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(values @ strips, values @ full, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.asarray(strips), full, rtol=1e-6, atol=1e-6)
    chosen = rng.permutation(len(full))[:5]
    np.testing.assert_allclose(strips[chosen], full[chosen], rtol=1e-6, atol=1e-6)


def test_a_value_that_is_not_finite_is_found():
    values = np.ones((3, 2), dtype=np.float32)
    values[1, 0] = np.nan
    with pytest.raises(DataError, match="image 0: feature 0 of block 1 is nan"):
        BlockFeatures([ImageBlocks(values)])


@pytest.mark.parametrize("loss", ["pseudo-likelihood", "likelihood", "composite"])
def test_training_in_strips_finds_the_same_weights(loss, monkeypatch):
    images, masks = disc_images(3, shape=(24, 32))
    options = {**OPTIONS, "loss": loss, "block_size": 4, "tolerance": 1e-6}
    found = []
    for most in (block_grids.DENSE_NUMBERS, 0):
        monkeypatch.setattr(block_grids, "DENSE_NUMBERS", most)
        found.append(ImageSegmenter(**options).fit(images, masks).model_.field.w)
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4)


def test_newton_in_strips(monkeypatch):
    """Products with the Hessian, and its diagonal, which squares the features."""
    images, masks = disc_images(2, shape=(16, 24))
    segmenter = ImageSegmenter(**{**OPTIONS, "solver": "tron"}, block_size=4, tolerance=1e-6)
    found = []
    for most in (block_grids.DENSE_NUMBERS, 0):
        monkeypatch.setattr(block_grids, "DENSE_NUMBERS", most)
        found.append(segmenter.fit(images, masks).model_.field.w)
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4)


MEMORY = """
import resource, sys
import numpy as np
from crfkit.graph.graph import Graph
from crfkit.images.block_grids import BlockEncoder
rng = np.random.default_rng(0)
X = [rng.normal(size=(120, 100, 160)).astype(np.float32) for _ in range(8)]
states = np.tile(np.arange(2, dtype=np.int32), 48_000)
encoder = BlockEncoder(classes=np.arange(2), n_features=160, n_edge_features=160, edge_mean=np.zeros(160))
encoder.field("ising", "ising")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = encoder.training_data(X, states, None, "all")
potentials = encoder.field("ising", "ising").potentials(data, np.ones(322))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / (96_000 * 160))
"""


def test_large_sets_are_not_written_out():
    """Doubles of blocks and edges would be 24 bytes for each feature of a block, besides the 4 that are there."""
    done = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True, timeout=120)
    assert float(done.stdout) < 6


def test_the_block_is_the_smallest_that_fits(monkeypatch):
    needed = {size: needed_memory(ImageFeatures(size), SHAPES, 2, 2) for size in (2, 3, 4)}
    assert needed[2] > needed[3] > needed[4]
    for available, expected in ((1e12, 2), (needed[3] / segmenter_size.MEMORY_SHARE + 1, 3), (needed[3], 4)):
        monkeypatch.setattr(segmenter_size, "available_memory", lambda available=available: int(available))
        choice = choose_blocks(ALL, True, SHAPES, 2, 2)
        size = choice.features.block_size
        assert size == expected or (expected == 4 and size > 3)
        assert (choice.note is None) == (size == 2)
        if choice.note is not None:
            assert f"blocks are {size}×{size} pixels" in choice.note
            assert "GB" in choice.note


def test_a_block_size_that_does_not_fit_is_an_error(monkeypatch):
    monkeypatch.setattr(segmenter_size, "available_memory", lambda: 10**8)
    with pytest.raises(DataError, match=r"1,250,000 blocks of 162 features need about .* GB .*100 MB left: resize"):
        choose_blocks(ALL, False, SHAPES, 2, 2)
    monkeypatch.setattr(segmenter_size, "available_memory", lambda: None)
    assert choose_blocks(ALL, True, SHAPES, 2, 2).features.block_size == 2


def test_a_segmenter_says_which_block_it_chose(monkeypatch):
    images, masks = disc_images(2, shape=(40, 48))
    fits = needed_memory(ImageFeatures(4, (), True), [(40, 48)] * 2, 2, 1) / segmenter_size.MEMORY_SHARE
    monkeypatch.setattr(segmenter_size, "available_memory", lambda: int(fits) + 1)
    with pytest.warns(UserWarning, match="blocks are 4×4 pixels, because training on blocks of 2×2 would take"):
        segmenter = ImageSegmenter(**OPTIONS).fit(images, masks)
    assert segmenter.model_.features.block_size == 4
    assert segmenter.block_size is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ImageSegmenter(**OPTIONS, block_size=3).fit(images, masks).model_.features.block_size == 3


def test_an_estimate_counts_what_training_uses():
    images, masks = disc_images(4, shape=(41, 48))
    estimate = ImageSegmenter(**OPTIONS).estimate(images, masks)
    assert (estimate.n_images, estimate.n_classes, estimate.n_blocks, estimate.n_weights) == (4, 2, 4 * 21 * 24, 14)
    assert estimate.seconds > 0
    assert estimate.feature_seconds > 0
    text = str(estimate)
    assert "4 images, 2 classes, 2016 blocks of 2×2 pixels, 6 features, 14 weights" in text
    assert "memory at the peak: about" in text
