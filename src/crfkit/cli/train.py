"""`crfkit train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit.cli.options import INPUT, MODEL, OPTIMISATION, OUTPUT
from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.encoders.sequences import TaggedCorpus
    from crfkit.readers.columns import ColumnFile
    from crfkit.training.early_stopping import Dev


def train(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRAIN...", help="Column files (also .gz); the last column is the label. - is standard input."
        ),
    ],
    template: Annotated[
        Path, typer.Option("--template", "-t", metavar="FILE", help="CRF++ feature template.", rich_help_panel=INPUT)
    ],
    model: Annotated[
        Path, typer.Option("--model", "-m", metavar="FILE", help="Where to write the model.", rich_help_panel=OUTPUT)
    ],
    encoding: Annotated[
        str,
        typer.Option(
            "--encoding", metavar="NAME", help="Encoding of the column files: latin-1, utf-16, …", rich_help_panel=INPUT
        ),
    ] = "utf-8",
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="columns, conllu (comments, ranges such as 1-2 and empty nodes such as 8.1 are no tokens) or auto: "
            "conllu if the file is named so or its first token line has CoNLL-U's ten columns.",
            rich_help_panel=INPUT,
        ),
    ] = "auto",
    label_column: Annotated[
        str | None,
        typer.Option(
            "--label-column",
            metavar="NAME|N",
            help="The label's column in CoNLL-U files: upos (the default), xpos, feats, deprel … or a number from 0.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(
            "--dev",
            metavar="FILE",
            help="Column file: stop when its score no longer improves, and keep the best weights.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    min_frequency: Annotated[
        int,
        typer.Option(
            "--min-frequency",
            "-f",
            metavar="N",
            help="Drop attributes that occur less than N times.",
            rich_help_panel=INPUT,
        ),
    ] = 1,
    order: Annotated[
        int,
        typer.Option("--order", metavar="1|2", help="2: weights on label triples, too.", rich_help_panel=MODEL),
    ] = 1,
    constraints: Annotated[
        str | None,
        typer.Option(
            "--constraints",
            metavar="SCHEME",
            help="Forbid transitions that break a tagging scheme: iob1, iob2, ioe1, ioe2, iobes or bilou; or observed: "
            "those that do not occur in TRAIN.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    all_states: Annotated[
        bool,
        typer.Option(
            "--all-states/--observed-states",
            help="Weights for all (attribute, label) and (label, label) pairs, as CRF++ has, or for those that occur "
            "in the training files, as CRFsuite has: about as accurate, several times faster and smaller.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    loss: Annotated[
        str, typer.Option("--loss", metavar="NAME", help="likelihood, softmax-margin or hinge.", rich_help_panel=MODEL)
    ] = "likelihood",
    l2: Annotated[
        float | None,
        typer.Option(
            "--l2",
            metavar="S",
            help="Penalty S/2·‖w‖². Default 1, but --l1 1 for solvers that select attributes, and no penalty for those "
            "that take none (see below).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    l1: Annotated[
        float | None,
        typer.Option("--l1", metavar="S", help="Penalty S·‖w‖₁: most weights become zero.", rich_help_panel=MODEL),
    ] = None,
    C: Annotated[
        float | None, typer.Option("--C", metavar="C", help="CRF++'s penalty ‖w‖²/(2C).", rich_help_panel=MODEL)
    ] = None,
    c1: Annotated[
        float | None, typer.Option("--c1", metavar="C1", help="CRFsuite's penalty C1·‖w‖₁.", rich_help_panel=MODEL)
    ] = None,
    c2: Annotated[
        float | None, typer.Option("--c2", metavar="C2", help="CRFsuite's penalty C2·‖w‖².", rich_help_panel=MODEL)
    ] = None,
    rho1: Annotated[
        float | None, typer.Option("--rho1", metavar="R1", help="Wapiti's penalty R1·‖w‖₁.", rich_help_panel=MODEL)
    ] = None,
    rho2: Annotated[
        float | None, typer.Option("--rho2", metavar="R2", help="Wapiti's penalty R2/2·‖w‖².", rich_help_panel=MODEL)
    ] = None,
    solver: Annotated[
        str, typer.Option("--solver", "-a", metavar="NAME", help="See below.", rich_help_panel=OPTIMISATION)
    ] = "auto",
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            "-e",
            metavar="E",
            help="Stop when ten iterations decrease the objective by less than this share of it.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = 1e-5,
    max_iterations: Annotated[
        int | None,
        typer.Option(
            "--max-iterations",
            "-i",
            metavar="N",
            help="Stop after N iterations (epochs of online solvers). Default: the solver's own limit.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            "--patience",
            metavar="N",
            help="With --dev: stop after N iterations without improvement. Default 10.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            metavar="N",
            help="Random seed of solvers that shuffle the sequences.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = 0,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            "-p",
            metavar="N",
            help="Number of threads. Default: all cores.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FILE",
            help="Go on from a checkpoint of the same training.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="FILE", help="Write the solver's last state here.", rich_help_panel=OUTPUT
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE.jsonl", help="Write each iteration here, as JSON.", rich_help_panel=OUTPUT),
    ] = None,
    train_error: Annotated[
        bool,
        typer.Option(
            "--train-error",
            help="Report token and sequence error at each iteration, as CRF++ does.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Train a model from column files and a template.

    Ctrl-C stops early and still writes the model. All defaults are those of ChainCRF in Python.

    Solvers: auto, lbfgs, owlqn, tron, newton, cg, bfgs, dfp, gradient-descent, iis, ista, fista, ogm, admm, agpm, spg,
    zhou, pqn; to select attributes as they are needed, with L1(1) by default, grafting-light, grafting, gauss-seidel;
    from sequence to sequence sgd, asgd, smd, rda and, without a penalty, averaged-perceptron, passive-aggressive, arow,
    mira.
    """
    from crfkit import modelfile
    from crfkit.checkpoint import Checkpoint
    from crfkit.cli.options import check_distinct, column_files, scaled_penalty
    from crfkit.cli.progress import json_log, progress_callback
    from crfkit.encoders.sequences import learn_file
    from crfkit.features.template import Template
    from crfkit.result import Status
    from crfkit.training.chain import ChainTraining
    from crfkit.wording import counted

    training = ChainTraining(
        scaled_penalty(l1, c1, rho1, l2, C, c2, rho2),
        solver,
        min_frequency,
        all_states,
        all_states,
        tolerance,
        max_iterations,
        n_threads=threads,
        seed=seed,
        loss=loss,
        order=order,
        constraints=constraints,
    )
    training.check()
    outputs = {"--model": model, "--log": log, "--checkpoint": checkpoint}
    for file in files:
        check_distinct({"TRAIN": file, "--template": template, "--dev": dev, **outputs})
    # a checkpoint may be renewed, but not be written over by something else
    check_distinct({"--resume": resume, "--model": model, "--log": log})
    if patience is not None and dev is None:
        raise ParameterError("--patience is for training with --dev")
    sources = column_files([*files, *([dev] if dev is not None else [])], encoding, format, label_column)
    for path in (model, checkpoint):
        if path is not None:
            modelfile.check_writable(path)
    start = Checkpoint.load(resume) if resume is not None else None
    corpus = learn_file(sources[: len(files)], Template.read(template), min_frequency)
    held_out = _read_dev(corpus, sources[-1], 10 if patience is None else patience) if dev is not None else None
    with json_log(log) as logging, progress_callback(max_iterations, quiet) as showing:
        try:
            trained, result = training.run(corpus, None, [*logging, *showing], train_error, dev=held_out, resume=start)
        except DataError as error:
            raise error if error.path else DataError(str(error), ", ".join(map(str, files))) from None
    interrupted = result.status is Status.INTERRUPTED
    if interrupted and result.iterations == 0:
        typer.echo("interrupted before the first iteration; no model was written", err=True)
        raise typer.Exit(130)
    trained.save(model)
    if checkpoint is not None:
        Checkpoint.of(result).save(checkpoint)
    typer.echo(
        f"{counted(len(trained.classes), 'label')}, {counted(len(trained.vocabulary.attributes), 'attribute')}, "
        f"{counted(len(trained.w), 'weight')}"
    )
    typer.echo(
        f"{result.objective} = {result.value:.6f} after {counted(result.iterations, 'iteration')}, "
        f"{result.seconds:.2f} s"
    )
    typer.echo(f"{result.status}")
    typer.echo(f"model written to {model}")
    if interrupted:
        raise typer.Exit(130)


def _read_dev(corpus: TaggedCorpus, file: ColumnFile, patience: int) -> Dev:
    from crfkit.encoders.sequences import feed_columns, sorted_data
    from crfkit.training.early_stopping import Dev

    encoder = corpus.vocabulary.encoder(labelled=True)
    for _ in feed_columns(encoder, file, labelled=True):
        pass
    *arrays, labels = encoder.take()
    data = sorted_data((*arrays, None))
    if len(data) == 0:
        raise DataError("the file has no sequences", file.name)
    names = encoder.label_names
    return Dev(data, [[names[j] for j in row] for row in data.split(labels)], patience, file.name)
