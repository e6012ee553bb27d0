"""`crfkit label-errors`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit._values import Entries, Label
from crfkit.cli.options import shared
from crfkit.cli.options.declared import own_option, takes
from crfkit.cli.options.parsing import make_penalty, read_template
from crfkit.cli.options.text import hinting, text_features
from crfkit.cli.runtime.help import INPUT, MODEL, OUTPUT, was_given
from crfkit.cli.runtime.output import open_input, say
from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.explain.label_errors import LabelErrors
    from crfkit.files.columns import ColumnFile


@dataclass(frozen=True)
class LabelErrorOptions:
    """The options of `crfkit label-errors`."""

    context: typer.Context
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MODEL] FILE",
            help="Column file whose last column is the label, orCRFsuite data file; - is stdin. With a MODEL "
            "before it, that model judges the labels; it must not have been trained on FILE, or it would repeat its "
            "errors.",
        ),
    ]
    template: Path | None = own_option(
        INPUT, "--template", "-t", metavar="FILE", help="Feature template, as for `crfkit train`."
    )
    features: str | None = own_option(
        INPUT, "--features", metavar="NAME", help="Features of plain words, as for `crfkit train`."
    )
    encoding: shared.Encoding = "utf-8"
    format: shared.Format = "auto"
    folds: int = own_option(MODEL, "--folds", default=5, metavar="N", min=2, help="Number of cross-validation folds.")
    rounds: int = own_option(
        MODEL,
        "--rounds",
        default=2,
        metavar="N",
        min=1,
        help="With 2, models are trained again on corrected labels, which finds more systematic errors.",
    )
    l1: shared.L1Strength = None
    l2: shared.L2Strength = None
    tolerance: shared.Tolerance = 1e-3
    seed: shared.Seed = 0
    top: int = own_option(
        OUTPUT, "--top", "-n", default=20, metavar="N", min=0, help="Number of suspect labels to show."
    )
    as_json: bool = own_option(OUTPUT, "--json", default=False, metavar="", help="Print all suspects as JSON.")
    quiet: shared.Quiet = False
    threads: shared.Threads = None


@takes(LabelErrorOptions)
def label_errors(given: LabelErrorOptions) -> None:
    """Find labels that are probably wrong in a labelled file, most suspect first.

    Without a model, the file is divided into folds, and each label is judged by a model that was trained on the other
    folds. The labels around it count as well. Every suspect is shown with its line and a label that fits better; groups
    show which corrections would be made.

    crfkit label-errors train.txt --template template

    crfkit label-errors model.crf test.txt
    """
    from crfkit.explain.inputs import token_lines
    from crfkit.files.columns import ColumnFile

    if len(given.files) > 2:
        raise ParameterError(f"expected a file, or a model and a file, not {len(given.files)} files")
    source = ColumnFile(open_input(given.files[-1]), given.encoding, given.format)
    if len(given.files) == 2:
        for name in ("template", "features", "folds", "rounds", "l1", "l2", "tolerance", "seed"):
            if was_given(given.context, name):
                message = f"--{name} is for training without a model; drop it or the model, {given.files[0]}"
                raise ParameterError(message)
        found = _judged(given.files[0], source, given.threads)
    else:
        found, source = _judged_by_folds(given, source)
    _print(found, token_lines(source), given.top, given.as_json)


def _judged_by_folds(given: LabelErrorOptions, source: ColumnFile) -> tuple[LabelErrors, ColumnFile]:
    """Return what models of the other folds say of the labels of a file, and the file with its format."""
    from crfkit import ChainCRF
    from crfkit.explain.label_errors import find_label_errors

    words = text_features(given.features, given.template)
    X, y, source = _read(source, given.template is None and words is None)
    if given.folds > len(X):
        raise ParameterError(f"--folds must be at most the number of sequences, {len(X)}, not {given.folds}")
    crf = ChainCRF(
        None if given.template is None else read_template(given.template, given.encoding),
        make_penalty(given.l1, given.l2),
        features=words,
        tolerance=given.tolerance,
        n_threads=given.threads,
    )
    progress = None if given.quiet else _progress()
    return find_label_errors(crf, X, y, given.folds, given.rounds, given.seed, progress), source


def _read(source: ColumnFile, attributes: bool) -> tuple[Sequence[object], list[list[Label]], ColumnFile]:
    """Return the sequences and labels of a file of columns or attributes, and the file with its format."""
    from crfkit.chain.encoding.attribute_files import is_attributes
    from crfkit.files.columns import ColumnFile, read_columns
    from crfkit.files.crfsuite_data import read_crfsuite

    X: Sequence[object]
    if not attributes:
        X, y = read_columns(source)
    elif is_attributes([source], False):
        source = ColumnFile(source.source, source.encoding, "crfsuite")
        X, y, _ = read_crfsuite(source)
    else:
        raise ParameterError(
            "--template or --features is missing; only CRFsuite data files (--format crfsuite) need none"
        )
    if not X:
        raise DataError("the file has no sequences", source.name)
    return X, y, source


def _judged(path: Path, source: ColumnFile, threads: int | None) -> LabelErrors:
    """Return a model's judgement of the labels of a file."""
    from crfkit.convert import load
    from crfkit.explain.inputs import read_labelled
    from crfkit.explain.label_errors import suspect_labels

    trained = load(path, threads, source.encoding)
    with hinting(trained, source.format):
        data = read_labelled(trained, source)
    return suspect_labels(trained, data.X, data.y)


def _print(found: LabelErrors, lines: list[list[int]] | None, top: int, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_record(found, lines), indent=2, ensure_ascii=False))
    else:
        say(_text(found, lines, top))


def _progress() -> Callable[[int, int], None]:
    """Return a function that shows how many models are trained, and how long the rest will take."""
    import time

    begin = time.monotonic()

    def show(done: int, total: int) -> None:
        left = (time.monotonic() - begin) / done * (total - done)
        live = sys.stderr.isatty()
        end = "\n" if not live or done == total else ""
        print(
            f"{chr(13) if live else ''}model {done} of {total}, {left:.0f} s left ",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    return show


def _record(found: LabelErrors, lines: list[list[int]] | None) -> Entries:
    suspects = []
    for s in found.ranked():
        row: Entries = s._asdict()
        if lines is not None:
            row["line"] = lines[s.sequence][s.position]
        suspects.append(row)
    return {"suspects": suspects, "groups": [group._asdict() for group in found.groups()]}


def _text(found: LabelErrors, lines: list[list[int]] | None, top: int) -> str:
    suspects, groups = found.ranked(), found.groups()
    total = sum(map(len, found.given))
    text = [f"{len(suspects)} of {total} labels are suspect"]
    for s in suspects[:top]:
        place = f"line {lines[s.sequence][s.position]}" if lines else f"sequence {s.sequence}, position {s.position}"
        text.append(f"  {s.score:.3f}  {place:12}  {s.token}  {s.given} → {s.suggested}")
    if len(suspects) > top:
        text.append(f"         and {len(suspects) - top} others; --top {len(suspects)} shows all")
    if groups:
        text += ["what would be corrected", *(f"  {group.size:5d}  {group.change}" for group in groups[:15])]
    return "\n".join(text)
