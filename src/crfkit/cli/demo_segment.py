"""The part of `crfkit demo` on images: a field on image blocks against a classifier of single blocks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from crfkit.models.segmenter import SegmenterModel

N_TRAIN, N_TEST = 8, 6
BLOCK = 4
STRENGTH = 2.0


def show(folder: Path, seed: int) -> None:
    """Train on generated arrays, which needs no Pillow."""
    import numpy as np

    from crfkit.cli.inspect_segmenter import report
    from crfkit.estimators.segmenter import ImageSegmenter
    from crfkit.penalties import L1
    from crfkit.synthetic import disc_images

    images, masks = disc_images(N_TRAIN, seed)
    held_out, truth = disc_images(N_TEST, seed + 1)
    H, W = truth[0].shape
    typer.echo(f"\nsegmentation: tinted discs under noise, {N_TRAIN} images of {H}×{W} pixels, {N_TEST} held out")
    begin = time.perf_counter()
    segmenter = ImageSegmenter(BLOCK, (), colour=True, inference="trw", sweeps=500, penalty=L1(STRENGTH))
    segmenter.fit(images, masks)
    model = segmenter.model_
    typer.echo(f"{len(model.field.w)} weights, {segmenter.result_}")
    typer.echo(f"trained in {time.perf_counter() - begin:.2f} s")
    model.save(folder / "segmenter.crf")

    alone = _block_by_block(model, images, masks, held_out)
    found = segmenter.predict(held_out)
    for name, labels in (("each block by itself", alone), ("the segmenter", found)):
        error = np.mean([np.mean(a != b) for a, b in zip(labels, truth, strict=True)])
        typer.echo(f"{100 * error:5.2f} % of the pixels wrong: {name}")
    typer.echo(_side_by_side({"truth": truth[0], "each block by itself": alone[0], "the segmenter": found[0]}))
    typer.echo("\n$ crfkit inspect segmenter.crf --top 3")
    typer.echo(report(model, 3))


def _block_by_block(model: SegmenterModel, images: Any, masks: Any, held_out: Any) -> list[Any]:
    """Return masks of a field with the same features, scales and penalty but no edges: p(y | x) = Π p(y_i | h_i)."""
    import numpy as np

    from crfkit.encoders.image_blocks import block_labels, full_size
    from crfkit.estimators.graph import GraphCRF
    from crfkit.penalties import L1
    from crfkit.readers.images import read_image

    features = model.features

    def rows(image: Any) -> Any:
        values = (features.compute(read_image(image)) - model.mean) / model.scale
        return values.reshape(-1, values.shape[-1])

    Y = np.concatenate([block_labels(mask, model.classes, features).ravel() for mask in masks])
    crf = GraphCRF(graph="none", penalty=L1(STRENGTH), loss="pseudo-likelihood")
    crf.fit(np.concatenate([rows(image) for image in images]), Y[:, None])
    return [
        full_size(crf.predict(rows(image)).reshape(features.blocks(image.shape)), image.shape, features)
        for image in held_out
    ]


def _side_by_side(masks: dict[str, Any]) -> str:
    """Return pictures side by side, with two characters per block because characters are taller than wide."""
    pictures = [[title.ljust(2 * mask.shape[1] // BLOCK), *_draw(mask)] for title, mask in masks.items()]
    return "\n".join("   ".join(parts).rstrip() for parts in zip(*pictures, strict=True))


def _draw(mask: Any) -> list[str]:
    middle = mask[BLOCK // 2 :: BLOCK, BLOCK // 2 :: BLOCK].tolist()
    return ["".join("##" if label else "··" for label in row) for row in middle]
