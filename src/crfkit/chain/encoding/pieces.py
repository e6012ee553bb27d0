"""A training set in pieces that are encoded apart and then numbered as if they had been encoded together.

raw_files, raw_sequences   a piece with numbers of its own: attributes and labels in the order in which they occur
count, joined              what a piece has; what two neighbouring pieces have. Joining is associative: any tree will do
Numbering                  the numbers of the whole, which are those of `learn` and `learn_file`
numbered                   a piece with these numbers
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crfkit import _core
from crfkit._types import Array, Floats, Ids, Ints, Label, Record
from crfkit.chain.data import SequenceData, check_labels, label_numbers
from crfkit.chain.encoding.attribute_files import add_attribute_files
from crfkit.chain.encoding.sequences import feed_labelled, label_rows, rank_attributes
from crfkit.chain.encoding.vocabulary import (
    Encoded,
    Inputs,
    Names,
    Vocabulary,
    add_sequences,
    common_ids,
    joined_names,
    renumber,
    renumbered,
)
from crfkit.chain.fields.field import check_label_count as check_possible
from crfkit.errors import DataError
from crfkit.files.columns import ColumnFile
from crfkit.files.suspicion import check_label_count
from crfkit.labels import label_array, sort_labels
from crfkit.wording import counted

SHIFT = 16  # bits of a label in attribute·2¹⁶ + label


@dataclass(frozen=True, eq=False)
class NameList:
    """Names of attributes in a form that can be sent to another process."""

    names: Names

    def __reduce__(self) -> tuple[object, ...]:
        if isinstance(self.names, _core.BucketTable):
            return _buckets, (self.names.bits, np.asarray(self.names.buckets))
        return _strings, (np.asarray(self.names.offsets), np.asarray(self.names.bytes))


def _buckets(bits: int, buckets: object) -> NameList:
    return NameList(_core.BucketTable(bits, np.ascontiguousarray(buckets)))


def _strings(offsets: Array, text: Array) -> NameList:
    return NameList(_core.StringTable.from_bytes(np.ascontiguousarray(offsets), np.ascontiguousarray(text)))


@dataclass(frozen=True, eq=False)
class RawPiece:
    """Encoded sequences whose attributes and labels have the numbers of this piece."""

    data: SequenceData  # with labels, and with weights where the files give some
    attributes: NameList
    pair_attributes: NameList
    labels: tuple[Label, ...]
    n_columns: int | None = None  # of the files
    record: Record = field(default_factory=dict)  # what tagging must know about the files
    name: str = ""  # for messages

    def with_weights(self, weights: Floats | None) -> RawPiece:
        return self if weights is None else replace(self, data=replace(self.data, weights=weights))


def raw_files(files: Sequence[ColumnFile], inputs: Inputs, attributes: bool) -> RawPiece:
    """Encode labelled column files, or with `attributes` CRFsuite data files."""
    name = ", ".join(file.name for file in files)
    if attributes:
        encoder = inputs.encoder()
        rows, weights = add_attribute_files(encoder, files)
        given = np.array(weights) if any(weight != 1.0 for weight in weights) else None
        return replace(_taken(encoder, rows, name), record={"format": "crfsuite"}).with_weights(given)
    encoder = inputs.encoder(labelled=True)
    feed_labelled(encoder, files)
    *arrays, numbers = encoder.take()
    columns = {file.conllu.label_column for file in files if file.conllu is not None}
    record = {"format": "conllu", "label_column": columns.pop()} if columns else {}
    n_columns = encoder.n_columns if len(numbers) else None
    return _piece(encoder, arrays, numbers, tuple(encoder.label_names), n_columns, record, name)


def raw_sequences(X: Sequence[object], y: Iterable[Iterable[Label]], inputs: Inputs, name: str = "") -> RawPiece:
    """Encode sequences and their labels."""
    encoder = inputs.encoder()
    add_sequences(encoder, X, inputs.kind, 1)
    return _taken(encoder, label_rows(y), name)


def _taken(encoder: _core.Encoder, rows: Iterable[Iterable[Label]], name: str) -> RawPiece:
    *arrays, _ = encoder.take()
    flat = check_labels(rows, np.diff(arrays[0]))
    ids: dict[Label, int] = {}
    for label in flat:
        ids.setdefault(label, len(ids))
    return _piece(encoder, arrays, label_numbers(flat, ids), tuple(ids), None, {}, name)


def _piece(
    encoder: _core.Encoder,
    arrays: Encoded,
    numbers: Ids,
    labels: tuple[Label, ...],
    n_columns: int | None,
    record: Record,
    name: str,
) -> RawPiece:
    starts, offsets, ids, values, pair_offsets, pair_ids = arrays
    ids, values = renumber(offsets, ids, values, None)
    pairs: Names = _core.StringTable.from_strings([])
    if pair_offsets is not None:
        pair_ids, _ = renumber(pair_offsets, pair_ids, None, None)
        pairs = encoder.table(np.arange(encoder.sizes[1]), pairs=True)
    data = SequenceData.taking(starts, offsets, ids, values, pair_offsets, pair_ids, numbers)
    names = encoder.table(np.arange(encoder.sizes[0]))
    return RawPiece(data, NameList(names), NameList(pairs), labels, n_columns, record, name)


@dataclass(frozen=True, eq=False)
class Counts:
    """The names in one piece or several neighbouring ones, in the order in which they occur, and their counts."""

    attributes: NameList
    pair_attributes: NameList
    labels: tuple[Label, ...]
    counts: Ints  # of attributes
    pair_counts: Ints
    codes: Ints  # attribute·2¹⁶ + label of all that occur together, ascending
    ends: tuple[int, ...]  # how many sequences there are up to the end of each piece
    n_positions: int
    n_columns: int | None
    record: Record
    name: str  # of the first piece with columns


def count(raw: RawPiece) -> Counts:
    """Return what a piece has."""
    data = raw.data
    assert data.labels is not None
    labels = np.repeat(data.labels.astype(np.int64), np.diff(data.offsets))
    codes = np.unique((data.attributes.astype(np.int64) << SHIFT) | labels)
    n, pairs = len(raw.attributes.names), len(raw.pair_attributes.names)
    pair_ids = np.zeros(0, np.int32) if data.pair_attributes is None else data.pair_attributes
    return Counts(
        raw.attributes,
        raw.pair_attributes,
        raw.labels,
        np.bincount(data.attributes, minlength=n),
        np.bincount(pair_ids, minlength=pairs),
        codes,
        (len(data),),
        data.n_positions,
        raw.n_columns,
        raw.record,
        raw.name,
    )


def joined(first: Counts, second: Counts) -> Counts:
    """Return what two neighbouring pieces have together; the first comes before the second."""
    wrong = first.n_columns is not None and second.n_columns is not None and first.n_columns != second.n_columns
    if wrong:
        raise DataError(
            f"{counted(second.n_columns or 0, 'column')}, but {first.name} has {first.n_columns}; all files must have "
            "the same columns",
            second.name,
        )
    if first.record and second.record and first.record != second.record:
        raise DataError(f"the format differs from {first.name}; give files of one format", second.name)
    attributes, place = joined_names(first.attributes.names, second.attributes.names)
    pairs, pair_place = joined_names(first.pair_attributes.names, second.pair_attributes.names)
    labels = dict.fromkeys(first.labels) | dict.fromkeys(second.labels)
    number = {label: k for k, label in enumerate(labels)}
    label_place = np.array([number[label] for label in second.labels], dtype=np.int64)
    ids, of = second.codes >> SHIFT, second.codes & ((1 << SHIFT) - 1)
    codes = np.union1d(first.codes, (place[ids].astype(np.int64) << SHIFT) | label_place[of])
    named = first if first.n_columns is not None or second.n_columns is None else second
    return Counts(
        NameList(attributes),
        NameList(pairs),
        tuple(labels),
        _added(first.counts, second.counts, place, len(attributes)),
        _added(first.pair_counts, second.pair_counts, pair_place, len(pairs)),
        codes,
        (*first.ends, *(first.ends[-1] + end for end in second.ends)),
        first.n_positions + second.n_positions,
        named.n_columns,
        first.record or second.record,
        named.name,
    )


def _added(first: Ints, second: Ints, place: Ids, n: int) -> Ints:
    total = np.zeros(n, dtype=np.int64)
    total[: len(first)] = first
    total[place] += second  # no place comes twice
    return total


@dataclass(frozen=True, eq=False)
class Numbering:
    """The attributes and labels of a whole training set: those of `learn` and `learn_file` on all of it."""

    vocabulary: Vocabulary
    classes: Array

    @classmethod
    def of(cls, counts: Counts, inputs: Inputs, min_frequency: int, columns: bool, least_labels: int = 2) -> Numbering:
        """Return the numbering; `columns` if the pieces are column files."""
        if counts.n_positions == 0:
            raise DataError("there are no sequences to learn from")
        names = sorted(counts.labels) if columns else sort_labels(list(counts.labels))
        if columns:
            check_label_count(names, counts.n_positions)
        if len(names) < least_labels:
            raise DataError(f"every position has the label {names[0]!r}; at least two different labels are needed")
        check_possible(len(names), 1)
        distinct = np.bincount(counts.codes >> SHIFT, minlength=len(counts.counts))
        order, _ = rank_attributes(counts.counts, min_frequency, distinct > -(-len(names) // 8))
        none = np.zeros(len(counts.pair_counts), dtype=bool)
        pair_order, _ = rank_attributes(counts.pair_counts, min_frequency, none)
        n_features = inputs.text.n_columns if inputs.text is not None else None
        if columns and inputs.text is None and counts.n_columns is not None:
            n_features = counts.n_columns - 1
        vocabulary = Vocabulary(
            inputs.kind,
            inputs.template,
            counts.attributes.names.take(order),
            counts.pair_attributes.names.take(pair_order),
            n_features,
            inputs.text,
        )
        return cls(vocabulary, label_array(names))

    def __reduce__(self) -> tuple[object, ...]:
        v = self.vocabulary
        names = NameList(v.attributes), NameList(v.pair_attributes)
        return _numbering, (v.kind, v.template, *names, v.n_features, v.text, self.classes)


def _numbering(
    kind: str, template: Any, names: NameList, pairs: NameList, n: int | None, text: Any, classes: Array
) -> Numbering:
    return Numbering(Vocabulary(kind, template, names.names, pairs.names, n, text), classes)


def numbered(raw: RawPiece, numbering: Numbering) -> SequenceData:
    """Return the sequences of a piece with the numbers of the whole; attributes that were dropped are omitted."""
    data, vocabulary = raw.data, numbering.vocabulary
    assert data.labels is not None
    number = {label: k for k, label in enumerate(numbering.classes.tolist())}
    if unknown := [label for label in raw.labels if label not in number]:
        raise DataError(f"the label {unknown[0]!r} was not there when training began; train again", raw.name or None)
    label_rank = np.array([number[label] for label in raw.labels], dtype=np.int32)
    rank = common_ids(vocabulary.attributes, raw.attributes.names).astype(np.int32)
    pair_rank = common_ids(vocabulary.pair_attributes, raw.pair_attributes.names).astype(np.int32)
    return renumbered(data, rank, pair_rank, label_rank)
