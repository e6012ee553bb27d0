"""Two questions beside the tables: do the solvers agree, and does L1 drop features that are noise?"""

from __future__ import annotations

from typing import Any

import numpy as np
from protocol import FEATURES, Trial, train, wrong

from crfkit.penalties import L1, L2
from crfkit.solvers import SuccessiveChanges, make_solver
from crfkit.solvers.parts.restricted import Restricted

REAL = len(FEATURES.names)
STRENGTHS = (300.0, 200.0, 150.0, 100.0)
RIDGE = 10.0


def equivalence(trial: Trial, strength: float = 30.0) -> dict[str, Any]:
    """The proximal solvers on the pseudo-likelihood, without a cap: with steps found by backtracking, and with the
    bound of its curvature that holds everywhere (but ISTA, which had not ended in three minutes); OWL-QN to 1e-12 tells
    the optimum."""
    loss, w0 = trial.loss("pl"), np.zeros(trial.field.size)
    rows: dict[str, Any] = {}
    cases = [("owlqn", "owlqn", 1e-12, {})]
    cases += [(f"{s}, backtracking", s, 1e-9, {"backtracking": True}) for s in ("ista", "fista", "ogm")]
    cases += [(f"{s}, global bound", s, 1e-9, {}) for s in ("fista", "ogm")]
    for name, solver, change, options in cases:
        made = make_solver(solver, stopping=SuccessiveChanges(change, 10), max_iterations=10**6, **options)
        result = made.minimize(loss, L1(strength), w0)
        rows[name] = {
            "objective": result.value,
            "iterations": result.iterations,
            "evaluations": result.evaluations,
            "seconds": result.seconds,
            "nonzeros": int(np.count_nonzero(result.w)),
        }
        optimum = rows["owlqn"]["objective"]
        near = next((row for row in result.trace if row.value <= optimum * (1 + 1e-4)), None)
        if near is not None:
            rows[name] |= {"iterations_to_1e-4": near.iteration, "seconds_to_1e-4": near.seconds}
        print(f"  {name}: {result.value:.6f}, {result.iterations} iterations, {result.seconds:.1f} s", flush=True)
    return rows


def report_equivalence(rows: dict[str, Any]) -> list[str]:
    optimum = min(row["objective"] for row in rows.values())
    lines = [
        "Pseudo-likelihood of five images, L1(30), no cap on iterations:",
        "",
        "| | objective | above the best, relative | iterations | seconds | iterations, seconds to 1e-4 | non-zeros |",
        "|---|---|---|---|---|---|---|",
    ]
    for solver, row in rows.items():
        lines.append(
            f"| {solver} | {row['objective']:.4f} | {row['objective'] / optimum - 1:.1e} | {row['iterations']} "
            f"| {row['seconds']:.1f} | {row['iterations_to_1e-4']}, {row['seconds_to_1e-4']:.1f} | {row['nonzeros']} |"
        )
    return lines


def noise(clean: Trial, noisy: Trial) -> dict[str, Any]:
    """L1 along a path of strengths by the tree-reweighted bound, the features of each refitted with L2; L2 alone."""
    rows: dict[str, Any] = {}
    for name, trial in (("clean", clean), ("noisy", noisy)):
        w, path = np.zeros(trial.field.size), []
        for strength in STRENGTHS:
            _, w, _ = train(trial, "trw", "owlqn", L1(strength), w, watch=False)
            path.append({"strength": strength, **_refit(trial, w)})
            print(f"  {name} L1({strength:g}): {path[-1]}", flush=True)
        rows[name] = {"path": path, "all": _refit(trial, np.ones(trial.field.size), w), **_choices(path)}
        print(f"  {name} L2: {rows[name]['all']}", flush=True)
    return rows


def _refit(trial: Trial, selected: Any, start: Any = None) -> dict[str, Any]:
    """The weights that are not zero in `selected`, trained with L2(10) in place of L1."""
    weights = np.flatnonzero(selected)
    v0 = (selected if start is None else start)[weights]
    solver = make_solver("lbfgs", stopping=SuccessiveChanges(1e-4, 1), max_iterations=100)
    w = np.zeros(trial.field.size)
    w[weights] = solver.minimize(Restricted(trial.loss("trw"), w, weights), L2(RIDGE), v0).w
    kept = _noise_kept(trial, w)
    return {**trial.errors(w, "trw"), "by_image": _by_image(trial, w).tolist(), "kept": len(weights), "noise": kept}


def _by_image(trial: Trial, w: Any) -> Any:
    """[images] validation errors."""
    data = trial.sets[1]
    return np.array([wrong(trial.field, data.take([k]), w, "trw") for k in range(data.graph.n_graphs)])


def _noise_kept(trial: Trial, w: Any) -> dict[str, int]:
    """Features of noise whose weight is not zero; the weights of a block are [1, features]."""
    blocks = {"unary": w[trial.field.layout["node"]], "pairwise": w[trial.field.layout["edge"]]}
    return {name: int(np.count_nonzero(part[1 + REAL :])) for name, part in blocks.items()}


def _choices(path: list[dict[str, Any]]) -> dict[str, int]:
    """Places in a path: the fewest validation errors; the strongest within one standard error of that (paired)."""
    images = np.array([row["by_image"] for row in path])
    best = int(images.mean(axis=1).argmin())
    excess = images - images[best]
    se = excess.std(axis=1, ddof=1) / np.sqrt(images.shape[1])
    return {"best": best, "one_se": int(np.flatnonzero(excess.mean(axis=1) <= se)[0])}


def report_noise(trials: dict[str, Any]) -> list[str]:
    lines = [
        f"{REAL} features of noise beside the {REAL} real ones; tree-reweighted bound, |h_i − h_j| less its mean. L1 "
        f"selects, L2({RIDGE:g}) refits; the strength is the largest within one standard error of the fewest "
        f"validation errors. L2: all features with L2({RIDGE:g}).",
        "",
        "| trial | | strength | noise dropped, unary | pairwise | weights | test error, % | without noise |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for seed, rows in trials.items():
        noisy, clean = rows["noisy"], rows["clean"]
        chosen = noisy["path"][noisy["one_se"]], clean["path"][clean["one_se"]]
        for kind, row, same in (("L1", *chosen), ("L2", noisy["all"], clean["all"])):
            dropped = [f"{100 * (1 - row['noise'][part] / REAL):.0f} %" for part in ("unary", "pairwise")]
            lines.append(
                f"| {seed} | {kind} | {row.get('strength', '')} | {dropped[0]} | {dropped[1]} | {row['kept']} "
                f"| {100 * row['test']:.2f} | {100 * same['test']:.2f} |"
            )
    return lines
