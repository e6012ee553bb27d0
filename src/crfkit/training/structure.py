"""Learning of structure, from options to a model; without scikit-learn."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crfkit._types import Floats, Ids, Ints
from crfkit.data.observations import Observations
from crfkit.encoders.tables import TableEncoder
from crfkit.errors import ParameterError, StopTraining
from crfkit.inference.engines import ENGINES
from crfkit.inference.marginals import Engine
from crfkit.losses.edges import EdgeLoss
from crfkit.losses.structure_likelihood import StructureLikelihood, learning_engine
from crfkit.losses.structure_ordinal import pseudo_likelihood
from crfkit.losses.structure_pseudo import StructurePseudoLikelihood
from crfkit.models.graph import GraphModel, ready_engine
from crfkit.names import check_name, full_name
from crfkit.result import Status
from crfkit.training.structure_final import REFITS, Refit, refit_weights
from crfkit.training.structure_inputs import InputScaling
from crfkit.training.structure_refit import Solution
from crfkit.training.structure_search import METHODS, NORMS, PathStep, Search, least, within_an_error

LOSSES = ("pseudo-likelihood", "likelihood")
BELOW = 0.75  # of the strength where an edge comes in, with which halves of the rows are asked for it
RULES = ("path", "cv", "ebic", "stability")
REFITTING = ("cv", "ebic", "stability")  # rules whose model has no shrinkage
FORMS = ("auto", "ising", "full", "ordinal")


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learnt: the weights, and how their edges were chosen."""

    solution: Solution
    strength: float
    steps: list[PathStep]
    chosen: int | None  # of the steps
    stability: dict[int, float]
    critical: float
    entries: list[tuple[int, float]] = field(default_factory=list)  # (edge, strength), in order of entry into the path
    interrupted: bool = False  # by Ctrl-C; the edges are those of the strengths so far
    refit: Refit | None = None  # how the weights of the chosen edges were made
    method: str = ""  # by which the edges were chosen
    scaling: InputScaling | None = None  # of the inputs that the weights are for


@dataclass(frozen=True)
class StructureTraining:
    """How to learn; the names are those of StructureLearner."""

    search: Search = field(default_factory=Search)
    loss: str = "pseudo-likelihood"
    inference: str | Engine = "auto"
    edge_strength: Any = "ebic"
    form: str = "auto"
    threshold: float = 0.75
    refit: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", full_name(self.loss))
        object.__setattr__(self, "refit", full_name(self.refit))

    def check(self) -> None:
        """Raise ParameterError where an option is out of range."""
        search = self.search
        search.options.check()
        for what, value, names in (
            ("method", search.method, METHODS),
            ("loss", self.loss, LOSSES),
            ("group_norm", search.group_norm, tuple(NORMS)),
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

    def tables(self, encoder: TableEncoder, X: Any, states: Ids) -> Callable[[Ints | None], Observations]:
        """A function from row numbers (None: all) to the table of these rows."""
        n_states = np.array(encoder.n_states)
        if self.form == "ising" and (n_states != 2).any():
            i = int((n_states != 2).argmax())
            raise ParameterError(
                f"form='ising' is for two labels; column {encoder.variables[i]} has {n_states[i]}: use form='full'"
            )
        ising = bool((n_states == 2).all()) and self.form in ("auto", "ising")
        ordinal = self.form == "ordinal"
        inputs, own = dense_inputs(encoder, X)
        if inputs is not None:
            inputs, own = InputScaling.of(inputs, own).apply(inputs, own)
            assert inputs is not None
            inputs = np.hstack([np.ones((len(inputs), 1)), inputs])

        def of(rows: Ints | None = None) -> Observations:
            chosen: Any = slice(None) if rows is None else rows
            some = None if inputs is None else inputs[chosen]
            its = None if own is None else own[chosen]
            return Observations.of(states[chosen], n_states, some, None, ising, encoder.edge_inputs, its, ordinal)

        return of

    def make_loss(self, table: Observations, pairs: Ids | None) -> EdgeLoss:
        if self.loss == "pseudo-likelihood":
            return pseudo_likelihood(table, pairs)
        options = self.search.options
        name = learning_engine(table, pairs) if self.inference == "auto" else self.inference
        if self.inference == "auto" and name != "junction":
            warnings.warn(
                "exact inference on the graph of all candidates is too expensive: edges are chosen by "
                "pseudo-likelihood instead, which finds better graphs than approximate inference. The weights of the "
                "chosen edges are those of the likelihood where that is possible (refit='auto')",
                UserWarning,
                stacklevel=5,
            )
            return pseudo_likelihood(table, pairs)
        graph, K = StructureLikelihood(table, pairs).graph, int(table.n_states.max())
        engine = ready_engine(name, graph, K, options.n_threads, options.seed)
        return StructureLikelihood(table, pairs, (), engine)

    def run(self, encoder: TableEncoder, X: Any, states: Ids, pairs: Ids | None) -> Learned:
        """Chooses edges and weights."""
        learned = self._refitted(self._selected(encoder, X, states, pairs))
        inputs, own = dense_inputs(encoder, X)
        return replace(learned, scaling=None if inputs is None else InputScaling.of(inputs, own))

    def _refitted(self, learned: Learned) -> Learned:
        """The chosen edges with the weights of the likelihood, where `refit` and the rule ask for that."""
        rule, solution = self.edge_strength, learned.solution
        wanted = self.refit == "likelihood" or (self.refit == "auto" and rule in REFITTING)
        if not wanted or learned.interrupted:
            by = self.loss
            return replace(learned, refit=Refit(by if rule in REFITTING else f"penalised {by}"))
        engine = solution.loss.engine if isinstance(solution.loss, StructureLikelihood) else None
        own = engine if rule in REFITTING else None
        try:
            found, how = refit_weights(solution, self.search, self.refit, own)
        except KeyboardInterrupt:
            return replace(learned, interrupted=True)
        return replace(learned, solution=found, refit=how, method=self.search.method_for(solution.loss))

    def _selected(self, encoder: TableEncoder, X: Any, states: Ids, pairs: Ids | None) -> Learned:
        table_of = self.tables(encoder, X, states)
        loss = self.make_loss(table_of(None), pairs)
        if isinstance(loss, StructurePseudoLikelihood):
            return self._choose(loss, table_of, len(states))
        try:
            return self._choose(loss, table_of, len(states))
        except ParameterError as error:
            first = "all candidates are in the graph from the start (method 'grafting-light' adds them one by one)"
            grows = self.search.method.startswith("grafting")
            why = "a larger edge_strength selects fewer edges" if grows else first
            raise ParameterError(
                f"inference is refused on the graph of selected edges: {error}. Here, {why}; "
                "loss='pseudo-likelihood' needs no inference"
            ) from None

    def _choose(self, loss: EdgeLoss, table_of: Callable[[Ints | None], Observations], n: int) -> Learned:
        search, rule = self.search, self.edge_strength
        if not isinstance(rule, str):
            empty = search.empty(loss)
            critical = search.critical_strength(empty)
            solution = search.minimise(empty, float(rule)) if loss.n_candidates else empty
            interrupted = solution.result is not None and solution.result.status is Status.INTERRUPTED
            return Learned(solution.reduced(), float(rule), [], None, {}, critical, [], interrupted)
        whole, copies = loss, np.zeros(0, dtype=np.int64)
        if rule != "path":
            copies = search.refits.copies(loss)
            loss = loss.among(without_columns(loss, copies)) if len(copies) else loss
        empty = search.empty(loss)
        critical = search.critical_strength(empty)
        path = {
            "path": lambda: search.path(loss, search.strengths(empty)),
            "cv": lambda: search.by_folds(loss, table_of, n),
        }.get(rule, lambda: search.by_ebic(loss))()
        steps, interrupted = _gathered(path)
        entries = entered(steps)
        if not steps:  # no candidate has a slope
            kept = search.refits.joined(empty, whole, copies)
            return Learned(kept, critical, [], None, {}, critical, entries, interrupted)
        if rule == "path":
            last = len(steps) - 1
            return Learned(steps[-1].solution, steps[-1].strength, steps, last, {}, critical, entries, interrupted)
        chosen = within_an_error(steps) if rule == "cv" else least(steps)
        step, shares = steps[chosen], {}
        if rule == "stability" and not interrupted:
            # below the strength where the last of the best edges comes in: at it, half of the halves select that edge
            best = set() if step.refitted is None else set(search.refits.completed(step.refitted).support.tolist())
            came = [strength for edge, strength in entries if edge in best]
            step = replace(step, strength=min([step.strength, *(BELOW * strength for strength in came)]))
            shares = search.stability(loss, table_of, n, step.strength)
            stable = [edge for edge, share in shares.items() if share >= self.threshold]
            full = loss.with_active(stable)
            start = np.zeros(full.size)
            start[: len(empty.w)] = empty.w
            kept = search.refit(Solution(full, start + 1e-12 * (full.block_index >= 0)), prune=False)
            shares = dict(sorted((shares | dict.fromkeys(copies.tolist(), 1.0)).items()))
        else:
            kept = step.refitted or search.refit(step.solution)
            if rule == "ebic" and not interrupted:
                kept = search.refits.completed(kept)
                steps[chosen] = replace(step, refitted=kept, score=search.ebic(kept))
        kept = search.refits.joined(kept, whole, copies)
        return Learned(kept, step.strength, steps, chosen, shares, critical, entries, interrupted)

    def model(self, encoder: TableEncoder, learned: Learned, cuts: dict[str, list[float]] | None = None) -> GraphModel:
        """A model of the edges that were chosen, in the order of their ends."""
        loss, w = in_order(learned.solution)
        if learned.scaling is not None:
            w = learned.scaling.original(w, loss.field, encoder.edge_inputs)
        fitted = replace(encoder, structure=loss.graph)
        result, options = learned.solution.result, self.search.options
        record: dict[str, Any] = {"structure": self._record(learned) | ({"bins": cuts} if cuts else {})}
        if result is not None:
            record |= {
                "objective": result.objective,
                "value": result.value if math.isfinite(result.value) else None,
                "status": result.status.name,
                "iterations": result.iterations,
            }
        return GraphModel(
            fitted, loss.field, w, self.inference, "auto", record, options.n_threads, options.seed
        )  # fmt: skip

    def _record(self, learned: Learned) -> dict[str, Any]:
        rule = self.edge_strength if isinstance(self.edge_strength, str) else None
        return {
            "method": learned.method or self.search.method_for(learned.solution.loss),
            "loss": self.loss,
            "rule": rule,
            "strength": float(learned.strength),
            "critical_strength": float(learned.critical),
            "path": [[s.strength, s.n_edges, s.score, s.error] for s in learned.steps],
            "chosen": learned.chosen,
            "refit": None if learned.refit is None else learned.refit.record(),
            **({} if learned.scaling is None else {"input_scales": learned.scaling.record()}),
            "stability": [[edge, share] for edge, share in learned.stability.items()],
            "entries": [[edge, strength] for edge, strength in learned.entries],
        }


def _gathered(path: Iterator[PathStep]) -> tuple[list[PathStep], bool]:
    """(the steps, whether Ctrl-C ended them); nothing is kept of an interrupt before the first, nor of that step."""
    steps: list[PathStep] = []
    try:
        for step in path:
            steps.append(step)  # noqa: PERF402 - what came before an exception counts
    except StopTraining:
        pass
    except KeyboardInterrupt:
        if not steps:
            raise
        return steps, True
    return steps, False


def dense_inputs(encoder: TableEncoder, X: Any) -> tuple[Floats | None, Floats | None]:
    """(the features of rows as a dense matrix, those of variables)."""
    inputs, own = encoder.inputs(X)
    return inputs if inputs is None or isinstance(inputs, np.ndarray) else inputs.toarray(), own


def without_columns(loss: EdgeLoss, copies: Ints) -> Any:
    """[p, p] the pairs that may be edges, but for those of the second columns of these pairs."""
    allowed = loss.allowed.copy()
    second = copies % loss.table.n_variables
    allowed[second, :] = False
    allowed[:, second] = False
    return allowed


def entered(steps: list[PathStep]) -> list[tuple[int, float]]:
    """(edge, strength) of every edge of the path in the order of entry; those of one strength by their length."""
    seen: dict[int, float] = {}
    for step in steps:
        loss, w = step.solution.loss, step.solution.w
        new = [edge for edge in loss.active_ids.tolist() if edge not in seen]
        if new:
            order = np.argsort(loss.block_index, kind="stable")
            starts = np.searchsorted(loss.block_index, new, sorter=order)
            ends = np.searchsorted(loss.block_index, new, "right", sorter=order)
            sizes = [float(np.linalg.norm(w[order[a:b]])) for a, b in zip(starts, ends, strict=True)]
            seen |= {new[k]: step.strength for k in np.argsort(-np.array(sizes), kind="stable").tolist()}
    return list(seen.items())


def in_order(solution: Solution) -> tuple[EdgeLoss, Floats]:
    """The same with its edges in the order of their ids."""
    loss, w = solution.loss, solution.w
    order = np.argsort(loss.block_index, kind="stable")  # nodes, −1, stay in front
    return loss.with_active(np.sort(loss.active_ids)), w[order]


def _number(name: str, value: Any, least: float, most: float = math.inf) -> None:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not (math.isfinite(value) and least <= value <= most):
        end = "" if most == math.inf else f" and <= {most:g}"
        raise ParameterError(f"{name} must be a finite number >= {least:g}{end}, not {value!r}")
