"""Frames of pandas and polars, a row per token, for ChainCRF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from crfkit._values import Frame, Label
from crfkit.chain.encoding.frames import (
    FrameColumns,
    as_column,
    as_frame,
    check_columns,
    columns_to_read,
    frame_sequences,
    token_columns,
)
from crfkit.chain.estimator.cluster import is_collection

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

Fitted = TypeVar("Fitted", bound="FrameInputs")


class FrameInputs:
    """Fit and predict with frames instead of lists of sequences."""

    template: object
    features: object
    model_: ChainModel

    def fit_frame(
        self: Fitted,
        frame: Frame,
        label: str = "label",
        sequence: str = "sentence",
        token: str | Sequence[str] | None = None,
        sample_weight: str | None = None,
        **options: object,
    ) -> Fitted:
        """Learn from a frame of pandas or polars with a row per token.

        Parameters
        ----------
        frame : the rows, in which those of a sequence are in order but need not be adjacent
        label, sequence : columns of the label and of the number or name of the sequence
        token : column of the token, or columns as a template or text features expect them; without either, columns
            whose names and values are attributes. None means all columns that have no other meaning
        sample_weight : column of the weight of the sequence, the same in all its rows
        options : further arguments of :meth:`fit`

        A label that is missing (None or NaN) is unknown. The model remembers the columns for :meth:`predict_frame`.

        A Dask DataFrame is read by the workers of `cluster`; all rows of a sequence must lie in one partition, and no
        label may be missing.
        """
        empty = frame._meta if is_collection(frame) else frame  # of Dask's frames, the columns alone
        columns = FrameColumns(
            sequence, token_columns(empty, token, (label, sequence, sample_weight)), label, sample_weight
        )
        if is_collection(frame):
            check_columns(empty, [sequence, *columns.token, *filter(None, (label, sample_weight))])
            made = self._fit_dask_frame(frame, columns, self._of_attributes(), **options)  # type: ignore[attr-defined]
            self._done(*made)  # type: ignore[attr-defined]
        else:
            found = frame_sequences(frame, columns, self._of_attributes())
            if found.weights is not None:
                options["sample_weight"] = found.weights
            self.fit(found.X, found.y, **options)  # type: ignore[attr-defined]
        self.model_ = replace(self.model_, training={**self.model_.training, "frame": columns.to_json()})
        return self

    def predict_frame(
        self,
        frame: Frame,
        sequence: str | None = None,
        token: str | Sequence[str] | None = None,
        probability: bool = False,
    ) -> Frame:
        """Return the predicted labels as a column of the frame's library, aligned with its rows and its index.

        With `probability`, return a frame with the labels and a column "probability" of the label's marginals. The
        columns are as in :meth:`fit_frame` unless they are named.
        """
        model: ChainModel = self._fitted()  # type: ignore[attr-defined]
        columns = columns_to_read(model.training.get("frame"), frame, sequence, token)
        found = frame_sequences(frame, replace(columns, label=None), not model.vocabulary.takes_columns)
        name = columns.label or "label"
        order = np.argsort(found.rows)
        predicted = model.predict(found.X)
        labels = [label for row in predicted for label in row]
        column = as_column(frame, name, [labels[k] for k in order])
        if not probability:
            return column
        place: Mapping[Label, int] = {label: j for j, label in enumerate(model.class_list)}
        node = np.concatenate(model.predict_marginals(found.X))
        chances = node[np.arange(len(labels)), [place[label] for label in labels]][order]
        return as_frame(frame, [column, as_column(frame, "probability", chances.tolist())])

    def _of_attributes(self) -> bool:
        return self.template is None and self.features is None
