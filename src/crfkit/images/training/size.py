"""Estimate the training of a segmenter: its memory, its time, and the block size that fits into memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crfkit._threads import count_threads
from crfkit.errors import DataError
from crfkit.files.limits import size_text
from crfkit.images.block_grids import DENSE_NUMBERS
from crfkit.images.features import ImageFeatures
from crfkit.images.pairs import Pairs
from crfkit.training.resources import available_memory, seconds_text
from crfkit.wording import counted

SMALLEST_BLOCK = 2  # pixels; block_size=None takes it unless it needs too much memory
MEMORY_SHARE = 0.6  # of the memory that is left, which block_size=None may fill
REMEDY = "resize the images (size), use larger blocks (block_size) or fewer features, or train on fewer images"
USUAL_EVALUATIONS = (50, 200)  # evaluations that most trainings take
SAMPLE_BLOCKS = 5_000  # blocks of the images that a dry run measures, at least
SAMPLE_ITERATIONS = 4

# Bytes, measured at the peak of trainings with 5,000 to 1,250,000 blocks:
PER_STATE = 260  # of a block and its edges, for each class: potentials, messages, marginals
PER_BLOCK = 150  # of a block and its edges besides
PER_PIXEL = 24  # of images and masks as they are read
WORKING_BYTES = 150  # of each pixel of an image whose features are computed, and of each number of its features


def needed_memory(features: ImageFeatures, shapes: Sequence[tuple[int, ...]], n_classes: int, n_threads: int) -> int:
    """Return about how many bytes training takes at its peak, beyond what the process used before."""
    width = len(features.names)
    blocks = [math.prod(features.blocks(shape)) for shape in shapes]
    total, pixels = sum(blocks), [math.prod(features.size or shape[:2]) for shape in shapes]
    numbers = 3 * total * (1 + width)  # a block has about two edges
    written_out = 8 * numbers if numbers <= DENSE_NUMBERS else 0
    at_once = sum(
        sorted((WORKING_BYTES * p + 12 * b * width for p, b in zip(pixels, blocks, strict=True)))[-n_threads:]
    )
    inference = total * (PER_BLOCK + PER_STATE * n_classes)
    read = PER_PIXEL * sum(math.prod(shape[:2]) for shape in shapes)
    return 4 * total * width + read + max(at_once, written_out + inference)


@dataclass(frozen=True)
class BlockChoice:
    """Hold the features with the block size that training uses, what they need, and what to tell the user."""

    features: ImageFeatures
    memory: int  # bytes, about
    available: int | None  # None where the system does not say
    note: str | None = None  # why the blocks are larger than usual


def choose_blocks(
    features: ImageFeatures, automatic: bool, shapes: Sequence[tuple[int, ...]], n_classes: int, n_threads: int | None
) -> BlockChoice:
    """Return the features with a block size that fits into memory; raise DataError if the one given does not.

    `automatic` asks for the smallest block size, from the usual one on, that takes at most a share of what is left.
    """
    available, threads = available_memory(), count_threads(n_threads)

    def needed(size: int) -> int:
        return needed_memory(replace(features, block_size=size), shapes, n_classes, threads)

    first = features.block_size
    memory = needed(first)
    if available is None:
        return BlockChoice(features, memory, None)
    if automatic:
        largest = max(max(features.size or shape[:2]) for shape in shapes)
        fitting = (size for size in range(first, largest + 1) if needed(size) <= MEMORY_SHARE * available)
        size = next(fitting, None)
        if size == first:
            return BlockChoice(features, memory, available)
        if size is not None:
            return BlockChoice(
                replace(features, block_size=size),
                needed(size),
                available,
                f"blocks are {size}×{size} pixels, because training on blocks of {first}×{first} would take about "
                f"{size_text(memory)} of memory and {size_text(available)} are left; {size}×{size} takes about "
                f"{size_text(needed(size))}. To decide yourself, set the block size (block_size) or resize the images "
                "(size)",
            )
    if memory > available:
        blocks = sum(math.prod(features.blocks(shape)) for shape in shapes)
        raise DataError(
            f"{blocks:,} blocks of {len(features.names)} features need about {size_text(memory)} of memory; this "
            f"machine has {size_text(available)} left: {REMEDY}"
        )
    return BlockChoice(features, memory, available)


@dataclass(frozen=True)
class SegmenterEstimate:
    """The size of a segmenter's training, and the memory and time it would take."""

    n_images: int
    n_classes: int
    n_blocks: int
    n_weights: int
    features: ImageFeatures
    memory: int  # bytes at the peak, including the process itself
    available: int | None  # bytes that the system can still give; None where it does not say
    feature_seconds: float  # of the features of all images
    seconds: float  # of one evaluation of the objective
    searches: bool  # whether the penalty is chosen on held-out images first
    note: str | None = None

    @classmethod
    def of(
        cls, given: Pairs, choice: BlockChoice, n_classes: int, n_weights: int, searches: bool, measured: Measured
    ) -> SegmenterEstimate:
        """Scale what was measured on some of the images up to all of them."""
        blocks = sum(math.prod(choice.features.blocks(image.shape)) for image in given.images)
        scale = blocks / measured.n_blocks
        return cls(
            len(given.images),
            n_classes,
            blocks,
            n_weights,
            choice.features,
            choice.memory + (measured.before or 0),
            choice.available,
            measured.feature_seconds * scale,
            measured.seconds * scale,
            searches,
            choice.note,
        )

    def __str__(self) -> str:
        side = self.features.block_size
        low, high = (seconds_text(self.feature_seconds + n * self.seconds) for n in USUAL_EVALUATIONS)
        search = "; choosing the penalty takes up to about as long again" if self.searches else ""
        lines = [
            f"{counted(self.n_images, 'image')}, {self.n_classes} classes, {counted(self.n_blocks, 'block')} of "
            f"{side}×{side} pixels, {counted(len(self.features.names), 'feature')}, "
            f"{counted(self.n_weights, 'weight')}",
            f"features take {seconds_text(self.feature_seconds)}, one evaluation of the objective "
            f"{seconds_text(self.seconds)}; most trainings take {USUAL_EVALUATIONS[0]} to {USUAL_EVALUATIONS[1]} "
            f"evaluations, which is {low} to {high} with the features{search}",
            f"memory at the peak: about {size_text(self.memory)}"
            + ("" if self.available is None else f" ({size_text(self.available)} are left)"),
        ]
        return "\n".join([*lines, *([] if self.note is None else [self.note])])


@dataclass(frozen=True)
class Measured:
    """Seconds that were measured on some of the images."""

    n_blocks: int
    feature_seconds: float
    seconds: float  # of one evaluation
    before: int | None  # bytes of the process before training


def sample(shapes: Sequence[tuple[int, ...]], features: ImageFeatures) -> list[int]:
    """Return the first images that have enough blocks together to measure on."""
    chosen: list[int] = []
    blocks = 0
    for k, shape in enumerate(shapes):
        chosen.append(k)
        blocks += math.prod(features.blocks(shape))
        if blocks >= SAMPLE_BLOCKS:
            break
    return chosen
