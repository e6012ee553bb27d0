"""GraphCRF: conditional random fields on any graph as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Floats
from crfkit.encoders.graphs import SampleEncoder, is_sample
from crfkit.encoders.one_graph import is_one_graph, labels_of_one
from crfkit.encoders.tables import TableEncoder
from crfkit.errors import ModelFileError, ParameterError
from crfkit.estimators.pairwise import PairwiseEstimator
from crfkit.estimators.tags import TableInputs
from crfkit.models.graph import Encoder, GraphModel
from crfkit.protocols import Penalty
from crfkit.solvers import StoppingRule
from crfkit.solvers.parts.loop import Callback
from crfkit.warn import warn_caller


def _tell_constant(note: str) -> None:
    warn_caller(note, UserWarning)


class GraphCRF(TableInputs, PairwiseEstimator):
    """Conditional random field on graphs, with weights on nodes and edges.

    It learns from tables or from graphs; which one, X tells.

    Tables (multi-label, multi-output): X [samples, features] is an array, a sparse matrix, a data frame or None (a
    field without inputs), Y [samples, variables] holds a label each, or None or NaN where it is not known. Every row is
    a graph of the same variables, with weights for each variable and each edge. Columns may have different labels;
    ``classes_`` is a list of arrays.

    Graphs: X is a list of samples, Y a list with an array of labels each (or, for networkx, a dict by node). A sample
    is a dict with "edges", "features" [nodes, features], "edge_features" [edges, features] and, where there are no
    features, "n_nodes"; a tuple (features, edges[, edge_features]); or a networkx graph with the attribute "features".
    One graph may also be given without a list: ``fit((features, edges), y)``, ``predict((features, edges))``.
    All nodes share their weights, and so do all edges; ``classes_`` is one array. Labels may be unknown: None, NaN or
    masked, and −1 unless the labels are −1 and 1.

    Parameters
    ----------
    graph : of tables: "complete", "none", pairs of columns (numbers or names), a :class:`Graph` or a networkx graph
    inference : "auto" (exact where that is cheap, else "trw"; a table that is too expensive for exact inference is
        announced by an ApproximationWarning), "enumerate", "tree", "junction", "bp", "trw", "mean-field", "gibbs", or
        an engine with its options
    sweeps : the most that iterative inference ("bp", "trw", "mean-field" by name) does for each evaluation of the loss
        in training, from where it was at the last; None for the engine's own limit, 1000
    loss : "likelihood" (as `inference` computes it), "pseudo-likelihood", "composite", "contrastive-divergence",
        "persistent-contrastive-divergence"; "softmax-margin" and "hinge", which cost 1 for every wrong node; or a
        function of (data, field), to give a loss its options
    penalty : a member of :mod:`crfkit.penalties`; None for L2(1). It acts on the weights of standardised features
    edge_penalty : that of edge weights; None: `penalty`, and ten times its strength for tables with inputs where it is
        an L2
    solver : a name of :data:`crfkit.solvers.SOLVERS`, or a solver; "auto" is "adam" for contrastive divergence, which
        has a gradient and no value, and for the hinge, which has corners
    node_form : "full", "reference" or "ising"; None: "reference" for tables, "full" for graphs
    edge_form : "full", "symmetric", "potts", "ising", "reference", "minimal" or "ordinal"; None: "reference" for
        tables, "symmetric" for graphs, where the order of an edge's ends seldom has a meaning
    edge_features : whether edges have features: those of the row (tables) or of the sample (graphs); None: graphs only.
        A table has many edges, each with a weight for every feature of the row, which overfits unless there are many
        rows
    intercept : whether to put a one before the features
    standardize : whether to train on features with mean 0 and variance 1 (sparse ones are scaled and not centred).
        Weights are reported, and saved, on the scale of the inputs
    decode : how to predict: "auto" (optimal where that is cheap), "tree", "junction", "max-product", "icm",
        "graph-cut", "qpbo", "alpha-expansion", "enumerate", or "marginal" (the most probable label of every node)
    tolerance : stop when the objective decreases by less than this, relatively, over ten iterations, or when
        ``‖g‖ ≤ tolerance·max(1, ‖w‖)``; or a rule of :mod:`crfkit.solvers.parts.stopping`
    max_iterations : stop after so many; None for the solver's own limit
    n_threads : None for all cores
    random_state : the seed of solvers, losses and engines that draw; None is 0
    verbose : 1 prints a line per iteration
    warm_start : begin at the weights of the last fit, if it had the same classes, features and forms

    Attributes
    ----------
    classes_ : the labels, sorted; a list with an array for each variable of a table
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
        graph: Any = "complete",
        inference: Any = "auto",
        sweeps: int | None = None,
        loss: Any = "likelihood",
        penalty: Penalty | None = None,
        edge_penalty: Penalty | None = None,
        solver: Any = "auto",
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
    ) -> None:
        self.graph = graph
        self.inference = inference
        self.sweeps = sweeps
        self.loss = loss
        self.penalty = penalty
        self.edge_penalty = edge_penalty
        self.solver = solver
        self.node_form = node_form
        self.edge_form = edge_form
        self.edge_features = edge_features
        self.intercept = intercept
        self.standardize = standardize
        self.decode = decode
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(
        self, X: Any, Y: Any, sample_weight: ArrayLike | None = None, callbacks: Sequence[Callback] = ()
    ) -> GraphCRF:
        """Learns from a table or from graphs; sample_weight counts each row or graph so many times.

        Callbacks see every iteration. On Ctrl-C the model so far is kept and KeyboardInterrupt is raised.
        """
        training = self._training()
        encoder: Encoder
        if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
            X = list(X)
        if is_one_graph(X):
            X, Y = [X], labels_of_one(Y)
        if isinstance(X, (list, tuple)) and len(X) and is_sample(X[0]):
            if not isinstance(self.graph, str) or self.graph != "complete":
                raise ParameterError("samples that are graphs bring their own edges; `graph` is for tables")
            features = True if self.edge_features is None else self.edge_features
            encoder, states = SampleEncoder.learn(X, Y, self.intercept, features)
        else:
            encoder, states = TableEncoder.learn(
                self.graph, X, Y, self.intercept, bool(self.edge_features), _tell_constant
            )
        return self._fit(training, encoder, X, states, sample_weight, callbacks)

    # --- prediction: what is given as one graph comes back as one

    def predict(self, X: Any = None, observed: Any = None) -> Any:
        """As of :class:`PairwiseEstimator`; for one graph an array with a label per node."""
        found = super().predict(*self._listed(X, observed))
        return found[0] if self._is_one(X) else found

    def predict_marginals(self, X: Any = None, observed: Any = None) -> Any:
        """As of :class:`PairwiseEstimator`; for one graph an array [nodes, labels]."""
        found = super().predict_marginals(*self._listed(X, observed))
        return found[0] if self._is_one(X) else found

    def predict_edge_marginals(self, X: Any = None, observed: Any = None) -> Any:
        """As of :class:`PairwiseEstimator`; for one graph an array [edges, K, K]."""
        found = super().predict_edge_marginals(*self._listed(X, observed))
        return found[0] if self._is_one(X) else found

    def sample(self, X: Any = None, n_samples: int = 1, random_state: Any = None, observed: Any = None) -> Any:
        """As of :class:`PairwiseEstimator`; for one graph an array [n_samples, nodes]."""
        graphs, known = self._listed(X, observed)
        found = super().sample(graphs, n_samples, random_state, known)
        return found[0] if self._is_one(X) else found

    def log_partition(self, X: Any = None, observed: Any = None) -> Floats:
        """log Z of each sample, over the labellings that agree with `observed`; as the engine approximates it."""
        return super().log_partition(*self._listed(X, observed))

    def log_likelihood(self, X: Any, Y: Any) -> Floats:
        """log p(Y | x) of each sample, summed over labels that are unknown."""
        return super().log_likelihood(*self._listed(X, Y))

    def score(self, X: Any, Y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Mean accuracy of nodes: the share of known labels that `predict` finds; with sample_weight, weighted."""
        return super().score(*self._listed(X, Y), sample_weight)

    def _is_one(self, X: Any) -> bool:
        return isinstance(self._fitted().encoder, SampleEncoder) and is_one_graph(X)

    def _listed(self, X: Any, Y: Any) -> tuple[Any, Any]:
        return ([X], labels_of_one(Y)) if self._is_one(X) else (X, Y)

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None) -> GraphCRF:
        """Opens a model file. The estimator can predict; its options are those that the file records."""
        model = GraphModel.load(path, n_threads)
        encoder = model.encoder
        if encoder.kind == "grid":
            raise ModelFileError(f"{path}: this is a model of images; open it with GridCRF.load")
        crf = cls(
            graph=encoder.structure if isinstance(encoder, TableEncoder) else "complete",
            inference=model.inference,
            node_form=model.field.node_form,
            edge_form=model.field.edge_form,
            edge_features=encoder.edge_inputs,
            intercept=encoder.intercept,
            standardize=bool(model.training.get("standardised", False)),
            decode=model.decode,
            n_threads=n_threads,
        )
        crf._set_model(model)
        return crf
