"""`crfkit segment train`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crfkit.cli.options.declared import takes
from crfkit.cli.options.image import parse_ignore
from crfkit.cli.options.segment import SegmentOptions, make_penalty, make_solver, parse_size, parse_strengths
from crfkit.cli.runtime.output import say

if TYPE_CHECKING:
    from crfkit.files.masks import MaskRules
    from crfkit.images.training.segmenter import SegmenterFit, SegmenterTraining

ONE_PENALTY = (
    "the pseudo-likelihood with one penalty for all weights usually smooths too much; leave out --l1 and --l2 to "
    "choose the penalty of edges on held-out images, or give --edge-l2"
)


@takes(SegmentOptions)
def train(given: SegmentOptions) -> None:
    """Train a segmenter from images and masks.

    Ctrl-C and SIGTERM stop early and still write the model; the exit codes are then 130 and 143.
    """
    from crfkit.cli.runtime.finishing import note, say_written

    training = _checked_training(given)
    _check_files(given)
    pairs = _pair(given, training.masks)
    images, masks = [image for image, _ in pairs], [mask for _, mask in pairs]
    if given.dry_run:
        _estimate(training, images, masks, given.skip_bad)
        return
    if training.loss == "pseudo-likelihood" and given.edge_l2 is None and training.options.penalty is not None:
        note(ONE_PENALTY)
    done = _run(given, training, images, masks)
    done.model.save(given.model)
    for remark in done.notes:
        note(remark)
    _tell(done, given.strengths is not None)
    say_written(given.model, done.interrupted)


def _checked_training(given: SegmentOptions) -> SegmenterTraining:
    """Return the training of the options."""
    from crfkit.cli.runtime.naming import on_command_line
    from crfkit.files.masks import MaskRules
    from crfkit.images.features import ImageFeatures
    from crfkit.images.training.segmenter import SegmenterTraining
    from crfkit.images.training.size import SMALLEST_BLOCK
    from crfkit.names import full_name
    from crfkit.training.options import SolverOptions

    inference, loss = given.inference, full_name(given.loss)
    if full_name(inference) == "pseudo-likelihood":
        inference, loss = "auto", "pseudo-likelihood"
    training = SegmenterTraining(
        naming=on_command_line,
        features=ImageFeatures(
            SMALLEST_BLOCK if given.block is None else given.block,
            tuple(name.strip() for name in given.features.split(",") if name.strip()),
            given.colour,
            given.position,
            parse_size(given.size),
            given.sift_cell,
        ),
        masks=MaskRules(given.multi_class, parse_ignore(given.ignore), given.mask_colours),
        upsample=given.upsample,
        inference=inference,
        sweeps=given.sweeps,
        loss=loss,
        strengths=parse_strengths(given.strengths),
        validation_fraction=given.validation,
        cache=given.cache,
        time_limit=given.time_limit,
        auto_block=given.block is None,
        options=SolverOptions(
            penalty=make_penalty(given.l1, given.l2, given.edge_l2),
            solver=make_solver(given.solver, given.mu, given.tolerance, given.max_iterations, given.seed),
            tolerance=given.tolerance,
            max_iterations=given.max_iterations,
            n_threads=given.threads,
            seed=given.seed,
        ),
    )
    training.check()
    return training


def _check_files(given: SegmentOptions) -> None:
    """Raise an error if two options name the same file, or an output cannot be written."""
    from crfkit.cli.options.parsing import check_distinct, check_writable

    folders = {"IMAGES": given.images, **({} if given.mask_pattern else {"MASKS": given.masks})}
    outputs = {"--model": given.model, "--log": given.log}
    check_distinct({**folders, **outputs, "--cache": given.cache, "--checkpoint": given.checkpoint})
    check_distinct({"--resume": given.resume, **outputs})
    check_writable(given.model, given.checkpoint)


def _pair(given: SegmentOptions, rules: MaskRules) -> list[tuple[Path, Path]]:
    """Return the pairs of images and masks; raise one error that lists all files that cannot be used."""
    from crfkit.cli.runtime.finishing import note
    from crfkit.errors import DataError
    from crfkit.files.image_folders import pair_folders, raise_all
    from crfkit.images.pairs import Pairs

    unpaired: list[str] = []
    pairs = pair_folders(given.images, given.masks, given.image_pattern, given.mask_pattern, unpaired)
    if unpaired and not given.skip_bad:
        if pairs:
            try:
                images, masks = [image for image, _ in pairs], [mask for _, mask in pairs]
                unpaired += Pairs.read(images, masks, rules, skip_bad=True).skipped
            except DataError as error:
                unpaired.append(str(error))
        raise_all(unpaired)
    if not pairs:
        raise_all([*unpaired, "no image has a mask"])
    for problem in unpaired:
        note(f"skipped {problem}")
    return pairs


def _estimate(training: SegmenterTraining, images: Sequence[Path], masks: Sequence[Path], skip_bad: bool) -> None:
    """Print the sizes of the training and an estimate of its memory and time."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        say(training.estimate(images, masks, skip_bad=skip_bad))


def _run(
    given: SegmentOptions, training: SegmenterTraining, images: Sequence[Path], masks: Sequence[Path]
) -> SegmenterFit:
    """Train and show progress; exit if training is interrupted before there is a model."""
    from crfkit.cli.commands.segment_files import bar
    from crfkit.cli.runtime.finishing import exit_without_model
    from crfkit.cli.runtime.progress import json_log, progress_callback

    with (
        bar("features", given.quiet) as progress,
        json_log(given.log) as logging,
        progress_callback(given.max_iterations, given.quiet) as showing,
    ):
        try:
            done = training.run(
                images,
                masks,
                skip_bad=given.skip_bad,
                start=given.resume,
                progress=progress,
                callbacks=[*logging, *showing],
                checkpoint=given.checkpoint,
                checkpoint_every=given.checkpoint_every,
            )
        except KeyboardInterrupt:
            done = None
    if done is None or (done.interrupted and not done.result.iterations):
        exit_without_model()
    return done


def _tell(done: SegmenterFit, strengths: bool) -> None:
    """Print the strengths that were tried, the sizes of the model and how training ended."""
    from crfkit.cli.runtime.finishing import outcome, status_text
    from crfkit.images.training.groups import describe_choice, large_groups

    model, result = done.model, done.result
    names, selected = model.features.names, model.selected()
    groups = " and ".join(large_groups(model.features))
    chosen = model.field.training.get("penalty_choice")
    searched = chosen is not None and done.path and done.path[0].result is None
    kind = "strength" if strengths else f"L2 of {groups}" if searched else "L2 of edges per block"
    for point in done.path:
        trained = "" if searched else f", {point.nonzeros} weights, {point.seconds:.2f} s"
        say(f"{kind} {point.strength:g}: error {point.score:.4f}{trained}")
    if chosen is not None:
        say(describe_choice(chosen))
    say(
        f"{done.n_images} images, classes {' '.join(map(str, model.classes.tolist()))}, {len(names)} features; "
        f"nodes use {len(selected['unary'])} of them, edges {len(selected['pairwise'])}; blocks of "
        f"{model.features.block_size}×{model.features.block_size} pixels"
    )
    say(outcome(result))
    for line in dict.fromkeys(done.concerns or [status_text(result)]):
        say(line)
