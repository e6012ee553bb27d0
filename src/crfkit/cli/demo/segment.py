"""The part of `crfkit demo` on images: a field on image blocks against a classifier of single blocks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from crfkit._types import Array, Entries, Tabular
from crfkit.cli.demo.data import N_IMAGES, N_NEW_IMAGES
from crfkit.cli.demo.screen import Screen, can_show

if TYPE_CHECKING:
    from crfkit.files.images import Image
    from crfkit.images.model.segmenter import SegmenterModel

BLOCK = 4
STRENGTH = 2.0


def run(folder: Path, seed: int, screen: Screen) -> Entries:
    """Train on generated arrays, which needs no Pillow, and write segmenter.crf; return the figures."""
    import numpy as np

    from crfkit.images.estimator.segmenter import ImageSegmenter
    from crfkit.penalties import L1
    from crfkit.synthetic import disc_images

    images, masks = disc_images(N_IMAGES, seed)
    held_out, truth = disc_images(N_NEW_IMAGES, seed + 1)
    screen.step(4, "Find things in pictures")
    screen.say(
        f"{N_IMAGES} noisy pictures with a faintly tinted disc, and masks that say where it is, are the training data. "
        f"In a new picture, what belongs to the disc?"
    )
    begin = time.perf_counter()
    with screen.working("training a segmenter"):
        segmenter = ImageSegmenter(BLOCK, (), colour=True, inference="trw", sweeps=500, penalty=L1(STRENGTH))
        segmenter.fit(images, masks)
        seconds = time.perf_counter() - begin
        model = segmenter.model_
        model.save(folder / "segmenter.crf")
        alone = block_by_block(model, images, masks, held_out)
        found = segmenter.predict(held_out)
    errors = [float(np.mean([np.mean(a != b) for a, b in zip(m, truth, strict=True)])) for m in (alone, found)]
    pictures = {"the answer": truth[0], "each block alone": alone[0], "crfkit": found[0]}
    screen.lines(side_by_side(pictures))
    screen.say(
        f"In {N_NEW_IMAGES} new pictures, a classifier that looks at each block of {BLOCK}×{BLOCK} pixels alone gets "
        f"{errors[0]:.1%} of the pixels wrong. With the same features and couplings between neighbours it is "
        f"{errors[1]:.1%}: blocks that are uncertain listen to those around them."
    )
    return {
        "weights": len(model.field.w),
        "seconds": seconds,
        "converged": segmenter.result_.status.name == "CONVERGED",
        "error_of_blocks_alone": errors[0],
        "error": errors[1],
    }


def block_by_block(model: SegmenterModel, images: Tabular, masks: Tabular, held_out: Tabular) -> list[Array]:
    """Return masks of a field with the same features, scales and penalty but no edges: p(y | x) = Π p(y_i | h_i)."""
    import numpy as np

    from crfkit.files.images import read_image
    from crfkit.graph.estimator.graph_crf import GraphCRF
    from crfkit.images.blocks import block_labels, full_size
    from crfkit.penalties import L1

    features = model.features

    def rows(image: Image) -> Array:
        values = (features.compute(read_image(image)) - model.mean) / model.scale
        return values.reshape(-1, values.shape[-1])

    Y = np.concatenate([block_labels(mask, model.classes, features).ravel() for mask in masks])
    crf = GraphCRF(graph="none", penalty=L1(STRENGTH), loss="pseudo-likelihood")
    crf.fit(np.concatenate([rows(image) for image in images]), Y[:, None])
    return [
        full_size(crf.predict(rows(image)).reshape(features.blocks(image.shape)), image.shape, features)
        for image in held_out
    ]


def side_by_side(masks: Entries) -> str:
    """Return pictures side by side. A character is as tall as two blocks, so that the pictures keep their shape."""
    pictures = [[title.ljust(mask.shape[1] // BLOCK), *_draw(mask)] for title, mask in masks.items()]
    return "\n".join("   ".join(parts).rstrip() for parts in zip(*pictures, strict=True))


def _draw(mask: Array) -> list[str]:
    middle = mask[BLOCK // 2 :: BLOCK, BLOCK // 2 :: BLOCK].astype(bool).tolist()
    signs = "·▄▀█" if can_show("·▄▀█") else ".,'#"
    return [
        "".join(signs[2 * upper + lower] for upper, lower in zip(*rows, strict=True))
        for rows in zip(middle[::2], middle[1::2], strict=True)
    ]
