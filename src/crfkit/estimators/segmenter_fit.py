"""The training of a segmenter once the features and labels of its blocks are there: time limit, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._types import Ids
from crfkit.encoders.naming import naming_images
from crfkit.errors import StopTraining
from crfkit.estimators.grid import GridCRF
from crfkit.models.graph import GraphModel
from crfkit.models.segmenter import SegmenterModel
from crfkit.penalties import L2, Blockwise
from crfkit.protocols import Penalty
from crfkit.result import Status
from crfkit.solvers.parts.loop import Callback, Iteration
from crfkit.training.segmenter_blocks import BlockEncoder

CHECKPOINT_SECONDS = 60.0


@dataclass
class BlockTraining:
    """Blocks of images to learn from, and how to."""

    crf: GridCRF
    encoder: BlockEncoder
    X: list[Any]  # [h, w, F] standardised features of each image
    states: list[Ids]  # [h·w] of each image
    names: list[str]  # of the images, for messages
    make: Callable[[GraphModel], SegmenterModel]
    callbacks: Sequence[Callback] = ()
    deadline: float = np.inf  # on the clock of time.monotonic()

    def fit(self, penalty: Penalty | None = None) -> None:
        """Train; afterwards `model` and `result` are there, also when KeyboardInterrupt is raised after the start."""
        if penalty is not None:
            self.crf.set_params(penalty=penalty)
        late = False

        def in_time(iteration: Iteration) -> None:
            nonlocal late
            late = iteration.row.iteration > 0 and time.monotonic() > self.deadline
            if late:
                raise StopTraining

        # Strong edges are not announced: the segmenter chooses their penalty, and a penalty that is given is taken.
        training = replace(self.crf._training(), announce=None)
        with naming_images(self.names):
            self.crf._fit(training, self.encoder, self.X, self.ids, None, [*self.callbacks, in_time])
        if late:
            self.crf.result_ = replace(self.crf.result_, status=Status.TIME_LIMIT)

    @property
    def ids(self) -> Ids:
        return np.concatenate(self.states)

    @property
    def begun(self) -> bool:
        return hasattr(self.crf, "result_")

    @property
    def model(self) -> SegmenterModel:
        return self.make(self.crf.model_)

    def edge_penalty(self, share: float) -> Penalty:
        """Return L2(1) of nodes, and of edges `share` times the number of labelled blocks."""
        blocks = sum(int((of >= 0).sum()) for of in self.states)
        return Blockwise({"node": L2(1.0), "edge": L2(share * blocks)})

    def subset(self, chosen: Sequence[int]) -> BlockTraining:
        """Return the training on some of the images."""
        parts: Any = {name: [getattr(self, name)[k] for k in chosen] for name in ("X", "states", "names")}
        return replace(self, **parts)


def checkpoints(
    path: Path,
    every: float,
    encoder: BlockEncoder,
    forms: tuple[str, str],
    make: Callable[[GraphModel], SegmenterModel],
) -> Callback:
    """Return a callback that writes the model so far, at most once in so many seconds."""
    field = encoder.field(*forms)
    last = time.monotonic()

    def save(iteration: Iteration) -> None:
        nonlocal last
        if iteration.row.iteration > 0 and time.monotonic() - last >= every:
            record = {"objective": None, "status": "CHECKPOINT", "iterations": iteration.row.iteration}
            make(GraphModel(encoder, field, np.array(iteration.w), training=record)).save(path)
            last = time.monotonic()

    return save
