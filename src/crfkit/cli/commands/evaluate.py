"""`crfkit eval`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit.cli.options import shared
from crfkit.cli.runtime.help import INPUT, OUTPUT, flag, option
from crfkit.cli.runtime.output import open_input
from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.metrics import Evaluation

Rows = tuple[Sequence[str], Sequence[str]]


def evaluate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MODEL FILE...",
            help="Model file, then column files whose last column is the true label, or CRFsuite data files. With "
            "--tagged, files only. - is standard input.",
            show_default=False,
        ),
    ] = None,
    tagged: Annotated[
        bool,
        flag(
            INPUT,
            "--tagged",
            help="Score files that are already tagged, without a model. Their last two columns are the true and the "
            "predicted label, as for conlleval. Reads standard input if no file is given.",
        ),
    ] = False,
    gold: Annotated[
        int | None,
        option(
            INPUT,
            "--gold",
            metavar="N",
            help="With --tagged, column of the true label: 1 is the first, -1 the last. Default: -2.",
        ),
    ] = None,
    predicted: Annotated[
        int | None,
        option(
            INPUT,
            "--predicted",
            metavar="N",
            help="With --tagged, column of the predicted label: 1 is the first, -1 the last. Default: -1.",
        ),
    ] = None,
    encoding: shared.Encoding = "utf-8",
    format: shared.Format = "auto",
    labels: Annotated[
        bool, flag(OUTPUT, "--labels", help="Also show the scores of each label and which labels are confused.")
    ] = False,
    as_json: shared.Json = False,
    threads: shared.Threads = None,
) -> None:
    """Score a model on labelled files, or score files that are already tagged.

    If the labels mark phrases (B-NP, I-NP, O in IOB, IOE, IOBES or BILOU), the scores are precision, recall and F1 of
    phrases, counted as conlleval does. For other labels they are precision, recall and F1 of each label, with the most
    frequent mistakes.

    crfkit eval model.crf test.txt

    crfkit tag model.crf test.txt | crfkit eval --tagged
    """
    from crfkit.metrics.report import report

    if not tagged and (gold is not None or predicted is not None):
        raise ParameterError("--gold and --predicted need --tagged; with a model, the last column is the true label")
    if tagged:
        columns = (-2 if gold is None else gold, -1 if predicted is None else predicted)
        result = _score_tagged(paths or [Path("-")], *columns, encoding)
    else:
        result = _score_model(paths or [], threads, encoding, format)
    typer.echo(json.dumps(result.as_dict(), indent=2, ensure_ascii=False) if as_json else report(result, labels))


def _score_model(paths: Sequence[Path], threads: int | None, encoding: str, format: str) -> Evaluation:
    from crfkit.convert import load
    from crfkit.files.columns import ColumnFile

    if len(paths) < 2:
        raise ParameterError(
            f"{'FILE is' if paths else 'MODEL and FILE are'} missing; give crfkit eval MODEL FILE... (- is stdin), or "
            "crfkit eval --tagged FILE for a file that is already tagged"
        )
    model, *files = paths
    trained = load(model, threads, encoding)
    if trained.vocabulary.kind == "matrix":
        raise ParameterError(
            f"{model} was trained on matrices, so it cannot score files; use ChainCRF.load(…).score(…) in Python"
        )

    def rows(path: Path) -> Iterator[Rows]:
        for gold, predicted in trained.tag_labelled(ColumnFile(open_input(path), encoding, format)):
            yield from zip(gold, predicted, strict=True)

    known = {str(label) for label in trained.class_list}
    result = _score(files, rows)
    seen = {gold for gold, _ in result.confusion}
    if not seen & known:
        raise DataError(
            f"the {'last' if trained.vocabulary.takes_columns else 'first'} column ({_some(seen)}) has none of the "
            f"model's labels ({_some(known)}); it must be the true label",
            files[0] if len(files) == 1 else None,
        )
    return result


def _score_tagged(files: Sequence[Path], gold: int, predicted: int, encoding: str) -> Evaluation:
    from crfkit.files.columns import ColumnFile
    from crfkit.files.tagged import check_column, read_tagged

    for column in (gold, predicted):
        check_column(column)
    if gold == predicted:
        raise ParameterError(f"--gold and --predicted are both column {gold}; they must differ")

    def rows(path: Path) -> Iterator[Rows]:
        for sequence in read_tagged(ColumnFile(open_input(path), encoding, "columns"), (gold, predicted)):
            yield sequence[0], sequence[1]

    result = _score(files, rows)
    found, truth = ({pair[k] for pair in result.confusion} for k in (1, 0))
    if not truth & found and all(map(_number, found)) and not any(map(_number, truth)):
        raise DataError(
            f"the predicted labels (column {predicted}) are numbers, {_some(found)}, but the true ones (column "
            f"{gold}) are {_some(truth)}; choose the columns with --gold and --predicted",
            files[0] if len(files) == 1 else None,
        )
    return result


def _score(files: Sequence[Path], rows: Callable[[Path], Iterator[Rows]]) -> Evaluation:
    from crfkit.cli.runtime.finishing import note
    from crfkit.metrics import Evaluation
    from crfkit.schemes import in_scheme_of
    from crfkit.schemes.grobid import from_grobid, is_grobid

    for k, path in enumerate(files):
        if path in files[:k]:
            raise ParameterError(f"{path} is given twice, so its tokens would count twice; give each file once")
    pairs: list[Rows] = []
    for path in files:
        before = len(pairs)
        pairs += rows(path)
        if not any(gold for gold, _ in pairs[before:]):
            raise DataError("the file has no sequences", "<stdin>" if path == Path("-") else path)
    true, found = ([list(pair[k]) for pair in pairs] for k in (0, 1))
    if is_grobid({label for row in true for label in row}):
        true = [from_grobid(row) for row in true]
        if is_grobid({label for row in found for label in row}):
            found = [from_grobid(row) for row in found]
        note("the labels are GROBID's: I-<title> begins a phrase, <title> continues it, <other> is outside of phrases")
    rewritten = in_scheme_of(true, found)
    if rewritten.scheme is not None:
        origin, target = map(str.upper, rewritten.scheme)
        note(f"the predicted labels are {origin}; they were converted to {target}, the scheme of the true labels")
    result = Evaluation()
    for gold, predicted in zip(true, rewritten.labels, strict=True):
        result.add(gold, predicted)
    return result


def _some(labels: set[str]) -> str:
    shown = sorted(labels)
    return ", ".join(map(repr, shown[:3])) + (", …" if len(shown) > 3 else "")


def _number(text: str) -> bool:
    try:
        float(text.rpartition("=")[2])
    except ValueError:
        return False
    return True
