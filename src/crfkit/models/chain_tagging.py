"""Column files through a trained chain: lines with labels appended, while the file is still being read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from crfkit.encoders.attribute_files import add_sequence
from crfkit.encoders.sequences import encoded, feed_columns, sorted_data
from crfkit.errors import DataError, DataWarning, ParameterError
from crfkit.readers.columns import ColumnFile, ColumnSource
from crfkit.readers.crfsuite_data import AttributeSequence, crfsuite_blocks
from crfkit.warn import warn_caller
from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.data.sequences import SequenceData
    from crfkit.models.chain import ChainModel


def tag_columns(
    model: ChainModel, source: ColumnSource, marginals: str | None = None, labels_only: bool = False
) -> Iterator[bytes]:
    """Yield the lines of a column file with the predicted label appended, in chunks as they are ready.

    marginals: None, "best" (another column with the probability of the label) or "all" (label=probability of all).
    With labels_only, a line has nothing but the label and its probabilities. In CoNLL-U files the label goes into the
    label column, and comments, ranges and empty nodes stay as they are. A model of attributes reads CRFsuite's files
    and writes what ``crfsuite tag`` writes: the labels alone, with probabilities as in "B-NP:0.964923".
    """
    file = _prepared(model, source)
    if not model.vocabulary.takes_columns:
        for k, (batch, data) in enumerate(_attribute_batches(model, file)):
            if k == 0:
                _warn_without_attributes(batch, file)
            yield _attribute_lines(model, data, marginals)
        return
    encoder = model.vocabulary.encoder(keep_lines=True)
    last = b"\n"
    for _ in feed_columns(encoder, file, keep_lines=not labels_only):
        data = encoded(encoder)
        known = model.vocabulary.n_features
        if encoder.n_columns and known and encoder.n_columns < known:
            raise DataError(
                f"{counted(encoder.n_columns, 'column')}, but the model was trained on "
                f"{counted(known, 'feature column')}",
                file.name,
            )
        if len(data) == 0:
            continue
        with _naming(file):
            appended = _appended(model, data, marginals)
        if labels_only:
            encoder.lines_with(appended)  # forgets them
            last = _only_labels(data, appended)
        elif file.conllu is not None:
            encoder.lines_with(appended)
            last = file.conllu.with_labels(appended)
        else:
            last = encoder.lines_with(appended)
        yield last
    if file.conllu is not None and not labels_only:
        rest = file.conllu.remainder()
        if rest or not last.endswith(b"\n\n"):
            yield rest + (b"" if (last + rest).endswith(b"\n\n") else b"\n")


def tag_labelled(model: ChainModel, source: ColumnSource) -> Iterator[tuple[list[list[str]], list[list[str]]]]:
    """Yield (gold, predicted) label sequences of a labelled column file, in chunks."""
    file = _prepared(model, source)
    if not model.vocabulary.takes_columns:
        for batch, data in _attribute_batches(model, file):
            yield [sequence.labels for sequence in batch], _as_text(model, data)
        return
    encoder = model.vocabulary.encoder(labelled=True)
    for _ in feed_columns(encoder, file, labelled=True):
        *arrays, labels = encoder.take()
        data = sorted_data((*arrays, labels))
        if len(data):
            names = encoder.label_names
            with _naming(file):
                predicted = _as_text(model, data)
            yield [[names[j] for j in row] for row in data.split(labels)], predicted


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


def _appended(model: ChainModel, data: SequenceData, marginals: str | None) -> list[str]:
    names = [str(name) for name in model.class_list]
    best = model.inference.decode(data)[0]
    if marginals is None:
        return [names[j] for j in best.tolist()]
    node = model.inference.node_marginals(data)
    if marginals == "best":
        chosen = node[np.arange(len(best)), best]
        return [f"{names[j]}\t{p:.6f}" for j, p in zip(best.tolist(), chosen.tolist(), strict=True)]
    return [
        "\t".join([names[j], *(f"{name}={p:.6f}" for name, p in zip(names, row, strict=True))])
        for j, row in zip(best.tolist(), node.tolist(), strict=True)
    ]


def _only_labels(data: SequenceData, labels: list[str]) -> bytes:
    starts = data.starts.tolist()
    rows = ("".join(f"{label}\n" for label in labels[a:b]) for a, b in pairwise(starts))
    return "".join(f"{row}\n" for row in rows).encode("utf-8", "surrogatepass")


def _as_text(model: ChainModel, data: SequenceData) -> list[list[str]]:
    return [[str(label) for label in row] for row in model.decode(data)]


# --- files of attributes


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


def _attribute_lines(model: ChainModel, data: SequenceData, marginals: str | None) -> bytes:
    names = [str(name) for name in model.class_list]
    best = model.inference.decode(data)[0]
    lines = [names[j] for j in best.tolist()]
    if marginals is not None:
        node = model.inference.node_marginals(data)
        if marginals == "best":
            chosen = node[np.arange(len(best)), best].tolist()
            lines = [f"{label}:{p:.6f}" for label, p in zip(lines, chosen, strict=True)]
        else:
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
