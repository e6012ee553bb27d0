"""The base of all estimators: model, seed, verbosity, Ctrl-C, model files, checks that they are fitted."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from crfkit._values import Tabular
from crfkit.parameters import NestedParameters
from crfkit.result import Result, Status
from crfkit.training.options import SolverOptions, make_seed
from crfkit.training.progress import print_row
from crfkit.warn import warn_caller

if TYPE_CHECKING:
    from crfkit.protocols import Penalty, Solver
    from crfkit.solvers.parts.stopping import StoppingRule

if TYPE_CHECKING:  # solvers take longest to load and only training needs them
    from crfkit.solvers.parts.loop import Callback


# options of CRFsuite, CRF++, Wapiti and scikit-learn, and what to write instead
OF_OTHER_PACKAGES = {
    "c1": "penalty=L1.from_crfsuite({0!r}), or penalty=ElasticNet.from_crfsuite(c1, c2) with both",
    "c2": "penalty=L2.from_crfsuite({0!r}), or penalty=ElasticNet.from_crfsuite(c1, c2) with both",
    "C": "penalty=L2.from_crfpp({0!r}), CRF++'s squared norm/(2C)",
    "rho1": "penalty=L1.from_wapiti({0!r}), or penalty=ElasticNet.from_wapiti(rho1, rho2) with both",
    "rho2": "penalty=L2.from_wapiti({0!r}), or penalty=ElasticNet.from_wapiti(rho1, rho2) with both",
    "sigma": "penalty=L2.from_sigma({0!r})",
    "alpha": "penalty=L2({0!r}); the loss is a sum over the data, not a mean",
    "algorithm": "solver=…: 'lbfgs', 'owlqn', 'sgd', 'averaged-perceptron', 'passive-aggressive' or 'arow'",
    "max_iter": "max_iterations={0!r}",
    "tol": "tolerance={0!r}",
    "n_jobs": "n_threads={0!r}",
    "seed": "random_state={0!r}",
}


class Estimator(NestedParameters, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators. A subclass names its options, hands them to training, and keeps what comes back.

    `fit` ends with :meth:`_keep`. All methods that need a model ask :meth:`_fitted` for it.
    """

    penalty: Penalty | None
    solver: str | Solver
    tolerance: float | StoppingRule
    max_iterations: int | None
    n_threads: int | None
    random_state: object
    verbose: int

    model_: Any
    classes_: Tabular

    def __new__(cls, *_: object, **options: object) -> Any:
        """Make an estimator; raise a TypeError that names what to write for an option of another package."""
        for name, value in options.items():
            if name in OF_OTHER_PACKAGES:
                hint = OF_OTHER_PACKAGES[name].format(value)
                raise TypeError(f"{cls.__name__} has no option {name!r}; write {hint}")
        return super().__new__(cls)

    # --- training

    def _seed(self) -> int:
        """Return the seed that `random_state` stands for; a generator is asked for a new one at every call."""
        return make_seed(self.random_state)

    def _solver_options(self) -> SolverOptions:
        """Return the options of training that all estimators share."""
        return SolverOptions(
            self.penalty, self.solver, self.tolerance, self.max_iterations, self.n_threads, self._seed()
        )

    def _with_progress(self, callbacks: Sequence[Callback]) -> list[Callback]:
        """Return the callbacks and, with `verbose`, one that prints a line per iteration."""
        return [*callbacks, print_row] if self.verbose else list(callbacks)

    def _keep(self, model: Any, result: Result, concerns: Sequence[str] = (), interrupted: bool = False) -> None:
        """Keep what training made; raise KeyboardInterrupt if Ctrl-C ended it, otherwise warn of each concern."""
        self._set_model(model)
        self.result_ = result
        if interrupted or result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(str(Status.INTERRUPTED))
        for concern in concerns:
            warn_convergence(concern)

    def __sklearn_clone__(self) -> Any:
        """Return an estimator with the same options. It has the same cluster: Dask's clients cannot be copied."""
        cluster = getattr(self, "cluster", None)
        if cluster is None:
            return super().__sklearn_clone__()
        alone = copy.copy(self)
        alone.__dict__["cluster"] = None
        return super(Estimator, alone).__sklearn_clone__().set_params(cluster=cluster)

    # --- model and files

    def _set_model(self, model: Any) -> None:
        self.model_ = model
        self.classes_ = model.classes

    def _fitted(self) -> Any:
        """Return the model, or raise scikit-learn's NotFittedError."""
        if not hasattr(self, "model_"):
            raise not_fitted(self)
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def save(self, path: str | Path) -> None:
        """Write a model file (.crf). An existing file is replaced only once the new one is complete."""
        self._model_to_save().save(path)

    def _model_to_save(self) -> Any:
        """Return the model with the options that may have changed since it was trained."""
        return self._fitted()


def not_fitted(estimator: Estimator) -> Exception:
    """Return scikit-learn's NotFittedError for an estimator."""
    error: Exception = NotFittedError(
        f"This {type(estimator).__name__} instance is not fitted yet; call `fit`, or `load` a model, first."
    )
    return error


def warn_convergence(concern: str) -> None:
    """Warn, at the user's line, that a result may not be what was asked for."""
    warn_caller(concern, ConvergenceWarning)
