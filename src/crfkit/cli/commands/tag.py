"""`crfkit tag`. An option that is added here is also added to `quick`; a test compares them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.commands.tagging import tag_files
from crfkit.cli.options import shared
from crfkit.cli.runtime.help import INPUT, MODEL, OUTPUT, flag, option


def tag(
    model: shared.ModelFile,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Column files, data files of CRFsuite, or with --text plain text. - is standard input (stdin), the "
            "default.",
        ),
    ] = None,
    encoding: Annotated[
        str,
        option(
            INPUT,
            "--encoding",
            metavar="NAME",
            help="Encoding of the input files and of the texts in a model of CRF++, CRFsuite or Wapiti, e.g. latin-1 "
            "or euc-jp. The output is always UTF-8.",
        ),
    ] = "utf-8",
    format: shared.Format = "auto",
    text: Annotated[
        bool,
        flag(
            INPUT,
            "--text",
            help="Read plain text, and divide it into sentences, words and signs: the same as --format text. A line "
            "break always ends a sentence. --format words splits at blanks only, --format characters into characters; "
            "with these, each line is a sentence.",
        ),
    ] = False,
    output: shared.OutputFile = None,
    labels_only: Annotated[
        bool,
        flag(
            OUTPUT,
            "--labels-only",
            help="Write only the labels, one per line, with a blank line after each sequence.",
        ),
    ] = False,
    marginals: Annotated[bool, flag(OUTPUT, "--marginals", help="Add the probability of the predicted label.")] = False,
    all_marginals: Annotated[
        bool, flag(OUTPUT, "--all-marginals", help="Add the probabilities of all labels.")
    ] = False,
    as_json: Annotated[
        bool,
        flag(
            OUTPUT,
            "--json",
            help="Write one JSON object per sentence and line: tokens, labels, the probability of the labelling, "
            "confidences of the labels and, if labels mark phrases, spans with their probabilities.",
        ),
    ] = False,
    nbest: Annotated[
        int | None,
        option(
            OUTPUT,
            "--nbest",
            metavar="N",
            help="Write the N best labellings of each sentence, each after a line '# rank probability'. With --json: "
            "as alternatives.",
        ),
    ] = None,
    spans: Annotated[
        bool,
        flag(
            OUTPUT,
            "--spans",
            help="Write a line per phrase instead: number of the sentence (from 0), first token, token after the last, "
            "type, probability, text; separated by tabs.",
        ),
    ] = False,
    posterior: Annotated[
        bool,
        flag(
            MODEL,
            "--posterior",
            help="Choose the most probable label of each token (max-marginal) instead of the most probable labelling "
            "(Viterbi).",
        ),
    ] = False,
    min_confidence: Annotated[
        str | None,
        option(
            MODEL,
            "--min-confidence",
            metavar="P",
            help="Abstain where the probability of the label is below P. With --spans, and for the spans of --json: "
            "leave out phrases that are less probable; 'calibrated' takes the thresholds that crfkit calibrate found.",
        ),
    ] = None,
    abstain: Annotated[
        str | None,
        option(
            MODEL,
            "--abstain",
            metavar="LABEL",
            help="Label of tokens below --min-confidence. Default: _, in JSON null.",
        ),
    ] = None,
    threads: shared.Threads = None,
) -> None:
    """Tag column files: write every line with the predicted label added as the last column.

    In CoNLL-U files the label replaces the column that the model was trained on; comments and ranges are kept. Data
    files of CRFsuite, which models of attributes read, are tagged as `crfsuite tag` does: with the labels alone. Models
    of CRFsuite, CRF++ and Wapiti are read as well as those of crfkit.

    A model of text features (crfkit train --features) reads plain text: a token per line, or with --text
    text as it was written.

    crfkit tag model.crf text.txt --json

    crfkit tag model.crf text.txt --spans --min-confidence 0.9
    """
    tag_files(
        model,
        files or [],
        output,
        marginals,
        all_marginals,
        labels_only,
        encoding,
        format,
        threads,
        as_json,
        nbest,
        spans,
        posterior,
        min_confidence,
        abstain,
        text,
    )
