"""`crfkit refine train | apply | eval`: learned smoothing of another model's probability maps."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.cli.options import image as given
from crfkit.cli.options import shared
from crfkit.cli.runtime.help import INPUT, MODEL, OUTPUT, Command, flag, option
from crfkit.cli.runtime.output import say
from crfkit.errors import CrfkitError, DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.images.estimator.refiner import Refiner
    from crfkit.images.model.refiner import RefinerModel

FILES = (
    "A probability map has the name of its image up to the ending, or NAME_probabilities, as --maps writes it. It is a "
    ".npy or .npz file (height × width × classes, classes × height × width, or height × width for the second of two "
    "classes) or a grey image (white is 1) for the second of two classes. Train on maps of images that the classifier "
    "was not trained on (cross-validation, validation set), because it is overconfident on its own training images."
)
MAPS = (".npy", ".npz")

app = typer.Typer(
    help="Refinement: smooth the probability maps of another model, guided by the image.", no_args_is_help=True
)

Maps = Annotated[Path, typer.Argument(metavar="PROBABILITIES", help="Folder of probability maps.")]
Layout = Annotated[
    str,
    option(
        INPUT,
        "--layout",
        metavar="NAME",
        help="Axis of the classes in maps: first, last or auto, which compares the map with the image.",
    ),
]


@app.command(cls=Command, epilog=FILES)
def train(
    probabilities: Maps,
    images: given.Images,
    masks: given.Masks,
    model: shared.NewModel,
    block: Annotated[
        int, option(MODEL, "--block", metavar="N", help="Side of an image block in pixels. 1 is a node per pixel.")
    ] = 4,
    superpixels: Annotated[
        int | None,
        option(MODEL, "--superpixels", metavar="N", help="Use about N superpixels per image instead of blocks."),
    ] = None,
    neighbours: Annotated[
        int, option(MODEL, "--neighbours", metavar="4|8", help="Number of neighbours of an image block.")
    ] = 4,
    edges: Annotated[
        str,
        option(
            MODEL,
            "--edges",
            metavar="NAME",
            help="Features of edges: contrast (neighbours of different colour are coupled less), or none.",
        ),
    ] = "contrast",
    edge_form: Annotated[
        str,
        option(
            MODEL,
            "--edge-form",
            metavar="NAME",
            help="Weights of edges: potts (one for all pairs of equal classes) or symmetric (one per pair of classes).",
        ),
    ] = "potts",
    ignore: given.Ignore = None,
    layout: Layout = "auto",
    inference: shared.Inference = "auto",
    sweeps: shared.TrainingSweeps = 30,
    l2: shared.L2Strength = None,
    threads: shared.Threads = None,
    verbose: Annotated[bool, flag(OUTPUT, "--verbose", "-v", help="Print a line per iteration.")] = False,
) -> None:
    """Learn how to smooth probability maps from images and masks."""
    from crfkit.cli.options.parsing import check_distinct, make_penalty
    from crfkit.cli.runtime.finishing import say_written
    from crfkit.files.modelfile import check_writable
    from crfkit.images.estimator.refiner import Refiner

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
        ignore=given.parse_ignore(ignore),
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
        say(f"crfkit: warning: {warning.message}", err=True)
    refiner.save(model)
    _report(refiner, len(triples))
    say_written(model, interrupted)


def _report(refiner: Refiner, n_images: int) -> None:
    from crfkit.cli.runtime.finishing import outcome

    say(f"{n_images} images")
    say(describe(refiner.model_))
    say(outcome(refiner.result_))


def describe(model: RefinerModel) -> str:
    """Return lines that say what a model has learned."""
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


@app.command(cls=Command, epilog=FILES)
def apply(
    model: shared.ModelFile,
    probabilities: Maps,
    images: given.Images,
    output: Annotated[Path, option(OUTPUT, "--output", "-o", metavar="DIR", help="Folder for NAME_mask.png.")],
    maps: Annotated[
        bool, flag(OUTPUT, "--maps", help="Also write NAME_probabilities.npy (height × width × classes).")
    ] = False,
    layout: Layout = "auto",
    threads: shared.Threads = None,
) -> None:
    """Refine the probability maps of a folder of images.

    Images that cannot be read are named on stderr and skipped; the exit code is then 1.
    """
    from crfkit.cli.commands import segment_files
    from crfkit.files.image_folders import merge_alike
    from crfkit.images.estimator.refiner import Refiner

    refiner = Refiner.load(model, threads).set_params(layout=layout)
    segment_files.check_classes(refiner.classes_)
    pairs = _triples(probabilities, images)
    segment_files.make_folder(output)
    problems: list[str] = []
    for probability_map, path in pairs:
        try:
            ((mask, p),) = refiner.refine([probability_map], [path])
        except CrfkitError as error:
            of_map = str(probability_map) in str(error)
            problems.append(str(error) if of_map else segment_files.in_file(error, path))
            continue
        segment_files.write_mask(output, path.stem, mask, refiner.classes_)
        if maps:
            segment_files.write_map(output, path.stem, p)
    for problem in merge_alike(problems, figures=False):
        say(f"crfkit: error: {problem}", err=True)
    failed = len(problems)
    say(f"{len(pairs) - failed} images refined into {output}")
    segment_files.exit_if_failed(failed, len(pairs), "refined")


@app.command("eval", cls=Command, epilog=FILES)
def evaluate(
    model: shared.ModelFile,
    probabilities: Maps,
    images: given.Images,
    masks: given.Masks,
    ignore: given.Ignore = None,
    layout: Layout = "auto",
    as_json: shared.Json = False,
    threads: shared.Threads = None,
) -> None:
    """Compare the given and the refined maps with masks: the share of wrong pixels of each image."""
    import numpy as np

    from crfkit.images.estimator.refiner import Refiner
    from crfkit.images.probability_maps import read_probabilities, read_truth

    ignored = given.parse_ignore(ignore)
    refiner = Refiner.load(model, threads).set_params(layout=layout, ignore=ignored)
    rows: list[tuple[str, float, float, int]] = []
    for probability_map, path, mask_path in _triples(probabilities, images, masks):
        ((found, _),) = refiner.refine([probability_map], [path])
        values, known = read_truth(mask_path, found.shape, str(mask_path), ignored, len(refiner.classes_) > 2)
        p = read_probabilities(probability_map, found.shape, str(probability_map), layout)
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
        say(f"{name:{width}}  error {a:.4f} as given, {b:.4f} refined")
    say(f"{len(rows)} images, error {means[0]:.4f} as given, {means[1]:.4f} refined")


def _triples(probabilities: Path, images: Path, masks: Path | None = None) -> list[tuple[Path, ...]]:
    """Return (map, image[, mask]) for every image, matched by name; raise DataError if one is missing."""
    from crfkit.cli.commands.segment_files import MAP
    from crfkit.files.images import SUFFIXES, list_images

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
