"""`crfkit train`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crfkit.cli.options.declared import takes
from crfkit.cli.options.label import class_weights
from crfkit.cli.options.parsing import check_distinct, check_writable, column_files
from crfkit.cli.options.train import PATIENCE, TrainOptions
from crfkit.cli.runtime.help import was_given
from crfkit.cli.runtime.output import say
from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.chain.encoding.sequences import TaggedCorpus
    from crfkit.chain.model.model import ChainModel
    from crfkit.chain.training.early_stopping import Dev
    from crfkit.chain.training.train import ChainTraining
    from crfkit.files.checkpoint import Checkpoint
    from crfkit.files.columns import ColumnFile
    from crfkit.result import Result
    from crfkit.solvers.parts.loop import Callback

    Work = Callable[[list[Callback]], tuple[ChainModel, Result]]  # from callbacks to a model and how training went

SOLVERS = """
Solvers for L1 and L2 penalties, with --l2 1 by default: {solvers with l2}.

Solvers that select attributes as they are needed, with --l1 1 by default: {solvers with l1}.

Online solvers that learn from mistakes and take no penalty: {solvers without penalty}.
"""


@takes(TrainOptions)
def train(given: TrainOptions) -> None:
    """Train a sequence tagger from column files and a template or features, or from attribute files.

    Ctrl-C and SIGTERM stop early and still write the model; the exit codes are then 130 and 143. All defaults are the
    same as in ChainCRF in Python.
    """
    from crfkit.chain.encoding.weak_labels import LabelColumn
    from crfkit.cli.options.cluster import make_cluster
    from crfkit.cli.options.parsing import read_template

    training = _checked_training(given)
    cluster = make_cluster(given.cluster, given.shards)
    sources = _checked_files(given)
    checkpoints, start = _checkpoints(given)
    if given.template is not None:
        training = replace(training, template=read_template(given.template, given.encoding, given.template_syntax))
    if cluster is not None:
        work = _on_cluster(given, training, cluster, sources, start)
    elif given.out_of_core:
        work = _from_disk(given, training, sources)
    else:
        labels = LabelColumn(given.unknown_label, given.label_separator, given.weight_column)
        corpus, weights = training.learn_files(sources[: len(given.train_files)], labels)
        dev = _read_dev(given, corpus, sources)
        if given.dry_run:
            from crfkit.chain.training.dry_run import Estimate

            say(Estimate.of(training, corpus, weights))
            return

        def work(seen: list[Callback]) -> tuple[ChainModel, Result]:
            return training.run(corpus, weights, seen, given.train_error, dev, resume=start)

    trained, result = _run(given, work, checkpoints)
    _write_and_tell(given, trained, result)


def _checked_training(given: TrainOptions) -> ChainTraining:
    """Return the training of the options, without its template."""
    from crfkit.chain.training.train import ChainTraining
    from crfkit.cli.options.parsing import scaled_penalty, successive_changes
    from crfkit.cli.options.text import text_features

    training = ChainTraining(
        penalty=scaled_penalty(given.l1, given.c1, given.rho1, given.l2, given.C, given.c2, given.rho2),
        solver=given.solver,
        min_frequency=given.min_frequency,
        all_possible_states=given.all_states,
        all_possible_transitions=given.all_states,
        tolerance=given.tolerance
        if given.eta is None
        else successive_changes(given.eta, was_given(given.context, "tolerance")),
        max_iterations=given.max_iterations,
        n_threads=given.threads,
        seed=given.seed,
        precision=given.precision,
        loss=given.loss,
        order=given.order,
        constraints=given.constraints,
        class_weight=class_weights(given.class_weight),
        features=text_features(
            given.features, given.template, given.feature_columns, given.gazetteer, given.embeddings
        ),
        hash_bits=given.hash_bits,
    )
    training.check()
    if given.device is None:
        return training
    from crfkit.training.placement import on_device

    _refuse("--device", {"--cluster": given.cluster, "--out-of-core": given.out_of_core, "--dry-run": given.dry_run})
    return replace(training, placement=on_device(given.device))


def _checked_files(given: TrainOptions) -> list[ColumnFile]:
    """Return the training files and the development file, if there is one; check that all outputs can be written."""
    files = [Path(file) for file in given.train_files]
    outputs = {"--model": given.model, "--log": given.log, "--checkpoint": given.checkpoint}
    for file in files:
        check_distinct({"TRAIN": file, "--template": given.template, "--dev": given.dev, **outputs})
    # --checkpoint may overwrite the file of --resume; --model and --log may not
    check_distinct({"--resume": given.resume, "--model": given.model, "--log": given.log})
    if given.patience is not None and given.dev is None:
        raise ParameterError("--patience needs a development set; give --dev FILE")
    read = files if given.dev is None else [*files, given.dev]
    sources = column_files(read, given.encoding, given.format, given.label_column)
    check_writable(given.model, given.checkpoint)
    return sources


def _checkpoints(given: TrainOptions) -> tuple[list[Callback], Checkpoint | None]:
    """Return what writes checkpoints, and the checkpoint to continue from."""
    from crfkit.files.checkpoint import Checkpoint, Checkpoints

    if given.checkpoint_every is not None and given.checkpoint is None:
        raise ParameterError("--checkpoint-every needs a file for the checkpoints; give --checkpoint FILE")
    every = "10m" if given.checkpoint_every is None else given.checkpoint_every
    periodic: list[Callback] = [] if given.checkpoint is None else [Checkpoints(given.checkpoint, every)]
    return periodic, None if given.resume is None else Checkpoint.load(given.resume)


def _on_cluster(
    given: TrainOptions,
    training: ChainTraining,
    cluster: object,
    sources: Sequence[ColumnFile],
    start: Checkpoint | None,
) -> Work:
    """Return the training on a cluster, whose workers read the files."""
    from crfkit.cli.options.cluster import check_urls
    from crfkit.distributed.training import fit_urls

    _refuse("--cluster", {**_of_memory(given), "--out-of-core": given.out_of_core})
    paths = check_urls(given.train_files)
    how = (given.encoding, given.format, given.label_column)

    def work(seen: list[Callback]) -> tuple[ChainModel, Result]:
        def dev(corpus: TaggedCorpus) -> Dev | None:
            return _read_dev(given, corpus, sources)

        return fit_urls(training, cluster, paths, seen, *how, dev=dev, resume=start)

    return work


def _from_disk(given: TrainOptions, training: ChainTraining, sources: Sequence[ColumnFile]) -> Work:
    """Return the training that reads encoded files from disk."""
    from crfkit.chain.training.stored import fit_stored

    more = {"--dev": given.dev, "--resume": given.resume, "--checkpoint": given.checkpoint}
    _refuse("--out-of-core", {**_of_memory(given), **more})
    return lambda seen: fit_stored(training, sources, seen)


def _of_memory(given: TrainOptions) -> dict[str, object]:
    """Return the options that only training in the memory of one process knows."""
    return {
        "--train-error": given.train_error,
        "--unknown-label": given.unknown_label,
        "--label-separator": given.label_separator,
        "--weight-column": given.weight_column,
        "--dry-run": given.dry_run,
    }


def _refuse(option: str, given: Mapping[str, object]) -> None:
    """Raise if an option was given that cannot be combined with another."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise ParameterError(f"{name} cannot be combined with {option}")


def _read_dev(given: TrainOptions, corpus: TaggedCorpus, sources: Sequence[ColumnFile]) -> Dev | None:
    """Return the development set, encoded with the attributes of the training files; None if there is none."""
    from crfkit.chain.encoding.attribute_files import encode_held_out
    from crfkit.chain.training.early_stopping import Dev

    if given.dev is None:
        return None
    data, gold = encode_held_out(corpus.vocabulary, sources[-1])
    return Dev(data, gold, PATIENCE if given.patience is None else given.patience, sources[-1].name)


def _run(given: TrainOptions, work: Work, checkpoints: list[Callback]) -> tuple[ChainModel, Result]:
    """Train, show progress, and name the files in errors that are of all of them."""
    from crfkit.cli.runtime.progress import json_log, progress_callback
    from crfkit.cli.runtime.signals import result_is_kept

    with json_log(given.log) as logging, progress_callback(given.max_iterations, given.quiet) as showing:
        try:
            return work([*logging, *showing, *checkpoints, result_is_kept])
        except DataError as error:
            files = ", ".join(str(Path(file)) for file in given.train_files)
            raise error if error.path else DataError(str(error), files) from None


def _write_and_tell(given: TrainOptions, trained: ChainModel, result: Result) -> None:
    """Write the model and the checkpoint, and print the sizes of the model and how training ended."""
    from crfkit.cli.runtime.finishing import exit_without_model, outcome, say_written, status_text
    from crfkit.files.checkpoint import Checkpoint
    from crfkit.result import Status
    from crfkit.wording import counted

    interrupted = result.status is Status.INTERRUPTED
    enough = not (interrupted and result.iterations == 0)
    if enough:
        trained.save(given.model)
    if given.checkpoint is not None:
        Checkpoint.of(result).save(given.checkpoint)
    if not enough:
        exit_without_model()
    say(
        f"{counted(len(trained.classes), 'label')}, {counted(len(trained.vocabulary.attributes), 'attribute')}, "
        f"{counted(len(trained.w), 'weight')}"
    )
    say(outcome(result))
    say(status_text(result))
    say_written(given.model, interrupted)
