"""GridCRF: conditional random fields on images and volumes as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Ids, Samples, Tabular
from crfkit.errors import ModelFileError
from crfkit.graph.encoding.grids import EdgeFeatures, GridEncoder, loaded_edge_function, naming_images
from crfkit.graph.estimator.pairwise import Given, PairwiseEstimator
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.model import Encoder, GraphModel
from crfkit.graph.training.problem import LossChoice
from crfkit.protocols import Penalty, Solver
from crfkit.solvers import StoppingRule
from crfkit.solvers.parts.loop import Callback
from crfkit.training.path import PathPoint
from crfkit.training.tags import StructuredInputs


class GridCRF(StructuredInputs, PairwiseEstimator):
    """Conditional random field on grids: a node per pixel, edges between neighbours, the same weights everywhere.

    X is a list of arrays (H, W, F), which may differ in size, or one array of images of one size. Y is a list of label
    arrays (H, W). With 6 or 26 neighbours they are volumes, (D, H, W, F) and (D, H, W). Labels may be any strings or
    numbers; unknown labels are None, NaN or masked, and −1 unless the labels are −1 and 1.

    Parameters
    ----------
    neighbours : 4 or 8 neighbours of a pixel, 6 or 26 of a voxel
    edge_features : "difference" (``|h_i − h_j|``, feature by feature), None, or a function of the features of both
        ends (two arrays [edges, F]) and, if it takes a third argument, of the steps between them (an array [edges, 2]
        of rows and columns, [edges, 3] in volumes). It returns an array [edges] or [edges, features] and should be
        symmetric in the ends
    node_features : numbers of the features (the last axis of X) that nodes have; None for all. Edges always see all
        features, so that some can be for edges only
    node_form : "full", "reference" or "ising"
    edge_form : "potts", "ising", "symmetric", "full", …
    intercept : whether to put a one before the features of nodes and of edges
    inference : as for :class:`GraphCRF`. "auto" is exact on narrow images and "trw" on others; "bp" and "mean-field"
        have several fixed points where labels are smooth and features weak, and training may stop between them
    standardize : whether to train on features of nodes and of edges with mean 0 and variance 1; weights are on the
        scale of the inputs
    sweeps, loss, penalty, edge_penalty, solver, decode, tolerance, max_iterations, n_threads, random_state, verbose,
        warm_start, cluster, device : as for :class:`GraphCRF`

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit import GridCRF
    >>> truth = np.zeros((6, 6), dtype=int)
    >>> truth[:, 3:] = 1
    >>> noise = np.random.default_rng(0).normal(0, 0.3, truth.shape)
    >>> image = (truth + noise)[..., None]
    >>> crf = GridCRF().fit([image], [truth])
    >>> bool((crf.predict([image])[0] == truth).all())
    True
    """

    def __init__(
        self,
        neighbours: int = 4,
        edge_features: EdgeFeatures = "difference",
        inference: str | Engine = "auto",
        sweeps: int | None = None,
        loss: LossChoice = "likelihood",
        penalty: Penalty | None = None,
        edge_penalty: Penalty | None = None,
        solver: str | Solver = "auto",
        node_form: str = "full",
        edge_form: str = "potts",
        intercept: bool = True,
        standardize: bool = True,
        decode: str = "auto",
        tolerance: float | StoppingRule = 1e-5,
        max_iterations: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        node_features: Sequence[int] | None = None,
        cluster: object = None,
        device: str | None = None,
    ) -> None:
        self.neighbours, self.intercept = neighbours, intercept
        self.edge_features, self.node_features = edge_features, node_features
        self.node_form, self.edge_form = node_form, edge_form
        self.standardize, self.warm_start = standardize, warm_start
        self.inference, self.decode, self.sweeps = inference, decode, sweeps
        self.loss, self.solver, self.penalty, self.edge_penalty = loss, solver, penalty, edge_penalty
        self.tolerance, self.max_iterations = tolerance, max_iterations
        self.verbose, self.n_threads, self.random_state = verbose, n_threads, random_state
        self.cluster, self.device = cluster, device

    def fit(
        self, X: Samples, Y: Samples, sample_weight: ArrayLike | None = None, callbacks: Sequence[Callback] = ()
    ) -> GridCRF:
        """Learn from images; sample_weight is how many times each image counts.

        Callbacks see every iteration. On Ctrl-C the model so far is kept and KeyboardInterrupt is raised.
        """
        training = self._training()
        with naming_images():
            return self._fit(training, *self._learn(X, Y), sample_weight, callbacks)

    def path(self, X: Samples, Y: Samples, *args: Any, **options: Any) -> tuple[PathPoint[GraphModel], ...]:
        """Return a model for each strength of the penalty; see :meth:`PairwiseEstimator.path`."""
        with naming_images():
            return super().path(X, Y, *args, **options)

    def _learn(self, X: Samples, Y: Samples) -> tuple[Encoder, Tabular, Ids]:
        encoder, states = GridEncoder.learn_images(
            X,
            Y,
            intercept=self.intercept,
            neighbours=self.neighbours,
            edges=self.edge_features,
            channels=self.node_features,
        )
        return encoder, X, states

    def _given(self, X: Samples, labels: Samples) -> Given:
        with naming_images():
            return super()._given(X, labels)

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None, edge_features: EdgeFeatures = None) -> GridCRF:
        """Open a model file. `edge_features` is the function that the model was trained with, if it was one."""
        model = GraphModel.load(path, n_threads)
        encoder = model.encoder
        if not isinstance(encoder, GridEncoder):
            raise ModelFileError(f"{path}: this is not a model of images; open it with GraphCRF.load")
        if edge_features is not None:
            encoder = replace(encoder, edges=loaded_edge_function(edge_features, encoder.edges, path))
            model = replace(model, encoder=encoder)
        crf = cls(
            neighbours=encoder.neighbours,
            edge_features=encoder.edges,
            node_features=encoder.channels,
            intercept=encoder.intercept,
            n_threads=n_threads,
            **cls._recorded(model),
        )
        crf._set_model(model)
        return crf
