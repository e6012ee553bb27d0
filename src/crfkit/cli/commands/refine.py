"""`crfkit refine train | apply | eval`: learned smoothing of another model's probability maps."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit._values import Entries
from crfkit.cli.options import image, shared
from crfkit.cli.options.declared import own_flag, own_option, takes
from crfkit.cli.runtime.help import INPUT, MODEL, OUTPUT, Command, flag, option
from crfkit.cli.runtime.output import say
from crfkit.errors import CrfkitError, DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.images.model.refiner import RefinerModel
    from crfkit.images.training.refiner import RefinerTraining

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


@dataclass(frozen=True)
class RefineOptions:
    """The options of `crfkit refine train`."""

    probabilities: Maps
    images: image.Images
    masks: image.Masks
    model: shared.NewModel
    block: int = own_option(
        MODEL, "--block", default=4, metavar="N", help="Side of an image block in pixels. 1 means one node per pixel."
    )
    superpixels: int | None = own_option(
        MODEL, "--superpixels", metavar="N", help="Use about N superpixels per image instead of blocks."
    )
    neighbours: int = own_option(
        MODEL, "--neighbours", default=4, metavar="4|8", help="Number of neighbours of an image block."
    )
    edges: str = own_option(
        MODEL,
        "--edges",
        default="contrast",
        metavar="NAME",
        help="Features of edges: contrast (neighbours of different colour are coupled less), or none.",
    )
    edge_form: str = own_option(
        MODEL,
        "--edge-form",
        default="potts",
        metavar="NAME",
        help="Weights of edges: potts (one for all pairs of equal classes) or symmetric (one per pair of classes).",
    )
    ignore: image.Ignore = None
    layout: Layout = "auto"
    inference: shared.Inference = "auto"
    sweeps: shared.TrainingSweeps = 30
    l2: shared.L2Strength = None
    threads: shared.Threads = None
    verbose: bool = own_flag(OUTPUT, "--verbose", "-v", help="Print a line per iteration.")


@app.command(cls=Command, epilog=FILES)
@takes(RefineOptions)
def train(given: RefineOptions) -> None:
    """Learn how to smooth probability maps from images and masks."""
    from crfkit.cli.options.parsing import check_distinct, check_writable
    from crfkit.cli.runtime.finishing import outcome, say_written
    from crfkit.cli.runtime.naming import on_command_line
    from crfkit.graph.training.train import concerns
    from crfkit.training.progress import print_row

    folders = {"PROBABILITIES": given.probabilities, "IMAGES": given.images, "MASKS": given.masks}
    check_distinct({**folders, "--model": given.model})
    if given.edges not in ("contrast", "none"):
        raise ParameterError(f"--edges must be contrast or none, not {given.edges!r}")
    check_writable(given.model)
    training = _checked_training(given)
    triples = _triples(given.probabilities, given.images, given.masks)
    maps, images, masks = (list(column) for column in zip(*triples, strict=True))
    done = training.run(maps, images, masks, [print_row] if given.verbose else [])
    if not done.interrupted:
        for concern in concerns(done.result, None, naming=on_command_line):
            say(f"crfkit: warning: {concern}", err=True)
    done.model.save(given.model)
    say(f"{len(triples)} images")
    say(describe(done.model))
    say(outcome(done.result))
    say_written(given.model, done.interrupted)


def _checked_training(given: RefineOptions) -> RefinerTraining:
    """Return the training of the options."""
    from crfkit.cli.options.parsing import make_penalty
    from crfkit.images.training.refiner import RefinerTraining

    training = RefinerTraining(
        neighbours=given.neighbours,
        block_size=1 if given.superpixels is not None else given.block,
        superpixels=given.superpixels,
        edge_features=None if given.edges == "none" else given.edges,
        edge_form=given.edge_form,
        ignore=image.parse_ignore(given.ignore),
        layout=given.layout,
        inference=given.inference,
        sweeps=given.sweeps,
    )
    options = replace(training.options, penalty=make_penalty(None, given.l2), n_threads=given.threads)
    training = replace(training, options=options)
    training.check()
    return training


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
    images: image.Images,
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
            problems.append(str(error.in_file(path)))
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
    images: image.Images,
    masks: image.Masks,
    ignore: image.Ignore = None,
    layout: Layout = "auto",
    as_json: shared.Json = False,
    threads: shared.Threads = None,
) -> None:
    """Compare the given and the refined maps with masks: the share of wrong pixels of each image."""
    import numpy as np

    from crfkit.images.estimator.refiner import Refiner
    from crfkit.images.probability_maps import read_probabilities, read_truth

    ignored = image.parse_ignore(ignore)
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
        report: Entries = {"images": len(rows), "error_before": means[0], "error": means[1]}
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
