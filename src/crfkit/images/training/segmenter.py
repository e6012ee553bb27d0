"""Training of segmenters: from options and images with masks to a model, without scikit-learn."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._checks import check_optional_count
from crfkit._values import Samples
from crfkit.errors import ParameterError
from crfkit.files.masks import MaskRules
from crfkit.graph.encoding.grids import cached_grid
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.model import GraphModel
from crfkit.graph.training.problem import LossChoice
from crfkit.graph.training.record import with_chosen_engine
from crfkit.graph.training.train import GraphTraining
from crfkit.images.blocks import UPSAMPLING
from crfkit.images.features import Image, ImageFeatures
from crfkit.images.model.inference import limited_engine
from crfkit.images.model.segmenter import SegmenterModel
from crfkit.images.pairs import Pairs
from crfkit.images.training.blocks import Blocks
from crfkit.images.training.groups import (
    GroupChoice,
    choose_shares,
    far_below,
    labelled_per_image,
    large_groups,
    wrong_blocks,
)
from crfkit.images.training.search import (
    ONE_IMAGE,
    BlockTraining,
    Search,
    checkpoints,
    choose_edge_penalty,
    train_once,
    try_penalties,
)
from crfkit.images.training.size import (
    SAMPLE_ITERATIONS,
    BlockChoice,
    Measured,
    SegmenterEstimate,
    choose_blocks,
    sample,
)
from crfkit.losses import LOSSES
from crfkit.names import full_name
from crfkit.penalties import L1, L2
from crfkit.pool import in_threads
from crfkit.protocols import Kind, Penalty
from crfkit.result import Result, TraceRow
from crfkit.solvers.parts.loop import Callback
from crfkit.training.options import SolverOptions
from crfkit.training.path import PathPoint
from crfkit.training.resources import peak_memory
from crfkit.wording import Naming, in_python

CHECKPOINT_SECONDS = 60.0
WITHOUT_INFERENCE = ("pseudo-likelihood", "composite")
CHOOSES_PENALTY = ("auto", "likelihood", "softmax-margin", *WITHOUT_INFERENCE)  # losses on the scale of the likelihood
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class SegmenterFit:
    """A trained segmenter, and how training went."""

    model: SegmenterModel
    result: Result
    path: tuple[PathPoint[object], ...]  # the strengths that were tried
    n_images: int  # how many images were used, held-out ones included
    interrupted: bool  # whether Ctrl-C ended training
    choice: GroupChoice | None = None  # how the penalty of groups of features was chosen, if it was
    notes: tuple[str, ...] = ()  # what was done to files, and the size of blocks if training chose it
    concerns: tuple[str, ...] = ()  # what a user should know about how training ended


@dataclass(frozen=True, kw_only=True)
class SegmenterTraining:
    """Trains segmenters; the options are named as in :class:`crfkit.ImageSegmenter`."""

    features: ImageFeatures
    masks: MaskRules = field(default_factory=MaskRules)
    upsample: str = "bilinear"
    inference: str | Engine = "auto"
    sweeps: int | None = 50
    loss: LossChoice = "likelihood"
    node_form: str | None = None
    edge_form: str | None = None
    decode: str = "marginal"
    strengths: tuple[float, ...] | None = None
    validation_fraction: float = 0.2
    cache: str | Path | None = None
    time_limit: float | None = None
    options: SolverOptions = field(default_factory=SolverOptions)

    auto_block: bool = False  # whether blocks may be larger than those of `features`, to fit into memory
    centred: bool = True  # whether differences |h_i − h_j| are centred
    naming: Naming = in_python  # how messages write options

    def check(self, validation: tuple[Samples, Samples] | None = None) -> None:
        """Raise ParameterError if an option is out of range."""
        check_optional_count(sweeps=self.sweeps)
        if self.upsample not in UPSAMPLING:
            raise ParameterError(f"upsample must be one of {', '.join(UPSAMPLING)}, not {self.upsample!r}")
        limit = self.time_limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, numbers.Real) or not limit > 0):
            raise ParameterError(f"time_limit must be None or a positive number of seconds, not {limit!r}")
        self._field_training(self.inference, self._forms(2)).check()
        if self.strengths is None:
            if validation is not None:
                raise ParameterError("a validation set is for choosing among strengths; give strengths too")
            return
        penalty = self.options.penalty
        if penalty is not None and (not isinstance(penalty, Penalty) or penalty.strength is None):
            raise ParameterError(f"strengths need a penalty that has a strength, such as L1(), not {penalty!r}")
        if not self.strengths or not all(np.isfinite(s) and s >= 0 for s in self._strengths()):
            raise ParameterError(f"strengths must be finite numbers >= 0, not {list(self.strengths)!r}")

    def run(
        self,
        images: Samples,
        masks: Samples,
        validation: tuple[Samples, Samples] | None = None,
        *,
        skip_bad: bool = False,
        start: SegmenterModel | str | Path | None = None,
        progress: Progress | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint_every: float = CHECKPOINT_SECONDS,
        checkpoint: str | Path | None = None,
    ) -> SegmenterFit:
        """Learn from images and their masks; the arguments are as in :meth:`crfkit.ImageSegmenter.fit`."""
        begin = time.monotonic()
        self.check(validation)
        given, test, n_images = self._read(images, masks, validation, skip_bad)
        size = self._choose_blocks(given)
        blocks = self._learn_blocks(given, size.features, progress)
        concerns: list[str] = []
        n_classes = len(blocks.encoder.classes)
        forms = self._forms(n_classes)
        begun = None if start is None else blocks.begin(start, forms)

        engine = self._engine(blocks, n_classes)

        choice: GroupChoice | None = None

        def make(trained: GraphModel) -> SegmenterModel:
            record = trained.training if choice is None else {**trained.training, "penalty_choice": choice.record()}
            field = replace(trained, inference=self.inference, decode=self.decode, training=record)
            return blocks.model(with_chosen_engine(field, engine), self.masks, self.upsample)

        if checkpoint is not None:
            callbacks = [*callbacks, checkpoints(Path(checkpoint), checkpoint_every, blocks.encoder, forms, make)]
        run = BlockTraining(
            training=self._field_training(engine, forms),
            encoder=blocks.encoder,
            X=blocks.X,
            states=blocks.states,
            names=given.image_names,
            make=make,
            callbacks=callbacks,
            deadline=begin + (math.inf if self.time_limit is None else float(self.time_limit)),
            tell=concerns.append,
        )
        pseudo = full_name(self.loss) in WITHOUT_INFERENCE
        groups = large_groups(blocks.features) if self._chooses_penalty() else {}
        if groups:
            graph_field, per_share = blocks.encoder.field(*forms), labelled_per_image(blocks.states)
            choice = choose_shares(run, forms, groups, self.options.seed, ONE_IMAGE if pseudo else None)
            chosen, begun = choice.shares, choice.start if begun is None else begun

            def with_edges(strength: float) -> Penalty:
                return chosen.penalty(graph_field, groups, per_share, strength)

            run = replace(run, with_edges=with_edges)
        if test is not None:
            penalty: Penalty = L1() if self.options.penalty is None else self.options.penalty
            penalties = [(strength, penalty.at(strength)) for strength in self._strengths()]
            found = try_penalties(run, penalties, test, self._compute(blocks.features, test.images), begun)
        elif full_name(self.loss) == "pseudo-likelihood" and self.options.penalty is None:
            found = choose_edge_penalty(run, given, blocks.raw, self.validation_fraction, self.options.seed, begun)
        else:
            found = train_once(run, begun, None if run.with_edges is None else run.with_edges(1.0))
        points = found.points or (() if choice is None else choice.points)
        if not found.interrupted and (concern := self._concern(run, found) if choice is None else choice.concern):
            concerns.append(concern)
        return SegmenterFit(
            found.best.model,
            found.best.result,
            points,
            n_images,
            found.interrupted,
            choice,
            (*given.remarks, *(() if size.note is None else (size.note,))),
            tuple(concerns),
        )

    def estimate(self, images: Samples, masks: Samples, *, skip_bad: bool = False) -> SegmenterEstimate:
        """Return the sizes of a training, and its memory and time from a few iterations on some of the images."""
        self.check()
        given, _, _ = self._read(images, masks, None, skip_bad)
        given.warn()
        before = peak_memory()
        choice = self._choose_blocks(given)
        features, n_classes = choice.features, len(given.classes(self.masks.multiclass))
        chosen = sample([image.shape for image in given.images], features)
        short = replace(
            self,
            features=features,
            strengths=None,
            auto_block=False,
            options=replace(self.options, penalty=L2(1.0), solver="lbfgs", max_iterations=SAMPLE_ITERATIONS),
        )
        some = given.take(chosen)
        begin = time.perf_counter()
        blocks = short._learn_blocks(some, features)
        feature_seconds = time.perf_counter() - begin
        forms = self._forms(n_classes)
        training = short._field_training(self._engine(blocks, n_classes), forms)
        rows: list[TraceRow] = []
        states = np.concatenate(blocks.states)
        training.run(blocks.encoder, blocks.X, states, None, [lambda iteration: rows.append(iteration.row)])
        last = max(1, len(rows) - 1)
        seconds = (rows[-1].seconds - rows[0].seconds) / last if len(rows) > 1 else rows[-1].seconds
        measured = Measured(sum(len(of) for of in blocks.states), feature_seconds, seconds, before)
        n_weights = blocks.encoder.field(*forms).size
        return SegmenterEstimate.of(given, choice, n_classes, n_weights, self._searches(), measured)

    # --- steps

    def _searches(self) -> bool:
        """Return whether penalties are tried on held-out images."""
        pseudo = full_name(self.loss) == "pseudo-likelihood" and self.options.penalty is None
        return self.strengths is not None or pseudo or self._chooses_penalty()

    def _chooses_penalty(self) -> bool:
        """Return whether groups of features get penalties that are chosen on held-out images."""
        if self.options.penalty is not None or self.strengths is not None or not isinstance(self.loss, str):
            return False
        takes = self.options.make_solver().handles_smooth  # some solvers know L2 of all weights only
        return full_name(self.loss) in CHOOSES_PENALTY and (takes is None or Kind.PARTS in takes)

    def _concern(self, run: BlockTraining, found: Search) -> str | None:
        """Return a warning if the model that was chosen on held-out images is far better on those it learned from."""
        scores = [point.score for point in found.points if point.score is not None]
        if not scores:
            return None
        wrong, known = wrong_blocks(run, found.best.field)
        return far_below(wrong / max(1, known), min(scores), "with the best strength")

    def _engine(self, blocks: Blocks, n_classes: int) -> Any:
        """Return the engine of training, which depends on the largest image."""
        largest = max((x.shape[:2] for x in blocks.X), key=np.prod)
        return limited_engine(
            self.inference,
            lambda: cached_grid(*largest).repeat(len(blocks.X)),
            n_classes,
            self.sweeps,
            self.options.n_threads,
        )

    def _read(
        self, images: object, masks: object, validation: tuple[object, object] | None, skip_bad: bool
    ) -> tuple[Pairs, Pairs | None, int]:
        """Return the images to learn from, those to choose strengths on, and how many there were."""
        given = Pairs.read(images, masks, self.masks, skip_bad=skip_bad).known()
        n_images = len(given.images)
        if validation is not None:
            return given, Pairs.read(*validation, self.masks), n_images
        if self.strengths:
            return *given.draw(self.validation_fraction, self.options.seed), n_images
        return given, None, n_images

    def _choose_blocks(self, given: Pairs) -> BlockChoice:
        """Return the features with the size of blocks; raise DataError if there is not enough memory."""
        n_classes = len(given.classes(self.masks.multiclass))  # reports what is wrong before features are computed
        return choose_blocks(
            self.features.measured(given.images[0]),
            self.auto_block,
            [image.shape for image in given.images],
            n_classes,
            self.options.n_threads,
        )

    def _learn_blocks(self, given: Pairs, features: ImageFeatures, progress: Progress | None = None) -> Blocks:
        values = self._compute(features, given.images, progress)
        name = full_name(self.loss)  # a loss that cannot sum over unknown labels is given the blocks with labels only
        sums = name == "auto" or (isinstance(name, str) and LOSSES.by_option("graph", name).sums_over_unknown)
        return Blocks.learn(given, self.masks, features, values, centred=self.centred, sums=sums)

    def _strengths(self) -> list[float]:
        """Return the different strengths, the largest first."""
        return sorted({float(strength) for strength in self.strengths or ()}, reverse=True)

    def _forms(self, n_classes: int) -> tuple[str, str]:
        node_form, edge_form = ("ising", "ising") if n_classes == 2 else ("full", "potts")
        return self.node_form or node_form, self.edge_form or edge_form

    def _field_training(self, inference: str | Engine, forms: tuple[str, str]) -> GraphTraining:
        """Return how to train the field. It announces no strong edges: their penalty is chosen here, or was given."""
        return GraphTraining(
            inference=inference,
            loss=self.loss,
            node_form=forms[0],
            edge_form=forms[1],
            decode=self.decode,
            options=self.options,
            naming=self.naming,
        )

    def _compute(
        self, features: ImageFeatures, pictures: Sequence[Image], progress: Progress | None = None
    ) -> list[Image]:
        """Return the features [h, w, F] of the blocks of each image."""
        out = []
        for values in in_threads(
            lambda picture: features.compute_cached(picture, self.cache), pictures, self.options.n_threads
        ):
            out.append(values)
            if progress is not None:
                progress(len(out), len(pictures))
        return out
