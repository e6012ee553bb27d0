"""`crfkit segment train | apply | eval`: figure and ground in images."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.cli.segment_options import (
    FILES,
    OUTPUT,
    Cache,
    Ignore,
    ImagePattern,
    Images,
    MaskColours,
    MaskPattern,
    Masks,
    Model,
    Quiet,
    SkipBad,
    Threads,
    parse_ignore,
)
from crfkit.cli.segment_train import train
from crfkit.errors import CrfkitError, DataError

if TYPE_CHECKING:
    from crfkit.models.segmenter import SegmenterModel

app = typer.Typer(help="Segmentation of images: learn from masks, apply, evaluate.", no_args_is_help=True)
app.command("train", epilog=FILES)(train)


@app.command(epilog=FILES)
def apply(
    model: Model,
    images: Images,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for NAME_mask, _overlay, _probability.png.",
            rich_help_panel=OUTPUT,
        ),
    ],
    maps: Annotated[
        bool,
        typer.Option(
            "--maps",
            help="Also write NAME_probabilities.npy (height × width × classes), which crfkit refine reads.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    image_pattern: ImagePattern = None,
    cache: Cache = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Segment the images of a folder: a mask, an overlay and a picture of probabilities of each.

    The picture shows the probability of the second of two classes, or of the label found where there are more; --maps
    writes those of all classes.

    Images that cannot be read are named on stderr, the others are segmented; the exit code is then 1.
    """
    from crfkit.cli import segment_files
    from crfkit.cli.options import check_distinct
    from crfkit.pool import in_threads
    from crfkit.readers.images import list_images, read_image

    trained = _load(model, threads)
    check_distinct({"MODEL": model, "IMAGES": images, "--output": output, "--cache": cache})
    found = list_images(images, image_pattern)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be made: {error.strerror or error}", output) from None

    def one(stem: str) -> str | None:
        """What went wrong."""
        path = found[stem]
        try:
            image = read_image(path)
            segmentation = trained.segment(image, cache=cache)
            segment_files.write_pictures(output, stem, image, segmentation, trained.classes)
            if maps:
                assert segmentation.probabilities is not None
                segment_files.write_map(output, stem, segmentation.probabilities)
        except CrfkitError as error:
            return str(error) if str(path) in str(error) else f"{path}: {error}"
        except MemoryError:
            return f"{path}: out of memory"
        return None

    failed = 0
    begin = time.perf_counter()
    with segment_files.bar("segmenting", quiet) as progress:
        for done, problem in enumerate(in_threads(one, found, threads), 1):
            if problem is not None:
                failed += 1
                typer.echo(f"crfkit: error: {problem}", err=True)
            progress(done, len(found))
    seconds = time.perf_counter() - begin
    if not quiet:
        done = len(found) - failed
        typer.echo(f"{done} images segmented into {output}, {done / seconds:.1f} per second")
    if failed:
        typer.echo(f"crfkit: error: {failed} of {len(found)} images could not be segmented", err=True)
        raise typer.Exit(1)


@app.command("eval", epilog=FILES)
def evaluate(
    model: Model,
    images: Images,
    masks: Masks,
    image_pattern: ImagePattern = None,
    mask_pattern: MaskPattern = None,
    ignore: Ignore = None,
    mask_colours: MaskColours = None,
    skip_bad: SkipBad = False,
    cache: Cache = None,
    threads: Threads = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Segment images and compare with their masks: wrong pixels, and intersection over union of each class.

    Pixels whose class is not known (--ignore; by default as in training) are not counted.
    """
    import numpy as np

    from crfkit.encoders.image_pairs import Pairs, confusion
    from crfkit.readers.image_folders import pair_folders, raise_all
    from crfkit.readers.images import MaskRules

    trained = _load(model, threads)
    classes, rules = trained.classes, trained.masks
    if ignore is not None or mask_colours is not None:
        colours = mask_colours if mask_colours is not None else rules.colour_map
        rules = MaskRules(rules.multiclass, rules.ignore if ignore is None else parse_ignore(ignore), colours)
    counts = np.zeros((len(classes),) * 2, dtype=np.int64)  # [true, found]
    rows: list[tuple[str, float | None]] = []
    problems: list[str] = []
    notes: list[str] = []
    for path, mask_path in pair_folders(images, masks, image_pattern, mask_pattern, problems):
        pair = Pairs.attempt(path, mask_path, rules, classes, problems)
        if pair is None or (problems and not skip_bad):
            continue  # what is wrong with the others is still to be named
        notes += pair.notes
        found = trained.segment(pair.images[0], probabilities=False, cache=cache).mask
        table = confusion(found, pair.masks[0], classes)
        counts += table
        rows.append((path.name, 1 - float(table.trace() / table.sum()) if table.any() else None))
    if not skip_bad:
        raise_all(problems)
    for note in [f"left out: {problem}" for problem in problems] + notes:
        typer.echo(f"crfkit: note: {note}", err=True)
    if not counts.any():
        raise_all([*problems, "no pixel of the masks has a known class"])
    right = counts.diagonal()
    unions = counts.sum(axis=0) + counts.sum(axis=1) - right
    iou: dict[str, Any] = {
        str(c): float(r / u) if u else None for c, r, u in zip(classes.tolist(), right, unions, strict=True)
    }
    accuracy = float(right.sum() / counts.sum())
    if as_json:
        per_image = [{"image": name, "error": error} for name, error in rows]
        report = {"images": len(rows), "accuracy": accuracy, "error": 1 - accuracy, "iou": iou, "per_image": per_image}
        typer.echo(json.dumps(report, ensure_ascii=False, indent=2))
        return
    width = max(len(name) for name, _ in rows)
    for name, error in rows:
        typer.echo(f"{name:{width}}  " + (f"error {error:.4f}" if error is not None else "no known pixel"))
    typer.echo(f"{len(rows)} images, pixel accuracy {accuracy:.4f}, error {1 - accuracy:.4f}")
    typer.echo("intersection over union: " + ", ".join(f"{c}: {v:.4f}" for c, v in iou.items() if v is not None))


def _load(path: Path, threads: int | None) -> SegmenterModel:
    """The model; every image has one thread."""
    from dataclasses import replace

    from crfkit.models.segmenter import SegmenterModel

    model = SegmenterModel.load(path, threads)
    return replace(model, field=replace(model.field, n_threads=1))
