"""The work of `crfkit tag`, without typer so that it starts quickly (see `quick`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel
    from crfkit.chain.model.tagging import Choice


def tag_files(
    model: Path,
    files: Sequence[Path],
    output: Path | None = None,
    marginals: bool = False,
    all_marginals: bool = False,
    labels_only: bool = False,
    encoding: str = "utf-8",
    format: str = "auto",
    threads: int | None = None,
    as_json: bool = False,
    nbest: int | None = None,
    spans: bool = False,
    posterior: bool = False,
    min_confidence: str | None = None,
    abstain: str | None = None,
    text: bool = False,
) -> None:
    """Tag column files or attribute files, or standard input if there are none.

    The model may be of crfkit, CRFsuite, CRF++ or Wapiti; `encoding` is also the encoding of the texts in the last
    three.
    """
    from crfkit.cli.commands.tag_progress import watching
    from crfkit.cli.options.parsing import STDIN, column_files
    from crfkit.cli.options.text import hinting
    from crfkit.cli.runtime.output import open_output
    from crfkit.convert import load
    from crfkit.errors import ParameterError

    given = {
        "--marginals": marginals,
        "--all-marginals": all_marginals,
        "--labels-only": labels_only,
        "--json": as_json,
        "--nbest": nbest is not None,
        "--spans": spans,
        "--posterior": posterior,
        "--min-confidence": min_confidence is not None,
        "--abstain": abstain is not None,
    }
    _check_options({name for name, used in given.items() if used}, nbest)
    least = _confidence(min_confidence, spans or as_json)
    if text and format not in ("auto", "text"):
        raise ParameterError(f"--text is --format text, but --format is {format}; give one of them")
    sources = column_files(files or [STDIN], encoding, "text" if text else format)
    trained = load(model, threads, encoding)
    if trained.vocabulary.kind == "matrix":
        raise ParameterError(
            f"{model} was trained on matrices, so it cannot tag files; use ChainCRF.load(…).predict(…) in Python"
        )
    form = "json" if as_json else "nbest" if nbest is not None else "spans" if spans else None
    choice = _choice(trained, posterior, least, abstain, as_json)
    wanted = "all" if all_marginals else "best" if marginals else None
    sizes = [path.stat().st_size if path.is_file() and path.suffix != ".gz" else None for path in files]
    numbers = count()
    with (
        hinting(trained, "text" if text else format, "--text"),
        open_output(output) as out,
        watching(sizes, output is None) as watch,
    ):
        for source in sources:
            blocks: Iterator[bytes]
            if form is None:
                blocks = trained.tag_columns(source, wanted, labels_only, choice, watch)
            else:
                from crfkit.chain.model.output import tag_sentences

                blocks = tag_sentences(trained, source, form, nbest or 1, least, choice, watch, numbers)
            for block in blocks:
                out.write(block)
                out.flush()


# Options that cannot be combined, and why.
_CONTRADICTIONS = (
    ("--marginals", "--all-marginals", ""),
    ("--json", "--marginals", "; JSON has the probabilities of labels in any case"),
    ("--json", "--all-marginals", "; JSON has the probabilities of the chosen labels"),
    ("--json", "--labels-only", "; they are different forms of output"),
    ("--json", "--spans", "; JSON has the phrases in any case"),
    ("--nbest", "--spans", "; phrases come from the best labelling"),
    ("--nbest", "--marginals", "; the n best labellings have one probability each"),
    ("--nbest", "--all-marginals", "; the n best labellings have one probability each"),
    ("--nbest", "--labels-only", "; they are different forms of output"),
    ("--nbest", "--posterior", "; posterior decoding has one result"),
    ("--spans", "--marginals", "; each phrase has its own probability"),
    ("--spans", "--all-marginals", "; each phrase has its own probability"),
    ("--spans", "--labels-only", "; they are different forms of output"),
    ("--spans", "--posterior", "; phrases come from the best labelling"),
    ("--spans", "--abstain", "; phrases below --min-confidence are omitted"),
)


def _check_options(given: set[str], nbest: int | None) -> None:
    """Raise ParameterError for options that contradict each other."""
    from crfkit.errors import ParameterError

    for one, other, why in _CONTRADICTIONS:
        if {one, other} <= given:
            raise ParameterError(f"{one} and {other} cannot be combined{why or '; give one of them'}")
    if nbest is not None and nbest < 1:
        raise ParameterError(f"--nbest must be at least 1, not {nbest}")
    if "--nbest" in given and "--min-confidence" in given and "--json" not in given:
        raise ParameterError("--nbest and --min-confidence can be combined only with --json")
    if "--abstain" in given and "--min-confidence" not in given:
        raise ParameterError("--abstain is the label of uncertain tokens; it needs --min-confidence")


def _confidence(text: str | None, spans: bool) -> float | str | None:
    """Return the least confidence: a probability, or "calibrated"."""
    from crfkit.errors import ParameterError

    if text is None:
        return None
    if text == "calibrated":
        if not spans:
            raise ParameterError("--min-confidence calibrated is about phrases; it needs --spans or --json")
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ParameterError(f"--min-confidence must be a probability between 0 and 1 or 'calibrated', not {text!r}")
    return value


def _choice(
    model: ChainModel, posterior: bool, least: float | str | None, abstain: str | None, as_json: bool
) -> Choice:
    """Return how labels are chosen. Uncertain tokens are labelled _, in JSON null, unless another label is given."""
    from crfkit.chain.model.tagging import Choice
    from crfkit.errors import ParameterError

    if abstain is not None and (not abstain or any(c.isspace() for c in abstain)):
        raise ParameterError(f"--abstain must be a label without blanks, not {abstain!r}")
    if abstain is not None and abstain in map(str, model.class_list):
        raise ParameterError(f"--abstain {abstain} is a label of the model; choose one that it does not have")
    if least is None or isinstance(least, str):
        return Choice(posterior)
    return Choice(posterior, least, abstain if abstain is not None else None if as_json else "_")
