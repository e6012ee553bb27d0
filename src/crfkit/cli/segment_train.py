"""`crfkit segment train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit.cli import segment_options as given
from crfkit.cli.segment_options import INPUT, MODEL, OPTIMISATION, OUTPUT

if TYPE_CHECKING:
    from crfkit.estimators.segmenter import ImageSegmenter
    from crfkit.readers.images import MaskRules

ONE_PENALTY = (
    "the pseudo-likelihood with one penalty for all weights mostly smooths too much: leave out --l1 and --l2 to have "
    "the penalty of edges chosen on held-out images, or give --edge-l2"
)


def train(
    images: given.Images,
    masks: given.Masks,
    model: Annotated[
        Path, typer.Option("--model", "-m", help="Where to write the model (.crf).", rich_help_panel=OUTPUT)
    ],
    size: Annotated[
        str | None,
        typer.Option(
            "--size", metavar="HxW", help="Resize images to this height and width first.", rich_help_panel=INPUT
        ),
    ] = None,
    image_pattern: given.ImagePattern = None,
    mask_pattern: given.MaskPattern = None,
    ignore: given.Ignore = None,
    mask_colours: given.MaskColours = None,
    skip_bad: given.SkipBad = False,
    cache: given.Cache = None,
    block: Annotated[
        int, typer.Option("--block", metavar="N", help="Side of a block in pixels.", rich_help_panel=MODEL)
    ] = 2,
    features: Annotated[
        str, typer.Option("--features", metavar="NAMES", help="sift, c1 or both.", rich_help_panel=MODEL)
    ] = "sift,c1",
    colour: Annotated[
        bool, typer.Option("--colour", help="Add the mean colour of blocks.", rich_help_panel=MODEL)
    ] = False,
    sift_cell: Annotated[
        int,
        typer.Option(
            "--sift-cell",
            metavar="N",
            help="Side of a SIFT cell in pixels; a patch is four cells wide.",
            rich_help_panel=MODEL,
        ),
    ] = 4,
    position: Annotated[
        bool, typer.Option("--position", help="Add row and column of blocks.", rich_help_panel=MODEL)
    ] = False,
    multi_class: Annotated[
        bool,
        typer.Option(
            "--multi-class", help="Masks may have more than two values, one per class.", rich_help_panel=INPUT
        ),
    ] = False,
    upsample: Annotated[
        str,
        typer.Option(
            "--upsample",
            metavar="NAME",
            help="From blocks to pixels: bilinear, or nearest, which shows the blocks.",
            rich_help_panel=MODEL,
        ),
    ] = "bilinear",
    loss: Annotated[
        str, typer.Option("--loss", help="likelihood, or pl: pseudo-likelihood.", rich_help_panel=MODEL)
    ] = "likelihood",
    inference: Annotated[
        str,
        typer.Option(
            "--inference",
            metavar="NAME",
            help="auto, junction, bp, trw, mean-field, gibbs; or pl, as --loss.",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    sweeps: Annotated[
        int,
        typer.Option(
            "--sweeps",
            metavar="N",
            help="Maximum number of sweeps of bp, trw and mean-field at a step of training.",
            rich_help_panel=MODEL,
        ),
    ] = 50,
    l2: Annotated[
        float | None,
        typer.Option(
            "--l2",
            metavar="S",
            help="Penalty S/2·‖w‖² of all weights. Default 1; for pl, see --edge-l2.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    l1: Annotated[
        float | None,
        typer.Option("--l1", metavar="S", help="Penalty S·‖w‖₁: selects features.", rich_help_panel=OPTIMISATION),
    ] = None,
    edge_l2: Annotated[
        float | None,
        typer.Option(
            "--edge-l2",
            metavar="S",
            help="Penalty S/2·‖w‖² of the weights between neighbours, in place of --l1 and --l2. Default: as those; "
            "for pl without them, chosen on held-out images.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    strengths: Annotated[
        str | None,
        typer.Option(
            "--strengths",
            metavar="S,S,…",
            help="Strengths of L1 to choose from by the error on held-out images.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    validation: Annotated[
        float,
        typer.Option(
            "--validation",
            metavar="SHARE",
            help="Share of the images that is held out where strengths are chosen.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = 0.2,
    solver: Annotated[
        str,
        typer.Option("--solver", "-a", metavar="NAME", help="As for `crfkit train`.", rich_help_panel=OPTIMISATION),
    ] = "auto",
    mu: Annotated[
        float | None,
        typer.Option(
            "--mu",
            metavar="MU",
            help="Width of the smoothing, for solvers that smooth L1.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed.", rich_help_panel=OPTIMISATION)] = 0,
    threads: given.Threads = None,
    max_iterations: Annotated[
        int | None,
        typer.Option(
            "--max-iterations", "-i", metavar="N", help="Stop after N iterations.", rich_help_panel=OPTIMISATION
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            "-e",
            metavar="E",
            help="Stop when ten iterations decrease the objective by less, relatively.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = 1e-5,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            help="Stop after so many seconds, features included, and write the model so far.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FILE",
            help="Begin from a checkpoint, or a model, of the same features and classes.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="FILE", help="Write the model so far to this file.", rich_help_panel=OUTPUT
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option("--checkpoint-every", metavar="SECONDS", help="Time between checkpoints.", rich_help_panel=OUTPUT),
    ] = 60.0,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE.jsonl", help="Write each iteration here.", rich_help_panel=OUTPUT),
    ] = None,
    quiet: given.Quiet = False,
) -> None:
    """Train a segmenter from images and masks.

    Ctrl-C and SIGTERM stop early and still write the model; the exit codes are 130 and 143.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from crfkit import modelfile
    from crfkit.cli import segment_files
    from crfkit.cli.options import check_distinct
    from crfkit.cli.progress import json_log, progress_callback
    from crfkit.estimators.segmenter import ImageSegmenter

    if inference == "pl":
        inference, loss = "auto", "pl"
    segmenter = ImageSegmenter(
        block_size=block,
        features=tuple(name.strip() for name in features.split(",") if name.strip()),
        colour=colour,
        position=position,
        sift_cell=sift_cell,
        size=given.parse_size(size),
        multiclass=multi_class,
        ignore=given.parse_ignore(ignore),
        mask_colours=mask_colours,
        upsample=upsample,
        inference=inference,
        sweeps=sweeps,
        loss=given.LOSSES.get(loss, loss),
        penalty=given.make_penalty(l1, l2, edge_l2),
        solver=given.make_solver(solver, mu, tolerance, max_iterations, seed),
        strengths=given.parse_strengths(strengths),
        validation_fraction=validation,
        cache=cache,
        tolerance=tolerance,
        max_iterations=max_iterations,
        n_threads=threads,
        random_state=seed,
        time_limit=time_limit,
    )
    segmenter.check()
    folders = {"IMAGES": images, **({} if mask_pattern else {"MASKS": masks})}
    check_distinct({**folders, "--model": model, "--log": log, "--cache": cache, "--checkpoint": checkpoint})
    check_distinct({"--resume": resume, "--model": model, "--log": log})
    for path in (model, checkpoint):
        if path is not None:
            modelfile.check_writable(path)
    pairs = _pair(images, masks, image_pattern, mask_pattern, skip_bad, segmenter._rules())
    if segmenter.loss == "pseudo-likelihood" and edge_l2 is None and segmenter.penalty is not None:
        typer.echo(f"crfkit: note: {ONE_PENALTY}", err=True)
    interrupted = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("always", UserWarning)
        with (
            segment_files.bar("features", quiet) as progress,
            json_log(log) as logging,
            progress_callback(max_iterations, quiet) as showing,
            segment_files.termination() as terminated,
        ):
            try:
                segmenter.fit(
                    [image for image, _ in pairs],
                    [mask for _, mask in pairs],
                    callbacks=[*logging, *showing],
                    progress=progress,
                    skip_bad=skip_bad,
                    start=resume,
                    checkpoint=checkpoint,
                    checkpoint_every=checkpoint_every,
                )
            except KeyboardInterrupt:
                interrupted = True
    code = 143 if terminated else 130
    if interrupted and not (hasattr(segmenter, "model_") and segmenter.result_.iterations):
        typer.echo("interrupted before the first iteration; no model was written", err=True)
        raise typer.Exit(code)
    segmenter.save(model)
    concerns = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    for w in caught:
        if w.category is UserWarning:
            typer.echo(f"crfkit: note: {w.message}", err=True)
    _report(segmenter, concerns)
    typer.echo(f"model written to {model}")
    if interrupted:
        if terminated:
            typer.echo("crfkit: terminated; the model so far was written", err=True)
        raise typer.Exit(code)


def _pair(
    images: Path, masks: Path, image_pattern: str | None, mask_pattern: str | None, skip_bad: bool, rules: MaskRules
) -> list[tuple[Path, Path]]:
    """Return the pairs of two folders; all files that cannot be used are in one error."""
    from crfkit.encoders.image_pairs import Pairs
    from crfkit.errors import DataError
    from crfkit.readers.image_folders import pair_folders, raise_all

    unpaired: list[str] = []
    pairs = pair_folders(images, masks, image_pattern, mask_pattern, unpaired)
    if unpaired and not skip_bad:
        if pairs:
            try:
                given_images, given_masks = [image for image, _ in pairs], [mask for _, mask in pairs]
                unpaired += Pairs.read(given_images, given_masks, rules, skip_bad=True).skipped
            except DataError as error:
                unpaired.append(str(error))
        raise_all(unpaired)
    if not pairs:
        raise_all([*unpaired, "no image has a mask"])
    for problem in unpaired:
        typer.echo(f"crfkit: note: left out: {problem}", err=True)
    return pairs


def _report(segmenter: ImageSegmenter, concerns: list[str]) -> None:
    model, result = segmenter.model_, segmenter.result_
    names, selected = model.features.names, segmenter.selected_features_
    kind = "strength" if segmenter.strengths is not None else "L2 of edges per block"
    for point in segmenter.path_:
        typer.echo(
            f"{kind} {point.strength:g}: error {point.error:.4f}, {point.nonzeros} weights, {point.seconds:.2f} s"
        )
    typer.echo(
        f"{segmenter.n_images_} images, classes {' '.join(map(str, model.classes.tolist()))}, {len(names)} features; "
        f"of nodes {len(selected['unary'])} are used, of edges {len(selected['pairwise'])}"
    )
    typer.echo(f"{result.objective} = {result.value:.6f} after {result.iterations} iterations, {result.seconds:.2f} s")
    for line in dict.fromkeys(concerns or [str(result.status)]):
        typer.echo(line)
