"""Two questions beside the tables: do the solvers agree, and does L1 drop features that are noise?"""

from __future__ import annotations

from typing import Any

import numpy as np
from protocol import CHANGE, FEATURES, Case, Trial, train_all

from crfkit.penalties import L1, L2
from crfkit.solvers import SuccessiveChanges, make_solver
from crfkit.solvers.parts.restricted import Restricted

REAL = len(FEATURES.names)
MUS = (0.01, 0.1, 1.0)
STRENGTH = 300.0  # of the study of noise: fixed before its trials were drawn
RIDGE = 10.0


def equivalence(trial: Trial, strength: float = 30.0) -> dict[str, Any]:
    """Return the runs of the proximal solvers and OWL-QN on the pseudo-likelihood of five images, from zero.

    Steps are found by backtracking. A run ends when the objective changes by less than 1e-12 (OWL-QN) or 1e-9 of its
    value; `to` says how many iterations and evaluations it took to come within 1e-4 of the least objective of all.
    """
    w0 = np.zeros(trial.field.size)
    names = ["ista", "fista", *(f"ogm, μ = {mu:g}" for mu in MUS)]
    options: list[dict[str, Any]] = [{}, {}, *({"mu": mu} for mu in MUS)]
    cases = [
        Case(n.split(",")[0], L1(strength), w0, (), {"backtracking": True, **o})
        for n, o in zip(names, options, strict=True)
    ]
    found = train_all(trial, "pl", cases, change=1e-9, most=10**5)
    found += train_all(trial, "pl", [Case("owlqn", L1(strength), w0)], change=1e-12, most=10**5)
    optimum = min(result.value for _, _, result in found)
    rows: dict[str, Any] = {}
    for name, (row, _, result) in zip([*names, "owlqn"], found, strict=True):
        near = next((step for step in result.trace if step.value <= optimum * (1 + CHANGE)), None)
        to = None if near is None else {"iterations": near.iteration, "evaluations": near.evaluations}
        rows[name] = {**row, "above": row["objective"] / optimum - 1, "to": to}
        print(f"  {name}: {row['objective']:.6f}, {row['iterations']} iterations, {row['evaluations']} evaluations")
    return rows


def noise(clean: Trial, noisy: Trial) -> dict[str, Any]:
    """Return what L1(300) by the tree-reweighted bound selects, with and without features of noise; L2(10) refits.

    The protocol was fixed before the trials 100 to 109 were drawn: |h_i − h_j| less its mean, one strength (the largest
    of those that an earlier form of the study had tried on other draws), no choice on validation images.
    """
    rows: dict[str, Any] = {}
    for name, trial in (("clean", clean), ("noisy", noisy)):
        ((row, w, _),) = train_all(trial, "trw", [Case("owlqn", L1(STRENGTH), np.zeros(trial.field.size))])
        rows[name] = {**row, **trial.errors(_refit(trial, w), "trw"), "noise_kept": _noise_kept(trial, w)}
        print(f"  {name}: {rows[name]}", flush=True)
    return rows


def _refit(trial: Trial, selected: Any) -> Any:
    """Return the weights that are not zero in `selected`, trained with L2(10) in place of L1."""
    weights, w = np.flatnonzero(selected), np.zeros(trial.field.size)
    solver = make_solver("lbfgs", stopping=SuccessiveChanges(CHANGE, 1), max_iterations=100)
    w[weights] = solver.minimize(Restricted(trial.loss("trw"), w.copy(), weights), L2(RIDGE), selected[weights]).w
    return w


def _noise_kept(trial: Trial, w: Any) -> dict[str, int]:
    """Return how many features of noise have a weight that is not zero; the weights of a block are [1, features]."""
    blocks = {"unary": w[trial.field.layout["node"]], "pairwise": w[trial.field.layout["edge"]]}
    return {name: int(np.count_nonzero(part[1 + REAL :])) for name, part in blocks.items()}
