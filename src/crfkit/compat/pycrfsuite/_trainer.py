"""The trainers of python-crfsuite: instances and parameters in, a model file and messages out."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

from crfkit._values import Entries, Label, Record
from crfkit.compat.pycrfsuite import _logparser
from crfkit.compat.pycrfsuite._instances import Instances
from crfkit.compat.pycrfsuite._items import ItemSequence
from crfkit.compat.pycrfsuite._parameters import ALGORITHMS, ALIASES, Parameters
from crfkit.errors import DataError, ParameterError
from crfkit.names import unknown_name


class BaseTrainer:
    """Train models; `message` receives every message of the training.

    Parameters
    ----------
    algorithm : "lbfgs" (the default), "l2sgd", "ap", "pa" or "arow"; see :meth:`select`.
    params : training parameters, ``{name: value}``.
    verbose : whether messages are printed.
    """

    verbose: object

    def __new__(cls, *args: object, **kwargs: object) -> BaseTrainer:
        # here and not in __init__, which subclasses may replace
        trainer = super().__new__(cls)
        trainer.verbose = None
        trainer._instances = Instances()
        trainer._cleared = False
        trainer._parameters = Parameters("lbfgs")
        return trainer

    _instances: Instances
    _cleared: bool
    _parameters: Parameters

    def __init__(self, algorithm: str | None = None, params: Record | None = None, verbose: bool = True) -> None:
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)
        self.verbose = verbose

    def message(self, message: str) -> None:
        """Receive a message of the training; print it if `verbose`."""
        if self.verbose:
            print(message, end="")

    def append(self, xseq: Iterable[object] | ItemSequence, yseq: Iterable[Label], group: int = 0) -> None:
        """Add a sequence of items and its labels (strings) to the data set.

        Items are lists of attributes or dicts, as in :class:`ItemSequence`. `group` is a number by which :meth:`train`
        tells the instances that it evaluates on from those that it learns from.
        """
        self._instances.append(xseq, yseq, group)
        self._cleared = False

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose the training algorithm and set its parameters to their defaults.

        "lbfgs" (L-BFGS, OWL-QN with an L1 penalty), "l2sgd" (stochastic gradients with an L2 penalty), "ap" (averaged
        perceptron), "pa" (passive-aggressive) or "arow" (adaptive regularization of weights).
        """
        name = ALIASES.get(str(algorithm).lower(), str(algorithm).lower())
        if name not in ALGORITHMS:
            raise unknown_name("algorithm", algorithm, ["lbfgs", "l2sgd", "ap", "pa", "arow"])
        if type != "crf1d":
            raise ParameterError(f"unknown type of model {type!r}; there is only 'crf1d'")
        self._parameters = Parameters(name)

    def train(self, model: str | PathLike[str], holdout: int = -1) -> None:
        """Train on the data set and write the model to the file `model`, unless that is an empty string.

        Instances of the group `holdout` are not used for training; the model is evaluated on them after every
        iteration.
        """
        from crfkit.compat.pycrfsuite._training import train

        if self._cleared:
            raise DataError("The data is empty. Call append before train.")
        self._before_train()
        train(self._instances, self._parameters, model, int(holdout), self.message)

    def params(self) -> list[str]:
        """Return the names of the parameters of the algorithm."""
        return self._parameters.names()

    def set_params(self, params: Record) -> None:
        """Set parameters, ``{name: value}``."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> Entries:
        """Return all parameters, ``{name: value}``."""
        return {name: self.get(name) for name in self.params()}

    def set(self, name: str, value: object) -> None:
        """Set a parameter; raise ParameterError, a ValueError, if the algorithm has none of this name."""
        self._parameters[name] = value

    def get(self, name: str) -> Any:
        """Return the value of a parameter."""
        return self._parameters[name]

    def help(self, name: str) -> str:
        """Return what a parameter does."""
        return self._parameters.help(name)

    def clear(self) -> None:
        """Remove all instances from the data set."""
        self._instances = Instances()
        self._cleared = True

    def _before_train(self) -> None:
        pass


class Trainer(BaseTrainer):
    """A trainer that parses its messages into `logparser` and calls `on_iteration` and the like if `verbose`."""

    logparser: Any = None

    def _before_train(self) -> None:
        self.logparser = _logparser.TrainLogParser()

    def message(self, message: str) -> None:
        """Receive a message; call the method for the event that it completes."""
        event = self.logparser.feed(message)
        if not self.verbose or event is None:
            return
        log = self.logparser.last_log
        more: dict[str, object] = {
            "featgen_progress": self.logparser.featgen_percent,
            "iteration": self.logparser.last_iteration,
        }
        getattr(self, f"on_{event}")(*([log, more[event]] if event in more else [log]))

    def on_start(self, log: str) -> None:
        print(log, end="")

    def on_featgen_progress(self, log: str, percent: int) -> None:
        print(log, end="")

    def on_featgen_end(self, log: str) -> None:
        print(log, end="")

    def on_prepared(self, log: str) -> None:
        print(log, end="")

    def on_prepare_error(self, log: str) -> None:
        print(log, end="")

    def on_iteration(self, log: str, info: Entries) -> None:
        print(log, end="")

    def on_optimization_end(self, log: str) -> None:
        print(log, end="")

    def on_end(self, log: str) -> None:
        print(log, end="")
