"""The options of structure learning, and their checks."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any

from crfkit.errors import ParameterError
from crfkit.graph.inference.engines import ENGINES
from crfkit.graph.inference.marginals import Engine
from crfkit.names import check_name, full_name
from crfkit.structure.training.data import FORMS, TableOptions
from crfkit.structure.training.final import REFITS
from crfkit.structure.training.search import Search
from crfkit.structure.training.solve import METHODS, NORMS

LOSSES = ("pseudo-likelihood", "likelihood")
RULES = ("path", "cv", "ebic", "stability")
REFITTING = ("cv", "ebic", "stability")  # rules whose model has no shrinkage


@dataclass(frozen=True)
class StructureOptions:
    """How to learn; the names are those of StructureLearner."""

    search: Search = field(default_factory=Search)
    loss: str = "pseudo-likelihood"
    inference: str | Engine = "auto"
    edge_strength: Any = "ebic"
    threshold: float = 0.75
    refit: str = "auto"
    table: TableOptions = field(default_factory=TableOptions)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", full_name(self.loss))
        object.__setattr__(self, "refit", full_name(self.refit))

    def check(self) -> None:
        """Raise ParameterError if an option is out of range."""
        search = self.search
        search.options.check()
        for what, value, names in (
            ("method", search.method, METHODS),
            ("loss", self.loss, LOSSES),
            ("group_norm", search.group_norm, tuple(NORMS)),
            ("form", self.table.form, FORMS),
            ("refit", self.refit, REFITS),
            ("inference", self.inference, ("auto", *ENGINES)),
        ):
            if isinstance(value, str) or what != "inference":
                check_name(what, value, names)
        if not isinstance(self.inference, str) and (
            isinstance(self.inference, type) or not hasattr(self.inference, "run")
        ):
            raise ParameterError(f"inference must be a name or an engine, not {self.inference!r}")
        strength = self.edge_strength
        if isinstance(strength, str):
            if strength not in RULES:
                raise ParameterError(f"unknown edge_strength {strength!r}; a number or one of {', '.join(RULES)}")
        else:
            _number("edge_strength", strength, 0.0)
        _number("node_strength", search.node_strength, 0.0)
        _number("ebic_gamma", search.gamma, 0.0)
        if not isinstance(search.standardize, bool):
            raise ParameterError(f"standardize must be True or False, not {search.standardize!r}")
        _number("threshold", self.threshold, 0.0, 1.0)
        for name, count, fewest in (
            ("select_unit", search.select_unit, 1),
            ("n_strengths", search.n_strengths, 1),
            ("n_folds", search.n_folds, 2),
            ("n_subsamples", search.n_subsamples, 1),
        ):
            if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < fewest:
                raise ParameterError(f"{name} must be an integer >= {fewest}, not {count!r}")
        self.table.check()


def _number(name: str, value: Any, least: float, most: float = math.inf) -> None:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not (math.isfinite(value) and least <= value <= most):
        end = "" if most == math.inf else f" and <= {most:g}"
        raise ParameterError(f"{name} must be a finite number >= {least:g}{end}, not {value!r}")
