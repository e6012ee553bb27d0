"""`crfkit segment train | apply | eval`: segmentation of images into classes of pixels."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit._values import Entries
from crfkit.cli.commands.segment_train import train
from crfkit.cli.options import image as given
from crfkit.cli.options import shared
from crfkit.cli.runtime.help import OUTPUT, Command, flag, option
from crfkit.cli.runtime.output import say
from crfkit.errors import CrfkitError

if TYPE_CHECKING:
    from crfkit.images.model.segmenter import SegmenterModel

app = typer.Typer(help="Segmentation of images: learn from masks, apply, evaluate.", no_args_is_help=True)
app.command("train", cls=Command, epilog=given.FILES)(train)


@app.command(cls=Command, epilog=given.FILES)
def apply(
    model: shared.ModelFile,
    images: given.Images,
    output: Annotated[
        Path,
        option(
            OUTPUT,
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for NAME_mask.png, NAME_overlay.png and NAME_probability.png.",
        ),
    ],
    maps: Annotated[
        bool,
        flag(
            OUTPUT,
            "--maps",
            help="Also write NAME_probabilities.npy (height × width × classes), which `crfkit refine` reads.",
        ),
    ] = False,
    image_pattern: given.ImagePattern = None,
    cache: given.Cache = None,
    threads: shared.Threads = None,
    quiet: shared.Quiet = False,
) -> None:
    """Segment the images of a folder: write a mask, an overlay and a picture of the probabilities for each.

    The picture shows the probability of the second class if there are two classes, otherwise of the predicted class.
    --maps writes the probabilities of all classes.

    Images that cannot be read are named on stderr and skipped; the exit code is then 1.
    """
    from crfkit.cli.commands import segment_files
    from crfkit.cli.options.parsing import check_distinct
    from crfkit.files.images import list_images, read_image
    from crfkit.pool import in_threads

    trained = _load(model, threads)
    check_distinct({"MODEL": model, "IMAGES": images, "--output": output, "--cache": cache})
    found = list_images(images, image_pattern)
    segment_files.make_folder(output)

    def one(stem: str) -> str | None:
        """Segment an image; return what went wrong, or None."""
        path = found[stem]
        try:
            image = read_image(path)
            segmentation = trained.segment(image, cache=cache)
            segment_files.write_pictures(output, stem, image, segmentation, trained.classes)
            if maps:
                assert segmentation.probabilities is not None
                segment_files.write_map(output, stem, segmentation.probabilities)
        except CrfkitError as error:
            return str(error.in_file(path))
        except MemoryError:
            return f"{path}: out of memory"
        return None

    failed = 0
    begin = time.perf_counter()
    with segment_files.bar("segmenting", quiet) as progress:
        for done, problem in enumerate(in_threads(one, found, threads), 1):
            if problem is not None:
                failed += 1
                say(f"crfkit: error: {problem}", err=True)
            progress(done, len(found))
    seconds = time.perf_counter() - begin
    if not quiet:
        done = len(found) - failed
        say(f"{done} images segmented into {output}, {done / seconds:.1f} per second")
    segment_files.exit_if_failed(failed, len(found), "segmented")


@app.command("eval", cls=Command, epilog=given.FILES)
def evaluate(
    model: shared.ModelFile,
    images: given.Images,
    masks: given.Masks,
    image_pattern: given.ImagePattern = None,
    mask_pattern: given.MaskPattern = None,
    ignore: given.Ignore = None,
    mask_colours: given.MaskColours = None,
    skip_bad: given.SkipBad = False,
    cache: given.Cache = None,
    threads: shared.Threads = None,
    as_json: shared.Json = False,
) -> None:
    """Segment images and compare them with their masks: error of pixels, and intersection over union of each class.

    Pixels of unknown class are not counted; --ignore names their values (by default as in training).
    """
    import numpy as np

    from crfkit.cli.runtime.finishing import note
    from crfkit.files.image_folders import pair_folders, raise_all
    from crfkit.files.images import MaskRules
    from crfkit.images.pairs import Pairs, confusion

    trained = _load(model, threads)
    classes, rules = trained.classes, trained.masks
    if ignore is not None or mask_colours is not None:
        colours = mask_colours if mask_colours is not None else rules.colour_map
        rules = MaskRules(rules.multiclass, rules.ignore if ignore is None else given.parse_ignore(ignore), colours)
    counts = np.zeros((len(classes),) * 2, dtype=np.int64)  # [true, found]
    rows: list[tuple[str, float | None]] = []
    problems: list[str] = []
    notes: list[str] = []
    for path, mask_path in pair_folders(images, masks, image_pattern, mask_pattern, problems):
        pair = Pairs.attempt(path, mask_path, rules, classes, problems)
        if pair is None or (problems and not skip_bad):
            continue  # all problems are reported together
        notes += pair.notes
        found = trained.segment(pair.images[0], probabilities=False, cache=cache).mask
        table = confusion(found, pair.masks[0], classes)
        counts += table
        rows.append((path.name, 1 - float(table.trace() / table.sum()) if table.any() else None))
    if not skip_bad:
        raise_all(problems)
    for remark in [f"skipped {problem}" for problem in problems] + notes:
        note(remark)
    if not counts.any():
        raise_all([*problems, "no pixel of the masks has a known class"])
    right = counts.diagonal()
    unions = counts.sum(axis=0) + counts.sum(axis=1) - right
    iou: Entries = {
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
        say(f"{name:{width}}  " + (f"error {error:.4f}" if error is not None else "no known pixel"))
    say(f"{len(rows)} images, pixel accuracy {accuracy:.4f}, error {1 - accuracy:.4f}")
    say("intersection over union: " + ", ".join(f"{c}: {v:.4f}" for c, v in iou.items() if v is not None))


def _load(path: Path, threads: int | None) -> SegmenterModel:
    """Load the model, with one thread per image."""
    from dataclasses import replace

    from crfkit.images.model.segmenter import SegmenterModel

    model = SegmenterModel.load(path, threads)
    return replace(model, field=replace(model.field, n_threads=1))
