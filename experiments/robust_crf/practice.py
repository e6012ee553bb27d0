"""What practice recommends, on the same trials: the tree-reweighted bound, and edges with a penalty of their own.

Every strength is chosen on the validation images of the trial, from the lists below, the strongest first among equals.
Convex objectives run to ε. Belief propagation and mean field start at the optimum of the tree-reweighted bound and keep
the iterate with the fewest wrong validation blocks; they end after 20 iterations without a better one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from protocol import Case, Trial, engine_of, logistic_regression, train_all

from crfkit.errors import StopTraining
from crfkit.penalties import L1, L2, Blockwise

STRENGTHS = (300.0, 100.0, 30.0, 10.0)  # of L1
RIDGES = (1000.0, 100.0, 10.0, 1.0)  # of L2
NODES = 30.0  # of L1 on node weights, under pseudo-likelihood
EDGES = (100_000.0, 30_000.0, 10_000.0, 3_000.0)  # of L1 on the couplings there
EVERY, PATIENCE = 2, 10  # a validation every two iterations; ten without a better one end training


class Watch:
    """Callback: `best` is the iterate with the fewest wrong blocks of validation images."""

    def __init__(self, trial: Trial, engine: str) -> None:
        self.trial, self.engine = trial, engine
        self.best: tuple[float, int, Any] = (np.inf, 0, None)

    def __call__(self, iteration: Any) -> None:
        k = iteration.row.iteration
        if k % EVERY:
            return
        error = self.trial.errors(iteration.w, self.engine, ("validation",))["validation"]
        if error < self.best[0]:
            self.best = (error, k, iteration.w.copy())
        if k - self.best[1] >= EVERY * PATIENCE:
            raise StopTraining


def rows(trial: Trial, quick: bool = False) -> dict[str, Any]:
    """Return the rows of one trial."""
    found: dict[str, Any] = {}
    regressions, weights = logistic_regression(trial.alone, [L1(s) for s in STRENGTHS])
    k = min(range(len(regressions)), key=lambda k: regressions[k]["errors"][0])
    found["logistic regression"] = {
        "penalty": regressions[k]["penalty"],
        "validation": regressions[k]["errors"][0],
        "test": regressions[k]["errors"][1],
        "cpu_seconds": regressions[k]["cpu_seconds"],
        "unary": int(np.count_nonzero(weights[k])),
        "pairwise": 0,
    }
    start = np.zeros(trial.field.size)
    start[trial.field.layout["node"]] = weights[k]

    def add(name: str, inference: str, cases: list[Case]) -> Any:
        best, w = _best(trial, inference, cases)
        found[name] = best
        print(f"  {name:34} {100 * best['test']:.2f} %  {best['cpu_seconds']:.1f} CPU s", flush=True)
        return w

    some = slice(1, 3) if quick else slice(None)
    bound = add("trw, L1", "trw", [Case("owlqn", L1(s), start) for s in STRENGTHS[some]])
    add("trw, L2", "trw", [Case("lbfgs", L2(s), start) for s in RIDGES[some]])
    found["trw, L1, predicted by bp"] = {**found["trw, L1"], **trial.errors(bound, "bp")}
    strength = float(found["trw, L1"]["penalty"][3:-1])
    for inference in ("bp", "mean-field"):
        watch = Watch(trial, inference)
        case = Case("fista", L1(strength), bound, (watch,))
        ((row, _, _),) = train_all(trial, inference, [case])
        _, kept, w = watch.best
        found[f"{inference}, from the bound"] = {**row, **trial.errors(w, inference), "kept": kept, **trial.counts(w)}
    blocks = [Blockwise({"node": L1(NODES), "edge": L1(edge)}) for edge in EDGES[some]]
    add("pl, edges penalised by themselves", "pl", [Case("fista", penalty, start) for penalty in blocks])
    add("pl, L1", "pl", [Case("owlqn", L1(s), start) for s in STRENGTHS[some]])
    return found


def _best(trial: Trial, inference: str, cases: list[Case]) -> tuple[dict[str, Any], Any]:
    """Return the case with the fewest validation errors, and its weights."""
    engine, tries = engine_of(inference), []
    answers = train_all(trial, inference, cases)
    for row, w, _ in answers:
        tries.append({**row, **trial.errors(w, engine, ("validation",))})
    k = min(range(len(tries)), key=lambda k: tries[k]["validation"])
    w = answers[k][1]
    short = [{key: each[key] for key in ("penalty", "validation", "cpu_seconds")} for each in tries]
    return {**tries[k], **trial.errors(w, engine), "tries": short}, w
