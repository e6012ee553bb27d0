"""`crfkit update`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.cli.options import shared
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, option
from crfkit.cli.runtime.output import say

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel
    from crfkit.result import Result


def update(
    old: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file to go on from; it does not change.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRAIN...", help="Further training files, of the kind that the model was trained on. - is stdin."
        ),
    ],
    model: shared.NewModel,
    encoding: shared.Encoding = "utf-8",
    format: shared.Format = "auto",
    label_column: Annotated[
        str | None, option(INPUT, "--label-column", metavar="NAME|N", help="Column of the label in CoNLL-U files.")
    ] = None,
    min_frequency: Annotated[
        int,
        option(INPUT, "--min-frequency", "-f", metavar="N", help="Drop new attributes that occur fewer than N times."),
    ] = 1,
    constraints: Annotated[
        str | None,
        option(
            MODEL,
            "--constraints",
            metavar="SCHEME",
            help="The constraints that the model was trained with, if there are any.",
        ),
    ] = None,
    l2: shared.L2Strength = None,
    l1: shared.L1Strength = None,
    solver: Annotated[
        str,
        option(
            OPTIMISATION,
            "--solver",
            "-a",
            metavar="NAME",
            help="By default lbfgs or owlqn: weights that the old sentences support move little. Online solvers such "
            "as asgd, sgd, arow or mira make passes over the new files alone.",
        ),
    ] = "auto",
    epochs: Annotated[
        int, option(OPTIMISATION, "--epochs", metavar="N", help="Number of passes of an online solver.")
    ] = 1,
    seed: shared.Seed = 0,
    threads: shared.Threads = None,
) -> None:
    """Continue training a tagger on more files, without those it was trained on.

    New labels and attributes are added. The model records how often each attribute occurred, so weights that many old
    sentences support move little. The penalty is the one that the model was trained with, unless --l1 or --l2 is given.
    """
    from crfkit.chain.training.batches import PartialFit, is_online, partial_fit
    from crfkit.chain.training.train import ChainTraining
    from crfkit.chain.training.update import update as from_prior
    from crfkit.cli.options.parsing import check_distinct, column_files, scaled_penalty
    from crfkit.cli.runtime.finishing import outcome, say_written
    from crfkit.convert import load
    from crfkit.errors import ParameterError
    from crfkit.files import modelfile
    from crfkit.wording import counted

    if epochs < 1:
        raise ParameterError(f"--epochs must be at least 1, not {epochs}")
    for file in files:
        check_distinct({"TRAIN": file, "--model": model})
    modelfile.check_writable(model)
    before = load(old, threads)
    if before.field.constrained and constraints is None:
        raise ParameterError("the model was trained with constraints; name them, as in --constraints iob2")
    vocabulary = before.vocabulary
    training = ChainTraining(
        scaled_penalty(l1, None, None, l2, None, None, None),
        solver,
        min_frequency,
        before.field.state_offsets is None,
        before.field.transition_codes is None,
        n_threads=threads,
        seed=seed,
        order=before.field.order,
        constraints=constraints,
        label_classes=_label_classes(before),
        template=vocabulary.template,
        features=vocabulary.text,
        hash_bits=vocabulary.hash_bits,
    )
    training.check()
    if before.seen is None and solver == "auto":
        say(
            "the model does not record how often its attributes occurred. It learns from these files alone, by asgd; "
            "check that it has not become worse on old data",
            err=True,
        )
        training = replace(training, solver="asgd")
    corpus, weights = training.learn_files(column_files(files, encoding, format, label_column), least_labels=1)
    if is_online(training):
        state: PartialFit = PartialFit.after(before)
        for _ in range(epochs):
            trained, result, state = partial_fit(training, corpus, state, (), weights)
            _check(result)
    else:
        trained, result = from_prior(training, corpus, before, weights)
        _check(result)
    trained.save(model)
    known = set(before.class_list)
    labels = [str(label) for label in trained.class_list if label not in known]
    new = len(trained.vocabulary.attributes) - len(before.vocabulary.attributes)
    say(
        f"{counted(len(corpus.data), 'sequence')}, {counted(new, 'new attribute')}, {counted(len(trained.w), 'weight')}"
    )
    if labels:
        say(f"{counted(len(labels), 'new label')}: {' '.join(labels)}")
    say(outcome(result))
    if before.calibration is not None:
        say("the new model is not calibrated any more; call crfkit calibrate again")
    say_written(model, False)


def _check(result: Result) -> None:
    """Raise an error if training ended without a model that can be used."""
    from crfkit.errors import DataError
    from crfkit.result import Status

    if result.status in (Status.DIVERGED, Status.NON_FINITE):
        raise DataError(f"{result.status}; no model was written")
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt


def _label_classes(model: ChainModel) -> dict[Any, str] | None:
    """Return the classes of the model's labels."""
    if model.field.label_classes is None:
        return None
    names = [model.class_names[k] for k in model.field.label_classes.tolist()]
    return dict(zip(model.class_list, names, strict=True))
