"""CRFsuite's training parameters: names, types, defaults and what they do, for each of its algorithms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crfkit.errors import ParameterError
from crfkit.names import unknown_name

UNLIMITED = 2**31 - 1
LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")


@dataclass(frozen=True)
class Parameter:
    """One parameter. `read` makes its value of what was given; numbers may be given as text."""

    name: str
    default: object
    read: Callable[[Any], object]
    help: str

    def value(self, given: object) -> object:
        """Return the value that was given, in the parameter's type."""
        try:
            return self.read(given)
        except ParameterError:
            raise
        except (TypeError, ValueError, OverflowError):
            kind = {_integer: "an integer", float: "a number", _flag: "0 or 1"}.get(self.read, "valid")
            raise ParameterError(f"the parameter {self.name} must be {kind}, not {given!r}") from None


def _integer(given: Any) -> int:
    number = float(given)
    if number != int(number):
        raise ValueError
    return int(number)


def _flag(given: object) -> bool:
    return bool(_integer(given))


def _line_search(given: Any) -> str:
    if given not in LINE_SEARCHES:
        raise unknown_name("line search", given, LINE_SEARCHES)
    return str(given)


FEATURES = (
    Parameter("feature.minfreq", 0.0, float, "The minimum frequency of features; rarer features are omitted."),
    Parameter("feature.possible_states", False, _flag, "Make state features of all pairs of attributes and labels."),
    Parameter("feature.possible_transitions", False, _flag, "Make transition features of all pairs of labels."),
)
_L2 = Parameter("c2", 1.0, float, "Coefficient for L2 regularization.")
_PERIOD = Parameter("period", 10, _integer, "The number of iterations over which the stopping criterion is tested.")
_DELTA = "Training stops when the log likelihood improved by less than this share over the last period."
_EPOCHS = Parameter("max_iterations", 100, _integer, "The maximum number of iterations.")
_MEAN_LOSS = Parameter("epsilon", 0.0, float, "Training stops when the mean loss falls to this value.")

ALGORITHMS: Mapping[str, tuple[Parameter, ...]] = {
    "lbfgs": (
        *FEATURES,
        Parameter("c1", 0.0, float, "Coefficient for L1 regularization; if it is not 0, training is by OWL-QN."),
        _L2,
        Parameter("max_iterations", UNLIMITED, _integer, "The maximum number of iterations for L-BFGS optimization."),
        Parameter("num_memories", 6, _integer, "The number of steps from which the inverse Hessian is approximated."),
        Parameter("epsilon", 1e-5, float, "Training has converged when |gradient| / |weights| is this small."),
        _PERIOD,
        Parameter("delta", 1e-5, float, _DELTA),
        Parameter(
            "linesearch",
            "MoreThuente",
            _line_search,
            "The line search of L-BFGS: 'MoreThuente', 'Backtracking' (regular Wolfe condition) or "
            "'StrongBacktracking' (strong Wolfe condition).",
        ),
        Parameter("max_linesearch", 20, _integer, "The maximum number of trials for the line search algorithm."),
    ),
    "l2sgd": (
        *FEATURES,
        _L2,
        Parameter("max_iterations", 1000, _integer, "The maximum number of iterations (epochs) for SGD optimization."),
        _PERIOD,
        Parameter("delta", 1e-6, float, _DELTA),
        Parameter("calibration.eta", 0.1, float, "The learning rate (eta) that is tried first."),
        Parameter("calibration.rate", 2.0, float, "The factor between learning rates that are tried."),
        Parameter("calibration.samples", 1000, _integer, "The number of instances used for calibration."),
        Parameter("calibration.candidates", 10, _integer, "The number of learning rates that must improve the loss."),
        Parameter("calibration.max_trials", 20, _integer, "The maximum number of learning rates that are tried."),
    ),
    "averaged-perceptron": (
        *FEATURES,
        _EPOCHS,
        Parameter("epsilon", 0.0, float, "Training stops when the share of wrong labels falls below this value."),
    ),
    "passive-aggressive": (
        *FEATURES,
        Parameter("type", 1, _integer, "How weights are updated: 0 is PA without slack, 1 is PA-I, 2 is PA-II."),
        Parameter("c", 1.0, float, "The aggressiveness parameter; it bounds (PA-I) or damps (PA-II) updates."),
        Parameter("error_sensitive", True, _flag, "Use the root of the number of wrong labels in the cost."),
        Parameter("averaging", True, _flag, "Return the average of the weights, as the averaged perceptron does."),
        _EPOCHS,
        _MEAN_LOSS,
    ),
    "arow": (
        *FEATURES,
        Parameter("variance", 1.0, float, "The initial variance of every feature weight."),
        Parameter("gamma", 1.0, float, "The tradeoff between the loss and changes of the weights."),
        _EPOCHS,
        _MEAN_LOSS,
    ),
}
ALIASES = {"ap": "averaged-perceptron", "pa": "passive-aggressive"}


class Parameters:
    """The parameters of one algorithm and their values."""

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm
        self._known = {parameter.name: parameter for parameter in ALGORITHMS[algorithm]}
        self._values = {name: parameter.default for name, parameter in self._known.items()}

    def names(self) -> list[str]:
        return list(self._known)

    def __getitem__(self, name: str) -> Any:
        self._find(name)
        return self._values[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._values[name] = self._find(name).value(value)

    def help(self, name: str) -> str:
        return self._find(name).help

    def _find(self, name: str) -> Parameter:
        if name not in self._known:
            raise unknown_name(f"parameter of {self.algorithm}", name, self._known)
        return self._known[name]
