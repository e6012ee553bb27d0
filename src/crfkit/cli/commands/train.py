"""`crfkit train`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.cli.options import shared
from crfkit.cli.options.label import ClassWeight, LabelSeparator, UnknownLabel, WeightColumn, class_weights
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, OUTPUT, flag, option, was_given
from crfkit.cli.runtime.output import say
from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.chain.encoding.sequences import TaggedCorpus
    from crfkit.chain.training.early_stopping import Dev
    from crfkit.files.columns import ColumnFile

PATIENCE = 10  # of --dev, in iterations

SOLVERS = """
Solvers for L1 and L2 penalties, with --l2 1 by default: {solvers with l2}.

Solvers that select attributes as they are needed, with --l1 1 by default: {solvers with l1}.

Online solvers that learn from mistakes and take no penalty: {solvers without penalty}.
"""


def train(
    context: typer.Context,
    train_files: Annotated[
        list[str],
        typer.Argument(
            metavar="TRAIN...",
            help="Column files, also .gz, whose last column is the label; or data files of CRFsuite. - is standard "
            "input. With --cluster also globs and URLs.",
        ),
    ],
    model: shared.NewModel,
    template: Annotated[
        Path | None,
        option(
            INPUT,
            "--template",
            "-t",
            metavar="FILE",
            help="Feature template of CRF++, or patterns of Wapiti. Data files of CRFsuite need none.",
        ),
    ] = None,
    features: Annotated[
        str | None,
        option(
            INPUT,
            "--features",
            metavar="NAME",
            help="Preset of features of plain words, instead of a template: {presets}. The first column is the word.",
        ),
    ] = None,
    feature_columns: Annotated[
        str | None,
        option(
            INPUT,
            "--feature-columns",
            metavar="N,...",
            help="Columns that --features uses besides the word, e.g. 1 for parts of speech.",
        ),
    ] = None,
    gazetteer: Annotated[
        list[str] | None,
        option(
            INPUT,
            "--gazetteer",
            metavar="NAME=FILE",
            help="List of phrases for --features, one per line. May be given several times.",
        ),
    ] = None,
    embeddings: Annotated[
        Path | None,
        option(INPUT, "--embeddings", metavar="FILE", help="Vectors of words for --features: word2vec or GloVe text."),
    ] = None,
    template_syntax: Annotated[
        str,
        option(
            INPUT,
            "--template-syntax",
            metavar="NAME",
            help="Syntax of the template: crf++, wapiti or auto. auto is wapiti if no line could be CRF++'s.",
        ),
    ] = "auto",
    encoding: shared.Encoding = "utf-8",
    format: shared.Format = "auto",
    label_column: Annotated[
        str | None,
        option(
            INPUT,
            "--label-column",
            metavar="NAME|N",
            help="Column of the label in CoNLL-U files: a name such as upos, xpos, feats or deprel, or a number from "
            "0. Default: upos.",
        ),
    ] = None,
    dev: Annotated[
        Path | None,
        option(
            INPUT,
            "--dev",
            metavar="FILE",
            help="Column file for early stopping: stop when its score no longer improves, and keep the best weights.",
        ),
    ] = None,
    unknown_label: UnknownLabel = None,
    label_separator: LabelSeparator = None,
    weight_column: WeightColumn = None,
    min_frequency: Annotated[
        int,
        option(INPUT, "--min-frequency", "-f", metavar="N", help="Drop attributes that occur fewer than N times."),
    ] = 1,
    hash_bits: Annotated[
        int | None,
        option(
            INPUT,
            "--hash-bits",
            metavar="N",
            help="Hash the names of attributes to 2^N buckets, so that memory is bounded and names are not kept.",
        ),
    ] = None,
    order: Annotated[
        int,
        option(
            MODEL, "--order", metavar="1|2", help="Order of the chain. With 2, triples of labels have weights as well."
        ),
    ] = 1,
    constraints: Annotated[
        str | None,
        option(
            MODEL,
            "--constraints",
            metavar="SCHEME",
            help="Forbid transitions that break a tagging scheme: {constraints}. observed forbids transitions that do "
            "not occur in TRAIN.",
        ),
    ] = None,
    all_states: Annotated[
        bool,
        flag(
            MODEL,
            "--all-states/--observed-states",
            help="Which (attribute, label) and (label, label) pairs have weights: all pairs, as in CRF++, or only "
            "those that occur in the training files, as in CRFsuite. The latter is about as accurate and several "
            "times faster and smaller.",
        ),
    ] = False,
    class_weight: ClassWeight = None,
    loss: Annotated[str, option(MODEL, "--loss", metavar="NAME", help="Loss: {chain losses}.")] = "likelihood",
    l2: Annotated[
        float | None,
        option(
            MODEL,
            "--l2",
            metavar="S",
            help="L2 penalty S/2·‖w‖². Default: 1; solvers that select attributes use --l1 1 instead, and solvers "
            "that learn from mistakes use no penalty.",
        ),
    ] = None,
    l1: shared.L1Strength = None,
    C: Annotated[
        float | None, option(MODEL, "--C", metavar="C", help="L2 penalty on the scale of CRF++: ‖w‖²/(2C).")
    ] = None,
    c1: Annotated[
        float | None, option(MODEL, "--c1", metavar="C1", help="L1 penalty on the scale of CRFsuite: C1·‖w‖₁.")
    ] = None,
    c2: Annotated[
        float | None, option(MODEL, "--c2", metavar="C2", help="L2 penalty on the scale of CRFsuite: C2·‖w‖².")
    ] = None,
    rho1: Annotated[
        float | None, option(MODEL, "--rho1", metavar="R1", help="L1 penalty on the scale of Wapiti: R1·‖w‖₁.")
    ] = None,
    rho2: Annotated[
        float | None, option(MODEL, "--rho2", metavar="R2", help="L2 penalty on the scale of Wapiti: R2/2·‖w‖².")
    ] = None,
    solver: Annotated[
        str,
        option(
            OPTIMISATION,
            "--solver",
            "-a",
            metavar="NAME",
            help="Optimisation algorithm; the list is at the end. auto chooses one for the loss and the penalty.",
        ),
    ] = "auto",
    tolerance: shared.Tolerance = 1e-5,
    eta: Annotated[
        float | None,
        option(
            OPTIMISATION,
            "--eta",
            metavar="E",
            help="Stop as CRF++ does, instead of --tolerance: when three successive iterations each change the "
            "objective by less than this fraction of it. CRF++'s default is 0.0001.",
        ),
    ] = None,
    max_iterations: shared.MaxIterations = None,
    patience: Annotated[
        int | None,
        option(
            OPTIMISATION,
            "--patience",
            metavar="N",
            help=f"With --dev, stop after N iterations without improvement. Default: {PATIENCE}.",
        ),
    ] = None,
    seed: Annotated[
        int,
        option(OPTIMISATION, "--seed", metavar="N", help="Random seed, for solvers that shuffle the sequences."),
    ] = 0,
    precision: Annotated[
        str,
        option(
            OPTIMISATION,
            "--precision",
            metavar="P",
            help="Precision of training: double, single, or auto (single on large data until rounding shows).",
        ),
    ] = "auto",
    threads: shared.Threads = None,
    out_of_core: Annotated[
        bool,
        flag(
            OPTIMISATION,
            "--out-of-core",
            help="For files that do not fit into memory: encode them into a temporary folder (TMPDIR names another "
            "place), and read it again in each pass.",
        ),
    ] = False,
    cluster: shared.ClusterAddress = None,
    shards: shared.Shards = None,
    resume: Annotated[
        Path | None,
        option(
            OPTIMISATION,
            "--resume",
            metavar="FILE",
            help="Continue from a checkpoint that was written with the same data and options. The result is that of "
            "a run that was not interrupted.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        option(
            OUTPUT,
            "--checkpoint",
            metavar="FILE",
            help="Write the solver's state to this file from time to time and at the end, for --resume.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        str | None,
        option(
            OUTPUT,
            "--checkpoint-every",
            metavar="TIME",
            help="Time between checkpoints, e.g. 90s, 10m or 2h; 20it is 20 iterations. Default: 10m.",
        ),
    ] = None,
    log: shared.Log = None,
    train_error: Annotated[
        bool,
        flag(OUTPUT, "--train-error", help="Report the token and sequence error of each iteration, as CRF++ does."),
    ] = False,
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
    """Train a sequence tagger from column files and a template or features, or from files of attributes.

    Ctrl-C and SIGTERM stop early and still write the model; the exit codes are then 130 and 143. All defaults
    are those of ChainCRF in Python.
    """
    from dataclasses import replace

    from crfkit.chain.encoding.weak_labels import LabelColumn
    from crfkit.chain.training.stored import fit_stored
    from crfkit.chain.training.train import ChainTraining
    from crfkit.cli.options.cluster import check_urls, make_cluster
    from crfkit.cli.options.parsing import (
        check_distinct,
        column_files,
        read_template,
        scaled_penalty,
        successive_changes,
    )
    from crfkit.cli.options.text import text_features
    from crfkit.cli.runtime.finishing import exit_without_model, outcome, say_written, status_text
    from crfkit.cli.runtime.progress import json_log, progress_callback
    from crfkit.cli.runtime.signals import result_is_kept
    from crfkit.files import modelfile
    from crfkit.files.checkpoint import Checkpoint, Checkpoints
    from crfkit.result import Status
    from crfkit.wording import counted

    training = ChainTraining(
        scaled_penalty(l1, c1, rho1, l2, C, c2, rho2),
        solver,
        min_frequency,
        all_states,
        all_states,
        tolerance if eta is None else successive_changes(eta, was_given(context, "tolerance")),
        max_iterations,
        n_threads=threads,
        seed=seed,
        precision=precision,
        loss=loss,
        order=order,
        constraints=constraints,
        class_weight=class_weights(class_weight),
        features=text_features(features, template, feature_columns, gazetteer, embeddings),
        hash_bits=hash_bits,
    )
    training.check()
    outputs = {"--model": model, "--log": log, "--checkpoint": checkpoint}
    where = make_cluster(cluster, shards)
    files = [Path(file) for file in train_files]
    for file in files:
        check_distinct({"TRAIN": file, "--template": template, "--dev": dev, **outputs})
    # --checkpoint may overwrite the file of --resume; --model and --log may not
    check_distinct({"--resume": resume, "--model": model, "--log": log})
    if patience is not None and dev is None:
        raise ParameterError("--patience needs a development set; give --dev FILE")
    sources = column_files([*files, *([dev] if dev is not None else [])], encoding, format, label_column)
    for path in (model, checkpoint):
        if path is not None:
            modelfile.check_writable(path)
    if checkpoint_every is not None and checkpoint is None:
        raise ParameterError("--checkpoint-every needs a file for the checkpoints; give --checkpoint FILE")
    every = "10m" if checkpoint_every is None else checkpoint_every
    periodic: list[Any] = [] if checkpoint is None else [Checkpoints(checkpoint, every)]
    start = Checkpoint.load(resume) if resume is not None else None
    if template is not None:
        training = replace(training, template=read_template(template, encoding, template_syntax))
    labels = LabelColumn(unknown_label, label_separator, weight_column)
    refused: dict[str, object] = {
        "--train-error": train_error,
        "--unknown-label": unknown_label,
        "--label-separator": label_separator,
        "--weight-column": weight_column,
        "--dry-run": dry_run,
    }
    if where is not None:
        _refuse("--cluster", {**refused, "--out-of-core": out_of_core})
    elif out_of_core:
        _refuse("--out-of-core", {**refused, "--dev": dev, "--resume": resume, "--checkpoint": checkpoint})
    else:
        corpus, weights = training.learn_files(sources[: len(files)], labels)
        held_out = (
            _read_dev(corpus, sources[-1], PATIENCE if patience is None else patience) if dev is not None else None
        )
    if dry_run:
        from crfkit.chain.training.dry_run import Estimate

        say(Estimate.of(training, corpus, weights))
        return
    with json_log(log) as logging, progress_callback(max_iterations, quiet) as showing:
        seen = [*logging, *showing, *periodic, result_is_kept]
        try:
            if where is not None:
                from crfkit.distributed.training import fit_urls

                def read_dev(corpus: TaggedCorpus) -> Dev | None:
                    return (
                        None
                        if dev is None
                        else _read_dev(corpus, sources[-1], PATIENCE if patience is None else patience)
                    )

                how = (encoding, format, label_column)
                trained, result = fit_urls(
                    training, where, check_urls(train_files), seen, *how, dev=read_dev, resume=start
                )
            elif out_of_core:
                trained, result = fit_stored(training, sources, seen)
            else:
                trained, result = training.run(corpus, weights, seen, train_error, held_out, resume=start)
        except DataError as error:
            raise error if error.path else DataError(str(error), ", ".join(map(str, files))) from None
    interrupted = result.status is Status.INTERRUPTED
    enough = not (interrupted and result.iterations == 0)
    if enough:
        trained.save(model)
    if checkpoint is not None:
        Checkpoint.of(result).save(checkpoint)
    if not enough:
        exit_without_model()
    say(
        f"{counted(len(trained.classes), 'label')}, {counted(len(trained.vocabulary.attributes), 'attribute')}, "
        f"{counted(len(trained.w), 'weight')}"
    )
    say(outcome(result))
    say(status_text(result))
    say_written(model, interrupted)


def _refuse(option: str, given: Mapping[str, object]) -> None:
    """Raise if an option was given that does not go with another."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise ParameterError(f"{name} does not go with {option}")


def _read_dev(corpus: TaggedCorpus, file: ColumnFile, patience: int) -> Dev:
    """Return the development set, encoded with the attributes of the training files."""
    from crfkit.chain.encoding.attribute_files import encode_attribute_file
    from crfkit.chain.encoding.sequences import encode_labelled
    from crfkit.chain.training.early_stopping import Dev

    encode = encode_labelled if corpus.vocabulary.takes_columns else encode_attribute_file
    data, gold = encode(corpus.vocabulary, file)
    if len(data) == 0:
        raise DataError("the file has no sequences", file.name)
    return Dev(data, gold, patience, file.name)
