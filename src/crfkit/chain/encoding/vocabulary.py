"""Turn inputs into attributes; the attributes of a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crfkit import _core
from crfkit._checks import is_whole
from crfkit._threads import count_threads
from crfkit._types import Floats, Ids, Ints, Sequences, Sparse
from crfkit.chain.data import SequenceData
from crfkit.errors import DataError, ParameterError
from crfkit.text.attributes import column_name, stack_matrices
from crfkit.text.template import Template
from crfkit.text.words import TextFeatures

Encoded = Sequence[Any]  # arrays of an encoder, in the order of SequenceData; None for those that it does not have
WORTH_THREADS = 200  # sequences; fewer are encoded before another thread has begun
WORTH_RENUMBERING = 100_000  # ids; fewer are renumbered before another thread has begun
Names = _core.StringTable | _core.BucketTable  # names of attributes, or the buckets that they were hashed to


@dataclass(frozen=True)
class Inputs:
    """Say how sequences are read: with a template, as plain words, or as attributes; and whether names are hashed."""

    template: Template | None = None
    text: TextFeatures | None = None
    hash_bits: int | None = None
    prefixed: bool = False  # attributes are Wapiti's observations

    @classmethod
    def of(cls, source: Inputs | Template | None) -> Inputs:
        return source if isinstance(source, Inputs) else cls(source)

    @property
    def kind(self) -> str:
        """Return the kind of the vocabulary."""
        if self.template is not None:
            return "template"
        return "text" if self.text is not None else "observations" if self.prefixed else "items"

    def encoder(
        self,
        attributes: Names | None = None,
        pair_attributes: Names | None = None,
        labelled: bool = False,
        keep_lines: bool = False,
        loose: bool = False,
    ) -> _core.Encoder:
        """Return a native encoder that learns attributes, or one over frozen tables."""
        text = self.template.text if self.template is not None else None
        syntax = self.template.syntax if self.template is not None else "wapiti" if self.prefixed else "crf++"
        native = self.text.native if self.text is not None else None
        bits = self.hash_bits or 0
        return _core.Encoder(
            text, attributes, pair_attributes, labelled, keep_lines, syntax, loose, text=native, hash_bits=bits
        )


def common_ids(here: Names, there: Names) -> Ints:
    """Return the ids here of the names there, −1 for those that are not here."""
    if isinstance(here, _core.StringTable) and isinstance(there, _core.StringTable):
        return here.find_all(there)
    if isinstance(here, _core.BucketTable) and isinstance(there, _core.BucketTable):
        return here.find_all(there)
    return np.full(len(there), -1, dtype=np.int64)


def joined_names(first: Names, second: Names) -> tuple[Names, Ids]:
    """Return the first names followed by those that only the second has, and the id there of each second name.

    >>> names, ids = joined_names(*(_core.StringTable.from_strings(list(text)) for text in ("ab", "cbd")))
    >>> names.to_list(), ids.tolist()
    (['a', 'b', 'c', 'd'], [2, 1, 3])
    """
    ids = common_ids(first, second).astype(np.int32)
    new = np.flatnonzero(ids < 0)
    ids[new] = len(first) + np.arange(len(new), dtype=np.int32)
    if len(new) == 0:
        return first, ids
    if isinstance(first, _core.BucketTable) and isinstance(second, _core.BucketTable):
        return first.merged(second), ids
    assert isinstance(first, _core.StringTable)
    more = second.take(new)
    assert isinstance(more, _core.StringTable)
    offsets = np.concatenate([first.offsets, first.offsets[-1] + more.offsets[1:]])
    return _core.StringTable.from_bytes(offsets, np.concatenate([first.bytes, more.bytes])), ids


def check_hash_bits(bits: Any) -> None:
    """Raise ParameterError if attributes cannot be hashed to this many bits."""
    if bits is None:
        return
    if not is_whole(bits) or not 4 <= int(bits) <= 28:
        raise ParameterError(f"hash_bits must be a whole number from 4 to 28, or None to keep names; not {bits!r}")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Hold the attributes of a model, and how inputs become attributes."""

    # "template", "text" (plain words, or rows of columns that begin with the word), "items" (lists of strings, dicts),
    # "matrix", or "observations" (lists of strings whose first character is u for labels, b for label pairs or * for
    # both, as in Wapiti's data without patterns)
    kind: str
    template: Template | None
    attributes: Names
    pair_attributes: Names
    n_features: int | None = None  # columns of a matrix, or feature columns of a column file
    text: TextFeatures | None = None
    # encoders of columns and words that are not in use; they remember words. Threads take one each
    _idle: deque[_core.Encoder] = field(default_factory=lambda: deque(maxlen=8), init=False, repr=False)

    @property
    def takes_columns(self) -> bool:
        """Return whether tokens are rows of columns or plain words, as in column files, and not attributes."""
        return self.template is not None or self.text is not None

    @property
    def hash_bits(self) -> int | None:
        """Return the number of bits that names of attributes are hashed to; None if they are kept."""
        return self.attributes.bits if isinstance(self.attributes, _core.BucketTable) else None

    @property
    def has_transitions(self) -> bool:
        """Return whether there are weights of plain transitions between labels."""
        return self.template.transitions if self.template is not None else self.kind != "observations"

    def encode(self, X: Sequences, n_threads: int | None = 1) -> SequenceData:
        """Encode sequences; unknown attributes are dropped."""
        if self.kind == "matrix":
            return self._encode_matrices(X)
        try:
            encoder = self._idle.pop()
        except IndexError:
            encoder = self.encoder()
        add_sequences(encoder, X, self.kind, n_threads)  # an encoder that raised is not used again
        data = encoded(encoder)
        if self.takes_columns:
            self._idle.append(encoder)
        return data

    def encoder(self, labelled: bool = False, keep_lines: bool = False, loose: bool = False) -> _core.Encoder:
        """Return a native encoder over the frozen tables; with `loose`, it reads as Wapiti does."""
        inputs = Inputs(self.template, self.text, prefixed=self.kind == "observations")
        return inputs.encoder(self.attributes, self.pair_attributes, labelled, keep_lines, loose)

    def _encode_matrices(self, X: Sequences) -> SequenceData:
        starts, matrix = stack_matrices(X, self.n_features)
        rank = np.array([self.attributes.find(column_name(j)) for j in range(matrix.shape[1])], dtype=np.int32)
        return sorted_data(matrix_arrays(starts, matrix), rank)


def add_sequences(encoder: _core.Encoder, X: Sequences, kind: str, n_threads: int | None = 1) -> None:
    """Add sequences to an encoder; `kind` is that of the vocabulary.

    Lists of lists of strings and of dicts are read by several threads.
    """
    rows = kind in ("template", "text")
    add = encoder.add_rows if rows else encoder.add_items
    try:
        if not rows and isinstance(X, list):
            encoder.add_all_items(X, count_threads(n_threads) if len(X) >= WORTH_THREADS else 1)
            return
        for n, sequence in enumerate(X):
            if rows:
                check_rows(sequence, n, kind)
            add(sequence)
    except _core.BadInput as error:
        raise DataError(str(error)) from None
    except TypeError:
        raise DataError(f"X must be a list of sequences, not {type(X).__name__}") from None


def check_rows(sequence: object, n: int, kind: str) -> None:
    """Raise DataError if a token is a dict or a set, whose keys would be taken for columns."""
    if not isinstance(sequence, (list, tuple)) or set(map(type, sequence)) <= _USUAL:
        return
    for t, token in enumerate(sequence):
        if isinstance(token, (Mapping, set, frozenset)):
            raise DataError(
                f"sequence {n}, position {t}: with a template a token is a list of columns, not a "
                f"{type(token).__name__}, {_shortened(token)}; leave the template out to use it as attributes, or give "
                "the columns in order, as in ['the', 'DT']"
                if kind == "template"
                else f"sequence {n}, position {t}: with text features a token is a word or a list of columns, not a "
                f"{type(token).__name__}, {_shortened(token)}; leave `features` out to use it as attributes"
            )


_USUAL = {str, list, tuple}


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def matrix_arrays(starts: Ints, matrix: Sparse) -> Encoded:
    """Return a stacked matrix as the arrays that an encoder gives."""
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
    return SequenceData.taking(*encoder.take(ordered=True))


def sorted_data(arrays: Encoded, rank: Ids | None = None) -> SequenceData:
    """Return encoded arrays with ids ascending within each position, renumbered by rank if one is given."""
    starts, offsets, ids, values, pair_offsets, pair_ids, labels = arrays
    ids, values = renumber(offsets, ids, values, rank)
    if pair_offsets is not None:
        pair_ids, _ = renumber(pair_offsets, pair_ids, None, None)
    return SequenceData.taking(starts, offsets, ids, values, pair_offsets, pair_ids, labels)


def renumber(
    offsets: Ints, ids: Ids, values: Floats | None, rank: Ids | None, n_threads: int = 1
) -> tuple[Ids, Floats | None]:
    """Renumber ids in place, dropping those of rank −1, and sort them within each position; return ids and values."""
    if rank is None:
        rank = np.arange(ids.max(initial=-1) + 1, dtype=np.int32)
    n = _core.renumber(offsets, ids, values, rank, n_threads if len(ids) >= WORTH_RENUMBERING else 1)
    return ids[:n], values[:n] if values is not None else None


def renumbered(data: SequenceData, rank: Ids, pair_rank: Ids, label_rank: Ids) -> SequenceData:
    """Return labelled data with other numbers of attributes and labels; attributes of rank −1 are left out."""
    offsets = data.offsets.copy()
    ids, values = renumber(offsets, data.attributes.copy(), None if data.values is None else data.values.copy(), rank)
    changes: dict[str, Any] = {"offsets": offsets, "attributes": ids, "values": values}
    if data.pair_offsets is not None and data.pair_attributes is not None:
        pair_offsets = data.pair_offsets.copy()
        pair_ids, _ = renumber(pair_offsets, data.pair_attributes.copy(), None, pair_rank)
        changes |= {"pair_offsets": pair_offsets, "pair_attributes": pair_ids}
    return replace(data, labels=label_rank[data.labels], **changes)
