"""GraphCRF: conditional random fields on any graph as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Ids, Samples, Tabular
from crfkit.errors import ModelFileError
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.encoding.tables_or_graphs import learn_encoder
from crfkit.graph.estimator.pairwise import PairwiseEstimator
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.model import Encoder, GraphModel
from crfkit.graph.training.problem import LossChoice
from crfkit.protocols import Penalty, Solver
from crfkit.solvers import StoppingRule
from crfkit.solvers.parts.loop import Callback
from crfkit.training.tags import TableInputs
from crfkit.warn import warn_caller


class GraphCRF(TableInputs, PairwiseEstimator):
    """Conditional random field on graphs, with weights on nodes and edges.

    It learns from tables or from graphs, depending on X.

    Tables (multi-label, multi-output): X [samples, features] is an array, a sparse matrix, a data frame or None (a
    field without inputs). Y [samples, variables] holds labels, None or NaN where a label is unknown. Every row is a
    graph of the same variables, with weights for each variable and each edge. Columns may have different labels;
    ``classes_`` is a list of arrays.

    Graphs: X is a list of samples, Y a list with an array of labels for each (or, for networkx, a dict by node). A
    sample is a dict with "edges", "features" [nodes, features], "edge_features" [edges, features] and, if there are no
    features, "n_nodes"; a tuple (features, edges[, edge_features]); or a networkx graph with the attribute "features".
    One graph may also be given without a list: ``fit((features, edges), y)``, ``predict((features, edges))``.
    All nodes share their weights, and so do all edges; ``classes_`` is one array. Unknown labels are None, NaN or
    masked, and −1 unless the labels are −1 and 1.

    Parameters
    ----------
    graph : the edges of a table: "complete", "none", pairs of columns (numbers or names), a :class:`Graph` or a
        networkx graph
    inference : "auto" (exact where that is cheap, otherwise "trw"), "enumerate", "tree", "junction", "halves", "bp",
    "trw",
        "mean-field", "gibbs", or an engine with its options
    sweeps : maximum number of sweeps of iterative inference ("bp", "trw", "mean-field" by name) for each evaluation of
        the loss in training, beginning where the last one ended; None for the engine's own limit, 1000
    loss : "auto" (the likelihood; for tables that are too expensive for exact inference the pseudo-likelihood, which an
        ApproximationWarning reports), "likelihood" (as `inference` computes it), "pseudo-likelihood", "composite",
        "contrastive-divergence", "persistent-contrastive-divergence"; "softmax-margin" and "hinge", which cost 1 for
        every wrong node; or a function of (data, field), to give a loss its options
    penalty : a member of :mod:`crfkit.penalties`. It acts on the weights of standardised features. None for L2(1); for
        tables of 50 rows or more with inputs, trained by a likelihood or pseudo-likelihood without `edge_penalty`, the
        L2 strengths of nodes and of edges that predict held-out rows best
    edge_penalty : the penalty of edge weights; None for `penalty`, and for ten times its strength if `penalty` is an
        L2 and the edges of a table have features
    solver : a name of :data:`crfkit.solvers.SOLVERS`, or a solver; "auto" is "adam" for contrastive divergence, which
        has a gradient and no value, and for the hinge, which is not smooth
    node_form : "full", "reference" or "ising"; None for "reference" with tables, "full" with graphs
    edge_form : "full", "symmetric", "potts", "ising", "reference", "minimal" or "ordinal"; None for "reference" with
        tables, "symmetric" with graphs, where the order of an edge's ends rarely has a meaning
    edge_features : whether edges have features, from the row (tables) or from the sample (graphs); None for graphs
        only. A table has many edges, each with a weight for every feature of the row, which overfits unless there are
        many rows
    intercept : whether to put a one before the features
    standardize : whether to train on features with mean 0 and variance 1 (sparse features are scaled but not centred).
        Weights are reported, and saved, on the scale of the inputs
    decode : how to predict: "auto" (optimal where that is cheap), "tree", "junction", "max-product", "icm",
        "graph-cut", "qpbo", "alpha-expansion", "enumerate", or "marginal" (the most probable label of every node)
    tolerance : stop when the objective decreases by less than this, relatively, over ten iterations, or when
        ``‖g‖ ≤ tolerance·max(1, ‖w‖)``; or a rule of :mod:`crfkit.solvers.parts.stopping`
    max_iterations : maximum number of iterations; None for the solver's own limit
    n_threads : number of threads; None for all cores
    random_state : seed of solvers, losses and engines that draw random numbers; None for 0
    verbose : 1 prints a line per iteration
    warm_start : whether to begin at the weights of the last fit, if it had the same classes, features and forms
    cluster : None to train in this process; or a Dask cluster on which to train: an address ("tcp://host:8786"),
        "local:4" for four processes on this machine, a Dask client or cluster, or a
        :class:`crfkit.distributed.Cluster` with options. The graphs are sent to the workers; inference differs only in
        where it starts after a worker is lost. Needs ``pip install 'crfkit[distributed]'``
    device : None to train with the compiled core; "cuda" or "cuda:1" to train on a GPU; "torch:cpu" for the same code
        on the CPU. The optimum and the model file are the same. For the loss "pseudo-likelihood", and solvers that do
        not need the compiled core. Needs ``pip install 'crfkit[torch]'``

    Attributes
    ----------
    classes_ : the labels, sorted; for a table a list with an array for each variable
    result_ : how training went (:class:`crfkit.result.Result`)
    node_weights_, edge_weights_ : weights by name
    inference_status_ : how far the last inference can be trusted
    decoding_ : how the last prediction was made (method, score of each sample, whether it is optimal)

    Examples
    --------
    >>> from crfkit import GraphCRF
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    >>> Y = [["sun", "dry"], ["rain", "wet"], ["rain", "wet"], ["sun", "dry"]]
    >>> crf = GraphCRF().fit(X, Y)
    >>> crf.predict([[1.0, 0.5]]).tolist()
    [['rain', 'wet']]
    >>> crf.predict([[0.5, 0.5]], observed=[[None, "wet"]]).tolist()
    [['rain', 'wet']]
    """

    def __init__(
        self,
        graph: object = "complete",
        inference: str | Engine = "auto",
        sweeps: int | None = None,
        loss: LossChoice = "auto",
        penalty: Penalty | None = None,
        edge_penalty: Penalty | None = None,
        solver: str | Solver = "auto",
        node_form: str | None = None,
        edge_form: str | None = None,
        edge_features: bool | None = None,
        intercept: bool = True,
        standardize: bool = True,
        decode: str = "auto",
        tolerance: float | StoppingRule = 1e-5,
        max_iterations: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        cluster: object = None,
        device: str | None = None,
    ) -> None:
        self.graph, self.edge_features, self.intercept = graph, edge_features, intercept
        self.node_form, self.edge_form, self.standardize = node_form, edge_form, standardize
        self.inference, self.sweeps, self.decode = inference, sweeps, decode
        self.loss, self.penalty, self.edge_penalty = loss, penalty, edge_penalty
        self.solver, self.tolerance, self.max_iterations = solver, tolerance, max_iterations
        self.n_threads, self.random_state = n_threads, random_state
        self.verbose, self.warm_start, self.cluster = verbose, warm_start, cluster
        self.device = device

    def fit(
        self, X: Samples, Y: Samples, sample_weight: ArrayLike | None = None, callbacks: Sequence[Callback] = ()
    ) -> GraphCRF:
        """Learn from a table or from graphs; sample_weight is how many times each row or graph counts.

        Callbacks see every iteration. On Ctrl-C the model so far is kept and KeyboardInterrupt is raised.
        """
        return self._fit(self._training(), *self._learn(X, Y), sample_weight, callbacks)

    def _learn(self, X: Samples, Y: Samples) -> tuple[Encoder, Tabular, Ids]:
        return learn_encoder(
            X,
            Y,
            graph=self.graph,
            intercept=self.intercept,
            edge_features=self.edge_features,
            tell=lambda note: warn_caller(note, UserWarning),
        )

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None) -> GraphCRF:
        """Open a model file. The estimator can predict; its options are those that the file records."""
        model = GraphModel.load(path, n_threads)
        encoder = model.encoder
        if encoder.kind == "grid":
            raise ModelFileError(f"{path}: this is a model of images; open it with GridCRF.load")
        crf = cls(
            graph=encoder.structure if isinstance(encoder, TableEncoder) else "complete",
            edge_features=encoder.edge_inputs,
            intercept=encoder.intercept,
            n_threads=n_threads,
            **cls._recorded(model),
        )
        crf._set_model(model)
        return crf
