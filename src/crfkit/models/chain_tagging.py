"""Column files through a trained chain: lines with labels appended, while the file is still being read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from crfkit.encoders.sequences import feed_columns, sorted_data
from crfkit.errors import DataError
from crfkit.readers.columns import ColumnFile, ColumnSource
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
    label column, and comments, ranges and empty nodes stay as they are.
    """
    file = _prepared(model, source)
    encoder = model.vocabulary.encoder(keep_lines=True)
    last = b"\n"
    for _ in feed_columns(encoder, file, keep_lines=not labels_only):
        data = sorted_data(encoder.take())
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
    encoder = model.vocabulary.encoder(labelled=True)
    for _ in feed_columns(encoder, file, labelled=True):
        *arrays, labels = encoder.take()
        data = sorted_data((*arrays, labels))
        if len(data):
            names = encoder.label_names
            with _naming(file):
                predicted = [[str(label) for label in row] for row in model.decode(data)]
            yield [[names[j] for j in row] for row in data.split(labels)], predicted


def _prepared(model: ChainModel, source: ColumnSource) -> ColumnFile:
    """Return the file, with the label column that the model was trained on if it does not name one."""
    file = ColumnFile.of(source)
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


@contextmanager
def _naming(file: ColumnFile) -> Iterator[None]:
    """Add the name of the file to errors about its contents."""
    try:
        yield
    except DataError as error:
        raise DataError(str(error), file.name) from None
