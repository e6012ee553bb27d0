"""The options of structure learning with their checks, and the constants that steer the search."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any

from crfkit._values import Samples
from crfkit.errors import ParameterError
from crfkit.graph.inference.engines import ENGINES
from crfkit.graph.inference.marginals import Engine
from crfkit.losses import LOSSES
from crfkit.names import check_name, full_name
from crfkit.structure.encoding.bins import Bins, check_table_options
from crfkit.training.options import SolverOptions

METHODS = ("auto", "newton", "agpm", "grafting-light", "grafting", "full")
GROUP_NORMS = ("inf", "2", "1")
FORMS = ("auto", "ising", "full", "reference", "ordinal")
RULES = ("path", "cv", "ebic", "stability")
REFITTING_RULES = ("cv", "ebic", "stability")  # the models of these rules have no shrinkage
REFITS = ("auto", "likelihood", "pseudo-likelihood")


@dataclass(frozen=True)
class Tunables:
    """Constants of the search, the selection and the refit. Users have no reason to change them; experiments may."""

    # --- missing labels
    draws: int = 5
    """How often a row with missing labels is filled in."""
    draw_rounds: int = 2
    """How often the labels are drawn again from a graph that was learned from the draws before."""
    gibbs_sweeps: int = 5
    """Sweeps of Gibbs sampling per draw."""

    # --- solving at one strength
    path_tolerance: float = 1e-3
    """Tolerance along a path whose solutions are refitted: only their supports count."""
    table_tolerance_ratio: float = 1e-2
    """Share of the tolerance that tables of weights need."""
    edge_ridge: float = 1e-2
    """Strength of L2 on refitted edges. It keeps weights finite where variables determine each other."""
    newton_tolerance_ratio: float = 1e-2
    """Share of the tolerance at which Newton's method stops in refits; the error of a step is squared by the next."""
    dense_hessian_weights: int = 1500
    """Largest number of weights whose Hessian is kept as a matrix."""
    factored_hessian_entries: int = 1_000_000
    """Largest number of entries of a sparse Hessian that is factored."""

    # --- the end of a path
    patience: int = 3
    """Strengths without a better score after which a path may end, if no further edge lowers the extended BIC."""
    max_edge_growth: float = 2.0
    """A strength that lets in this many times the edges of the best step (and `many_edges`) ends a path."""
    path_extension: float = 0.01
    """Share of the last strength down to which a path is extended if its last score is the best."""
    subsample_strength_ratio: float = 0.75
    """Share of the strength of an edge's entry at which random halves of the rows have to select it."""

    # --- the price of edges
    full_prior_edges: int = 2
    """Number of edges that are charged the prior of γ = 1, which keeps tables of independent columns free of edges."""

    # --- dropping and adding edges
    many_edges: int = 300
    """Number of edges from which on clearly poor ones are dropped before the others are compared."""
    certain_weight: float = 2.0
    """Weights of this size say that variables determine each other; Wald's test fails there."""
    certain_edges_tried: int = 20
    """How many edges of that size are tried one by one."""
    promising_share: float = 0.9
    """Share of its price that an edge must gain to second order to be tried; the second order is a bit low."""
    score_resolution: float = 1e-9
    """Relative difference of extended BICs that is rounding."""
    completion_rounds: int = 20
    """Largest number of rounds in which edges are added."""

    # --- the likelihood of the chosen edges
    seconds_per_entry: float = 2e-7
    """Seconds per entry of a junction tree's tables, for an evaluation of the likelihood."""
    refit_evaluations: int = 40
    """Number of evaluations that a refit is expected to take."""
    exact_seconds: float = 60.0
    """Seconds that refit="auto" spends on exact inference."""
    sampled_variables: int = 150
    """Largest number of variables for which refit="auto" estimates the likelihood by particles: about a minute."""
    compared_rows: int = 200
    """Number of rows with inputs whose marginals are compared with the labels."""
    mismatch_limit: float = 0.1
    """Difference of a marginal from the data's above which a warning is given."""

    # --- particles
    particles: int = 2000
    """Number of particles for a graph of a hundred nodes or fewer."""
    particle_rounds: int = 15
    """Largest number of rounds until the moments must agree with the data."""
    averaged_rounds: int = 12
    """Number of rounds whose weights are averaged."""
    damping: float = 0.5
    """Share of a Newton step that is taken; full steps overshoot by the noise of the covariances."""
    step_sample_share: float = 0.8
    """Share of the effective sample size that a step has to keep."""
    least_sample_share: float = 0.35
    """Effective sample size, as a share of the particles, below which new particles are drawn."""
    covariance_shrinkage: float = 0.02
    """Shrinkage of the particles' covariances towards their diagonal."""
    covariance_memory: float = 0.5
    """Weight of earlier covariances; the mean of several rounds is less noisy."""
    dense_covariance_weights: int = 1500
    """Largest number of weights whose covariances are used; beyond it, only their variances are."""
    converged_decrement: float = 2.0
    """Newton decrement, in units of the particles' noise, at which the moments agree with the data."""
    start_decrement: float = 1.3
    """Newton decrement, in the same units, at which the starting weights are kept."""


@dataclass(frozen=True)
class StructureOptions:
    """The options for learning a graph, named and documented as in StructureLearner."""

    method: str = "auto"
    loss: str = "pseudo-likelihood"
    inference: str | Engine = "auto"
    group_norm: str = "inf"
    node_strength: float = 1.0
    edge_strength: float | str = "ebic"
    select_unit: int = 50
    candidates: Samples = None
    form: str = "auto"
    edge_features: bool = True
    refit: str = "auto"
    n_strengths: int = 30
    ebic_gamma: float = 0.35
    n_folds: int = 5
    n_subsamples: int = 50
    threshold: float = 0.75
    missing: str = "impute"
    bins: Bins = None
    standardize: bool = True
    strength_ratio: float = 0.01
    """The last strength of a path, as a share of the critical one."""
    solver: SolverOptions = field(default_factory=SolverOptions)
    """Tolerance, iterations, threads and seed."""
    tunables: Tunables = field(default_factory=Tunables)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", full_name(self.loss))
        object.__setattr__(self, "refit", full_name(self.refit))

    @property
    def seed(self) -> int:
        return self.solver.seed

    @property
    def n_threads(self) -> int | None:
        return self.solver.n_threads

    def check(self) -> None:
        """Raise ParameterError if an option is out of range."""
        self.solver.check()
        for what, value, names in (
            ("method", self.method, METHODS),
            ("loss", self.loss, LOSSES.options("structure")),
            ("group_norm", self.group_norm, GROUP_NORMS),
            ("form", self.form, FORMS),
            ("refit", self.refit, REFITS),
            ("inference", self.inference, ("auto", *ENGINES)),
        ):
            if isinstance(value, str) or what != "inference":
                check_name(what, value, names)
        if not isinstance(self.inference, str) and (
            isinstance(self.inference, type) or not hasattr(self.inference, "run")
        ):
            raise ParameterError(f"inference must be a name or an engine, not {self.inference!r}")
        if isinstance(self.edge_strength, str):
            if self.edge_strength not in RULES:
                raise ParameterError(
                    f"unknown edge_strength {self.edge_strength!r}; a number or one of {', '.join(RULES)}"
                )
        else:
            _check_number("edge_strength", self.edge_strength)
        _check_number("node_strength", self.node_strength)
        _check_number("ebic_gamma", self.ebic_gamma)
        if not isinstance(self.standardize, bool):
            raise ParameterError(f"standardize must be True or False, not {self.standardize!r}")
        _check_number("threshold", self.threshold, most=1.0)
        for name, fewest in (("select_unit", 1), ("n_strengths", 1), ("n_folds", 2), ("n_subsamples", 1)):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, numbers.Integral) or count < fewest:
                raise ParameterError(f"{name} must be an integer >= {fewest}, not {count!r}")
        check_table_options(self.missing, self.bins)


def _check_number(name: str, value: Any, most: float = math.inf) -> None:
    """Raise ParameterError unless the value is a number from 0 to `most`."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not (math.isfinite(value) and 0.0 <= value <= most):
        end = "" if most == math.inf else f" and <= {most:g}"
        raise ParameterError(f"{name} must be a finite number >= 0{end}, not {value!r}")
