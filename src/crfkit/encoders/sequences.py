"""Sequences of tokens to encoded data. Training learns a vocabulary; tagging looks attributes up in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit import _core
from crfkit._types import Ids, Ints
from crfkit.data.sequences import SequenceData, check_labels, encode_labels
from crfkit.encoders.labels import label_array, sort_labels
from crfkit.errors import DataError
from crfkit.features.attributes import column_name, is_matrix, stack_matrices
from crfkit.features.template import Template
from crfkit.readers.columns import ColumnFile, ColumnSource, column_files
from crfkit.readers.suspicion import check_label_count, describe_attribute_file


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Hold the attributes of a model, and how inputs become attributes."""

    # "template", "items" (lists of strings, dicts), "matrix", or "observations" (lists of strings whose first character
    # is u for labels, b for label pairs or * for both, as in Wapiti's data without patterns)
    kind: str
    template: Template | None
    attributes: _core.StringTable
    pair_attributes: _core.StringTable
    n_features: int | None = None  # columns of a matrix, or feature columns of a column file

    @property
    def has_transitions(self) -> bool:
        """Return whether there are weights of plain transitions between labels."""
        return self.template.transitions if self.template is not None else self.kind != "observations"

    def encode(self, X: Iterable[Any]) -> SequenceData:
        """Encode sequences; unknown attributes are dropped."""
        if self.kind == "matrix":
            return self._encode_matrices(X)
        encoder = self.encoder()
        _add_sequences(encoder, X, self.kind)
        return encoded(encoder)

    def encoder(self, labelled: bool = False, keep_lines: bool = False, loose: bool = False) -> _core.Encoder:
        """Return a native encoder over the frozen tables; with `loose`, it reads as Wapiti does."""
        text, syntax = _rules(self.kind, self.template)
        return _core.Encoder(text, self.attributes, self.pair_attributes, labelled, keep_lines, syntax, loose)

    def _encode_matrices(self, X: Iterable[Any]) -> SequenceData:
        starts, matrix = stack_matrices(X, self.n_features)
        rank = np.array([self.attributes.find(column_name(j)) for j in range(matrix.shape[1])], dtype=np.int32)
        return sorted_data(_matrix_arrays(starts, matrix), rank)


@dataclass(frozen=True)
class TaggedCorpus:
    """Hold a training set: the vocabulary learned from it, the encoded sequences, the labels."""

    vocabulary: Vocabulary
    data: SequenceData
    classes: NDArray[Any]
    sources: tuple[Any, ...] = ()  # the files that it was read from
    record: Mapping[str, Any] = field(default_factory=dict)  # what tagging must know about the files


def learn(
    X: Iterable[Any],
    y: Iterable[Iterable[Any]],
    template: Template | None,
    min_frequency: int,
    least_labels: int = 2,
    prefixed: bool = False,
) -> TaggedCorpus:
    """Encode training sequences and learn their attributes, dropping those seen less than min_frequency times.

    With `prefixed`, the attributes of items are Wapiti's observations, which begin with u, b or *; they may be bytes.
    """
    if isinstance(X, (str, bytes)) or not isinstance(X, Iterable):
        raise DataError(f"X must be a list of sequences, not {type(X).__name__}")
    X = X if isinstance(X, (Sequence, np.ndarray)) else list(X)
    if len(X) == 0:
        raise DataError("there are no sequences to learn from")
    if template is None and is_matrix(X[0]):
        starts, matrix = stack_matrices(X, None)
        arrays = _matrix_arrays(starts, matrix)
        names = _core.StringTable.from_strings([column_name(j) for j in range(matrix.shape[1])])
        labels = _labels(y, starts)
        return _finish(
            arrays,
            *labels,
            kind="matrix",
            template=None,
            min_frequency=min_frequency,
            names=(names, None),
            n_features=matrix.shape[1],
            least_labels=least_labels,
        )
    if template is not None:
        template.warn_of_clashes()
    kind = "template" if template else "observations" if prefixed else "items"
    text, syntax = _rules(kind, template)
    encoder = _core.Encoder(text, syntax=syntax, loose=prefixed)
    _add_sequences(encoder, X, kind)
    arrays = encoder.take()
    labels = _labels(y, arrays[0])
    return _finish(
        arrays,
        *labels,
        kind=kind,
        template=template,
        min_frequency=min_frequency,
        names=encoder,
        least_labels=least_labels,
    )


def learned_items(encoder: _core.Encoder, y: Iterable[Iterable[Any]], min_frequency: int) -> TaggedCorpus:
    """Return the training set of an encoder that was given all items, with their labels."""
    arrays = encoder.take()
    labels = _labels(y, arrays[0])
    return _finish(arrays, *labels, kind="items", template=None, min_frequency=min_frequency, names=encoder)


def learn_file(
    sources: ColumnSource | Sequence[ColumnSource], template: Template, min_frequency: int, loose: bool = False
) -> TaggedCorpus:
    """Encode one or several column files as a training set, streaming them; the last column is the label.

    With `loose`, files are read as Wapiti does: columns other than the label may have bytes that are not UTF-8, and
    lines may have any number of columns.
    """
    template.warn_of_clashes()
    encoder = _core.Encoder(template.text, labelled=True, syntax=template.syntax, loose=loose)
    files = column_files(sources)
    if not files:
        raise DataError("there are no files to learn from")
    for file in files:
        beginning = _Beginning()
        try:
            for _ in feed_columns(encoder, file, labelled=True, tap=beginning.add):
                pass
        except DataError as error:
            suspicion = describe_attribute_file(beginning.text) if file.format == "auto" else None
            if suspicion and error.line:
                raise DataError(suspicion, file.name, error.line) from None
            raise
        if file.label_column is not None and file.conllu is None:
            raise DataError(
                "a label column was named, but this is not a CoNLL-U file; in other column files the label is last",
                file.name,
            )
        looked = file.format == "auto" and file.conllu is None
        suspicion = describe_attribute_file(beginning.text) if looked else None
        if suspicion:
            raise DataError(suspicion, file.name)
    *arrays, labels = encoder.take()
    name = ", ".join(file.name for file in files)
    if len(arrays[0]) < 2:
        raise DataError("the file has no sequences" if len(files) == 1 else "the files have no sequences", name)
    order = sorted(range(len(encoder.label_names)), key=encoder.label_names.__getitem__)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    classes = label_array(sorted(encoder.label_names))
    n_features = encoder.n_columns - 1
    columns = {file.conllu.label_column for file in files if file.conllu is not None}
    record = {"format": "conllu", "label_column": columns.pop()} if columns else {}
    try:
        check_label_count(encoder.label_names, len(labels))
        corpus = _finish(
            (*arrays, None),
            classes,
            rank[labels],
            kind="template",
            template=template,
            min_frequency=min_frequency,
            names=encoder,
            n_features=n_features,
        )
    except DataError as error:
        raise DataError(str(error), name) from None
    return replace(corpus, record=record, sources=tuple(files))


def _rules(kind: str, template: Template | None) -> tuple[str | None, str]:
    """Return the text and the syntax that the native encoder is given."""
    if template is not None:
        return template.text, template.syntax
    return None, "wapiti" if kind == "observations" else "crf++"


class _Beginning:
    """Keep the first bytes of a file, to look at if the file turns out to be strange."""

    def __init__(self, size: int = 1 << 16) -> None:
        self.text, self._size = b"", size

    def add(self, block: bytes) -> None:
        if len(self.text) < self._size:
            self.text += block[: self._size - len(self.text)]


def feed_columns(
    encoder: _core.Encoder,
    source: ColumnSource,
    labelled: bool = False,
    keep_lines: bool = False,
    tap: Callable[[bytes], None] | None = None,
) -> Iterator[None]:
    """Feed a column file to an encoder, chunk by chunk; the caller may take what is ready after each chunk.

    Several files may be fed one after the other. `tap` sees each chunk before the encoder does.
    """
    file = ColumnFile.of(source)
    before = encoder.line  # those of earlier files
    first = True
    try:
        for block in file.chunks(labelled, keep_lines):
            if first and before:
                block = block.removeprefix(b"\xef\xbb\xbf")
            first = False
            if tap is not None:
                tap(block)
            encoder.feed(block)
            yield
        encoder.feed(b"", end=True)
        yield
    except _core.LineError as error:
        line, message = error.args
        raise DataError(message, file.name, file.line(line - before)) from None


def encode_labelled(vocabulary: Vocabulary, source: ColumnSource) -> tuple[SequenceData, list[list[str]]]:
    """Return the sequences of a labelled column file, encoded, and their labels."""
    encoder = vocabulary.encoder(labelled=True)
    for _ in feed_columns(encoder, source, labelled=True):
        pass
    *arrays, labels = encoder.take()
    data = sorted_data((*arrays, None))
    names = encoder.label_names
    return data, [[names[j] for j in row] for row in data.split(labels)]


def label_rows(y: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the label sequences as lists, tuples or arrays."""
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        raise DataError(f"y must be a list of label sequences, not {type(y).__name__}")
    rows = []
    for n, row in enumerate(y):
        if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
            what = "string" if isinstance(row, str) else type(row).__name__
            raise DataError(f"sequence {n}: the labels are the {what} {row!r}; expected a list of labels")
        rows.append(row if isinstance(row, (list, tuple, np.ndarray)) else list(row))
    return rows


def _labels(y: Iterable[Iterable[Any]], starts: Ints) -> tuple[NDArray[Any], Ids]:
    lengths = np.diff(starts)
    y = label_rows(y)
    names = sort_labels(check_labels(y, lengths))
    return label_array(names), encode_labels(y, lengths, {name: i for i, name in enumerate(names)})


def _add_sequences(encoder: _core.Encoder, X: Iterable[Any], kind: str) -> None:
    add = encoder.add_rows if kind == "template" else encoder.add_items
    try:
        for n, sequence in enumerate(X):
            if kind == "template":
                _check_rows(sequence, n)
            add(sequence)
    except _core.BadInput as error:
        raise DataError(str(error)) from None
    except TypeError:
        raise DataError(f"X must be a list of sequences, not {type(X).__name__}") from None


def _check_rows(sequence: Any, n: int) -> None:
    """Raise DataError if a token is a dict or a set, whose keys would be taken for columns."""
    if not isinstance(sequence, (list, tuple)):
        return
    for t, token in enumerate(sequence):
        if isinstance(token, (Mapping, set, frozenset)):
            raise DataError(
                f"sequence {n}, position {t}: with a template a token is a list of columns, not a "
                f"{type(token).__name__}, {_shortened(token)}; leave the template out to use it as attributes, or give "
                "the columns in order, as in ['the', 'DT']"
            )


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _matrix_arrays(starts: Ints, matrix: Any) -> tuple[Any, ...]:
    ones = bool(np.all(matrix.data == 1.0))
    return (
        starts,
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        None if ones else matrix.data.astype(np.float64),
        None,
        None,
        None,
    )


def encoded(encoder: _core.Encoder) -> SequenceData:
    """Return what an encoder of a fixed vocabulary has encoded since the last call."""
    return SequenceData(*encoder.take(ordered=True))


def sorted_data(arrays: Sequence[Any], rank: Ids | None = None) -> SequenceData:
    """Return encoded arrays with ids ascending within each position, renumbered by rank if one is given."""
    starts, offsets, ids, values, pair_offsets, pair_ids, labels = arrays
    ids, values = renumber(offsets, ids, values, rank)
    if pair_offsets is not None:
        pair_ids, _ = renumber(pair_offsets, pair_ids, None, None)
    return SequenceData(starts, offsets, ids, values, pair_offsets, pair_ids, labels)


def renumber(offsets: Ints, ids: Ids, values: Any, rank: Ids | None) -> tuple[Ids, Any]:
    """Renumber ids in place, dropping those of rank −1, and sort them within each position; return ids and values."""
    if rank is None:
        rank = np.arange(ids.max(initial=-1) + 1, dtype=np.int32)
    n = _core.renumber(offsets, ids, values, rank)
    return ids[:n], values[:n] if values is not None else None


def _finish(
    arrays: Sequence[Any],
    classes: NDArray[Any],
    labels: Ids,
    *,
    kind: str,
    template: Template | None,
    min_frequency: int,
    names: _core.Encoder | tuple[_core.StringTable, None],
    n_features: int | None = None,
    least_labels: int = 2,
) -> TaggedCorpus:
    """Drop rare attributes, number the rest in the order that suits the kernels, and freeze everything."""
    starts, offsets, ids, values, pair_offsets, pair_ids, _ = arrays
    if len(labels) == 0:
        raise DataError("all sequences are empty")
    if len(classes) < least_labels:
        raise DataError(
            f"every position has the label {classes.tolist()[0]!r}; at least two different labels are needed"
        )
    if len(classes) > 65535:
        raise DataError(f"{len(classes)} different labels; at most 65535 are supported")
    n = names.sizes[0] if isinstance(names, _core.Encoder) else len(names[0])
    distinct = _core.count_labels(offsets, ids, labels, n, len(classes))
    order, rank = rank_attributes(ids, n, min_frequency, distinct > -(-len(classes) // 8))
    attributes = names.table(order) if isinstance(names, _core.Encoder) else names[0].take(order)
    ids, values = renumber(offsets, ids, values, rank)
    pair_attributes = _core.StringTable.from_strings([])
    if pair_offsets is not None and isinstance(names, _core.Encoder):
        n = names.sizes[1]
        order, rank = rank_attributes(pair_ids, n, min_frequency, np.zeros(n, dtype=bool))
        pair_attributes = names.table(order, pairs=True)
        pair_ids, _ = renumber(pair_offsets, pair_ids, None, rank)
    data = SequenceData(starts, offsets, ids, values, pair_offsets, pair_ids, labels)
    return TaggedCorpus(Vocabulary(kind, template, attributes, pair_attributes, n_features), data, classes)


def rank_attributes(ids: Ids, n: int, min_frequency: int, wide: NDArray[np.bool_]) -> tuple[Ints, Ids]:
    """Return the kept ids in their new order, and the new id of each old id or −1.

    Wide attributes (seen with many labels) come first, since the kernels keep those as rows. The others are ordered by
    frequency, so that the most frequent lie together, and then by first occurrence.
    """
    counts = np.bincount(ids, minlength=n)
    order = np.lexsort((-counts, ~wide))
    order = order[counts[order] >= min_frequency]
    rank = np.full(n, -1, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return order.astype(np.int64), rank
