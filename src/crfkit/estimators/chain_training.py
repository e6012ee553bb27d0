"""Training of chains: the options of ChainCRF and of `crfkit train`, without scikit-learn."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit.arrays import using_threads
from crfkit.data.encode import TaggedCorpus
from crfkit.errors import ParameterError
from crfkit.estimators.chain_model import ChainModel
from crfkit.fields.chain import ChainField
from crfkit.inference.chain import ChainInference, count_threads
from crfkit.losses.chain import ChainLikelihood
from crfkit.penalties import L2
from crfkit.protocols import Penalty
from crfkit.result import Result
from crfkit.solvers import AnyOf, GradientNorm, PeriodDecrease, StoppingRule, make_solver
from crfkit.solvers.loop import Callback, Iteration


@dataclass(frozen=True)
class ChainTraining:
    """How to train; the names are those of :class:`ChainCRF`."""

    penalty: Penalty = L2(1.0)  # noqa: RUF009 - frozen
    solver: Any = "lbfgs"
    min_frequency: int = 1
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    tolerance: float | StoppingRule = 1e-5
    max_iterations: int = 1000
    n_threads: int | None = None

    def check(self) -> None:
        """Raises ParameterError where an option is out of range."""
        for name in ("min_frequency", "max_iterations"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or value < 1:
                raise ParameterError(f"{name} must be an integer >= 1, not {value!r}")
        if self.n_threads is not None and (not isinstance(self.n_threads, numbers.Integral) or self.n_threads < 1):
            raise ParameterError(f"n_threads must be None or an integer >= 1, not {self.n_threads!r}")
        if isinstance(self.tolerance, (int, float)) and not self.tolerance >= 0:
            raise ParameterError(f"tolerance must be >= 0, not {self.tolerance!r}")
        if not isinstance(self.tolerance, numbers.Real) and not hasattr(self.tolerance, "satisfied"):
            raise ParameterError(f"tolerance must be a number or a stopping rule, not {self.tolerance!r}")
        if isinstance(self.penalty, type) or not isinstance(self.penalty, Penalty):
            raise ParameterError(f"penalty must be a member of crfkit.penalties such as L2(1.0), not {self.penalty!r}")
        self._solver()

    def run(
        self,
        corpus: TaggedCorpus,
        sample_weight: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
    ) -> tuple[ChainModel, Result]:
        """The model and how training went."""
        vocabulary = corpus.vocabulary
        data = corpus.data.with_weights(sample_weight)
        if data.weights is not None and not data.weights.any():
            raise ParameterError("every sequence has weight 0")
        field = ChainField.from_data(
            data,
            len(corpus.classes),
            len(vocabulary.attributes),
            len(vocabulary.pair_attributes),
            all_states=self.all_possible_states,
            all_transitions=self.all_possible_transitions,
            transitions=vocabulary.template is None or vocabulary.template.transitions,
        )
        if field.size == 0:
            raise ParameterError("no attribute is left and there are no transitions; lower min_frequency")
        loss = ChainLikelihood(data, field, self.n_threads)
        if training_error:
            callbacks = [TrainingError(loss, self.n_threads), *callbacks]
        with using_threads(count_threads(self.n_threads)):
            result = self._solver().minimize(loss, self.penalty, np.zeros(field.size), callbacks)
        record = {
            "objective": result.objective,
            "value": result.value,
            "status": result.status.name,
            "iterations": result.iterations,
            "min_frequency": int(self.min_frequency),
        }
        return ChainModel(vocabulary, corpus.classes, field, result.w, record, self.n_threads), result

    def _solver(self) -> Any:
        rule: Any = self.tolerance
        if isinstance(rule, numbers.Real):
            rule = AnyOf((PeriodDecrease(float(rule)), GradientNorm(float(rule))))
        return make_solver(self.solver, stopping=rule, max_iterations=int(self.max_iterations))


class TrainingError:
    """Callback: adds the share of positions and of sequences that decoding gets wrong, as CRF++ prints them."""

    def __init__(self, loss: ChainLikelihood, n_threads: int | None = None) -> None:
        self._loss = loss
        self._n_threads = n_threads

    def __call__(self, iteration: Iteration) -> Mapping[str, float]:
        inference = ChainInference(self._loss.field, iteration.w, self._n_threads)
        tokens, sequences = inference.errors(self._loss.data)
        return {"token_error": tokens, "sequence_error": sequences}
