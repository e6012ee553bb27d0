"""Options and arguments that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, OUTPUT, flag, option

# --- files

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file.")]
NewModel = Annotated[
    Path, option(OUTPUT, "--model", "-m", metavar="FILE", help="File to write the model to, e.g. model.crf.")
]
Encoding = Annotated[
    str, option(INPUT, "--encoding", metavar="NAME", help="Encoding of the input files, e.g. latin-1 or utf-16.")
]
Format = Annotated[
    str,
    option(
        INPUT,
        "--format",
        metavar="NAME",
        help="Format of the input files: {formats}. auto recognises CoNLL-U by the file's name or by the ten columns "
        "of its first token. In CoNLL-U files, comments, ranges such as 1-2 and empty nodes such as 8.1 are not "
        "tokens. Files of CRFsuite attributes (crfsuite) are recognised where there is no template.",
    ),
]
OutputFile = Annotated[
    Path | None, option(OUTPUT, "--output", "-o", metavar="FILE", help="Write to this file. Default: standard output.")
]
Log = Annotated[
    Path | None,
    option(OUTPUT, "--log", metavar="FILE.jsonl", help="Write one line of JSON per iteration to this file."),
]
Json = Annotated[bool, flag(OUTPUT, "--json", help="Print JSON.")]
DryRun = Annotated[
    bool,
    flag(
        OUTPUT,
        "--dry-run",
        help="Print the sizes of the training and an estimate of its memory and time. Nothing is written.",
    ),
]
Quiet = Annotated[bool, flag(OUTPUT, "--quiet", "-q", help="Do not show progress.")]

# --- training

Solver = Annotated[
    str,
    option(
        OPTIMISATION,
        "--solver",
        "-a",
        metavar="NAME",
        help="Optimisation algorithm. auto chooses one for the loss and the penalty; `crfkit train --help` lists all.",
    ),
]
Tolerance = Annotated[
    float,
    option(
        OPTIMISATION,
        "--tolerance",
        "-e",
        metavar="E",
        help="Stop when ten iterations together decrease the objective by less than this fraction of it.",
    ),
]
MaxIterations = Annotated[
    int | None,
    option(
        OPTIMISATION,
        "--max-iterations",
        "-i",
        metavar="N",
        help="Stop after N iterations (online solvers: passes over the data). Default: the solver's own limit.",
    ),
]
Seed = Annotated[int, option(OPTIMISATION, "--seed", metavar="N", help="Random seed.")]
Threads = Annotated[
    int | None,
    option(OPTIMISATION, "--threads", "-p", metavar="N", help="Number of threads. Default: all cores."),
]
ClusterAddress = Annotated[
    str | None,
    option(
        OPTIMISATION,
        "--cluster",
        metavar="ADDRESS",
        help="Train on a Dask cluster: tcp://host:8786, a scheduler file (.json), or local:4 for four processes on "
        "this machine. The optimum is the same. Needs pip install 'crfkit[distributed]'.",
    ),
]
Shards = Annotated[
    int | None,
    option(
        OPTIMISATION,
        "--shards",
        metavar="N",
        help="With --cluster, number of parts of the training data. Default: one per worker.",
    ),
]
GraphLoss = Annotated[
    str,
    option(
        MODEL,
        "--loss",
        metavar="NAME",
        help="Loss: {graph losses}. auto is the likelihood, or the pseudo-likelihood for tables that take too long.",
    ),
]
Inference = Annotated[
    str,
    option(
        MODEL,
        "--inference",
        metavar="NAME",
        help="Inference engine: {engines}. auto is exact where that is cheap, else trw.",
    ),
]
TrainingSweeps = Annotated[
    int,
    option(
        MODEL,
        "--sweeps",
        metavar="N",
        help="Maximum number of message-passing sweeps (bp, trw, mean-field) per training step.",
    ),
]
Confidence = Annotated[float, option(MODEL, "--confidence", metavar="C", help="Confidence level of the intervals.")]
L2Strength = Annotated[float | None, option(MODEL, "--l2", metavar="S", help="L2 penalty S/2·‖w‖². Default: 1.")]
L1Strength = Annotated[
    float | None, option(MODEL, "--l1", metavar="S", help="L1 penalty S·‖w‖₁, which makes most weights zero.")
]
Sweeps = Annotated[
    int | None,
    option(
        MODEL,
        "--sweeps",
        metavar="N",
        help="Maximum number of message-passing sweeps (bp, trw, mean-field) per evaluation. Default: 1000.",
    ),
]
