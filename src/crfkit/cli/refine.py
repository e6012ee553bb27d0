"""`crfkit refine train | apply | eval`: learned smoothing of another model's probability maps."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.errors import CrfkitError, DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.estimators.refiner import Refiner
    from crfkit.models.refiner import RefinerModel

FILES = (
    "A probability map has the name of its image but for the ending, or NAME_probabilities, as --maps writes it: .npy "
    "or .npz (height × width × classes, classes × height × width, or height × width for the second of two classes), or "
    "a grey image (white is 1) for the second of two classes. Train on maps of images that the classifier has not seen "
    "(cross-validation, validation set): on its own training images it is overconfident."
)
MAPS = (".npy", ".npz")

app = typer.Typer(help="Refinement of another model's probability maps with the image.", no_args_is_help=True)

Maps = Annotated[Path, typer.Argument(metavar="PROBABILITIES", help="Folder of probability maps.")]
Images = Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder of images.")]
Masks = Annotated[Path, typer.Argument(metavar="MASKS", help="Folder of masks.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
Threads = Annotated[int | None, typer.Option("--threads", "-p", metavar="N", help="Default: all cores.")]
Layout = Annotated[str, typer.Option("--layout", help="Axis of the classes: first, last or auto (by the image).")]


@app.command(epilog=FILES)
def train(
    probabilities: Maps,
    images: Images,
    masks: Masks,
    model: Annotated[Path, typer.Option("--model", "-m", help="Where to write the model (.crf).")],
    block: Annotated[
        int, typer.Option("--block", metavar="N", help="Side of a block in pixels; 1: a node per pixel.")
    ] = 4,
    superpixels: Annotated[
        int | None, typer.Option("--superpixels", metavar="N", help="About N superpixels per image in place of blocks.")
    ] = None,
    neighbours: Annotated[int, typer.Option("--neighbours", help="4 or 8.")] = 4,
    edges: Annotated[str, typer.Option("--edges", help="contrast, or none: the same everywhere.")] = "contrast",
    edge_form: Annotated[
        str, typer.Option("--edge-form", help="potts, or symmetric: a preference per pair of classes.")
    ] = "potts",
    ignore: Annotated[
        int | None, typer.Option("--ignore", metavar="VALUE", help="Mask value of pixels without a known class.")
    ] = None,
    layout: Layout = "auto",
    inference: Annotated[str, typer.Option("--inference", help="auto, junction, bp, trw or mean-field.")] = "auto",
    sweeps: Annotated[
        int, typer.Option("--sweeps", metavar="N", help="Maximum sweeps of bp, trw and mean-field per training step.")
    ] = 30,
    l2: Annotated[
        float | None, typer.Option("--l2", metavar="S", help="Strength of the L2 penalty; default 1.")
    ] = None,
    threads: Threads = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print a line per iteration.")] = False,
) -> None:
    """Learn how to smooth probability maps from images and masks."""
    from crfkit.cli.options import check_distinct, make_penalty
    from crfkit.estimators.refiner import Refiner
    from crfkit.modelfile import check_writable

    check_distinct({"PROBABILITIES": probabilities, "IMAGES": images, "MASKS": masks, "--model": model})
    if edges not in ("contrast", "none"):
        raise ParameterError(f"--edges must be contrast or none, not {edges!r}")
    check_writable(model)
    refiner = Refiner(
        neighbours=neighbours,
        block_size=1 if superpixels is not None else block,
        superpixels=superpixels,
        edge_features=None if edges == "none" else edges,
        edge_form=edge_form,
        ignore=ignore,
        layout=layout,
        inference=inference,
        sweeps=sweeps,
        penalty=make_penalty(None, l2),
        n_threads=threads,
        verbose=int(verbose),
    )
    triples = _triples(probabilities, images, masks)
    interrupted = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            refiner.fit(*(list(column) for column in zip(*triples, strict=True)))
        except KeyboardInterrupt:
            if not hasattr(refiner, "model_"):
                raise
            interrupted = True
    for warning in caught:
        typer.echo(f"crfkit: warning: {warning.message}", err=True)
    refiner.save(model)
    _report(refiner, len(triples))
    typer.echo(f"model written to {model}")
    if interrupted:
        raise typer.Exit(130)


def _report(refiner: Refiner, n_images: int) -> None:
    result = refiner.result_
    typer.echo(f"{n_images} images")
    typer.echo(describe(refiner.model_))
    typer.echo(f"{result.objective} = {result.value:.6f} after {result.iterations} iterations, {result.seconds:.2f} s")


def describe(model: RefinerModel) -> str:
    """What a model has learned, in lines."""
    nodes = model.nodes
    unit = (
        f"{nodes.superpixels} superpixels" if nodes.superpixels else f"blocks of {nodes.block_size}×{nodes.block_size}"
    )
    weights = ", ".join(f"{name} {' '.join(f'{v:.3f}' for v in w)}" for name, w in model.edge_weights().items())
    return "\n".join(
        [
            f"classes {' '.join(map(str, model.classes.tolist()))}; {unit}, {nodes.neighbours} neighbours",
            f"temperature {model.temperature:.3f} (above 1: the probabilities were overconfident), biases "
            + " ".join(f"{b:.3f}" for b in model.bias),
            f"edge weights: {weights}",
        ]
    )


@app.command(epilog=FILES)
def apply(
    model: Model,
    probabilities: Maps,
    images: Images,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for NAME_mask.png.")],
    maps: Annotated[
        bool, typer.Option("--maps", help="Also write NAME_probabilities.npy (height × width × classes).")
    ] = False,
    layout: Layout = "auto",
    threads: Threads = None,
) -> None:
    """Refine the probability maps of a folder of images.

    Images that cannot be read are named on stderr, the others are refined; the exit code is then 1.
    """
    import numpy as np

    from crfkit.cli.segment_files import write_map, write_picture
    from crfkit.estimators.refiner import Refiner

    refiner = Refiner.load(model, threads).set_params(layout=layout)
    classes = refiner.classes_
    if classes.dtype.kind not in "iu" or classes.min() < 0 or classes.max() > 65535:
        raise ParameterError("classes must be integers from 0 to 65535 to be written as a picture")
    pairs = _triples(probabilities, images)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be made: {error.strerror or error}", output) from None
    failed = 0
    for given, path in pairs:
        try:
            ((mask, p),) = refiner.refine([given], [path])
        except CrfkitError as error:
            failed += 1
            typer.echo(f"crfkit: error: {error if str(path) in str(error) else f'{path}: {error}'}", err=True)
            continue
        write_picture(output / f"{path.stem}_mask.png", mask.astype(np.uint8 if classes.max() <= 255 else np.uint16))
        if maps:
            write_map(output, path.stem, p)
    typer.echo(f"{len(pairs) - failed} images refined into {output}")
    if failed:
        typer.echo(f"crfkit: error: {failed} of {len(pairs)} images could not be refined", err=True)
        raise typer.Exit(1)


@app.command("eval", epilog=FILES)
def evaluate(
    model: Model,
    probabilities: Maps,
    images: Images,
    masks: Masks,
    ignore: Annotated[
        int | None, typer.Option("--ignore", metavar="VALUE", help="Mask value of pixels without a known class.")
    ] = None,
    layout: Layout = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    threads: Threads = None,
) -> None:
    """Compare the maps as given, and refined, with masks: the share of wrong pixels of each image."""
    import numpy as np

    from crfkit.encoders.probability_maps import read_probabilities, read_truth
    from crfkit.estimators.refiner import Refiner

    refiner = Refiner.load(model, threads).set_params(layout=layout, ignore=ignore)
    rows: list[tuple[str, float, float, int]] = []
    for given, path, mask_path in _triples(probabilities, images, masks):
        ((found, _),) = refiner.refine([given], [path])
        values, known = read_truth(mask_path, found.shape, str(mask_path), ignore, len(refiner.classes_) > 2)
        p = read_probabilities(given, found.shape, str(given), layout)
        before = refiner.classes_[p.argmax(axis=-1)]
        wrong = [float(np.mean((guess != values)[known])) if known.any() else 0.0 for guess in (before, found)]
        rows.append((path.name, *wrong, int(known.sum())))  # type: ignore[arg-type]
    counts = np.array([row[3] for row in rows])
    means = [float(np.average([row[k] for row in rows], weights=np.maximum(counts, 1e-9))) for k in (1, 2)]
    if as_json:
        per_image = [{"image": name, "error_before": a, "error": b} for name, a, b, _ in rows]
        report: dict[str, Any] = {"images": len(rows), "error_before": means[0], "error": means[1]}
        typer.echo(json.dumps({**report, "per_image": per_image}, ensure_ascii=False, indent=2))
        return
    width = max(len(row[0]) for row in rows)
    for name, a, b, _ in rows:
        typer.echo(f"{name:{width}}  error {a:.4f} as given, {b:.4f} refined")
    typer.echo(f"{len(rows)} images, error {means[0]:.4f} as given, {means[1]:.4f} refined")


def _triples(probabilities: Path, images: Path, masks: Path | None = None) -> list[tuple[Path, ...]]:
    """(map, image[, mask]) by name; every image has them."""
    from crfkit.cli.segment_files import MAP
    from crfkit.readers.images import SUFFIXES, list_images

    pictures = list_images(images)
    truth = None if masks is None else list_images(masks)
    if not probabilities.is_dir():
        raise DataError("expected a folder of probability maps", probabilities)
    maps = {p.stem: p for p in sorted(probabilities.iterdir()) if p.suffix.lower() in (*MAPS, *SUFFIXES)}
    out: list[tuple[Path, ...]] = []
    for stem, path in pictures.items():
        found = maps.get(stem, maps.get(stem + MAP))
        if found is None:
            raise DataError(
                f"there is no probability map named {stem} or {stem}{MAP} (.npy, .npz or an image) in {probabilities}",
                path,
            )
        if truth is not None and stem not in truth:
            raise DataError(f"there is no mask named {stem} in {masks}", path)
        out.append((found, path) if truth is None else (found, path, truth[stem]))
    return out
