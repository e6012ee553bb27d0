"""The options of `crfkit train`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.options import shared
from crfkit.cli.options.declared import own_flag, own_option
from crfkit.cli.options.label import ClassWeight, LabelSeparator, UnknownLabel, WeightColumn
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, OUTPUT

PATIENCE = 10  # of --dev, in iterations


@dataclass(frozen=True)
class TrainOptions:
    """The options of `crfkit train`."""

    context: typer.Context
    train_files: Annotated[
        list[str],
        typer.Argument(
            metavar="TRAIN...",
            help="Column files, also .gz, whose last column is the label; or CRFsuite data files. - is standard "
            "input. With --cluster also globs and URLs.",
        ),
    ]
    model: shared.NewModel
    template: Path | None = own_option(
        INPUT,
        "--template",
        "-t",
        metavar="FILE",
        help="CRF++ feature template, or Wapiti patterns. CRFsuite data files need none.",
    )
    features: str | None = own_option(
        INPUT,
        "--features",
        metavar="NAME",
        help="Preset of features of plain words, instead of a template: {presets}. The first column is the word.",
    )
    feature_columns: str | None = own_option(
        INPUT,
        "--feature-columns",
        metavar="N,...",
        help="Columns that --features uses besides the word, e.g. 1 for parts of speech.",
    )
    gazetteer: list[str] | None = own_option(
        INPUT,
        "--gazetteer",
        metavar="NAME=FILE",
        help="List of phrases for --features, one per line. May be given several times.",
    )
    embeddings: Path | None = own_option(
        INPUT, "--embeddings", metavar="FILE", help="Vectors of words for --features: word2vec or GloVe text."
    )
    template_syntax: str = own_option(
        INPUT,
        "--template-syntax",
        default="auto",
        metavar="NAME",
        help="Syntax of the template: crf++, wapiti or auto. auto means wapiti if no line can be CRF++ syntax.",
    )
    encoding: shared.Encoding = "utf-8"
    format: shared.Format = "auto"
    label_column: str | None = own_option(
        INPUT,
        "--label-column",
        metavar="NAME|N",
        help="Column of the label in CoNLL-U files: a name such as upos, xpos, feats or deprel, or a number from "
        "0. Default: upos.",
    )
    dev: Path | None = own_option(
        INPUT,
        "--dev",
        metavar="FILE",
        help="Column file for early stopping: stop when its score no longer improves, and keep the best weights.",
    )
    unknown_label: UnknownLabel = None
    label_separator: LabelSeparator = None
    weight_column: WeightColumn = None
    min_frequency: int = own_option(
        INPUT, "--min-frequency", "-f", default=1, metavar="N", help="Drop attributes that occur fewer than N times."
    )
    hash_bits: int | None = own_option(
        INPUT,
        "--hash-bits",
        metavar="N",
        help="Hash the names of attributes to 2^N buckets: memory is bounded and names are not kept.",
    )
    order: int = own_option(
        MODEL,
        "--order",
        default=1,
        metavar="1|2",
        help="Order of the chain. With 2, triples of labels have weights as well.",
    )
    constraints: str | None = own_option(
        MODEL,
        "--constraints",
        metavar="SCHEME",
        help="Forbid transitions that break a tagging scheme: {constraints}. observed forbids transitions that do "
        "not occur in TRAIN.",
    )
    all_states: bool = own_flag(
        MODEL,
        "--all-states/--observed-states",
        help="Which (attribute, label) and (label, label) pairs have weights: all pairs, as in CRF++, or only "
        "those that occur in the training files, as in CRFsuite. The latter is about as accurate and several "
        "times faster and smaller.",
    )
    class_weight: ClassWeight = None
    loss: str = own_option(MODEL, "--loss", default="likelihood", metavar="NAME", help="Loss: {chain losses}.")
    l2: float | None = own_option(
        MODEL,
        "--l2",
        metavar="S",
        help="L2 penalty S/2·‖w‖². Default: 1; solvers that select attributes use --l1 1 instead, and solvers "
        "that learn from mistakes use no penalty.",
    )
    l1: shared.L1Strength = None
    C: float | None = own_option(MODEL, "--C", metavar="C", help="L2 penalty on the scale of CRF++: ‖w‖²/(2C).")
    c1: float | None = own_option(MODEL, "--c1", metavar="C1", help="L1 penalty on the scale of CRFsuite: C1·‖w‖₁.")
    c2: float | None = own_option(MODEL, "--c2", metavar="C2", help="L2 penalty on the scale of CRFsuite: C2·‖w‖².")
    rho1: float | None = own_option(MODEL, "--rho1", metavar="R1", help="L1 penalty on the scale of Wapiti: R1·‖w‖₁.")
    rho2: float | None = own_option(MODEL, "--rho2", metavar="R2", help="L2 penalty on the scale of Wapiti: R2/2·‖w‖².")
    solver: str = own_option(
        OPTIMISATION,
        "--solver",
        "-a",
        default="auto",
        metavar="NAME",
        help="Optimisation algorithm; see the list below. auto chooses one for the loss and the penalty.",
    )
    tolerance: shared.Tolerance = 1e-5
    eta: float | None = own_option(
        OPTIMISATION,
        "--eta",
        metavar="E",
        help="Stop as CRF++ does, instead of --tolerance: when three successive iterations each change the "
        "objective by less than this fraction of it. CRF++'s default is 0.0001.",
    )
    max_iterations: shared.MaxIterations = None
    patience: int | None = own_option(
        OPTIMISATION,
        "--patience",
        metavar="N",
        help=f"With --dev, stop after N iterations without improvement. Default: {PATIENCE}.",
    )
    seed: int = own_option(
        OPTIMISATION, "--seed", default=0, metavar="N", help="Random seed, for solvers that shuffle the sequences."
    )
    precision: str = own_option(
        OPTIMISATION,
        "--precision",
        default="auto",
        metavar="P",
        help="Precision of training: double, single, or auto (single on large data until rounding shows).",
    )
    threads: shared.Threads = None
    out_of_core: bool = own_flag(
        OPTIMISATION,
        "--out-of-core",
        help="For files that do not fit into memory: encode them into a temporary folder (TMPDIR names another "
        "place), and read it again in each pass.",
    )
    cluster: shared.ClusterAddress = None
    shards: shared.Shards = None
    device: str | None = own_option(
        OPTIMISATION,
        "--device",
        metavar="NAME",
        help="Train on a GPU: cuda, or cuda:1 for the second one; torch:cpu runs the same code on the CPU. The model "
        "is the same. Needs pip install 'crfkit[torch]'.",
    )
    resume: Path | None = own_option(
        OPTIMISATION,
        "--resume",
        metavar="FILE",
        help="Continue from a checkpoint that was written with the same data and options. The result is the same as "
        "without the interruption.",
    )
    checkpoint: Path | None = own_option(
        OUTPUT,
        "--checkpoint",
        metavar="FILE",
        help="Write the solver's state to this file from time to time and at the end, for --resume.",
    )
    checkpoint_every: str | None = own_option(
        OUTPUT,
        "--checkpoint-every",
        metavar="TIME",
        help="Time between checkpoints, e.g. 90s, 10m or 2h; 20it is 20 iterations. Default: 10m.",
    )
    log: shared.Log = None
    train_error: bool = own_flag(
        OUTPUT, "--train-error", help="Report the token and sequence error of each iteration, as CRF++ does."
    )
    dry_run: shared.DryRun = False
    quiet: shared.Quiet = False
