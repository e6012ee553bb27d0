"""`crfkit train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.data.encode import TaggedCorpus
    from crfkit.estimators.chain_training import Dev


def train(
    file: Annotated[Path, typer.Argument(metavar="TRAIN", help="Column file; the last column is the label.")],
    template: Annotated[Path, typer.Option("--template", "-t", help="CRF++ feature template.")],
    model: Annotated[Path, typer.Option("--model", "-m", help="Where to write the model (.crf).")],
    l2: Annotated[float | None, typer.Option("--l2", metavar="S", help="Penalty S/2·‖w‖². Default 1.")] = None,
    C: Annotated[float | None, typer.Option("--C", metavar="C", help="CRF++'s penalty ‖w‖²/(2C).")] = None,
    c2: Annotated[float | None, typer.Option("--c2", metavar="C2", help="CRFsuite's penalty C2·‖w‖².")] = None,
    l1: Annotated[
        float | None, typer.Option("--l1", metavar="S", help="Penalty S·‖w‖₁: most weights become zero.")
    ] = None,
    loss: Annotated[str, typer.Option("--loss", help="likelihood, softmax-margin or hinge.")] = "likelihood",
    order: Annotated[int, typer.Option("--order", metavar="1|2", help="2: weights on label triples, too.")] = 1,
    constraints: Annotated[
        str | None,
        typer.Option("--constraints", metavar="SCHEME", help="iob2, iobes or observed: allowed transitions."),
    ] = None,
    min_frequency: Annotated[
        int, typer.Option("--min-frequency", "-f", metavar="N", help="Drop attributes seen less than N times.")
    ] = 1,
    all_states: Annotated[
        bool,
        typer.Option(
            "--all-states/--observed-states",
            help="Weights for all (attribute, label) and (label, label) pairs, as CRF++ has, or for those that occur "
            "in the training file, as CRFsuite has.",
        ),
    ] = True,
    solver: Annotated[
        str,
        typer.Option(
            "--solver",
            "-a",
            metavar="NAME",
            help="See below.",
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of solvers that shuffle the sequences.")] = 0,
    dev: Annotated[
        Path | None,
        typer.Option("--dev", metavar="FILE", help="Column file: stop when its score no longer improves."),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option("--patience", metavar="N", help="With --dev: iterations without improvement. Default 10."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="FILE", help="Write the solver's last state here.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="FILE", help="Go on from a checkpoint of the same training.")
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", "-p", metavar="N", help="Default: all cores.")] = None,
    max_iterations: Annotated[
        int | None,
        typer.Option("--max-iterations", "-i", metavar="N", help="Stop after N iterations (epochs of online solvers)."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            "-e",
            metavar="E",
            help="Stop when ten iterations decrease the objective by less, relatively.",
        ),
    ] = 1e-5,
    train_error: Annotated[
        bool, typer.Option("--train-error", help="Report token and sequence error at each iteration, as CRF++ does.")
    ] = False,
    log: Annotated[Path | None, typer.Option("--log", metavar="FILE.jsonl", help="Write each iteration here.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Train a model from a column file and a template.

    Ctrl-C stops early and still writes the model.

    Solvers: auto, lbfgs, owlqn, tron, newton, cg, bfgs, dfp, gradient-descent, iis, ista, fista, ogm, admm, agpm, spg,
    zhou, pqn; with --l1, to select attributes as they are needed, grafting-light, grafting, gauss-seidel; from sequence
    to sequence sgd, asgd, smd, rda, averaged-perceptron, passive-aggressive, arow, mira.
    """
    from crfkit import modelfile
    from crfkit.checkpoint import Checkpoint
    from crfkit.cli.options import check_distinct, make_penalty
    from crfkit.cli.progress import json_log, progress_callback
    from crfkit.data.encode import learn_file
    from crfkit.estimators.chain_training import ChainTraining
    from crfkit.features.template import Template
    from crfkit.penalties import L2
    from crfkit.result import Status

    given = [name for name, value in (("--l2", l2), ("--C", C), ("--c2", c2)) if value is not None]
    if len(given) > 1:
        raise ParameterError(f"{' and '.join(given)} are the same penalty; give one of them")
    penalty = make_penalty(l1, L2.from_crfpp(C) if C is not None else L2.from_crfsuite(c2) if c2 is not None else l2)
    training = ChainTraining(
        penalty,
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
    check_distinct(
        {
            "TRAIN": file,
            "--template": template,
            "--model": model,
            "--log": log,
            "--dev": dev,
            "--checkpoint": checkpoint,
        }
    )
    # a checkpoint may be renewed, but not be written over by something else
    check_distinct({"--resume": resume, "--model": model, "--log": log})
    if patience is not None and dev is None:
        raise ParameterError("--patience is for training with --dev")
    for path in (model, checkpoint):
        if path is not None:
            modelfile.check_writable(path)
    start = Checkpoint.load(resume) if resume is not None else None
    corpus = learn_file(file, Template.read(template), min_frequency)
    held_out = _read_dev(corpus, dev, 10 if patience is None else patience) if dev is not None else None
    with json_log(log) as logging, progress_callback(max_iterations, quiet) as showing:
        try:
            trained, result = training.run(corpus, None, [*logging, *showing], train_error, dev=held_out, resume=start)
        except DataError as error:
            raise error if error.path else DataError(str(error), file) from None
    interrupted = result.status is Status.INTERRUPTED
    if interrupted and result.iterations == 0:
        typer.echo("interrupted before the first iteration; no model was written", err=True)
        raise typer.Exit(130)
    trained.save(model)
    if checkpoint is not None:
        Checkpoint.of(result).save(checkpoint)
    typer.echo(
        f"{len(trained.classes)} labels, {len(trained.vocabulary.attributes)} attributes, {len(trained.w)} weights"
    )
    typer.echo(f"{result.objective} = {result.value:.6f} after {result.iterations} iterations, {result.seconds:.2f} s")
    typer.echo(f"{result.status}")
    typer.echo(f"model written to {model}")
    if interrupted:
        raise typer.Exit(130)


def _read_dev(corpus: TaggedCorpus, path: Path, patience: int) -> Dev:
    from crfkit.data.encode import feed_columns, sorted_data
    from crfkit.estimators.chain_training import Dev

    encoder = corpus.vocabulary.encoder(labelled=True)
    for _ in feed_columns(encoder, path):
        pass
    *arrays, labels = encoder.take()
    data = sorted_data((*arrays, None))
    if len(data) == 0:
        raise DataError("the file has no sequences", path)
    names = encoder.label_names
    return Dev(data, [[names[j] for j in row] for row in data.split(labels)], patience)
