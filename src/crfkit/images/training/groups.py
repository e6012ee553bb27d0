"""The penalty of each group of features of a segmenter, chosen on folds of images.

A group of many features, such as the 128 of SIFT, can learn the textures of single images by heart, and blocks of one
image resemble each other: with one strength for all weights the model then fits a few images and no others. So groups
of more than a few features get strengths of their own, those with the fewest wrong blocks on images that were held out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array, Entries, Ids, Ints, Record
from crfkit.errors import StopTraining
from crfkit.graph.encoding.grids import naming_images
from crfkit.graph.fields.field import GraphField
from crfkit.graph.inference.marginals import IterativeEngine
from crfkit.graph.model import GraphModel
from crfkit.images.c1 import C1_NAMES
from crfkit.images.features import COLOUR_NAMES, POSITION_NAMES, ImageFeatures
from crfkit.images.model.inference import quick_marginals, with_options
from crfkit.images.sift import SIFT_NAMES
from crfkit.images.training.search import BlockTraining
from crfkit.penalties import L2, Blockwise
from crfkit.pool import in_threads
from crfkit.result import Status
from crfkit.solvers.parts.loop import Iteration
from crfkit.training.path import PathPoint

MIN_GROUP_FEATURES = 16  # features; groups with more get strengths of their own, others L2(1)
SHARES = (100.0, 10.0, 1.0, 0.1, 0.01, 0.001)  # strengths to try, per labelled block of an image
EXTRA_SHARE = 1000.0  # tried if the first is best
DEFAULT_SHARE = 10.0  # the share where there are too few images to hold some out
LEAST_IMAGES = 4
PATIENCE = 2  # strengths without a gain after which weaker ones are not tried
FACTORS = (10.0, 0.1)  # of the strength of one group, then of all edges, tried at the end
FOLDS = 3
MOST_IMAGES, MOST_BLOCKS = 20, 8_000  # that are searched on; of larger sets, windows of some of the images
LEAST_WINDOW = 12  # blocks, side of a window
TOLERANCE, FIRST, ITERATIONS = 1e-3, 20, 10  # of a fold with the first penalty, and with later ones
SWEEPS = {"max_iterations": 15, "tolerance": 1e-2, "n_threads": 1}  # of iterative inference while strengths are tried
REFINEMENT_ERROR_RATIO = 0.97  # factor by which a refinement must lower the error
WARN_ERROR_RATIO, WARN_ERROR_GAP = (
    3.0,
    0.02,
)  # held-out errors so many times as large, and by so much larger, are worth a warning


def large_groups(features: ImageFeatures) -> dict[str, Ids]:
    """Return the columns of each group of features that gets a strength of its own."""
    sizes = [
        *(("sift", len(SIFT_NAMES)) for _ in range("sift" in features.kinds)),
        *(("c1", len(C1_NAMES)) for _ in range("c1" in features.kinds)),
        *(("colour", len(COLOUR_NAMES)) for _ in range(features.colour)),
        *(("position", len(POSITION_NAMES)) for _ in range(features.position)),
        *((part.name, len(part.names or ())) for part in features.custom),
    ]
    ends = np.cumsum([0, *(size for _, size in sizes)])
    return {name: ends[k] + np.arange(size) for k, (name, size) in enumerate(sizes) if size > MIN_GROUP_FEATURES}


@dataclass(frozen=True)
class Shares:
    """Strengths of groups per labelled block of an image, of their weights in nodes and in edges."""

    nodes: Mapping[str, float]
    edges: Mapping[str, float] | None  # None: all edges have one strength, which is not chosen here

    @classmethod
    def equal(cls, groups: Mapping[str, Ids], share: float, edges: bool) -> Shares:
        same = dict.fromkeys(groups, share)
        return cls(same, same if edges else None)

    def penalty(
        self, field: GraphField, groups: Mapping[str, Ids], per_share: float, edge_strength: float
    ) -> Blockwise:
        """Return the penalty of the weights of a field; weights outside the groups have L2(1), edges the strength."""
        width = field.n_node_features
        parts: dict[str, L2] = {"node": L2(1.0), "edge": L2(edge_strength)}
        places: dict[str, Ints] = {}
        for kind, active, begin, shares in (
            ("node", field.node_active, 0, self.nodes),
            ("edge", field.edge_active, field.n_node_weights, self.edges or {}),
        ):
            rows = begin + width * np.arange(int(active.sum()))[:, None]
            others = np.ones(width, dtype=bool)
            for name, share in shares.items():
                columns = 1 + groups[name]  # after the intercept
                others[columns] = False
                parts[f"{kind} {name}"] = L2(_rounded(share * per_share))
                places[f"{kind} {name}"] = (rows + columns).ravel()
            places[kind] = (rows + np.flatnonzero(others)).ravel()
        return Blockwise(parts, places)

    def scaled(self, factor: float) -> Shares:
        """Return all strengths multiplied."""
        edges = None if self.edges is None else {name: factor * share for name, share in self.edges.items()}
        return Shares({name: factor * share for name, share in self.nodes.items()}, edges)

    def changed(self, name: str, factor: float) -> Shares:
        """Return the strengths, multiplied for a group or for "edges"."""
        if name == "edges" and self.edges is not None:
            return Shares(self.nodes, {group: factor * share for group, share in self.edges.items()})
        edges = None if self.edges is None else {**self.edges, name: factor * self.edges[name]}
        return Shares({**self.nodes, name: factor * self.nodes[name]}, edges)


@dataclass(frozen=True)
class GroupChoice:
    """The strengths that were chosen, and how large the errors are with them."""

    shares: Shares
    points: tuple[PathPoint[object], ...] = ()  # of the strengths that all groups had together
    error: float = math.nan  # share of wrong blocks of images that were held out
    training_error: float = math.nan  # of those that were learned from
    n_images: int = 0  # that were searched on; 0 without a search
    start: GraphModel | None = None  # the mean of the models of the folds, for training to begin from

    @property
    def concern(self) -> str | None:
        """Return what to tell the user if the errors on training images are far below the others."""
        return far_below(self.training_error, self.error, "in cross-validation")

    def record(self) -> Entries:
        """Return the entry of the record of the model."""
        if not self.n_images:
            return {"folds": 0}
        errors = {"held_out_error": round(self.error, 6), "training_error": round(self.training_error, 6)}
        return {"folds": FOLDS, "images": self.n_images, **errors}


def describe_choice(record: Record) -> str:
    """Return a line about how penalties of groups were chosen, from the record of a model."""
    if not record.get("folds"):
        return (
            f"penalties of groups of features: by size, as fewer than {LEAST_IMAGES} images cannot be held out in turn"
        )
    return (
        f"penalties of groups of features: chosen in {record['folds']} folds of {record['images']} images; error "
        f"{record['held_out_error']:.4f} on images held out, {record['training_error']:.4f} on those learned from"
    )


def far_below(training: float, held_out: float, where: str) -> str | None:
    """Return a warning if an error on training images is far below that on held-out ones."""
    if not (held_out > WARN_ERROR_RATIO * training and held_out > training + WARN_ERROR_GAP):
        return None
    return (
        f"{where}, {100 * training:.1f} % of the training images are wrong and {100 * held_out:.1f} % of images that "
        "were held out: the model knows its images by heart. Use more images, fewer features or a stronger penalty"
    )


def labelled_per_image(states: Sequence[Ids]) -> float:
    """Return the mean number of labelled blocks of an image."""
    return max(1.0, float(np.mean([(of >= 0).sum() for of in states])))


def choose_shares(
    run: BlockTraining, forms: tuple[str, str], groups: Mapping[str, Ids], seed: int, edge_share: float | None
) -> GroupChoice:
    """Return the strengths of groups with the fewest wrong blocks on folds of images, each held out in turn.

    `edge_share` is the strength of all edges per block, for losses whose edges are chosen later; None chooses those of
    groups here. First all groups have one strength, from the largest on; then each is changed on its own.
    """
    edges = edge_share is None
    if len(run.X) < LEAST_IMAGES:
        return GroupChoice(Shares.equal(groups, DEFAULT_SHARE, edges))
    search = _Search(windows(run, seed), forms, groups, seed, edge_share)
    points: list[PathPoint[object]] = []
    best = _Trial(Shares.equal(groups, SHARES[0], edges), math.inf, ())
    starts: tuple[GraphModel | None, ...] = (None,) * FOLDS
    worse = 0
    for share in SHARES:
        trial = search.trial(Shares.equal(groups, share, edges), starts)
        if trial is None:
            break
        points.append(PathPoint(_rounded(share * labelled_per_image(run.states)), score=trial.error))
        starts = trial.models
        worse = 0 if trial.error < best.error else worse + 1
        best = min(best, trial, key=lambda of: of.error)
        if worse == PATIENCE:
            break
    if best.shares == Shares.equal(groups, SHARES[0], edges) and best.models:  # the groups may be of no use at all
        trial = search.trial(Shares.equal(groups, EXTRA_SHARE, edges), best.models)
        best = trial if trial is not None and trial.error < best.error else best
    names = [*(groups if len(groups) > 1 else ()), *(["edges"] if edges else [])]
    for name in names:
        for factor in FACTORS:
            changed = search.trial(best.shares.changed(name, factor), best.models) if best.models else None
            if changed is not None and changed.error < REFINEMENT_ERROR_RATIO * best.error:
                best = changed
                break
    if not best.models:  # no time for one
        return GroupChoice(Shares.equal(groups, DEFAULT_SHARE, edges))
    # what keeps a model from learning images by heart is needed less the more images there are
    shares = best.shares.scaled(min(1.0, len(search.run.X) / len(run.X)))
    start = replace(best.models[0], w=np.mean([model.w for model in best.models], axis=0))
    return GroupChoice(shares, tuple(points), best.error, search.training_error(best), len(search.run.X), start)


def windows(run: BlockTraining, seed: int) -> BlockTraining:
    """Return the training on at most so many images and blocks: random images, and a random window of larger ones."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(run.X))[:MOST_IMAGES]).tolist()
    some = run.subset(chosen)
    most = MOST_BLOCKS / len(chosen)
    X, states = [], []
    for x, of in zip(some.X, some.states, strict=True):
        h, w = x.shape[:2]
        scale = min(1.0, math.sqrt(most / (h * w)))
        rows, columns = (min(n, max(LEAST_WINDOW, round(scale * n))) for n in (h, w))
        top, left = int(rng.integers(h - rows + 1)), int(rng.integers(w - columns + 1))
        place = slice(top, top + rows), slice(left, left + columns)
        X.append(x[place])
        states.append(of.reshape(h, w)[place].ravel())
    known = [k for k, of in enumerate(states) if (of >= 0).any()]
    return replace(some, X=X, states=states).subset(known)


@dataclass(frozen=True, eq=False)
class _Trial:
    shares: Shares
    error: float  # of held-out images
    models: tuple[GraphModel, ...]  # of each fold


class _Search:
    """Folds of images, on which strengths are tried."""

    def __init__(
        self,
        run: BlockTraining,
        forms: tuple[str, str],
        groups: Mapping[str, Ids],
        seed: int,
        edge_share: float | None,
    ) -> None:
        self.n_threads = run.training.options.n_threads  # folds are shared among threads, with one each
        run = replace(run, training=replace(run.training, options=replace(run.training.options, n_threads=1)))
        engine = run.training.inference
        if isinstance(engine, IterativeEngine) and getattr(engine, "max_iterations", 0) > SWEEPS["max_iterations"]:
            run = replace(run, training=replace(run.training, inference=with_options(engine, **SWEEPS)))
        self.run, self.groups, self.edge_share = run, groups, edge_share
        self.field = run.encoder.field(*forms)
        self.per_share = labelled_per_image(run.states)
        order = np.random.default_rng((seed, 1)).permutation(len(run.X)).tolist()
        self.held_out = [sorted(order[k::FOLDS]) for k in range(FOLDS)]
        self.others = [sorted(set(order) - set(held)) for held in self.held_out]

    def trial(self, shares: Shares, starts: Sequence[GraphModel | None]) -> _Trial | None:
        """Return what the strengths do on the images held out; None if there is no time left."""

        def fold(k: int) -> tuple[GraphModel | None, tuple[int, int]]:
            model = self._fit(self.run.subset(self.others[k]), shares, starts[k])
            return model, (0, 0) if model is None else wrong_blocks(self.run.subset(self.held_out[k]), model)

        found = list(in_threads(fold, range(FOLDS), self.n_threads))
        models = tuple(model for model, _ in found if model is not None)
        if len(models) < FOLDS:
            return None
        wrong, known = np.sum([counts for _, counts in found], axis=0)
        return _Trial(shares, float(wrong / max(1, known)), models)

    def training_error(self, trial: _Trial) -> float:
        """Return the error of the models of a trial on the images that they were trained on."""
        pairs = zip(self.others, trial.models, strict=True)
        wrong, known = np.sum([wrong_blocks(self.run.subset(others), model) for others, model in pairs], axis=0)
        return float(wrong / max(1, known))

    def _fit(self, run: BlockTraining, shares: Shares, start: GraphModel | None) -> GraphModel | None:
        late = False

        def in_time(_: Iteration) -> None:
            nonlocal late
            late = time.monotonic() > run.deadline
            if late:
                raise StopTraining

        blocks = sum(int((of >= 0).sum()) for of in run.states)
        edge_strength = 1.0 if self.edge_share is None else self.edge_share * blocks
        penalty = shares.penalty(self.field, self.groups, self.per_share, edge_strength)
        options = replace(
            run.training.options,
            penalty=penalty,
            solver="lbfgs",
            tolerance=TOLERANCE,
            max_iterations=FIRST if start is None else ITERATIONS,
        )
        with naming_images(run.names):
            states = np.concatenate(run.states)
            done = replace(run.training, options=options).run(run.encoder, run.X, states, None, [in_time], start)
        if done.result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return None if late else done.model


def wrong_blocks(run: BlockTraining, model: GraphModel) -> tuple[int, int]:
    """Return (how many of the labelled blocks a model finds wrong, how many there are)."""
    wrong = known = 0
    for x, of in _batches(run):
        data = run.encoder.training_data(x, of, None, "all")
        found = quick_marginals(model, model.field.potentials(data, model.w)).nodes.argmax(axis=1)
        truth = np.asarray(data.labels)
        wrong += int(((found != truth) & (truth >= 0)).sum())
        known += int((truth >= 0).sum())
    return wrong, known


def _batches(run: BlockTraining, most: int = 100_000) -> Iterator[tuple[list[Array], NDArray[np.int32]]]:
    """Yield some images at a time, with their states."""
    X: list[Array] = []
    states: list[Ids] = []
    for x, of in zip(run.X, run.states, strict=True):
        X.append(x)
        states.append(of)
        if sum(map(len, states)) >= most:
            yield X, np.concatenate(states)
            X, states = [], []
    if X:
        yield X, np.concatenate(states)


def _rounded(strength: float) -> float:
    """Return a strength with three digits, so that names of penalties are short."""
    return float(f"{strength:.3g}")
