"""Labels that are known in part: unknown at some positions, one of several, or given by several annotators.

A position's label may be ``None`` (nothing is known) or a set of labels (one of these), and the labels of a sequence
may be :class:`Annotations`, the readings of several people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from crfkit import _core
from crfkit._checks import is_listed, unmasked
from crfkit._types import Flags, Floats, Ints, Label
from crfkit.chain.data import SequenceData, check_labels, encode_labels
from crfkit.chain.encoding.sequences import TaggedCorpus, label_rows
from crfkit.errors import DataError, DataWarning
from crfkit.files.columns import ColumnFile
from crfkit.files.weight_column import read_weights
from crfkit.labels import label_array, sort_labels
from crfkit.warn import warn_caller

_SETS = (set, frozenset)


class Annotations:
    """The labels that several annotators gave to one sequence, as a soft label: each counts with its weight.

    Weights are relative; without, all annotators count alike. They sum to 1, so that the sequence counts once.

    >>> from crfkit import Annotations, ChainCRF
    >>> X = [[["w=New"], ["w=York"]], [["w=York"]]]
    >>> crf = ChainCRF().fit(X, [Annotations([["B", "I"], ["B", "I"], ["O", "B"]]), ["B"]])
    >>> crf.predict(X)
    [['B', 'I'], ['B']]
    """

    def __init__(self, readings: Iterable[Iterable[Label]], weights: ArrayLike | None = None) -> None:
        self.readings = label_rows(readings)
        if not self.readings:
            raise DataError("Annotations need at least one reading")
        n = len(self.readings)
        weights = unmasked(weights, "the weights of Annotations")
        try:
            shares = np.ones(n) if weights is None else np.array(weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"the weights of Annotations must be numbers, not {weights!r}") from None
        if shares.shape != (n,) or not np.isfinite(shares).all() or (shares < 0).any() or not shares.any():
            raise DataError(f"Annotations of {n} readings need {n} weights >= 0, not all 0; they are {weights!r}")
        self.weights: Floats = shares / shares.sum()

    def __repr__(self) -> str:
        return f"Annotations({self.readings!r}, {self.weights.tolist()!r})"


@dataclass(frozen=True)
class Supervision:
    """Labels of a training set that are known in part: a row for each reading of a sequence."""

    rows: Sequence[Sequence[Label]]
    of: Ints  # the sequence that each row belongs to
    shares: Floats | None  # of each row in its sequence; None: one row each
    partial: bool  # whether some labels are None or sets

    @classmethod
    def of_labels(cls, y: Iterable[Label]) -> Supervision:
        """Return the labels in the form that encoding takes."""
        given_rows = list(y) if is_listed(y) else []
        if given_rows and _core.number_labels(given_rows) is not None:  # all labels are strings
            return cls(given_rows, np.arange(len(given_rows)), None, False)
        if any(isinstance(row, Annotations) for row in given_rows):
            given = [row if isinstance(row, Annotations) else Annotations([row]) for row in _named(given_rows)]
            rows = [row for one in given for row in one.readings]
            of = np.repeat(np.arange(len(given)), [len(one.readings) for one in given])
            shares = np.concatenate([one.weights for one in given])
        else:
            rows, shares = label_rows(given_rows or y), None
            of = np.arange(len(rows))
        kinds = {kind for row in rows if not isinstance(row, np.ndarray) for kind in set(map(type, row))}
        kinds |= {
            kind
            for row in rows
            if isinstance(row, np.ndarray) and row.dtype == object
            for kind in set(map(type, row.tolist()))
        }
        return cls(rows, of, shares, type(None) in kinds or any(issubclass(kind, _SETS) for kind in kinds))

    def learn(self, encode: Callable[[Iterable[Iterable[object]]], TaggedCorpus]) -> TaggedCorpus:
        """Return the training set; `encode` makes one of whole labels, a row for each sequence."""
        if self.shares is None and not self.partial:
            return encode(self.rows)
        names, firsts = self._names(), np.unique(self.of, return_index=True)[1]
        stand_in = names[0]
        whole = [[_some(label, stand_in) for label in self.rows[k]] for k in firsts]
        corpus = encode(whole)
        lengths = corpus.data.lengths
        if len(firsts) != len(lengths):
            raise DataError(f"there are {len(lengths)} sequences but {len(firsts)} label sequences")
        for k, n in enumerate(self.of.tolist()):
            if len(self.rows[k]) != lengths[n]:
                raise DataError(f"sequence {n} has {lengths[n]} items but {len(self.rows[k])} labels")
        data = corpus.data if self.shares is None else corpus.data.take(self.of)
        if len(names) < 2:
            raise DataError(f"the only label is {names[0]!r}; at least two different labels are needed")
        ids = {name: j for j, name in enumerate(names)}
        if self.partial:
            data = replace(data, labels=None, targets=_targets(self.rows, ids))
        else:
            data = data.with_labels(encode_labels(self.rows, data.lengths, ids))
        return replace(corpus, data=data, classes=label_array(names))

    def _names(self) -> list[Label]:
        """Return the different labels, sorted."""
        found: list[Label] = []
        for n, row in zip(self.of.tolist(), self.rows, strict=True):
            for t, label in enumerate(row.tolist() if isinstance(row, np.ndarray) else row):
                if isinstance(label, _SETS):
                    if not label:
                        raise DataError(f"sequence {n}, position {t}: the set of possible labels is empty")
                    found.extend(label)
                elif label is not None:
                    found.append(label)
        if not found:
            raise DataError("no label is known: every position is None; at least two different labels are needed")
        return sort_labels(found)

    def spread(self, per_sequence: ArrayLike | None, n: int) -> ArrayLike | None:
        """Return weights of sequences as weights of the rows."""
        if self.shares is None:
            return per_sequence
        if per_sequence is None:
            return self.shares
        weights = np.array(unmasked(per_sequence, "sample_weight"), dtype=np.float64)
        if weights.shape != (n,):
            raise DataError(f"sample_weight has shape {weights.shape}, but there are {n} sequences")
        return weights[self.of] * self.shares

    @property
    def n_sequences(self) -> int:
        return int(self.of[-1]) + 1 if len(self.of) else 0


def token_weights(rows: Iterable[Iterable[float]], data: SequenceData, of: Ints) -> Floats:
    """Return the weights of all positions; `rows` has a row for each sequence, and `of` maps rows to sequences."""
    try:
        given = [list(unmasked(row, f"the token weights of sequence {n}")) for n, row in enumerate(rows)]
        weights = [np.asarray(row, dtype=object).astype(np.float64) for row in given]
    except DataError:
        raise
    except (TypeError, ValueError):
        raise DataError(
            "token_weight must have a list of numbers for every sequence; sample_weight has one number for each"
        ) from None
    n = int(of[-1]) + 1 if len(of) else 0
    if len(weights) != n:
        raise DataError(f"token_weight has {len(weights)} rows, but there are {n} sequences")
    spread = [weights[k] for k in of]
    for k, (row, length) in enumerate(zip(spread, data.lengths.tolist(), strict=True)):
        if len(row) != length:
            raise DataError(f"sequence {of[k]} has {length} items but {len(row)} token weights")
    return np.concatenate(spread) if spread else np.zeros(0)


def _named(y: Sequence[Label]) -> Iterable[Label]:
    """Yield the rows, those of labels checked as ever."""
    plain = iter(label_rows(row for row in y if not isinstance(row, Annotations)))
    for row in y:
        yield row if isinstance(row, Annotations) else next(plain)


def _some(label: Label, stand_in: Label) -> Label:
    """Return a label instead of what is not one; it takes no part in learning."""
    return stand_in if label is None or isinstance(label, _SETS) else label


def _targets(rows: Sequence[Sequence[Label]], ids: dict[Label, int]) -> Flags:
    flat = check_labels(rows, np.array([len(row) for row in rows]))
    targets = np.zeros((len(flat), len(ids)), dtype=bool)
    for t, label in enumerate(flat):
        if label is None:
            targets[t] = True
        elif isinstance(label, _SETS):
            targets[t, [ids[one] for one in label]] = True
        else:
            targets[t, ids[label]] = True
    return targets


@dataclass(frozen=True)
class LabelColumn:
    """Options for reading the labels of column files: which label means unknown, and which column has the weight."""

    unknown: str | None = None
    separator: str | None = None
    weight_column: int | None = None

    @property
    def partly_known(self) -> bool:
        """Return whether labels may be unknown, or one of several."""
        return self.unknown is not None or self.separator is not None

    def apply(self, corpus: TaggedCorpus, files: Sequence[ColumnFile]) -> TaggedCorpus:
        """Return the training set of files with labels that are known in part and with weights of its tokens."""
        if self.partly_known:
            corpus = with_unknown_labels(corpus, self.unknown, self.separator)
        if self.weight_column is not None:
            weights = read_weights(files, self.weight_column)
            corpus = replace(corpus, data=replace(corpus.data, token_weights=weights))
        return corpus


def with_unknown_labels(corpus: TaggedCorpus, unknown: str | None, separator: str | None) -> TaggedCorpus:
    """Return a training set in which `unknown` marks unlabelled tokens, and labels with `separator` are sets of labels.

    With "?" and "|", the label ? is not known, and B-PER|B-LOC is one of the two.
    """
    written = corpus.classes.tolist()
    if unknown is not None and unknown not in written:
        warn_caller(
            f"the training files have no label {unknown!r}, which should mark unlabelled tokens; check the name",
            DataWarning,
        )
    means = [
        [] if name == unknown else [part for part in name.split(separator) if part] if separator else [name]
        for name in written
    ]
    for name, parts in zip(written, means, strict=True):
        if not parts and name != unknown:
            raise DataError(
                f"the label {name!r} has nothing on one side of the separator {separator!r}; expected labels on both"
            )
        if unknown in parts:
            raise DataError(
                f"the label {name!r} names {unknown!r}, which means that nothing is known, among others; write "
                f"{unknown!r} alone, or leave it out"
            )
    names = sort_labels([part for parts in means for part in parts])
    if len(names) < 2:
        what = f"the only label is {names[0]!r}" if names else "no label is known"
        raise DataError(f"{what}; at least two different labels are needed")
    if all(parts == [name] for name, parts in zip(written, means, strict=True)):
        return corpus
    assert corpus.data.labels is not None
    possible = np.array([[not parts or name in parts for name in names] for parts in means])
    data = replace(corpus.data, labels=None, targets=possible[corpus.data.labels])
    return replace(corpus, data=data, classes=label_array(names))
