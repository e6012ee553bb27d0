"""Sequences of tokens to encoded data. Training learns a vocabulary; tagging looks attributes up in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from crfkit import _core
from crfkit._checks import is_listed
from crfkit._threads import count_threads
from crfkit._types import Array, Ids, Ints, Label, Record, Sequences
from crfkit.chain.data import SequenceData, check_labels, label_numbers
from crfkit.chain.encoding.vocabulary import Encoded, Inputs, Names, add_sequences, matrix_arrays
from crfkit.chain.encoding.vocabulary import Vocabulary as Vocabulary
from crfkit.chain.encoding.vocabulary import encoded as encoded
from crfkit.chain.encoding.vocabulary import renumber as renumber
from crfkit.chain.encoding.vocabulary import sorted_data as sorted_data
from crfkit.chain.fields.field import check_label_count as check_possible
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import CHUNK, ColumnFile, ColumnSource, column_files
from crfkit.files.suspicion import check_label_count, describe_attribute_file
from crfkit.labels import LabelError, label_array, sort_labels
from crfkit.text.attributes import column_name, is_matrix, stack_matrices
from crfkit.text.template import Template


@dataclass(frozen=True)
class TaggedCorpus:
    """Hold a training set: the vocabulary learned from it, the encoded sequences, the labels."""

    vocabulary: Vocabulary
    data: SequenceData
    classes: Array
    sources: tuple[object, ...] = ()  # the files that it was read from
    record: Record = field(default_factory=dict)  # what tagging must know about the files


def learn(
    X: Sequences,
    y: Iterable[Iterable[Label]],
    inputs: Inputs | Template | None,
    min_frequency: int,
    least_labels: int = 2,
    prefixed: bool = False,
) -> TaggedCorpus:
    """Encode training sequences and learn their attributes, dropping those seen less than min_frequency times.

    With `prefixed`, the attributes of items are Wapiti's observations, which begin with u, b or *; they may be bytes.
    """
    if not is_listed(X):
        raise DataError(f"X must be a list of sequences, not {type(X).__name__}")
    X = X if isinstance(X, (Sequence, np.ndarray)) else list(X)
    if len(X) == 0:
        raise DataError("there are no sequences to learn from")
    inputs = Inputs.of(inputs)
    if inputs.kind == "items" and is_matrix(X[0]):
        if inputs.hash_bits is not None:
            raise ParameterError("the columns of matrices have no names to hash; leave hash_bits out")
        starts, matrix = stack_matrices(X, None)
        arrays = matrix_arrays(starts, matrix)
        names = _core.StringTable.from_strings([column_name(j) for j in range(matrix.shape[1])])
        labels = _labels(y, starts)
        return _finish(
            arrays,
            *labels,
            kind="matrix",
            inputs=inputs,
            min_frequency=min_frequency,
            names=(names, None),
            n_features=matrix.shape[1],
            least_labels=least_labels,
        )
    if inputs.template is not None:
        inputs.template.warn_of_clashes()
    inputs = replace(inputs, prefixed=prefixed)
    encoder = inputs.encoder(loose=prefixed)
    add_sequences(encoder, X, inputs.kind, None)
    arrays = encoder.take()
    labels = _labels(y, arrays[0])
    return _finish(
        arrays,
        *labels,
        kind=inputs.kind,
        inputs=inputs,
        min_frequency=min_frequency,
        names=encoder,
        n_features=inputs.text.n_columns if inputs.text is not None else None,
        least_labels=least_labels,
    )


def learned_items(
    encoder: _core.Encoder, y: Iterable[Iterable[Label]], min_frequency: int, inputs: Inputs | None = None
) -> TaggedCorpus:
    """Return the training set of an encoder that was given all items, with their labels."""
    arrays = encoder.take()
    labels = _labels(y, arrays[0])
    return _finish(arrays, *labels, kind="items", inputs=inputs or Inputs(), min_frequency=min_frequency, names=encoder)


def learn_file(
    sources: ColumnSource | Sequence[ColumnSource],
    inputs: Inputs | Template,
    min_frequency: int,
    loose: bool = False,
    least_labels: int = 2,
) -> TaggedCorpus:
    """Encode one or several column files as a training set, streaming them; the last column is the label.

    With `loose`, files are read as Wapiti does: columns other than the label may have bytes that are not UTF-8, and
    lines may have any number of columns.
    """
    inputs = Inputs.of(inputs)
    if inputs.template is not None:
        inputs.template.warn_of_clashes()
    encoder = inputs.encoder(labelled=True, loose=loose)
    files = column_files(sources)
    if not files:
        raise DataError("there are no files to learn from")
    feed_labelled(encoder, files)
    *arrays, labels = encoder.take()
    name = ", ".join(file.name for file in files)
    if len(arrays[0]) < 2:
        raise DataError("the file has no sequences" if len(files) == 1 else "the files have no sequences", name)
    order = sorted(range(len(encoder.label_names)), key=encoder.label_names.__getitem__)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    classes = label_array(sorted(encoder.label_names))
    n_features = inputs.text.n_columns if inputs.text is not None else encoder.n_columns - 1
    columns = {file.conllu.label_column for file in files if file.conllu is not None}
    record = {"format": "conllu", "label_column": columns.pop()} if columns else {}
    try:
        check_label_count(encoder.label_names, len(labels))
        corpus = _finish(
            (*arrays, None),
            classes,
            rank[labels],
            kind=inputs.kind,
            inputs=inputs,
            min_frequency=min_frequency,
            names=encoder,
            n_features=n_features,
            least_labels=least_labels,
        )
    except DataError as error:
        raise DataError(str(error), name) from None
    return replace(corpus, record=record, sources=tuple(files))


def feed_labelled(encoder: _core.Encoder, files: Sequence[ColumnFile]) -> None:
    """Feed labelled column files to an encoder; raise if one of them is of another kind."""
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
    chunk: int = CHUNK,
) -> Iterator[None]:
    """Feed a column file to an encoder, chunk by chunk; the caller may take what is ready after each chunk.

    Several files may be fed one after the other. `tap` sees each chunk before the encoder does; `chunk` is how many
    bytes are read at once.
    """
    file = ColumnFile.of(source)
    before = encoder.line  # those of earlier files
    first = True
    try:
        for block in file.chunks(labelled, keep_lines, chunk):
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


def label_rows(y: Iterable[Iterable[Label]]) -> list[Label]:
    """Return the label sequences as lists, tuples or arrays."""
    if not is_listed(y):
        raise DataError(f"y must be a list of label sequences, not {type(y).__name__}")
    rows = []
    for n, row in enumerate(y):
        if not is_listed(row):
            what = "string" if isinstance(row, str) else type(row).__name__
            raise DataError(f"sequence {n}: the labels are the {what} {row!r}; expected a list of labels")
        rows.append(row if isinstance(row, (list, tuple, np.ndarray)) else list(row))
    return rows


def _labels(y: Iterable[Iterable[Label]], starts: Ints) -> tuple[Array, Ids]:
    lengths = np.diff(starts)
    numbered = _core.number_labels(y) if type(y) is list else None
    if numbered is not None and np.array_equal(numbered[2], lengths):
        seen, numbers, _ = numbered
        names = sort_labels(seen)
        place = {name: i for i, name in enumerate(names)}
        return label_array(names), label_numbers(seen, place)[numbers]
    y = label_rows(y)
    found = check_labels(y, lengths)
    try:
        names = sort_labels(found)
    except LabelError as error:
        raise DataError(f"{_first_place(y, error.label)}{error}") from None
    return label_array(names), label_numbers(found, {name: i for i, name in enumerate(names)})


def _first_place(y: Iterable[Iterable[Label]], refused: object) -> str:
    """Return where a label occurs first."""
    for n, row in enumerate(y):
        for t, label in enumerate(row):
            if type(label) is type(refused) and label == refused:
                return f"sequence {n}, position {t}: "
    return ""


def _finish(
    arrays: Encoded,
    classes: Array,
    labels: Ids,
    *,
    kind: str,
    inputs: Inputs,
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
    check_possible(len(classes), 1)
    n = names.sizes[0] if isinstance(names, _core.Encoder) else len(names[0])
    counts, distinct = _core.count_attributes(offsets, ids, labels, n, len(classes))
    order, rank = rank_attributes(counts, min_frequency, distinct > -(-len(classes) // 8))
    attributes: Names = names.table(order) if isinstance(names, _core.Encoder) else names[0].take(order)
    ids, values = renumber(offsets, ids, values, rank, count_threads(None))
    pair_attributes: Names = _core.StringTable.from_strings([])
    if pair_offsets is not None and isinstance(names, _core.Encoder):
        n = names.sizes[1]
        order, rank = rank_attributes(np.bincount(pair_ids, minlength=n), min_frequency, np.zeros(n, dtype=bool))
        pair_attributes = names.table(order, pairs=True)
        pair_ids, _ = renumber(pair_offsets, pair_ids, None, rank)
    data = SequenceData.taking(starts, offsets, ids, values, pair_offsets, pair_ids, labels)
    vocabulary = Vocabulary(kind, inputs.template, attributes, pair_attributes, n_features, inputs.text)
    return TaggedCorpus(vocabulary, data, classes)


def _stable_order(keys: Ints) -> Ints:
    """Return the places of non-negative keys in ascending order; NumPy sorts 16 bits at a time fastest."""
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    while (keys := keys >> 16).any():
        order = order[np.argsort(keys[order].astype(np.uint16), kind="stable")]
    return order


def rank_attributes(counts: Ints, min_frequency: int, wide: NDArray[np.bool_]) -> tuple[Ints, Ids]:
    """Return the kept ids in their new order, and the new id of each old id or −1; `counts` is how often they occur.

    Wide attributes (seen with many labels) come first, since the kernels keep those as rows. The others are ordered by
    frequency, so that the most frequent lie together, and then by first occurrence.
    """
    # one number to sort by: whether it is wide, then how often it occurs; a stable sort leaves the rest in order
    most = int(counts.max(initial=0))
    order = _stable_order(np.where(wide, 0, most + 1) + (most - counts))
    order = order[counts[order] >= max(min_frequency, 1)]  # names may be known that occur nowhere
    rank = np.full(len(counts), -1, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return order.astype(np.int64, copy=False), rank
