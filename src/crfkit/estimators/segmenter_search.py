"""Penalties of a segmenter: one, or several that are tried on held-out images."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crfkit.encoders.image_pairs import Pairs, StrengthPoint
from crfkit.estimators.segmenter_fit import BlockTraining
from crfkit.estimators.segmenter_prediction import FittedSegmenter
from crfkit.features.image import Image
from crfkit.protocols import Penalty
from crfkit.result import Result, Status
from crfkit.training.options import make_seed

# Strengths of L2 on edge weights under the pseudo-likelihood, per labelled block: to choose from, and without a choice.
EDGE_SHARES = (30.0, 3.0, 0.3, 0.1, 0.03)
ONE_IMAGE = 30.0


class PenaltySearch(FittedSegmenter):
    """Trains :class:`crfkit.ImageSegmenter` with penalties one after another and keeps the best model."""

    validation_fraction: float
    random_state: Any
    path_: tuple[StrengthPoint, ...]
    result_: Result

    def _choose_edges(self, run: BlockTraining, given: Pairs, raw: Callable[[Any], Any]) -> None:
        """Train with a stronger penalty on edges than on nodes, chosen on held-out images, then on all images.

        The pseudo-likelihood is given the true labels of neighbours, which in smooth masks say nearly everything: with
        one strength for all weights couplings grow far too strong for inference, where neighbours are uncertain.
        """
        share = ONE_IMAGE
        if len(given.images) > 1:
            others, held_out = given.draw_ids(self.validation_fraction, make_seed(self.random_state))
            part, test = run.subset(others), given.take(held_out)
            tested = [np.asarray(raw(run.X[k]), dtype=np.float32) for k in held_out]
            run.crf.set_params(warm_start=True)
            penalties = [(of, part.edge_penalty(of)) for of in EDGE_SHARES]
            share = self._try_penalties(part, penalties, test, tested)
            if self.result_.status is Status.TIME_LIMIT:
                return
        self._train(run, run.edge_penalty(share))

    def _train(self, run: BlockTraining, penalty: Penalty | None = None, keep: bool = True) -> None:
        """Train with a penalty, and keep the model if told to, also that of an interrupted training."""
        try:
            run.fit(penalty)
        except KeyboardInterrupt:
            if run.begun and keep:
                self._keep(run)
            raise
        if keep:
            self._keep(run)

    def _keep(self, run: BlockTraining) -> None:
        self._set_model(run.model)
        self.result_ = run.crf.result_

    def _try_penalties(
        self,
        run: BlockTraining,
        penalties: Sequence[tuple[float, Penalty]],
        test: Pairs,
        tested: Sequence[Image],
    ) -> float:
        """Keep the model with the fewest wrong pixels of the test images, and return its strength."""
        best, chosen = np.inf, penalties[0][0]
        for strength, penalty in penalties:
            begin = time.perf_counter()
            self._train(run, penalty, keep=not self.path_)
            seconds = time.perf_counter() - begin
            model, result = run.model, run.crf.result_
            pairs = zip(tested, test.masks, strict=True)
            error = test.error(model.segment_features(v, mask.shape, False).mask for v, mask in pairs)
            nonzeros = int(np.count_nonzero(model.field.w))
            point = StrengthPoint(strength, error, nonzeros, result.value, result.iterations, seconds)
            self.path_ = (*self.path_, point)
            if error < best:
                best, chosen = error, strength
                self._keep(run)
            if result.status is Status.TIME_LIMIT:
                break
        return chosen
