"""`crfkit segment train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from crfkit.cli.options import image as given
from crfkit.cli.options import segment as meaning
from crfkit.cli.options import shared
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, OUTPUT, flag, option
from crfkit.cli.runtime.output import say

if TYPE_CHECKING:
    from crfkit.files.images import MaskRules
    from crfkit.images.estimator.segmenter import ImageSegmenter

ONE_PENALTY = (
    "the pseudo-likelihood with one penalty for all weights usually smooths too much; leave out --l1 and --l2 to "
    "choose the penalty of edges on held-out images, or give --edge-l2"
)


def train(
    images: given.Images,
    masks: given.Masks,
    model: shared.NewModel,
    size: Annotated[
        str | None,
        option(INPUT, "--size", metavar="HxW", help="Resize images to this height and width first, e.g. 80x100."),
    ] = None,
    image_pattern: given.ImagePattern = None,
    mask_pattern: given.MaskPattern = None,
    ignore: given.Ignore = None,
    mask_colours: given.MaskColours = None,
    skip_bad: given.SkipBad = False,
    cache: given.Cache = None,
    block: Annotated[
        int | None,
        option(
            MODEL,
            "--block",
            metavar="N",
            help="Side of an image block in pixels. Default: 2, or the next larger side for which training fits into "
            "memory.",
        ),
    ] = None,
    features: Annotated[
        str, option(MODEL, "--features", metavar="NAMES", help="Features of image blocks: sift, c1 or sift,c1.")
    ] = "sift,c1",
    colour: Annotated[bool, flag(MODEL, "--colour", help="Add the mean colour of each image block.")] = False,
    sift_cell: Annotated[
        int,
        option(
            MODEL,
            "--sift-cell",
            metavar="N",
            help="Side of a SIFT cell in pixels. A SIFT patch is four cells wide.",
        ),
    ] = 4,
    position: Annotated[bool, flag(MODEL, "--position", help="Add the row and column of each image block.")] = False,
    multi_class: Annotated[
        bool,
        flag(INPUT, "--multi-class", help="Allow masks with more than two values, one per class."),
    ] = False,
    upsample: Annotated[
        str,
        option(
            MODEL,
            "--upsample",
            metavar="NAME",
            help="How to get from image blocks to pixels: bilinear, or nearest, which shows the blocks.",
        ),
    ] = "bilinear",
    loss: shared.GraphLoss = "likelihood",
    inference: Annotated[
        str,
        option(
            MODEL,
            "--inference",
            metavar="NAME",
            help="Inference engine: {engines}. pl is the same as --loss pl.",
        ),
    ] = "auto",
    sweeps: shared.TrainingSweeps = 50,
    l2: Annotated[
        float | None,
        option(
            MODEL,
            "--l2",
            metavar="S",
            help="L2 penalty S/2·‖w‖² of all weights. By default, it is chosen on held-out images for groups of many "
            "features (sift, c1), and 1 for other weights; see --edge-l2 for the pseudo-likelihood.",
        ),
    ] = None,
    l1: shared.L1Strength = None,
    edge_l2: Annotated[
        float | None,
        option(
            MODEL,
            "--edge-l2",
            metavar="S",
            help="L2 penalty of the weights between neighbours, which replaces --l1 and --l2 for these weights. With "
            "the pseudo-likelihood and no penalty given, it is chosen on held-out images.",
        ),
    ] = None,
    strengths: Annotated[
        str | None,
        option(
            OPTIMISATION,
            "--strengths",
            metavar="S,S,…",
            help="Strengths of the L1 penalty to try. The one with the smallest error on held-out images is chosen.",
        ),
    ] = None,
    validation: Annotated[
        float,
        option(
            OPTIMISATION,
            "--validation",
            metavar="SHARE",
            help="Share of the images to hold out for choosing a strength.",
        ),
    ] = 0.2,
    solver: shared.Solver = "auto",
    mu: Annotated[
        float | None,
        option(
            OPTIMISATION,
            "--mu",
            metavar="MU",
            help="Width of the smoothing of the L1 penalty, for solvers that smooth it.",
        ),
    ] = None,
    seed: shared.Seed = 0,
    threads: shared.Threads = None,
    max_iterations: shared.MaxIterations = None,
    tolerance: shared.Tolerance = 1e-5,
    time_limit: Annotated[
        float | None,
        option(
            OPTIMISATION,
            "--time-limit",
            metavar="SECONDS",
            help="Stop after this time, including the computation of features, and write the model so far.",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        option(
            OPTIMISATION,
            "--resume",
            metavar="FILE",
            help="Start from a checkpoint or a model with the same features and classes.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        option(OUTPUT, "--checkpoint", metavar="FILE", help="Write the model so far to this file from time to time."),
    ] = None,
    checkpoint_every: Annotated[
        float,
        option(OUTPUT, "--checkpoint-every", metavar="SECONDS", help="Time between checkpoints, in seconds."),
    ] = 60.0,
    log: shared.Log = None,
    dry_run: Annotated[
        bool,
        flag(
            OUTPUT,
            "--dry-run",
            help="Print the sizes of the training and an estimate of its memory and time. Nothing is written.",
        ),
    ] = False,
    quiet: shared.Quiet = False,
) -> None:
    """Train a segmenter from images and masks.

    Ctrl-C and SIGTERM stop early and still write the model; the exit codes are then 130 and 143.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    from crfkit.cli.commands import segment_files
    from crfkit.cli.options.parsing import check_distinct
    from crfkit.cli.runtime.finishing import exit_without_model, note, say_written
    from crfkit.cli.runtime.progress import json_log, progress_callback
    from crfkit.files import modelfile
    from crfkit.images.estimator.segmenter import ImageSegmenter
    from crfkit.names import full_name

    loss = full_name(loss)
    if full_name(inference) == "pseudo-likelihood":
        inference, loss = "auto", "pseudo-likelihood"
    segmenter = ImageSegmenter(
        block_size=block,
        features=tuple(name.strip() for name in features.split(",") if name.strip()),
        colour=colour,
        position=position,
        sift_cell=sift_cell,
        size=meaning.parse_size(size),
        multiclass=multi_class,
        ignore=given.parse_ignore(ignore),
        mask_colours=mask_colours,
        upsample=upsample,
        inference=inference,
        sweeps=sweeps,
        loss=loss,
        penalty=meaning.make_penalty(l1, l2, edge_l2),
        solver=meaning.make_solver(solver, mu, tolerance, max_iterations, seed),
        strengths=meaning.parse_strengths(strengths),
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
    pairs = _pair(images, masks, image_pattern, mask_pattern, skip_bad, segmenter.mask_rules())
    if dry_run:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            say(segmenter.estimate([image for image, _ in pairs], [mask for _, mask in pairs], skip_bad))
        return
    if segmenter.loss == "pseudo-likelihood" and edge_l2 is None and segmenter.penalty is not None:
        note(ONE_PENALTY)
    interrupted = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("always", UserWarning)
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
                    skip_bad=skip_bad,
                    start=resume,
                    checkpoint=checkpoint,
                    checkpoint_every=checkpoint_every,
                )
            except KeyboardInterrupt:
                interrupted = True
    if interrupted and not (hasattr(segmenter, "model_") and segmenter.result_.iterations):
        exit_without_model()
    segmenter.save(model)
    concerns = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    for w in caught:
        if w.category is UserWarning:
            note(str(w.message))
    _report(segmenter, concerns)
    say_written(model, interrupted)


def _pair(
    images: Path, masks: Path, image_pattern: str | None, mask_pattern: str | None, skip_bad: bool, rules: MaskRules
) -> list[tuple[Path, Path]]:
    """Return the pairs of images and masks; raise one error that lists all files that cannot be used."""
    from crfkit.cli.runtime.finishing import note
    from crfkit.errors import DataError
    from crfkit.files.image_folders import pair_folders, raise_all
    from crfkit.images.pairs import Pairs

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
        note(f"skipped {problem}")
    return pairs


def _report(segmenter: ImageSegmenter, concerns: list[str]) -> None:
    """Print the strengths that were tried, the sizes of the model and how training ended."""
    from crfkit.cli.runtime.finishing import outcome, status_text
    from crfkit.images.training.groups import describe_choice, large_groups

    model, result = segmenter.model_, segmenter.result_
    names, selected = model.features.names, segmenter.selected_features_
    groups = " and ".join(large_groups(model.features))
    chosen = model.field.training.get("penalty_choice")
    searched = chosen is not None and segmenter.path_ and segmenter.path_[0].result is None
    kind = "strength" if segmenter.strengths is not None else f"L2 of {groups}" if searched else "L2 of edges per block"
    for point in segmenter.path_:
        trained = "" if searched else f", {point.nonzeros} weights, {point.seconds:.2f} s"
        say(f"{kind} {point.strength:g}: error {point.score:.4f}{trained}")
    if chosen is not None:
        say(describe_choice(chosen))
    say(
        f"{segmenter.n_images_} images, classes {' '.join(map(str, model.classes.tolist()))}, {len(names)} features; "
        f"nodes use {len(selected['unary'])} of them, edges {len(selected['pairwise'])}; blocks of "
        f"{model.features.block_size}×{model.features.block_size} pixels"
    )
    say(outcome(result))
    for line in dict.fromkeys(concerns or [str(result.status)]):
        say(status_text(result) if line == str(result.status) else line)
