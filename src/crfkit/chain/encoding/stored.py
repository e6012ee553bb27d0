"""Training files that do not fit into memory: encoded as a stream into blocks on disk, then numbered alike.

The names of attributes stay in memory (hashed ones are few), and so do the weights; the sequences do not.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from crfkit import _core
from crfkit._types import Array, Ids, Ints, Record
from crfkit.chain.data import SequenceData, encode_labels
from crfkit.chain.encoding.attribute_files import add_sequence, is_attributes
from crfkit.chain.encoding.sequences import feed_columns, rank_attributes, renumber
from crfkit.chain.encoding.vocabulary import Encoded, Inputs, Names, Vocabulary, renumbered
from crfkit.chain.fields.field import check_label_count as check_possible
from crfkit.chain.stored_data import Block
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import ColumnFile
from crfkit.files.crfsuite_data import crfsuite_blocks
from crfkit.files.suspicion import check_label_count
from crfkit.labels import label_array

BLOCK = 4 << 20  # bytes of text that are encoded together


@dataclass(frozen=True)
class StoredCorpus:
    """Hold a training set in blocks on disk."""

    vocabulary: Vocabulary
    blocks: Sequence[Block]
    classes: Array
    record: Record = field(default_factory=dict)  # what tagging must know about the files


def store_files(
    files: Sequence[ColumnFile], inputs: Inputs, min_frequency: int, folder: Path, block_bytes: int = BLOCK
) -> StoredCorpus:
    """Encode column files, or CRFsuite's data files, into blocks in a folder."""
    columns = inputs.kind != "items"
    attributes = is_attributes(files, columns)
    if not (columns or attributes):
        raise ParameterError("training from column files needs a template (--template) or features (--features)")
    if inputs.template is not None:
        inputs.template.warn_of_clashes()
    encoder = inputs.encoder(labelled=columns)
    labels: dict[object, int] = {}
    stream = _attributes(encoder, files, labels, block_bytes) if attributes else _columns(encoder, files, block_bytes)
    counts, pair_counts, seen = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    raw = []
    for k, data in enumerate(stream):
        raw.append(Block.write(folder / f"raw{k}", data))
        counts = _added(counts, data.attributes, encoder.sizes[0])
        if data.pair_attributes is not None:
            pair_counts = _added(pair_counts, data.pair_attributes, encoder.sizes[1])
        seen = np.union1d(seen, _label_codes(data))
    names = list(encoder.label_names) if columns else [str(label) for label in labels]
    _check(raw, names, files)
    order = sorted(range(len(names)), key=names.__getitem__)
    label_rank = np.empty(len(names), dtype=np.int32)
    label_rank[order] = np.arange(len(names), dtype=np.int32)

    distinct = np.bincount(seen >> 16, minlength=len(counts))
    kept, rank = rank_attributes(counts, min_frequency, distinct > -(-len(names) // 8))
    pair_kept, pair_rank = rank_attributes(pair_counts, min_frequency, np.zeros(len(pair_counts), dtype=bool))
    blocks = [_numbered(block, folder / str(k), rank, pair_rank, label_rank) for k, block in enumerate(raw)]
    pairs: Names = _core.StringTable.from_strings([])
    if len(pair_counts):
        pairs = encoder.table(pair_kept, pairs=True)
    n_features = inputs.text.n_columns if inputs.text is not None else encoder.n_columns - 1 if columns else None
    vocabulary = Vocabulary(
        inputs.kind, inputs.template, encoder.table(kept), pairs, n_features=n_features, text=inputs.text
    )
    conllu = {file.conllu.label_column for file in files if file.conllu is not None}
    record = {"format": "conllu", "label_column": conllu.pop()} if conllu else {}
    if attributes:
        record = {"format": "crfsuite"}
    return StoredCorpus(vocabulary, blocks, label_array(sorted(names)), record)


def _columns(encoder: _core.Encoder, files: Sequence[ColumnFile], block_bytes: int) -> Iterator[SequenceData]:
    """Yield the sequences of column files, with ids as they come."""
    fed = [0]

    def count(block: bytes) -> None:
        fed[0] += len(block)

    for file in files:
        for _ in feed_columns(encoder, file, labelled=True, tap=count):
            if fed[0] >= block_bytes:
                yield from _taken(encoder)
                fed[0] = 0
    yield from _taken(encoder)


def _attributes(
    encoder: _core.Encoder, files: Sequence[ColumnFile], ids: dict[object, int], block_bytes: int
) -> Iterator[SequenceData]:
    """Yield the sequences of CRFsuite's data files; `ids` numbers their labels as they come."""
    labels: list[list[str]] = []
    weights: list[float] = []
    size = 0

    def take() -> SequenceData:
        for row in labels:
            for label in row:
                ids.setdefault(label, len(ids))
        *arrays, _ = encoder.take()
        data = SequenceData.taking(*_ascending(arrays))
        return replace(data, labels=encode_labels(labels, data.lengths, ids), weights=np.array(weights))

    for file in files:
        for block in crfsuite_blocks(file):
            for sequence in block:
                add_sequence(encoder.add_items, sequence, file)
                labels.append(sequence.labels)
                weights.append(sequence.weight)
                size += sum(len(name) for item in sequence.items for name in item)
            if size >= block_bytes:
                yield take()
                labels, weights, size = [], [], 0
    if labels:
        yield take()


def _taken(encoder: _core.Encoder) -> Iterator[SequenceData]:
    *arrays, labels = encoder.take()
    if len(arrays[0]) > 1:
        yield replace(SequenceData.taking(*_ascending(arrays)), labels=labels)


def _ascending(arrays: Encoded) -> Encoded:
    starts, offsets, ids, values, pair_offsets, pair_ids = arrays
    ids, values = renumber(offsets, ids, values, None)
    if pair_offsets is not None:
        pair_ids, _ = renumber(pair_offsets, pair_ids, None, None)
    return starts, offsets, ids, values, pair_offsets, pair_ids


def _added(counts: Ints, ids: Ids, n: int) -> Ints:
    """Return how often each id occurs, so far and here."""
    more = np.bincount(ids, minlength=n)
    more[: len(counts)] += counts
    return more


def _label_codes(data: SequenceData) -> Ints:
    """Return the different attribute·2¹⁶ + label of the data."""
    assert data.labels is not None
    labels = np.repeat(data.labels.astype(np.int64), np.diff(data.offsets))
    return np.unique((data.attributes.astype(np.int64) << 16) | labels)


def _numbered(block: Block, folder: Path, rank: Ids, pair_rank: Ids, label_rank: Ids) -> Block:
    """Write a block with the final numbers of attributes and labels, and remove the one that it is made from."""
    data = block.read()
    assert data.labels is not None
    new = Block.write(folder, renumbered(data, rank, pair_rank, label_rank))
    shutil.rmtree(block.folder)
    return new


def _check(blocks: Sequence[Block], names: Sequence[str], files: Sequence[ColumnFile]) -> None:
    name = ", ".join(file.name for file in files)
    if not blocks:
        raise DataError("the file has no sequences" if len(files) == 1 else "the files have no sequences", name)
    if len(names) < 2:
        raise DataError(f"every position has the label {names[0]!r}; at least two different labels are needed", name)
    check_possible(len(names), 1, name)
    check_label_count(names, sum(block.n_positions for block in blocks))
