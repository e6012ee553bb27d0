"""The instances that a trainer was given: encoded as they come, and made a training set when training begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from crfkit import _core
from crfkit._types import Floats, Ids, Ints, Label
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import TaggedCorpus, Vocabulary, rank_attributes, renumber
from crfkit.chain.encoding.vocabulary import Encoded
from crfkit.compat.pycrfsuite._errors import LabelTypeError
from crfkit.errors import DataError
from crfkit.labels import label_array


@dataclass(frozen=True)
class TrainingSet:
    """The instances of a training run. Labels and attributes are numbered by first appearance, as in CRFsuite."""

    corpus: TaggedCorpus  # attributes in the order that suits the kernels
    raw_ids: Ints  # the number by first appearance of each attribute of the corpus
    names: _core.Encoder  # of the attributes by first appearance
    holdout: SequenceData | None  # the instances of the holdout group, encoded like the corpus

    @property
    def n_attributes(self) -> int:
        """Return how many attributes there are, including the holdout group."""
        return self.names.sizes[0]


class Instances:
    """A growing list of labelled sequences, each of a group."""

    def __init__(self) -> None:
        self._encoder = _core.Encoder(None)
        self._labels: dict[str, int] = {}
        self._label_ids: list[int] = []
        self._groups: list[int] = []
        self._taken: list[Encoded] = []

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def labels(self) -> list[str]:
        return list(self._labels)

    def append(self, xseq: Iterable[object] | _core.Items, yseq: Iterable[Label], group: int) -> None:
        """Add a sequence. Nothing is added if it cannot be used."""
        if not isinstance(xseq, (list, tuple, _core.Items)):
            if isinstance(xseq, (str, bytes)) or not isinstance(xseq, Iterable):
                raise DataError(f"a sequence must be a list of items, not the {type(xseq).__name__} {xseq!r}")
            xseq = list(xseq)
        labels = [_label(label) for label in yseq]
        if len(xseq) != len(labels):
            raise DataError(f"The numbers of items and labels differ: |x| = {len(xseq)}, |y| = {len(labels)}")
        try:
            self._encoder.add_items(xseq)
        except _core.BadInput as error:
            raise DataError(str(error)) from None
        known = self._labels
        self._label_ids.extend(known.setdefault(label, len(known)) for label in labels)
        self._groups.append(int(group))

    def training_set(self, holdout: int) -> TrainingSet:
        """Return the instances that are not in the group `holdout` as a training set, and the others encoded alike."""
        everything = self._encoded()
        groups = np.array(self._groups, dtype=np.int64)
        chosen = np.flatnonzero(groups != holdout)
        train = everything if len(chosen) == len(groups) else everything.take(chosen)
        assert train.labels is not None
        n, n_labels = self._encoder.sizes[0], len(self._labels)
        counts, labels = _core.count_attributes(train.offsets, train.attributes, train.labels, n, n_labels)
        order, rank = rank_attributes(counts, 1, labels > -(-n_labels // 8))
        vocabulary = Vocabulary("items", None, self._encoder.table(order), _core.StringTable.from_strings([]))
        corpus = TaggedCorpus(vocabulary, _renumbered(train, rank), label_array(self.labels))
        rest = None if holdout < 0 else _renumbered(everything.take(np.flatnonzero(groups == holdout)), rank)
        return TrainingSet(corpus, order, self._encoder, rest)

    def _encoded(self) -> SequenceData:
        """Return all instances; attributes are numbered by first appearance."""
        if len(self._groups) > sum(len(part[0]) - 1 for part in self._taken):
            self._taken.append(self._encoder.take())
        if len(self._taken) > 1:
            self._taken = [_joined(self._taken)]
        starts, offsets, ids, values = self._taken[0][:4] if self._taken else self._encoder.take()[:4]
        return SequenceData.taking(starts, offsets, ids, values, labels=np.array(self._label_ids, dtype=np.int32))


def _label(label: Label) -> str:
    try:
        if isinstance(label, str):
            if not label.isascii():
                label.encode()
            return str(label)
        if isinstance(label, bytes):
            return label.decode()
    except UnicodeError:
        raise DataError(f"the label {label!r} is not valid Unicode") from None
    raise LabelTypeError(f"a label must be a string, not the {type(label).__name__} {label!r}")


def _renumbered(data: SequenceData, rank: Ids) -> SequenceData:
    offsets, ids = np.array(data.offsets), np.array(data.attributes)
    values: Floats | None = None if data.values is None else np.array(data.values)
    ids, values = renumber(offsets, ids, values, rank)
    return SequenceData.taking(data.starts, offsets, ids, values, labels=data.labels)


def _joined(parts: list[Encoded]) -> Encoded:
    """Return several outputs of an encoder as one."""

    def chained(k: int) -> Ints:
        ends = np.cumsum([0, *(part[k][-1] for part in parts)])
        return np.concatenate([[0], *(part[k][1:] + end for part, end in zip(parts, ends, strict=False))])

    values = None
    if any(part[3] is not None for part in parts):
        values = np.concatenate([np.ones(len(part[2])) if part[3] is None else part[3] for part in parts])
    return chained(0), chained(1), np.concatenate([part[2] for part in parts]), values
