"""`crfkit update`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit._values import Label
from crfkit.cli.options import shared
from crfkit.cli.options.declared import own_option, takes
from crfkit.cli.runtime.finishing import outcome, say_written
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION
from crfkit.cli.runtime.output import say

if TYPE_CHECKING:
    from crfkit.chain.encoding.sequences import TaggedCorpus
    from crfkit.chain.model.model import ChainModel
    from crfkit.chain.training.train import ChainTraining
    from crfkit.result import Result


@dataclass(frozen=True)
class UpdateOptions:
    """The options of `crfkit update`."""

    old: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file to continue from; it does not change.")]
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRAIN...", help="Further training files, of the kind that the model was trained on. - is stdin."
        ),
    ]
    model: shared.NewModel
    encoding: shared.Encoding = "utf-8"
    format: shared.Format = "auto"
    label_column: str | None = own_option(
        INPUT, "--label-column", metavar="NAME|N", help="Column of the label in CoNLL-U files."
    )
    min_frequency: int = own_option(
        INPUT,
        "--min-frequency",
        "-f",
        default=1,
        metavar="N",
        help="Drop new attributes that occur fewer than N times.",
    )
    constraints: str | None = own_option(
        MODEL,
        "--constraints",
        metavar="SCHEME",
        help="The constraints that the model was trained with, if any.",
    )
    l2: shared.L2Strength = None
    l1: shared.L1Strength = None
    solver: str = own_option(
        OPTIMISATION,
        "--solver",
        "-a",
        default="auto",
        metavar="NAME",
        help="Default: lbfgs or owlqn, which change little where many old sentences support a weight. Online solvers "
        "such as asgd, sgd, arow or mira make passes over the new files alone.",
    )
    epochs: int = own_option(
        OPTIMISATION, "--epochs", default=1, metavar="N", help="Number of passes of an online solver."
    )
    seed: shared.Seed = 0
    threads: shared.Threads = None


@takes(UpdateOptions)
def update(given: UpdateOptions) -> None:
    """Continue training a tagger on more files, without those it was trained on.

    New labels and attributes are added. The model records how often each attribute occurred, so weights that many old
    sentences support change little. The penalty is the one that the model was trained with, unless --l1 or --l2 is
    given.
    """
    from crfkit.cli.options.parsing import check_distinct, check_writable, column_files
    from crfkit.convert import load
    from crfkit.errors import ParameterError

    if given.epochs < 1:
        raise ParameterError(f"--epochs must be at least 1, not {given.epochs}")
    for file in given.files:
        check_distinct({"TRAIN": file, "--model": given.model})
    check_writable(given.model)
    before = load(given.old, given.threads)
    if before.field.constrained and given.constraints is None:
        raise ParameterError("the model was trained with constraints; name them, as in --constraints iob2")
    training = _training(given, before)
    files = column_files(given.files, given.encoding, given.format, given.label_column)
    corpus, weights = training.learn_files(files, least_labels=1)
    trained, result = _train(training, corpus, weights, before, given.epochs)
    trained.save(given.model)
    _tell(before, trained, result, len(corpus.data))
    say_written(given.model, False)


def _training(given: UpdateOptions, before: ChainModel) -> ChainTraining:
    """Return the training of the options, for the features and the kind of weights that the model has."""
    from crfkit.chain.training.train import ChainTraining
    from crfkit.cli.options.parsing import scaled_penalty

    vocabulary = before.vocabulary
    training = ChainTraining(
        penalty=scaled_penalty(l1=given.l1, l2=given.l2),
        solver=given.solver,
        min_frequency=given.min_frequency,
        all_possible_states=before.field.state_offsets is None,
        all_possible_transitions=before.field.transition_codes is None,
        n_threads=given.threads,
        seed=given.seed,
        order=before.field.order,
        constraints=given.constraints,
        label_classes=_label_classes(before),
        template=vocabulary.template,
        features=vocabulary.text,
        hash_bits=vocabulary.hash_bits,
    )
    training.check()
    if before.seen is not None or given.solver != "auto":
        return training
    say(
        "the model does not record how often its attributes occurred. It learns from these files alone, by asgd; "
        "check that it has not become worse on old data",
        err=True,
    )
    return replace(training, solver="asgd")


def _train(
    training: ChainTraining, corpus: TaggedCorpus, weights: list[float] | None, before: ChainModel, epochs: int
) -> tuple[ChainModel, Result]:
    """Return the model after passes of an online solver over the new files, or at the optimum near the old weights."""
    from crfkit.chain.training.batches import PartialFit, is_online, partial_fit
    from crfkit.chain.training.update import update as from_prior

    if not is_online(training):
        trained, result = from_prior(training, corpus, before, weights)
        _check(result)
        return trained, result
    state: PartialFit = PartialFit.after(before)
    for _ in range(epochs):
        trained, result, state = partial_fit(training, corpus, state, (), weights)
        _check(result)
    return trained, result


def _tell(before: ChainModel, trained: ChainModel, result: Result, sequences: int) -> None:
    """Print what is new in the model, and how training went."""
    from crfkit.wording import counted

    known = set(before.class_list)
    labels = [str(label) for label in trained.class_list if label not in known]
    new = len(trained.vocabulary.attributes) - len(before.vocabulary.attributes)
    say(f"{counted(sequences, 'sequence')}, {counted(new, 'new attribute')}, {counted(len(trained.w), 'weight')}")
    if labels:
        say(f"{counted(len(labels), 'new label')}: {' '.join(labels)}")
    say(outcome(result))
    if before.calibration is not None:
        say("the new model is not calibrated any more; call crfkit calibrate again")


def _check(result: Result) -> None:
    """Raise an error if training ended without a model that can be used."""
    from crfkit.errors import DataError
    from crfkit.result import Status

    if result.status in (Status.DIVERGED, Status.NON_FINITE):
        raise DataError(f"{result.status}; no model was written")
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt


def _label_classes(model: ChainModel) -> dict[Label, str] | None:
    """Return the classes of the model's labels."""
    if model.field.label_classes is None:
        return None
    names = [model.class_names[k] for k in model.field.label_classes.tolist()]
    return dict(zip(model.class_list, names, strict=True))
