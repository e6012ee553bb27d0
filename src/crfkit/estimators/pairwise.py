"""What the estimators of pairwise fields share: training, prediction, files; all but the inputs."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from crfkit._types import Floats, Ids
from crfkit.data.graphs import GraphData
from crfkit.errors import ApproximationWarning, ParameterError
from crfkit.inference.marginals import InferenceStatus, Marginals
from crfkit.models.graph import DECODERS, Encoder, GraphModel
from crfkit.names import check_name
from crfkit.parameters import NestedParameters
from crfkit.protocols import Penalty
from crfkit.result import Status
from crfkit.solvers import StoppingRule
from crfkit.solvers.parts.loop import Callback, Iteration
from crfkit.training.graph import GraphTraining, concerns
from crfkit.training.options import SolverOptions, make_seed
from crfkit.warn import warn_caller

Self = TypeVar("Self", bound="PairwiseEstimator")


class PairwiseEstimator(NestedParameters, BaseEstimator):  # type: ignore[misc]
    """What GraphCRF and GridCRF share: all but the inputs."""

    inference: Any
    sweeps: int | None
    loss: Any
    penalty: Penalty | None
    edge_penalty: Penalty | None
    standardize: bool
    solver: Any
    node_form: str | None
    edge_form: str | None
    decode: str
    tolerance: float | StoppingRule
    max_iterations: int | None
    n_threads: int | None
    random_state: Any
    verbose: int
    warm_start: bool

    inference_status_: InferenceStatus | None

    # --- training

    def _training(self) -> GraphTraining:
        options = SolverOptions(
            self.penalty, self.solver, self.tolerance, self.max_iterations, self.n_threads, make_seed(self.random_state)
        )
        training = GraphTraining(
            self.inference,
            self.loss,
            self.node_form,
            self.edge_form,
            self.decode,
            self.sweeps,
            bool(self.standardize),
            self.edge_penalty,
            options,
            _announce,
        )
        training.check()
        return training

    def _fit(
        self: Self,
        training: GraphTraining,
        encoder: Encoder,
        X: Any,
        states: Ids,
        sample_weight: ArrayLike | None,
        callbacks: Sequence[Callback],
    ) -> Self:
        if self.verbose:
            callbacks = [*callbacks, print_row]
        start = self.model_ if self.warm_start and hasattr(self, "model_") else None
        model, result, last = training.run(encoder, X, states, sample_weight, callbacks, start)
        self._set_model(model)
        self.result_ = result
        status = self.inference_status_ = None if last is None else last.status
        unsettled = last.explain("sweeps") if last is not None and last.matters else None
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(str(result.status))
        for concern in concerns(result, status, unsettled):
            warn_caller(concern, ConvergenceWarning)
        return self

    # --- prediction

    def predict(self, X: Any = None, observed: Any = None) -> Any:
        """The labels that the decoder finds best, given those of `observed` that are known.

        `observed` has the form of the labels of `fit`; unknown are None, NaN, masked, and −1 unless −1 is a label.
        Afterwards ``decoding_`` says which decoder it was and whether its answer is optimal.
        """
        model, data, states = self._encoded(X, observed)
        self.decoding_ = model.best(data, states)
        return model.encoder.labels(self.decoding_.labels, data, X)

    def predict_marginals(self, X: Any = None, observed: Any = None) -> list[Floats]:
        """p(label | x, observed labels) of every node, columns as in classes_.

        Tables: an array [samples, labels] for each variable. Graphs: an array [nodes, labels] for each graph; images:
        [H, W, labels]. Afterwards ``inference_status_`` says how far they can be trusted.
        """
        model, data, states = self._encoded(X, observed)
        marginals = self._inferred(model.infer(data, states))
        return model.encoder.by_node(marginals.nodes, data, X)

    def predict_edge_marginals(self, X: Any = None, observed: Any = None) -> Any:
        """p(label of one end, label of the other | x, observed labels) of every edge: [edges, K, K] for each sample.

        Graphs: a list with an array each, in the order of the graph's edges; images: in that of
        ``Graph.grid(shape, neighbours).edges``. Tables: an array [samples, edges, K, K], edges in the order of `graph`
        ("complete" is (0, 1), (0, 2), …); K is the largest number of labels of a column, and others have zeros there.
        Rows and columns as in classes_; ``inference_status_`` as after :meth:`predict_marginals`.
        """
        model, data, states = self._encoded(X, observed)
        marginals = self._inferred(model.infer(data, states))
        return model.encoder.by_edge(marginals.edges, data)

    def log_partition(self, X: Any = None, observed: Any = None) -> Floats:
        """log Z of each sample, over the labellings that agree with `observed`; as the engine approximates it."""
        model, data, states = self._encoded(X, observed)
        return self._inferred(model.infer(data, states)).log_z

    def log_likelihood(self, X: Any, Y: Any) -> Floats:
        """log p(Y | x) of each sample, summed over labels that are unknown.

        Exact if inference is (``inference_status_``); else the approximation, a bound where the engine's log Z is one.
        """
        model, data, states = self._encoded(X, Y)
        assert states is not None
        values, marginals = model.log_likelihood(data, states)
        self._inferred(marginals)
        return values

    def sample(self, X: Any = None, n_samples: int = 1, random_state: Any = None, observed: Any = None) -> Any:
        """Labellings drawn from p(y | x, observed labels), along a first axis of n_samples.

        They are independent where the graph allows exact inference; else successive states of a Gibbs sampler.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ParameterError(f"n_samples must be an integer >= 1, not {n_samples!r}")
        model, data, states = self._encoded(X, observed)
        drawn = model.sample(data, int(n_samples), make_seed(random_state), states)
        return model.encoder.labels(drawn, data, X)

    def score(self, X: Any, Y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Mean accuracy of nodes: the share of known labels that `predict` finds; with sample_weight, weighted."""
        model, data, states = self._encoded(X, Y)
        assert states is not None
        self.decoding_ = model.best(data)
        weighted: Any = sample_weight
        weights = replace(data, weights=weighted).node_weights * (states >= 0)
        total = float(weights.sum())
        return float(weights @ (self.decoding_.labels == states)) / total if total else 0.0

    def _inferred(self, marginals: Marginals) -> Marginals:
        """Notes how far they can be trusted, and warns if not at all."""
        self.inference_status_ = marginals.status
        if marginals.matters:
            named = self.inference if isinstance(self.inference, str) else getattr(self.inference, "name", "")
            option = f"the limit: inference=make_engine({marginals.method or named!r}, max_iterations=…)"
            warn_caller(marginals.explain(option), ConvergenceWarning)
        return marginals

    def _encoded(self, X: Any, labels: Any) -> tuple[GraphModel, GraphData, Ids | None]:
        """The model as the options say now, the graphs, and the states of labels."""
        model = self._fitted()
        check_name("decoder", self.decode, DECODERS)
        model = replace(model, inference=self.inference, decode=self.decode, n_threads=self.n_threads)
        data = model.encoder.encode(X, labels)
        return model, data, None if labels is None else model.encoder.encode_labels(labels, data, X)

    # --- files

    def save(self, path: str | Path) -> None:
        """Writes a model file (.crf), atomically."""
        replace(self._fitted(), inference=self.inference, decode=self.decode).save(path)

    # --- what was learned

    def _set_model(self, model: GraphModel) -> None:
        self.model_ = model
        self.classes_ = model.encoder.classes

    def _fitted(self) -> GraphModel:
        check_is_fitted(self, "model_")
        model: GraphModel = self.model_
        return model

    @property
    def coef_(self) -> Floats:
        """All weights: of nodes, then of edges; on the scale of the inputs, whether or not they were standardised."""
        return self._fitted().w

    @property
    def node_weights_(self) -> Mapping[tuple[Any, ...], float]:
        """(variable, feature, label) → weight; without the variable where nodes share their weights."""
        return self._fitted().node_weights()

    @property
    def edge_weights_(self) -> Mapping[tuple[Any, ...], float]:
        """((variable, variable), feature, (label, label)) → weight; without the variables where edges share theirs.

        The forms "potts" and "ising" have one weight per feature, named "equal" in place of the labels.
        """
        return self._fitted().edge_weights()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _announce(note: str) -> None:
    warn_caller(note, ApproximationWarning)


def print_row(iteration: Iteration) -> None:
    row = iteration.row
    extra = "".join(f"  {name} {value:.5f}" for name, value in row.extra.items())
    print(
        f"iteration {row.iteration:4d}  objective {row.value:.4f}  gradient {row.optimality:.4g}  "
        f"{row.seconds:.2f} s{extra}",
        flush=True,
    )
