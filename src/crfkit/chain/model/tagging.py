"""Column files through a trained chain: lines with labels appended, while the file is still being read."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from crfkit._types import Floats, Ids, Label
from crfkit.chain.encoding.attribute_files import add_sequence
from crfkit.chain.encoding.sequences import encoded, feed_columns, sorted_data
from crfkit.errors import DataError, DataWarning, ParameterError
from crfkit.files.columns import ColumnFile, ColumnSource
from crfkit.files.crfsuite_data import AttributeSequence, crfsuite_blocks
from crfkit.warn import warn_caller
from crfkit.wording import counted

BLOCK = 1 << 17  # bytes of a file that are tagged together

if TYPE_CHECKING:
    from crfkit import _core
    from crfkit.chain.data import SequenceData
    from crfkit.chain.model.model import ChainModel


class Watch(Protocol):
    """Follow the work: how many bytes were read, how many tokens were tagged."""

    def read(self, block: bytes) -> None: ...
    def tagged(self, tokens: int) -> None: ...


@dataclass(frozen=True)
class Choice:
    """The choice of labels: the best labelling or the best label of each position; when to abstain."""

    posterior: bool = False
    min_confidence: float | None = None
    abstain: str | None = "_"

    def ids(self, model: ChainModel, data: SequenceData) -> tuple[Ids, Floats]:
        """Return the chosen labels of all positions, and the marginals."""
        node = model.inference.node_marginals(data)
        return node.argmax(axis=1).astype(np.int32) if self.posterior else model.inference.decode(data)[0], node

    def names(self, model: ChainModel, ids: Ids, node: Floats) -> list[Label]:
        """Return the names of chosen labels, or `abstain` where they are not certain enough."""
        names = [str(name) for name in model.class_list]
        labels: list[Label] = [names[j] for j in ids.tolist()]
        if self.min_confidence is not None:
            for t in np.flatnonzero(node[np.arange(len(ids)), ids] < self.min_confidence).tolist():
                labels[t] = self.abstain
        return labels

    def named(self, model: ChainModel, data: SequenceData, ids: Ids, node: Floats) -> list[list[Label]]:
        """Return the same, a list for each sequence."""
        labels = self.names(model, ids, node)
        return [labels[a:b] for a, b in pairwise(data.starts.tolist())]


PLAIN = Choice()


def check_lines(model: ChainModel) -> None:
    """Raise DataError if a label would end the line that it is written to."""
    for label in map(str, model.class_list):
        if "\n" in label or "\r" in label:
            raise DataError(
                f"the label {label!r} of the model has a line end, so lines of labels cannot be told apart; "
                "write JSON instead (--json)"
            )


def tag_columns(
    model: ChainModel,
    source: ColumnSource,
    marginals: str | None = None,
    labels_only: bool = False,
    choice: Choice = PLAIN,
    watch: Watch | None = None,
) -> Iterator[bytes]:
    """Yield the lines of a column file with the predicted label appended, in chunks as they are ready.

    marginals: None, "best" (another column with the probability of the label) or "all" (label=probability of all).
    With labels_only, a line has nothing but the label and its probabilities. In CoNLL-U files the label goes into the
    label column, and comments, ranges and empty nodes stay unchanged. A model of attributes reads CRFsuite's files
    and writes what ``crfsuite tag`` writes: the labels alone, with probabilities as in "B-NP:0.964923". `choice` sets
    how labels are chosen; `watch` is told about progress.
    """
    check_lines(model)
    file = _prepared(model, source)
    if not model.vocabulary.takes_columns:
        for k, (batch, data) in enumerate(_attribute_batches(model, file)):
            if k == 0:
                _warn_without_attributes(batch, file)
            yield _attribute_lines(model, data, marginals, choice)
            _tell(watch, data)
        return
    last = b"\n"
    names = [str(name) for name in model.class_list]
    for data, lines in _column_blocks(model, file, not labels_only, watch):
        with _naming(file):
            if marginals is None and choice == PLAIN and not labels_only and file.conllu is None:
                last = lines.with_labels(names, model.inference.decode(data)[0])
            else:
                appended = _appended(model, data, marginals, choice)
                if labels_only:
                    last = _only_labels(data, appended)
                elif file.conllu is not None:
                    last = file.conllu.with_labels(appended)
                else:
                    last = lines.with_columns(appended)
        yield last
        _tell(watch, data)
    if file.conllu is not None and not labels_only:
        rest = file.conllu.remainder()
        if rest or not last.endswith(b"\n\n"):
            yield rest + (b"" if (last + rest).endswith(b"\n\n") else b"\n")


def sentence_blocks(
    model: ChainModel, source: ColumnSource, watch: Watch | None = None
) -> Iterator[tuple[SequenceData, list[list[str]] | None, list[list[bytes]] | None]]:
    """Yield some sentences of a file at a time: encoded, with their tokens and with their lines, ready for a label.

    The token is the first column (FORM in CoNLL-U). Files of attributes have neither tokens nor lines.
    """
    file = _prepared(model, source)
    if not model.vocabulary.takes_columns:
        for k, (batch, data) in enumerate(_attribute_batches(model, file)):
            if k == 0:
                _warn_without_attributes(batch, file)
            with _naming(file):
                yield data, None, None
            _tell(watch, data)
        return
    for data, kept in _column_blocks(model, file, False, watch):
        lines = iter(kept.with_columns([""] * data.n_positions).split(b"\n"))
        rows = []
        for length in data.lengths.tolist():
            rows.append([next(lines) for _ in range(length)])
            next(lines)
        column = 1 if file.conllu is not None else 0
        tokens = [[_token(line, column) for line in row] for row in rows]
        with _naming(file):
            yield data, tokens, rows
        _tell(watch, data)


def _token(line: bytes, column: int) -> str:
    cells = line.replace(b"\t", b" ").split(b" ")  # other blanks, such as form feeds, may be in tokens
    cell = [cell for cell in cells if cell][column].decode("utf-8", "surrogatepass")
    return cell.replace("\xa0", " ") if column else cell


def _column_blocks(
    model: ChainModel, file: ColumnFile, keep_lines: bool, watch: Watch | None
) -> Iterator[tuple[SequenceData, _core.Lines]]:
    """Yield the sequences of a column file as they are read, and their lines.

    With more than one thread, another one reads and encodes the next sequences while the caller works on these.
    """
    known = model.vocabulary.n_features
    encoder = model.vocabulary.encoder(keep_lines=True)
    tap = None if watch is None else watch.read
    feeding = feed_columns(encoder, file, keep_lines=keep_lines, tap=tap, chunk=BLOCK)

    def read() -> tuple[SequenceData, _core.Lines] | None:
        for _ in feeding:
            data = encoded(encoder)
            if encoder.n_columns and known and encoder.n_columns < known:
                raise DataError(
                    f"{counted(encoder.n_columns, 'column')}, but the model was trained on "
                    f"{counted(known, 'feature column')}",
                    file.name,
                )
            if len(data):
                return data, encoder.take_lines()
        return None

    block = read()
    # a stream may keep the other thread waiting when nobody wants more; CoNLL-U keeps lines elsewhere
    alone = model.inference.threads == 1 or hasattr(file.source, "read") or file.conllu is not None
    if alone or block is None:
        while block is not None:
            yield block
            block = read()
        return
    with ThreadPoolExecutor(1) as pool:
        while block is not None:
            ahead = pool.submit(read)
            yield block
            block = ahead.result()


def _tell(watch: Watch | None, data: SequenceData) -> None:
    if watch is not None:
        watch.tagged(data.n_positions)


def tag_labelled(model: ChainModel, source: ColumnSource) -> Iterator[tuple[list[list[str]], list[list[str]]]]:
    """Yield (gold, predicted) label sequences of a labelled column file, in chunks."""
    file = _prepared(model, source)
    for data, gold in _labelled(model, file):
        with _naming(file):
            predicted = _as_text(model, data)
        yield gold, predicted


def labelled_blocks(model: ChainModel, source: ColumnSource) -> Iterator[tuple[SequenceData, list[list[str]]]]:
    """Yield the sequences of a labelled file, encoded, with their labels, in chunks."""
    return _labelled(model, _prepared(model, source))


def _labelled(model: ChainModel, file: ColumnFile) -> Iterator[tuple[SequenceData, list[list[str]]]]:
    if not model.vocabulary.takes_columns:
        for batch, data in _attribute_batches(model, file):
            yield data, [sequence.labels for sequence in batch]
        return
    encoder = model.vocabulary.encoder(labelled=True)
    for _ in feed_columns(encoder, file, labelled=True):
        *arrays, labels = encoder.take()
        data = sorted_data((*arrays, labels))
        if len(data):
            names = encoder.label_names
            yield data, [[names[j] for j in row] for row in data.split(labels)]


def _prepared(model: ChainModel, source: ColumnSource) -> ColumnFile:
    """Return the file, with the label column that the model was trained on if it does not name one."""
    file = ColumnFile.of(source)
    kind = model.vocabulary.kind
    if kind == "matrix":
        raise ParameterError("a model of matrices cannot read files; use predict")
    if kind == "observations":
        raise ParameterError(
            "the model takes Wapiti's observations, which begin with u, b or *; label their files with "
            "crfkit-wapiti label -m MODEL FILE"
        )
    if kind == "items" and file.format not in ("auto", "crfsuite"):
        raise ParameterError(
            f"the model was trained on attributes, so it reads CRFsuite's files, not files of format {file.format}"
        )
    if kind in ("template", "text") and file.format == "crfsuite":
        how = "with a template" if kind == "template" else "with text features"
        raise ParameterError(f"the model was trained on columns {how}, so it cannot read CRFsuite's files")
    column = model.training.get("label_column")
    return replace(file, label_column=column) if file.label_column is None and isinstance(column, int) else file


def _chosen(
    model: ChainModel, data: SequenceData, marginals: str | None, choice: Choice
) -> tuple[list[str], Floats | None, Ids]:
    """Return (labels, marginals or None, label ids) of all positions."""
    if marginals is None and choice == PLAIN:
        names = [str(name) for name in model.class_list]
        best = model.inference.decode(data)[0]
        return [names[j] for j in best.tolist()], None, best
    ids, node = choice.ids(model, data)
    return choice.names(model, ids, node), node, ids


def _appended(model: ChainModel, data: SequenceData, marginals: str | None, choice: Choice = PLAIN) -> list[str]:
    labels, node, ids = _chosen(model, data, marginals, choice)
    if marginals is None or node is None:
        return labels
    if marginals == "best":
        chosen = node[np.arange(len(ids)), ids]
        return [f"{label}\t{p:.6f}" for label, p in zip(labels, chosen.tolist(), strict=True)]
    names = [str(name) for name in model.class_list]
    return [
        "\t".join([label, *(f"{name}={p:.6f}" for name, p in zip(names, row, strict=True))])
        for label, row in zip(labels, node.tolist(), strict=True)
    ]


def _only_labels(data: SequenceData, labels: list[str]) -> bytes:
    starts = data.starts.tolist()
    rows = ("".join(f"{label}\n" for label in labels[a:b]) for a, b in pairwise(starts))
    return "".join(f"{row}\n" for row in rows).encode("utf-8", "surrogatepass")


def _as_text(model: ChainModel, data: SequenceData) -> list[list[str]]:
    return [[str(label) for label in row] for row in model.labels_of(data)]


# --- attribute files


def _attribute_batches(model: ChainModel, file: ColumnFile) -> Iterator[tuple[list[AttributeSequence], SequenceData]]:
    """Yield the sequences of a CRFsuite file, some at a time, with their encoded form."""
    encoder = model.vocabulary.encoder()
    for batch in crfsuite_blocks(file):
        for sequence in batch:
            add_sequence(encoder.add_items, sequence, file)
        yield batch, encoded(encoder)


def _warn_without_attributes(batch: list[AttributeSequence], file: ColumnFile) -> None:
    """Warn if no line has an attribute: each line of a column file without tabs is a label for CRFsuite."""
    if not any(any(sequence.items) for sequence in batch):
        warn_caller(
            f"{file.name}: the first lines have no attributes; the model reads lines of the form "
            "LABEL<TAB>ATTRIBUTE<TAB>ATTRIBUTE…, as CRFsuite does",
            DataWarning,
        )


def _attribute_lines(model: ChainModel, data: SequenceData, marginals: str | None, choice: Choice = PLAIN) -> bytes:
    lines, node, ids = _chosen(model, data, marginals, choice)
    if marginals is not None and node is not None:
        if marginals == "best":
            chosen = node[np.arange(len(ids)), ids].tolist()
            lines = [f"{label}:{p:.6f}" for label, p in zip(lines, chosen, strict=True)]
        else:
            names = [str(name) for name in model.class_list]
            lines = [
                "\t".join([label, *(f"{name}:{p:.6f}" for name, p in zip(names, row, strict=True))])
                for label, row in zip(lines, node.tolist(), strict=True)
            ]
    return _only_labels(data, lines)


@contextmanager
def _naming(file: ColumnFile) -> Iterator[None]:
    """Add the name of the file to errors about its contents."""
    try:
        yield
    except DataError as error:
        raise DataError(str(error), file.name) from None
