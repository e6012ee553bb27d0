"""Training of a segmenter on blocks that are ready: with one penalty, or with several tried on held-out images."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from crfkit._types import Array, Ids
from crfkit.errors import StopTraining
from crfkit.graph.encoding.grids import naming_images
from crfkit.graph.model import GraphModel
from crfkit.graph.training.train import GraphTraining
from crfkit.images.block_grids import BlockEncoder
from crfkit.images.features import Image
from crfkit.images.model.segmenter import SegmenterModel
from crfkit.images.pairs import Pairs
from crfkit.penalties import L2, Blockwise
from crfkit.protocols import Penalty
from crfkit.result import Result, Status
from crfkit.solvers.parts.loop import Callback, Iteration
from crfkit.training.path import PathPoint, follow

# Strengths of L2 on edge weights under the pseudo-likelihood, per labelled block: to choose from, and without a choice.
EDGE_SHARES = (30.0, 3.0, 0.3, 0.1, 0.03)
ONE_IMAGE = 30.0


@dataclass(frozen=True, eq=False)
class Attempt:
    """A model that was trained with one penalty, its field as it was trained, and how training went."""

    model: SegmenterModel
    field: GraphModel
    result: Result


@dataclass(frozen=True, eq=False)
class Search:
    """The outcome of training: the attempt that is kept, the strengths that were tried, the field of the last one."""

    best: Attempt
    points: tuple[PathPoint[object], ...] = ()
    strength: float = np.nan  # of the best attempt
    last: GraphModel | None = None
    interrupted: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockTraining:
    """Blocks of images to learn from, and how to learn."""

    training: GraphTraining
    encoder: BlockEncoder
    X: list[Array]  # [h, w, F] standardised features of each image
    states: list[Ids]  # [h·w] of each image
    names: list[str]  # of the images, for messages
    make: Callable[[GraphModel], SegmenterModel]
    callbacks: Sequence[Callback] = ()
    deadline: float = np.inf  # on the clock of time.monotonic()
    tell: Callable[[str], None] | None = None  # is called with each concern about how training ended
    with_edges: Callable[[float], Penalty] | None = None  # returns the penalty for a strength of edges

    def fit(self, penalty: Penalty | None = None, start: GraphModel | None = None) -> Attempt:
        """Train with a penalty, None for the one of the options, from the weights of `start`."""
        late = False

        def in_time(iteration: Iteration) -> None:
            nonlocal late
            late = iteration.row.iteration > 0 and time.monotonic() > self.deadline
            if late:
                raise StopTraining

        training = self.training
        if penalty is not None:
            training = replace(training, options=replace(training.options, penalty=penalty))
        with naming_images(self.names):
            states = np.concatenate(self.states)
            done = training.run(self.encoder, self.X, states, None, [*self.callbacks, in_time], start)
        result = done.result
        if result.status is not Status.INTERRUPTED and self.tell is not None:
            for concern in done.concerns(training.naming):
                self.tell(concern)
        if late:
            result = replace(result, status=Status.TIME_LIMIT)
        return Attempt(self.make(done.model), done.model, result)

    def edge_penalty(self, share: float) -> Penalty:
        """Return L2(1) of nodes, or what was chosen for them, and of edges `share` times the labelled blocks."""
        strength = share * sum(int((of >= 0).sum()) for of in self.states)
        if self.with_edges is not None:
            return self.with_edges(strength)
        return Blockwise({"node": L2(1.0), "edge": L2(strength)})

    def subset(self, chosen: Sequence[int]) -> BlockTraining:
        """Return the training on some of the images."""
        return replace(
            self,
            X=[self.X[k] for k in chosen],
            states=[self.states[k] for k in chosen],
            names=[self.names[k] for k in chosen],
        )


def train_once(run: BlockTraining, start: GraphModel | None, penalty: Penalty | None = None) -> Search:
    """Train with a penalty, None for the one of the options."""
    attempt = run.fit(penalty, start)
    return Search(attempt, interrupted=attempt.result.status is Status.INTERRUPTED)


def try_penalties(
    run: BlockTraining,
    penalties: Sequence[tuple[float, Penalty]],
    test: Pairs,
    tested: Sequence[Image],
    start: GraphModel | None,
) -> Search:
    """Train with each penalty, from the weights of the one before, and keep the fewest wrong pixels of the test images.

    Ctrl-C keeps the best attempt so far, and the first attempt even if it was not complete.
    """
    by_strength = dict(penalties)
    attempts: list[Attempt] = []
    points: list[PathPoint[Attempt]] = []
    interrupted = False

    def solve(strength: float, before: GraphModel | None) -> tuple[PathPoint[Attempt], GraphModel | None]:
        attempt = run.fit(by_strength[strength], before)
        attempts.append(attempt)
        model, result = attempt.model, attempt.result
        if result.status is Status.INTERRUPTED:
            return PathPoint(strength, result.value, result=result), before
        pairs = zip(tested, test.masks, strict=True)
        wrong = test.error(model.segment_features(v, mask.shape, False).mask for v, mask in pairs)
        nonzeros = int(np.count_nonzero(model.field.w))
        return PathPoint(strength, result.value, nonzeros, wrong, result=result, solution=attempt), attempt.field

    try:
        for point in follow(by_strength, start, solve):
            interrupted = point.interrupted
            if not interrupted:
                points.append(point)
            if point.result is not None and point.result.status is Status.TIME_LIMIT:
                break
    except KeyboardInterrupt:
        if not attempts:
            raise
        interrupted = True
    best = min(points, key=lambda point: point.score or 0.0, default=None)  # the first of equal scores
    kept = attempts[-1] if best is None else best.model
    strength = penalties[0][0] if best is None else best.strength
    last = points[-1].model.field if points else start
    shown = tuple(replace(point, solution=None) for point in points)
    return Search(kept, shown, strength, last, interrupted)


def choose_edge_penalty(
    run: BlockTraining, given: Pairs, raw: Callable[[Array], Image], hold: float, seed: int, start: GraphModel | None
) -> Search:
    """Train with a stronger penalty on edges than on nodes, chosen on held-out images, then on all images.

    The pseudo-likelihood is given the true labels of neighbours, which in smooth masks say nearly everything: with one
    strength for all weights, couplings grow far too strong for inference, where neighbours are uncertain. `raw` turns
    standardised features back into features.
    """
    search, share = None, ONE_IMAGE
    if len(given.images) > 1:
        others, held_out = given.draw_ids(hold, seed)
        part, test = run.subset(others), given.take(held_out)
        tested = [raw(run.X[k]) for k in held_out]
        penalties = [(of, part.edge_penalty(of)) for of in EDGE_SHARES]
        search = try_penalties(part, penalties, test, tested, start)
        late = any(p.result is not None and p.result.status is Status.TIME_LIMIT for p in search.points)
        if search.interrupted or late:
            return search
        share, start = search.strength, search.last
    try:
        attempt = run.fit(run.edge_penalty(share), start)
    except KeyboardInterrupt:
        if search is None:
            raise
        return replace(search, interrupted=True)
    points = () if search is None else search.points
    return Search(attempt, points, share, interrupted=attempt.result.status is Status.INTERRUPTED)


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
