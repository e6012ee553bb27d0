"""StructureLearner: which variables depend on each other, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from crfkit._threads import count_threads, using_threads
from crfkit.encoders.bins import bin_numbers, check_table_options
from crfkit.encoders.structure_tables import complete_rows, learn_table, unordered_columns
from crfkit.encoders.table_columns import candidate_pairs
from crfkit.encoders.tables import TableEncoder
from crfkit.errors import ModelFileError, ParameterError
from crfkit.estimators.base import print_row
from crfkit.estimators.structure_prediction import PredictionMixin
from crfkit.estimators.structure_weights import WeightsMixin, edge_sizes
from crfkit.models.graph import GraphModel
from crfkit.names import full_name
from crfkit.parameters import NestedParameters
from crfkit.result import Result, Status
from crfkit.solvers.parts.loop import Callback
from crfkit.training.options import SolverOptions, make_seed
from crfkit.training.structure import StructureTraining
from crfkit.training.structure_empty import best_edge, concern_of_engine
from crfkit.training.structure_search import PathStep, Search

Edge = tuple[Any, Any, float]


@dataclass(frozen=True)
class StructurePoint:
    """One strength of the path: how many edges it keeps, and the score of the rule (lower is better)."""

    strength: float
    n_edges: int
    score: float | None = None
    error: float | None = None  # standard error of the score, of "cv"


def _done(result: Result, slope: float) -> bool:
    """Whether it converged, or ended where it is flat: next to the largest slope of an edge at the start."""
    flat = result.status is Status.LINE_SEARCH_FAILED and result.optimality <= 1e-3 * max(1.0, slope)
    return flat or result.status.converged


class StructureLearner(PredictionMixin, WeightsMixin, NestedParameters, BaseEstimator):  # type: ignore[misc]
    """Learns which variables of a table depend on each other, given all others.

    The variables are the columns of Y; with inputs X the field is conditional, p(Y | X): node i has the features
    [1, g, f_i], an edge [1, g, f_i, f_j], of features g of the row, f_i of the variable, or both. The objective is
    ``loss + node_strength/2·‖node weights‖² + edge_strength·Σ_edges ‖weights of the edge‖``: whole edges become zero.
    Binary variables have one coupling per edge and one bias each in ±1 coding (Ising); variables of more labels a table
    of K_i × K_j weights per edge, of which the penalty settles what biases could say as well.

    Parameters
    ----------
    method : "newton" (proximal Newton steps on the edges selected so far; for the pseudo-likelihood of binary columns
        without inputs), "grafting-light", "grafting" (edges are switched on as needed: one step, or a whole
        minimisation, between selections), "agpm" (projected gradients on all candidates), "full" (FISTA on all
        candidates); "auto" is "newton" where it can be, else "grafting-light". All have the same optimum, but for a
        likelihood by "trw": that bound depends on which edges are in the graph, zero or not.
    loss : "pseudo-likelihood" ("pl" for short), or "likelihood", as `inference` computes it
    inference : for the likelihood, and for prediction, as in :class:`GraphCRF`; "auto" is exact if the graph of all
        candidates allows that, else "trw"
    group_norm : of the weights of an edge: "inf", "2" or "1"
    node_strength : of L2 on the weights of nodes
    edge_strength : a number, or how to choose it. "path": solutions for `n_strengths` strengths, the weakest last,
        which is kept. "cv": the edges at each strength, refitted without the edge penalty, are scored on `n_folds`
        held-out folds; the fewest edges within one standard error of the best. "ebic": the least extended BIC of
        refitted edges. "stability": of the edges at the strength of "ebic", those that at least `threshold` of
        `n_subsamples` random halves of the rows select. With these three the model is the refitted one, without
        shrinkage and, but for "stability", without edges that the extended BIC finds not worth their price.
    select_unit : how many edges Grafting switches on at a time
    candidates : pairs of columns (numbers or names) that may become edges; None: all
    form : "ising", "full" tables, "ordinal", or "auto": Ising where all variables are binary, else full. "ordinal" is
        for ratings: one coupling per edge, times the scores of both labels, which are equally spaced from −1 to 1 in
        their order (of numbers, of ordered categories); a bias for every label
    edge_features : whether edges have weights on the features of X, too
    refit : how the weights of the edges that "ebic", "cv" and "stability" choose are made. "auto": by exact likelihood
        if the junction tree allows that within a minute, else by a likelihood that particles estimate (without inputs,
        up to 150 variables), else they stay those of the loss, with a warning if marginals differ from the data's.
        "likelihood": exact if memory allows it, else by particles, for any `edge_strength`. "pseudo-likelihood" (or
        "pl"): as the loss has them; right for predicting one variable from the others, maybe far off as a distribution.
    n_strengths, ebic_gamma, n_folds, n_subsamples, threshold : of the rules above. Paths end early where all edges that
        are worth their price are in, and go on while scores fall. A larger `ebic_gamma` is for fewer edges.
    tolerance, max_iterations : of solvers, as in :class:`GraphCRF`
    n_threads, random_state : None for all cores; the seed of folds and random halves, None is 0
    verbose : 1 prints a line per strength, 2 a line per iteration
    missing : "drop" leaves out rows with missing labels (None, NaN) and warns how many; "error" refuses them
    bins : cuts columns of numbers with more than this many different values into as many groups of about equal size;
        None refuses numbers with more than 24 values
    standardize : whether edge strengths are in units of the columns' standard deviations, so that rare labels count

    Attributes
    ----------
    edges_ : (column, column, weight) of every edge, the strongest first: the coupling with its sign where both columns
        have two labels or the form is ordinal, else the root mean square of the edge's centred table. Columns have
        names where Y has, else numbers.
    edge_weights_, node_weights_ : all parameters by the names of columns, inputs and labels
    weight_matrix_ : [variables, variables] the weights of edges_
    edge_records_ : a dict for each edge; :meth:`edges_frame` has them as a data frame
    graph_ : the same as a weighted networkx graph
    refit_ : how the weights were made, {"by": …}, and how far marginals differ from the data's where that is estimated
    score_error_ : standard error of the last score, where it was sampled
    strength_ : the edge strength
    strength_path_ : strengths, edges and scores along the path (:class:`StructurePoint`)
    stability_ : (column, column) → share of random halves that select the edge
    entry_order_ : (column, column, strength) of every edge of the path, in the order in which they came in
    classes_ : the labels of each variable
    model_ : a :class:`GraphModel`
    result_ : how the last minimisation went

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit import StructureLearner
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.random(500) < 0.3
    >>> wet = rain ^ (rng.random(500) < 0.1)
    >>> late = wet ^ (rng.random(500) < 0.2)  # depends on the weather by way of the streets
    >>> learner = StructureLearner().fit(np.stack([rain, wet, late], axis=1))
    >>> [(i, j) for i, j, weight in learner.edges_]
    [(0, 1), (1, 2)]
    """

    def __init__(
        self,
        method: str = "auto",
        loss: str = "pseudo-likelihood",
        inference: Any = "auto",
        group_norm: str = "inf",
        node_strength: float = 1.0,
        edge_strength: Any = "ebic",
        select_unit: int = 50,
        candidates: Any = None,
        form: str = "auto",
        edge_features: bool = True,
        refit: str = "auto",
        n_strengths: int = 30,
        ebic_gamma: float = 0.35,
        n_folds: int = 5,
        n_subsamples: int = 50,
        threshold: float = 0.75,
        tolerance: Any = 1e-5,
        max_iterations: int | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        missing: str = "drop",
        bins: int | None = None,
        standardize: bool = True,
    ) -> None:
        self.method = method
        self.loss = loss
        self.inference = inference
        self.group_norm = group_norm
        self.node_strength = node_strength
        self.edge_strength = edge_strength
        self.select_unit = select_unit
        self.candidates = candidates
        self.form = form
        self.edge_features = edge_features
        self.refit = refit
        self.n_strengths = n_strengths
        self.ebic_gamma = ebic_gamma
        self.n_folds = n_folds
        self.n_subsamples = n_subsamples
        self.threshold = threshold
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose
        self.missing = missing
        self.bins = bins
        self.standardize = standardize

    # --- training

    def _training(self, callbacks: Sequence[Callback] = ()) -> StructureTraining:
        seed = make_seed(self.random_state)
        options = SolverOptions(None, "auto", self.tolerance, self.max_iterations, self.n_threads, seed)
        search = Search(
            self.method,
            str(self.group_norm),
            self.node_strength,
            self.select_unit,
            options,
            n_strengths=self.n_strengths,
            gamma=self.ebic_gamma,
            n_folds=self.n_folds,
            n_subsamples=self.n_subsamples,
            standardize=self.standardize,
            callback=_print_step if self.verbose else None,
            callbacks=(*callbacks, *((print_row,) if self.verbose > 1 else ())),
        )
        training = StructureTraining(
            search, self.loss, self.inference, self.edge_strength, self.form, self.threshold, self.refit
        )  # fmt: skip
        training.check()
        return training

    def fit(self, Y: Any, X: Any = None, callbacks: Sequence[Callback] = ()) -> StructureLearner:
        """Learns from a table Y [samples, variables] of labels, and inputs X if there are any.

        X is [samples, features], which all variables share, [samples, variables, features], of each variable, or a
        tuple of both in this order; the other methods take it in the same form. Callbacks see every iteration at every
        strength, which is a number of the row; StopTraining ends the path. On Ctrl-C the best model of the strengths so
        far is kept and KeyboardInterrupt is raised.
        """
        training = self._training(callbacks)
        check_table_options(self.missing, self.bins)
        Y, X = complete_rows(Y, X, self.missing)
        Y, cuts = bin_numbers(Y, self.bins)
        encoder, states = learn_table(Y, X, bool(self.edge_features))
        if self.form == "ordinal" and (unordered := unordered_columns(Y, encoder, set(cuts))):
            raise ParameterError(
                "form='ordinal' needs labels with an order, numbers or ordered categories of pandas, where a column "
                f"has more than two; these have none: {', '.join(unordered)}. Number their labels, leave them out, or "
                "use form='full'"
            )
        constant = np.flatnonzero((states == states[0]).all(axis=0))
        if len(constant) and self.node_strength == 0:
            name = encoder.variables[int(constant[0])]
            raise ParameterError(
                f"column {name} is constant: its bias is infinite without a penalty; node_strength > 0"
            )
        pairs = candidate_pairs(self.candidates, encoder.variables)
        if self.loss == "likelihood" and (said := concern_of_engine(self.inference)):
            warnings.warn(said, UserWarning, stacklevel=2)
        threads = count_threads(self.n_threads)
        # One thread for products of matrices this small: BLAS waits for others actively, to the harm of all.
        with using_threads(threads), threadpool_limits(1, "blas"):
            learned = training.run(encoder, X, states, pairs)
        model = training.model(encoder, learned, cuts)
        self._set_model(model)
        self.result_: Result | None = learned.solution.result
        self.inference_status_ = None
        self.score_error_ = None
        if learned.interrupted:
            raise KeyboardInterrupt(str(Status.INTERRUPTED))
        if not len(self.edges_):
            why = f"the penalty λ is {learned.strength:g}, and from {learned.critical:g} on all edges are zero"
            why += best_edge(learned, training.search, encoder.variables)
            if self.form == "auto" and max(encoder.n_states) > 2 and not unordered_columns(Y, encoder, set(cuts)):
                why += (
                    ". If the labels are steps of a scale, form='ordinal' (--form ordinal) has one weight per edge, at "
                    "a lower price"
                )
            none = len(encoder.variables) == 1 or (pairs is not None and not len(pairs))
            warnings.warn(
                f"no edge was selected: {'there are no pairs to choose from' if none else why}; the graph is empty",
                UserWarning,
                stacklevel=2,
            )
        if learned.refit is not None and learned.refit.concern:
            warnings.warn(learned.refit.concern, UserWarning, stacklevel=2)
        if self.verbose and learned.refit is not None:
            print(f"weights by {learned.refit.by}", flush=True)
        result = self.result_
        if result is not None and not _done(result, learned.critical):
            advice = "; another `inference` or loss='pseudo-likelihood' may help" if self.loss == "likelihood" else ""
            warnings.warn(f"{result.status}{advice}", ConvergenceWarning, stacklevel=2)
        return self

    def _set_model(self, model: GraphModel) -> None:
        record: Any = model.training["structure"]
        self.model_ = model
        self.classes_ = model.encoder.classes
        self.strength_ = record["strength"]
        self.refit_ = record.get("refit")
        self.strength_path_ = [StructurePoint(*row) for row in record["path"]]
        p = len(model.encoder.classes)
        self.stability_ = {self._pair(edge // p, edge % p): share for edge, share in record["stability"]}
        self.entry_order_ = [(*self._pair(edge // p, edge % p), s) for edge, s in record.get("entries", [])]
        sizes = edge_sizes(model).tolist()
        ends = self._encoder().structure.edges.tolist()
        edges = [(*self._pair(i, j), size) for (i, j), size in zip(ends, sizes, strict=True)]
        self.edges_: list[Edge] = sorted(edges, key=lambda edge: -abs(edge[2]))

    # --- files

    def save(self, path: str | Path) -> None:
        """Writes a model file (.crf), atomically; `crfkit graph predict` and GraphCRF.load open it as well."""
        replace(self._fitted(), inference=self.inference).save(path)

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None) -> StructureLearner:
        """Opens a model file. The estimator can predict; its options are those that the file records."""
        model = GraphModel.load(path, n_threads)
        record: Any = model.training.get("structure")
        if not isinstance(model.encoder, TableEncoder) or not isinstance(record, dict):
            raise ModelFileError(f"{path}: not a model of learnt structure; open it with GraphCRF.load or GridCRF.load")
        try:
            learner = cls(
                method=record["method"],
                loss=full_name(record["loss"]),
                inference=model.inference,
                edge_strength=record["rule"] or record["strength"],
                form="ordinal" if model.field.edge_form == "ordinal" else "auto",
                edge_features=model.encoder.edge_inputs,
                n_threads=n_threads,
            )
            learner._set_model(model)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{path}: the record of how structure was learnt is damaged ({error})") from None
        return learner

    def _fitted(self) -> GraphModel:
        check_is_fitted(self, "model_")
        return replace(self.model_, inference=self.inference, n_threads=self.n_threads)

    def _encoder(self) -> TableEncoder:
        check_is_fitted(self, "model_")
        encoder = self.model_.encoder
        assert isinstance(encoder, TableEncoder)
        return encoder

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _print_step(step: PathStep) -> None:
    print(f"penalty λ {step.strength:.6g}  edges {step.n_edges}", flush=True)
