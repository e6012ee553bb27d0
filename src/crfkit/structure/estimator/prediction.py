"""Predictions of a learned field: labels, marginals, samples, probabilities of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crfkit._types import Floats, Ids, Samples, Tabular
from crfkit.errors import DataError, ParameterError
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.inference.defaults import EXACT_ENGINES, default_engine
from crfkit.graph.inference.marginals import InferenceStatus
from crfkit.graph.model import GraphModel
from crfkit.structure.encoding.bins import apply_cuts
from crfkit.structure.record import StructureRecord
from crfkit.structure.scores import Scored, best_inference, conditionals, score_rows
from crfkit.training.options import make_seed
from crfkit.warn import warn_caller

LARGE_SCORE_ERROR = 0.05  # standard error of a score that is worth a warning


def given_inputs(inputs: object, X: Samples, Y: Samples = None) -> Tabular:
    """Return the inputs; warn if they were given in the old way, as X, and raise if X and Y are in the wrong order."""
    if X is None:
        return inputs
    if inputs is not None:
        raise ParameterError("inputs were given twice: as `inputs` and as X; give inputs=… only")
    if _has_fractions(Y):
        raise ParameterError(
            "the first argument of StructureLearner is the table of labels, but it holds numbers with fractions, as "
            "features do. It takes fit(Y, inputs=X), not fit(X, Y)"
        )
    warn_caller("StructureLearner takes inputs as a keyword: write inputs=… instead of X", FutureWarning)
    return X


def _has_fractions(table: object) -> bool:
    """Return whether a table holds numbers that are not whole."""
    try:
        numbers = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return bool((numbers != np.floor(numbers))[np.isfinite(numbers)].any())


class PredictionMixin:
    """Methods of StructureLearner."""

    inference_status_: InferenceStatus | None
    score_error_: float | None
    _record: StructureRecord

    def _fitted(self) -> GraphModel:
        raise NotImplementedError

    def _encoder(self) -> TableEncoder:
        raise NotImplementedError

    def _grouped(self, Y: Samples) -> Tabular:
        """Return Y with the groups of numbers that training has made (`bins`)."""
        return apply_cuts(Y, dict(self._record.bins))

    def predict(self, X: Samples = None) -> Tabular:
        """Return labels [samples, variables].

        With inputs X, they are the most probable labelling. Without inputs, X is a table like Y, and each variable
        is predicted from the others of its row.
        """
        model, encoder = self._fitted(), self._encoder()
        if encoder.features is not None:
            data = encoder.encode(X)
            return encoder.labels(model.best(data).labels, data, X)
        states = np.stack([p.argmax(axis=1) for p in self._conditionals(X)], axis=1).astype(np.int32)
        return encoder.labels(states.ravel(), encoder.encode(None, states), None)

    def predict_marginals(self, X: Samples = None) -> list[Floats]:
        """Return probabilities [samples, labels] for each variable.

        With inputs X they are p(y_i | x). Without inputs they are p(y_i | the others of the row) for a table like Y,
        and p(y_i), a single row, for None.

        ``inference="auto"`` is exact where the graph allows, otherwise by sampling.
        """
        model, encoder = self._fitted(), self._encoder()
        if encoder.features is None and X is not None:
            return self._conditionals(X)
        data = encoder.encode(X)
        marginals = replace(model, inference=best_inference(model)).infer(data)
        self.inference_status_ = marginals.status
        return encoder.by_node(marginals.nodes, data, X)

    def complete(self, Y: Samples, X: Samples = None, *, inputs: object = None) -> Tabular:
        """Return Y with missing labels (None, NaN) filled in: the most probable ones given all others."""
        model, encoder = self._fitted(), self._encoder()
        X, Y = given_inputs(inputs, X), self._grouped(Y)
        data = encoder.encode(X, Y)
        found = model.best(data, encoder.encode_labels(Y, data, X))
        return encoder.labels(found.labels, data, X)

    def sample(
        self, n_samples: int = 1, X: Samples = None, random_state: object = None, *, inputs: object = None
    ) -> Tabular:
        """Draw labellings from the field: [n_samples, variables]; with inputs [n_samples, rows of X, variables].

        They are independent where the graph allows exact inference. Otherwise they are particles that are carried from
        independent variables to the field, or with inputs successive states of a Gibbs sampler.
        """
        model, encoder = self._fitted(), self._encoder()
        X = given_inputs(inputs, X)
        data = encoder.encode(X)
        ready = replace(model, inference=best_inference(model))
        drawn = encoder.labels(ready.sample(data, int(n_samples), make_seed(random_state)), data, X)
        return drawn if encoder.features is not None else drawn[:, 0]

    def log_likelihood(self, Y: Samples, X: Samples = None, *, inputs: object = None) -> Floats:
        """Return log p(y) of each row, as `inference` computes it.

        "auto" is exact where the graph allows it (``inference_status_``), otherwise an estimate by annealed runs: one
        log Z for all rows with the same inputs, from so many runs that the standard error of the mean,
        ``score_error_``, is a tenth of the standard error that the rows themselves give it, but between .02 and .05. An
        engine that was named is used: "trw" gives a lower bound, "mean-field" an upper bound, "bp" an approximation,
        each with a warning.
        """
        return self._scored(Y, given_inputs(inputs, X)).rows

    def score(self, Y: Samples, X: Samples = None, *, inputs: object = None) -> float:
        """Return the mean of :meth:`log_likelihood`; ``score_error_`` is its standard error if it is sampled."""
        return float(np.mean(self._scored(Y, given_inputs(inputs, X)).rows))

    def _scored(self, Y: Samples, X: Samples) -> Scored:
        model, encoder = self._fitted(), self._encoder()
        Y = self._grouped(Y)
        data = encoder.encode(X, Y)
        states = encoder.encode_labels(Y, data, X)
        if (states < 0).any():
            raise DataError("a label is missing: complete() fills it in")
        found = score_rows(model, data, states)
        self.inference_status_, self.score_error_ = found.status, found.error
        if found.status is not InferenceStatus.EXACT and found.error is None:
            warn_caller(
                f"the log-likelihood is {found.kind}; inference='auto' is exact or sampled with its error",
                UserWarning,
            )
        elif found.error is not None and not found.error <= LARGE_SCORE_ERROR:
            warn_caller(
                f"the log-likelihood is an estimate with a standard error of {found.error:.2g}: samples rarely move "
                f"between parts of the field",
                UserWarning,
            )
        return found

    def log_likelihood_bounds(self, Y: Samples, X: Samples = None, *, inputs: object = None) -> tuple[Floats, Floats]:
        """Return a lower and an upper bound of log p(y) of each row, equal where the graph allows exact inference.

        Tree-reweighted inference bounds log Z from above, mean field from below.
        """
        model, encoder = self._fitted(), self._encoder()
        X, Y = given_inputs(inputs, X), self._grouped(Y)
        data = encoder.encode(X, Y)
        states = encoder.encode_labels(Y, data, X)
        if (states < 0).any():
            raise DataError("a label is missing: complete() fills it in")
        name = default_engine(encoder.structure, max(encoder.n_states))
        both = [name] if name in EXACT_ENGINES else ["trw", "mean-field"]
        found = [replace(model, inference=engine).log_likelihood(data, states) for engine in both]
        self.inference_status_ = found[0][1].status
        return found[0][0], found[-1][0]

    def _conditionals(self, Y: Samples) -> list[Floats]:
        """Return p(y_i | the others of the row)."""
        encoder, model = self._encoder(), self._fitted()
        if Y is None:
            raise DataError(
                "the field has no inputs: give a table like Y, and each variable is predicted from the others"
            )
        states: Ids = encoder.states(self._grouped(Y))
        if (states < 0).any():
            row, i = np.argwhere(states < 0)[0].tolist()
            raise DataError(
                f"no label at row {row}, column {encoder.variables[i]}; complete() fills in what is missing"
            )
        return conditionals(model, states)
