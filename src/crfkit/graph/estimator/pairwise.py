"""The base of GraphCRF and GridCRF, which differ in their inputs alone."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from numpy.typing import ArrayLike

from crfkit._types import Entries, Floats, Ids, Label, Samples, Tabular
from crfkit.errors import ApproximationWarning, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.inference.marginals import Engine, InferenceStatus, Marginals
from crfkit.graph.model import DECODERS, Encoder, GraphModel, node_accuracy
from crfkit.graph.training.problem import LossChoice
from crfkit.graph.training.train import GraphTraining
from crfkit.names import check_name
from crfkit.protocols import Penalty
from crfkit.solvers.parts.loop import Callback
from crfkit.training.estimator import Estimator, warn_convergence
from crfkit.training.options import make_seed
from crfkit.training.path import Callback as PathCallback
from crfkit.training.path import PathOptions, PathPoint
from crfkit.training.placement import placement
from crfkit.training.progress import print_point
from crfkit.warn import warn_caller

Self = TypeVar("Self", bound="PairwiseEstimator")


@dataclass(frozen=True, eq=False)
class Given:
    """Inputs of a prediction: the model with the options as they are now, the encoded graphs, the known states."""

    model: GraphModel
    data: GraphData
    states: Ids | None
    X: Samples
    one: bool  # whether X was one graph without a list

    def as_given(self, found: Tabular) -> Tabular:
        """Return the result of one graph by itself, of several in a list."""
        return found[0] if self.one else found


class PairwiseEstimator(Estimator):
    """Train and predict with fields on nodes and edges. Subclasses name the options and encode the inputs."""

    inference: str | Engine
    sweeps: int | None
    loss: LossChoice
    edge_penalty: Penalty | None
    standardize: bool
    node_form: str | None
    edge_form: str | None
    decode: str
    warm_start: bool
    cluster: object
    device: str | None

    inference_status_: InferenceStatus | None

    # --- training

    def _training(self) -> GraphTraining:
        """Return the options as training takes them; raise ParameterError if one is out of range."""
        training = GraphTraining(
            inference=self.inference,
            loss=self.loss,
            node_form=self.node_form,
            edge_form=self.edge_form,
            decode=self.decode,
            sweeps=self.sweeps,
            standardize=bool(self.standardize),
            edge_penalty=self.edge_penalty,
            options=self._solver_options(),
            announce=lambda note: warn_caller(note, ApproximationWarning),
        )
        training.check()
        return training

    def _fit(
        self: Self,
        training: GraphTraining,
        encoder: Encoder,
        X: Samples,
        states: Ids,
        sample_weight: ArrayLike | None,
        callbacks: Sequence[Callback],
    ) -> Self:
        start = self.model_ if self.warm_start and hasattr(self, "model_") else None
        with placement(self.cluster, self.device) as there:
            placed = replace(training, placement=there)
            done = placed.run(encoder, X, states, sample_weight, self._with_progress(callbacks), start)
        self.inference_status_ = done.status
        self._keep(done.model, done.result, done.concerns())
        return self

    def path(
        self,
        X: Samples,
        Y: Samples,
        strengths: Iterable[float] | None = None,
        *,
        n: int = 20,
        ratio: float = 1e-3,
        sample_weight: ArrayLike | None = None,
        X_dev: Samples = None,
        Y_dev: Samples = None,
        callback: PathCallback | None = None,
    ) -> tuple[PathPoint[GraphModel], ...]:
        """Return a model for each strength of `penalty`, the largest first; each run starts from the last solution.

        `strengths`, `n`, `ratio` and `callback` are as in :func:`crfkit.regularisation_path`; an L2 penalty needs
        `strengths`. An `edge_penalty` that was given stays unchanged. With a development set each point has as its
        `score` the share of labels that its model predicts correctly. The estimator itself does not change.
        """
        if (X_dev is None) != (Y_dev is None):
            raise ParameterError("X_dev and Y_dev go together: give both or neither")
        if self.device is not None:
            raise ParameterError("path cannot be combined with a device; set device=None")
        training = self._training()
        encoder, X, states = self._learn(X, Y)
        shown = print_point if callback is None and self.verbose else callback
        judge = None if Y_dev is None else _judge(encoder, X_dev, Y_dev)
        with placement(self.cluster) as there:
            placed = replace(training, placement=there)
            return placed.path(encoder, X, states, PathOptions(strengths, n, ratio, shown), sample_weight, judge)

    def _learn(self, X: Samples, Y: Samples) -> tuple[Encoder, Tabular, Ids]:
        """Return an encoder that was learnt from the training set, the inputs as it takes them, and their states."""
        raise NotImplementedError

    # --- prediction

    def predict(self, X: Samples = None, observed: Samples = None) -> Tabular:
        """Return the labels that the decoder finds best, given the labels of `observed` that are known.

        `observed` has the form of the labels of `fit`. Unknown labels are None, NaN or masked, and −1 unless −1 is a
        label. One graph given without a list gets one array with a label per node. Afterwards ``decoding_`` shows which
        decoder was used and whether its answer is optimal.
        """
        given = self._given(X, observed)
        self.decoding_ = given.model.best(given.data, given.states)
        return given.as_given(given.model.encoder.labels(self.decoding_.labels, given.data, given.X))

    def predict_marginals(self, X: Samples = None, observed: Samples = None) -> Tabular:
        """Return p(label | x, observed labels) of every node, columns as in classes_.

        Tables: an array [samples, labels] for each variable. Graphs: an array [nodes, labels] for each graph; images:
        [H, W, labels]. Afterwards ``inference_status_`` shows how far they can be trusted.
        """
        given = self._given(X, observed)
        marginals = self._infer(given)
        return given.as_given(given.model.encoder.by_node(marginals.nodes, given.data, given.X))

    def predict_edge_marginals(self, X: Samples = None, observed: Samples = None) -> Tabular:
        """Return p(label of one end, label of the other | x, observed labels) of every edge.

        Graphs: an array [edges, K, K] for each graph, in the order of its edges; images: in the order of
        ``Graph.grid(shape, neighbours).edges``. Tables: one array [samples, edges, K, K], edges in the order of `graph`
        ("complete" is (0, 1), (0, 2), …); K is the largest number of labels of a column, and columns with fewer have
        zeros there. Rows and columns are as in classes_; ``inference_status_`` is as after :meth:`predict_marginals`.
        """
        given = self._given(X, observed)
        marginals = self._infer(given)
        return given.as_given(given.model.encoder.by_edge(marginals.edges, given.data))

    def log_partition(self, X: Samples = None, observed: Samples = None) -> Floats:
        """Return log Z of each sample, over the labellings that agree with `observed`, as the engine computes it."""
        return self._infer(self._given(X, observed)).log_z

    def log_likelihood(self, X: Samples, Y: Samples) -> Floats:
        """Return log p(Y | x) of each sample, summed over labels that are unknown.

        It is exact if inference is (``inference_status_``), otherwise as good as the engine's log Z, and a bound if
        that is one.
        """
        given = self._given(X, Y)
        assert given.states is not None
        values, marginals = given.model.log_likelihood(given.data, given.states)
        self._check_inference(marginals)
        return values

    def sample(
        self, X: Samples = None, n_samples: int = 1, random_state: object = None, observed: Samples = None
    ) -> Tabular:
        """Draw labellings from p(y | x, observed labels), along a first axis of n_samples.

        They are independent if the graph allows exact inference; otherwise they are successive states of a Gibbs
        sampler.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ParameterError(f"n_samples must be an integer >= 1, not {n_samples!r}")
        given = self._given(X, observed)
        drawn = given.model.sample(given.data, int(n_samples), make_seed(random_state), given.states)
        return given.as_given(given.model.encoder.labels(drawn, given.data, given.X))

    def score(self, X: Samples, Y: Samples, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of known labels that `predict` finds, with samples weighted by sample_weight."""
        given = self._given(X, Y)
        assert given.states is not None
        self.decoding_ = given.model.best(given.data)
        return node_accuracy(self.decoding_.labels, given.data, given.states, sample_weight)

    def _given(self, X: Samples, labels: Samples) -> Given:
        """Encode the inputs of a prediction."""
        model: GraphModel = replace(self._model_to_save(), n_threads=self.n_threads)
        check_name("decoder", self.decode, DECODERS)
        X, labels, one = model.encoder.listed(X, labels)
        data = model.encoder.encode(X, labels)
        states = None if labels is None else model.encoder.encode_labels(labels, data, X)
        return Given(model, data, states, X, one)

    def _infer(self, given: Given) -> Marginals:
        return self._check_inference(given.model.infer(given.data, given.states))

    def _check_inference(self, marginals: Marginals) -> Marginals:
        """Note how far marginals can be trusted, and warn if they cannot."""
        self.inference_status_ = marginals.status
        if marginals.matters:
            named = self.inference if isinstance(self.inference, str) else getattr(self.inference, "name", "")
            option = f"the limit: inference=make_engine({marginals.method or named!r}, max_iterations=…)"
            warn_convergence(marginals.explain(option))
        return marginals

    # --- model files, and what was learned

    @staticmethod
    def _recorded(model: GraphModel) -> Entries:
        """Return the options that a model file records for both estimators."""
        return {
            "inference": model.inference,
            "node_form": model.field.node_form,
            "edge_form": model.field.edge_form,
            "standardize": bool(model.training.get("standardised", False)),
            "decode": model.decode,
        }

    def _model_to_save(self) -> GraphModel:
        fitted: GraphModel = self._fitted()
        return replace(fitted, inference=self.inference, decode=self.decode)

    @property
    def coef_(self) -> Floats:
        """Return all weights: of nodes, then of edges. They are on the scale of the inputs, standardised or not."""
        weights: Floats = self._fitted().w
        return weights

    @property
    def node_weights_(self) -> Mapping[tuple[Label, ...], float]:
        """Return (variable, feature, label) → weight; without the variable where nodes share their weights."""
        weights: Mapping[tuple[Label, ...], float] = self._fitted().node_weights()
        return weights

    @property
    def edge_weights_(self) -> Mapping[tuple[Label, ...], float]:
        """Return ((variable, variable), feature, (label, label)) → weight; without the variables where edges share.

        The forms "potts" and "ising" have one weight per feature, named "equal" instead of the labels.
        """
        weights: Mapping[tuple[Label, ...], float] = self._fitted().edge_weights()
        return weights


def _judge(encoder: Encoder, X: Samples, Y: Samples) -> Callable[[GraphModel], float]:
    """Return the accuracy of a model on a development set, which is encoded once."""
    X, labels, _ = encoder.listed(X, Y)
    data = encoder.encode(X, labels)
    states = encoder.encode_labels(labels, data, X)
    return lambda model: node_accuracy(model.best(data).labels, data, states)
