"""Files through a trained chain with more than one label per token: JSON, the n best labellings, phrases.

The text of one sentence in each form:

    JSON      {"tokens": […], "labels": […], "probability": p, "confidences": […], "spans": […], "alternatives": […]}
    n best    "# rank probability" before each labelling, then the lines with the label appended
    spans     number of the sentence, start, end, type, probability, tokens; separated by tabs, a line per phrase
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from crfkit._values import Entries, Label
from crfkit.chain.model.decoding import Labelling, nbest_of
from crfkit.chain.model.spans import Span, runs_of, spans_of, thresholds
from crfkit.chain.model.tagging import PLAIN, Choice, Watch, check_lines, sentence_blocks
from crfkit.errors import ParameterError
from crfkit.files.columns import ColumnFile, ColumnSource
from crfkit.schemes import are_phrases

if TYPE_CHECKING:
    from crfkit.chain.data import SequenceData
    from crfkit.chain.model.model import ChainModel

FORMS = ("json", "nbest", "spans")


@dataclass
class Sentences:
    """Some sentences of a file: encoded, with their tokens and lines (None if the file has attributes instead)."""

    data: SequenceData
    tokens: list[list[str]] | None
    lines: list[list[bytes]] | None


def tag_sentences(
    model: ChainModel,
    source: ColumnSource,
    form: str,
    n: int = 1,
    min_probability: float | str | None = None,
    choice: Choice = PLAIN,
    watch: Watch | None = None,
    numbers: Iterator[int] | None = None,
) -> Iterator[bytes]:
    """Yield the sentences of a file as "json", "nbest" or "spans", in chunks as they are ready.

    n: how many labellings (json: the best and n − 1 alternatives). min_probability: phrases below it are omitted; a
    number or "calibrated". `numbers` are those of the sentences in the form "spans", 0, 1, 2 … by default.
    """
    if form not in FORMS:
        raise ParameterError(f"unknown form {form!r}; expected one of {', '.join(FORMS)}")
    if form != "json":
        check_lines(model)
    marked = are_phrases(model.class_list)
    runs = runs_of(model) if form == "spans" or (min_probability is not None and form == "json" and marked) else None
    least = None if runs is None or min_probability is None else thresholds(model, runs, min_probability)
    numbers = count() if numbers is None else numbers
    features = model.vocabulary.text
    gap = "" if ColumnFile.of(source).format == "characters" or (features and features.characters) else " "
    for block in sentence_blocks(model, source, watch):
        sentences = Sentences(*block)
        if form == "nbest":
            yield _nbest_text(sentences, nbest_of(model, sentences.data, n))
            continue
        spans = spans_of(model, sentences.data, runs, least) if marked else None
        if form == "spans":
            assert spans is not None
            yield _span_lines(spans, sentences.tokens, numbers, gap)
        else:
            yield _json_lines(model, sentences, n, spans, choice, gap)


def _json_lines(
    model: ChainModel, sentences: Sentences, n: int, spans: list[list[Span]] | None, choice: Choice, gap: str
) -> bytes:
    data = sentences.data
    ids, node = choice.ids(model, data)
    labels: Sequence[Sequence[Label]] = choice.named(model, data, ids, node)
    log_p = np.minimum(model.inference.score(data, ids) - model.inference.log_partition(data), 0.0)
    confidence = [row.tolist() for row in data.split(np.minimum(node[np.arange(len(ids)), ids], 1.0))]
    more = nbest_of(model, data, n) if n > 1 else None
    out = []
    for k, p in enumerate(np.exp(log_p).tolist()):
        entry: Entries = {}
        tokens = None if sentences.tokens is None else sentences.tokens[k]
        if tokens is not None:
            entry["tokens"] = tokens
        entry |= {
            "labels": labels[k],
            "probability": _rounded(p),
            "confidences": [_rounded(x) for x in confidence[k]],
        }
        if spans is not None:
            entry["spans"] = [_span_entry(span, tokens, gap) for span in spans[k]]
        if more is not None:
            entry["alternatives"] = [
                {"labels": list(map(str, x.labels)), "probability": _rounded(x.probability)} for x in more[k][1:]
            ]
        out.append(json.dumps(entry, ensure_ascii=False) + "\n")
    return "".join(out).encode("utf-8", "surrogatepass")


def _span_entry(span: Span, tokens: list[str] | None, gap: str) -> Entries:
    entry: Entries = {
        "start": span.start,
        "end": span.end,
        "type": span.type,
        "probability": _rounded(span.probability),
    }
    if tokens is not None:
        entry["text"] = gap.join(tokens[span.start : span.end])
    return entry


def _rounded(p: float) -> float:
    return float(f"{p:.6g}")


def _nbest_text(sentences: Sentences, found: list[list[Labelling]]) -> bytes:
    out = []
    for k, row in enumerate(found):
        for rank, labelling in enumerate(row, start=1):
            out.append(f"# {rank} {labelling.probability:.6f}\n".encode())
            labels = [str(label).encode("utf-8", "surrogatepass") for label in labelling.labels]
            if sentences.lines is None:
                out.extend(label + b"\n" for label in labels)
            else:
                out.extend(line + label + b"\n" for line, label in zip(sentences.lines[k], labels, strict=True))
            out.append(b"\n")
    return b"".join(out)


def _span_lines(spans: list[list[Span]], tokens: list[list[str]] | None, numbers: Iterator[int], gap: str) -> bytes:
    out = []
    for k, row in enumerate(spans):
        number = str(next(numbers))
        for start, end, kind, p in row:
            cells = [number, str(start), str(end), kind, f"{p:.6f}"]
            if tokens is not None:
                cells.append(gap.join(tokens[k][start:end]))
            out.append("\t".join(cells) + "\n")
    return "".join(out).encode("utf-8", "surrogatepass")
