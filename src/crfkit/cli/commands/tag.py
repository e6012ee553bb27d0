"""`crfkit tag`. An option that is added here is also added to `quick`; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.commands.tagging import tag_files
from crfkit.cli.options import shared
from crfkit.cli.options.declared import own_flag, own_option, takes
from crfkit.cli.runtime.help import INPUT, MODEL, OUTPUT


@dataclass(frozen=True)
class TagOptions:
    """The options of `crfkit tag`."""

    model: shared.ModelFile
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Column files, CRFsuite data files, or with --text plain text. - is standard input (stdin), the "
            "default.",
        ),
    ] = None
    encoding: str = own_option(
        INPUT,
        "--encoding",
        default="utf-8",
        metavar="NAME",
        help="Encoding of the input files and of the texts in a model of CRF++, CRFsuite or Wapiti, e.g. latin-1 "
        "or euc-jp. The output is always UTF-8.",
    )
    format: shared.Format = "auto"
    text: bool = own_flag(
        INPUT,
        "--text",
        help="Read plain text, and divide it into sentences, words and punctuation marks: the same as --format text. "
        "A line break always ends a sentence. --format words splits at blanks only, --format characters into "
        "characters; with these, each line is a sentence.",
    )
    output: shared.OutputFile = None
    labels_only: bool = own_flag(
        OUTPUT, "--labels-only", help="Write only the labels, one per line, with a blank line after each sequence."
    )
    marginals: bool = own_flag(OUTPUT, "--marginals", help="Add the probability of the predicted label.")
    all_marginals: bool = own_flag(OUTPUT, "--all-marginals", help="Add the probabilities of all labels.")
    as_json: bool = own_flag(
        OUTPUT,
        "--json",
        help="Write one JSON object per sentence and line: tokens, labels, the probability of the labelling, "
        "confidences of the labels and, if labels mark phrases, spans with their probabilities.",
    )
    nbest: int | None = own_option(
        OUTPUT,
        "--nbest",
        metavar="N",
        help="Write the N best labellings of each sentence, each after a line '# rank probability'. With --json: "
        "as alternatives.",
    )
    spans: bool = own_flag(
        OUTPUT,
        "--spans",
        help="Write a line per phrase instead: number of the sentence (from 0), first token, token after the last, "
        "type, probability, text; separated by tabs.",
    )
    posterior: bool = own_flag(
        MODEL,
        "--posterior",
        help="Choose the most probable label of each token (max-marginal) instead of the most probable labelling "
        "(Viterbi).",
    )
    min_confidence: str | None = own_option(
        MODEL,
        "--min-confidence",
        metavar="P",
        help="Abstain where the probability of the label is below P. With --spans, and for the spans of --json: "
        "omit phrases that are less probable; 'calibrated' uses the thresholds that crfkit calibrate found.",
    )
    abstain: str | None = own_option(
        MODEL, "--abstain", metavar="LABEL", help="Label of tokens below --min-confidence. Default: _, in JSON null."
    )
    threads: shared.Threads = None


@takes(TagOptions)
def tag(given: TagOptions) -> None:
    """Tag column files: write every line with the predicted label added as the last column.

    In CoNLL-U files the label replaces the column that the model was trained on; comments and ranges are kept. For
    CRFsuite data files, which models of attributes read, the output is the labels alone, as from `crfsuite tag`.
    CRFsuite, CRF++ and Wapiti models can be used as well.

    A model with text features (crfkit train --features) reads plain text: one token per line or, with --text, running
    text.

    crfkit tag model.crf text.txt --json

    crfkit tag model.crf text.txt --spans --min-confidence 0.9
    """
    tag_files(**{**vars(given), "files": given.files or []})
