"""`crfkit segment train | apply | eval`: figure and ground in images."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.errors import CrfkitError, DataError

if TYPE_CHECKING:
    from crfkit.estimators.segmenter import ImageSegmenter
    from crfkit.estimators.segmenter_model import SegmenterModel

FILES = (
    "Images: PNG, JPEG, TIFF, BMP, grey or colour, 8 or 16 bits, of any sizes. A mask has the name of its image (but "
    "for the ending), its size, and two values; JPEG masks are thresholded at 127."
)

app = typer.Typer(help="Segmentation of images: learn from masks, apply, evaluate.", no_args_is_help=True)

Images = Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder of images.")]
Masks = Annotated[Path, typer.Argument(metavar="MASKS", help="Folder of masks.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
Threads = Annotated[int | None, typer.Option("--threads", "-p", metavar="N", help="Default: all cores.")]
Cache = Annotated[Path | None, typer.Option("--cache", metavar="DIR", help="Keep the features of images here.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


@app.command(epilog=FILES)
def train(
    images: Images,
    masks: Masks,
    model: Annotated[Path, typer.Option("--model", "-m", help="Where to write the model (.crf).")],
    size: Annotated[
        str | None, typer.Option("--size", metavar="HxW", help="Resize images to this height and width first.")
    ] = None,
    block: Annotated[int, typer.Option("--block", metavar="N", help="Side of a block in pixels.")] = 2,
    features: Annotated[str, typer.Option("--features", metavar="NAMES", help="sift, c1 or both.")] = "sift,c1",
    colour: Annotated[bool, typer.Option("--colour", help="Add the mean colour of blocks.")] = False,
    sift_cell: Annotated[
        int, typer.Option("--sift-cell", metavar="N", help="Side of a SIFT cell in pixels; a patch is four cells wide.")
    ] = 4,
    position: Annotated[bool, typer.Option("--position", help="Add row and column of blocks.")] = False,
    multi_class: Annotated[
        bool, typer.Option("--multi-class", help="Masks may have more than two values, one per class.")
    ] = False,
    loss: Annotated[str, typer.Option("--loss", help="likelihood, or pl: pseudo-likelihood.")] = "likelihood",
    inference: Annotated[
        str, typer.Option("--inference", metavar="NAME", help="auto, junction, bp, trw, mean-field, gibbs; or pl, as --loss.")
    ] = "auto",
    sweeps: Annotated[
        int, typer.Option("--sweeps", metavar="N", help="The most of bp, trw and mean-field at a step of training.")
    ] = 50,
    l2: Annotated[float | None, typer.Option("--l2", metavar="S", help="Penalty S/2·‖w‖². Default 1.")] = None,
    l1: Annotated[float | None, typer.Option("--l1", metavar="S", help="Penalty S·‖w‖₁: selects features.")] = None,
    strengths: Annotated[
        str | None,
        typer.Option(
            "--strengths", metavar="S,S,…", help="Strengths of L1 to choose from by the error on held-out images."
        ),
    ] = None,
    validation: Annotated[
        float, typer.Option("--validation", metavar="SHARE", help="Of the images, held out with --strengths.")
    ] = 0.2,
    solver: Annotated[str, typer.Option("--solver", "-a", metavar="NAME", help="As for `crfkit train`.")] = "auto",
    mu: Annotated[
        float | None, typer.Option("--mu", metavar="MU", help="Width of the smoothing, of solvers that smooth L1.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of what draws random numbers.")] = 0,
    threads: Threads = None,
    cache: Cache = None,
    max_iterations: Annotated[
        int | None, typer.Option("--max-iterations", "-i", metavar="N", help="Stop after N iterations.")
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", "-e", metavar="E", help="Stop when ten iterations decrease the objective by less."),
    ] = 1e-5,
    log: Annotated[Path | None, typer.Option("--log", metavar="FILE.jsonl", help="Write each iteration here.")] = None,
    quiet: Quiet = False,
) -> None:
    """Train a segmenter from images and masks. Ctrl-C stops early and still writes the model."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from crfkit import modelfile
    from crfkit.cli import segment_files
    from crfkit.cli.options import check_distinct, make_penalty
    from crfkit.cli.progress import json_log, progress_callback
    from crfkit.estimators.segmenter import ImageSegmenter
    from crfkit.readers.images import pair_folders

    if inference == "pl":
        inference, loss = "auto", "pl"
    segmenter = ImageSegmenter(
        block_size=block,
        features=tuple(name.strip() for name in features.split(",") if name.strip()),
        colour=colour,
        position=position,
        sift_cell=sift_cell,
        size=segment_files.parse_size(size),
        multiclass=multi_class,
        inference=inference,
        sweeps=sweeps,
        loss=segment_files.LOSSES.get(loss, loss),
        penalty=make_penalty(l1, l2),
        solver=segment_files.make_solver(solver, mu, tolerance, max_iterations, seed),
        strengths=segment_files.parse_strengths(strengths),
        validation_fraction=validation,
        cache=cache,
        tolerance=tolerance,
        max_iterations=max_iterations,
        n_threads=threads,
        random_state=seed,
    )
    segmenter.check()
    check_distinct({"IMAGES": images, "MASKS": masks, "--model": model, "--log": log, "--cache": cache})
    modelfile.check_writable(model)
    pairs = pair_folders(images, masks)
    interrupted = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        with (
            segment_files.bar("features", quiet) as progress,
            json_log(log) as logging,
            progress_callback(max_iterations, quiet) as showing,
        ):
            try:
                segmenter.fit(
                    [image for image, _ in pairs],
                    [mask for _, mask in pairs],
                    callbacks=[*logging, *showing],
                    progress=progress,
                )
            except KeyboardInterrupt:
                interrupted = True
    if interrupted and not (hasattr(segmenter, "model_") and segmenter.result_.iterations):
        typer.echo("interrupted before the first iteration; no model was written", err=True)
        raise typer.Exit(130)
    segmenter.save(model)
    _report(segmenter, len(pairs), [str(warning.message) for warning in caught])
    typer.echo(f"model written to {model}")
    if interrupted:
        raise typer.Exit(130)


def _report(segmenter: ImageSegmenter, n_images: int, concerns: list[str]) -> None:
    model, result = segmenter.model_, segmenter.result_
    names, selected = model.features.names, segmenter.selected_features_
    for point in segmenter.path_:
        typer.echo(
            f"strength {point.strength:g}: error {point.error:.4f}, {point.nonzeros} weights, {point.seconds:.2f} s"
        )
    typer.echo(
        f"{n_images} images, classes {' '.join(map(str, model.classes.tolist()))}, {len(names)} features; of nodes "
        f"{len(selected['unary'])} are used, of edges {len(selected['pairwise'])}"
    )
    typer.echo(f"{result.objective} = {result.value:.6f} after {result.iterations} iterations, {result.seconds:.2f} s")
    for line in dict.fromkeys(concerns or [str(result.status)]):
        typer.echo(line)


@app.command(epilog=FILES)
def apply(
    model: Model,
    images: Images,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for NAME_mask, _overlay, _probability.png.")
    ],
    threads: Threads = None,
    cache: Cache = None,
    quiet: Quiet = False,
) -> None:
    """Segment the images of a folder: a mask, an overlay and a map of probabilities of each.

    Images that cannot be read are named on stderr, the others are segmented; the exit code is then 1.
    """
    from crfkit.cli import segment_files
    from crfkit.cli.options import check_distinct
    from crfkit.estimators.pool import in_threads
    from crfkit.readers.images import list_images, read_image

    trained = _load(model, threads)
    check_distinct({"MODEL": model, "IMAGES": images, "--output": output, "--cache": cache})
    found = list_images(images)
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    threads: Threads = None,
    cache: Cache = None,
) -> None:
    """Segment images and compare with their masks: wrong pixels, and intersection over union of each class."""
    import numpy as np

    from crfkit.estimators.segmenter_blocks import check_size
    from crfkit.readers.images import pair_folders, read_image, read_mask

    trained = _load(model, threads)
    classes = trained.classes
    counts = np.zeros((len(classes),) * 2, dtype=np.int64)  # [true, found]
    rows: list[tuple[str, float]] = []
    for path, mask_path in pair_folders(images, masks):
        image, mask = read_image(path), read_mask(mask_path, multiclass=trained.multiclass)
        check_size(image, mask, str(path), str(mask_path))
        unknown = np.setdiff1d(mask, classes)
        if unknown.size:
            known = ", ".join(map(str, classes.tolist()))
            raise DataError(f"the value {unknown[0]} is no class of the model ({known})", mask_path)
        found = trained.segment(image, probabilities=False, cache=cache).mask
        states = [np.searchsorted(classes, labels).ravel() for labels in (mask, found)]
        table = np.bincount(states[0] * len(classes) + states[1], minlength=counts.size).reshape(counts.shape)
        counts += table
        rows.append((path.name, 1 - float(table.trace() / table.sum())))
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
        typer.echo(f"{name:{width}}  error {error:.4f}")
    typer.echo(f"{len(rows)} images, pixel accuracy {accuracy:.4f}, error {1 - accuracy:.4f}")
    typer.echo("intersection over union: " + ", ".join(f"{c}: {v:.4f}" for c, v in iou.items() if v is not None))


def _load(path: Path, threads: int | None) -> SegmenterModel:
    """The model; every image has one thread."""
    from dataclasses import replace

    from crfkit.estimators.segmenter_model import SegmenterModel

    model = SegmenterModel.load(path, threads)
    return replace(model, field=replace(model.field, n_threads=1))
