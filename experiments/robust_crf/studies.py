"""Two questions beside the tables: do the solvers agree, and does L1 drop features that are noise?"""

from __future__ import annotations

from typing import Any

import numpy as np
from protocol import FEATURES, Trial, train, wrong

from crfkit.penalties import L1, L2
from crfkit.solvers import SuccessiveChanges, make_solver

REAL = len(FEATURES.names)


def equivalence(trial: Trial, strength: float = 30.0) -> dict[str, Any]:
    """The proximal solvers on the pseudo-likelihood, without a cap: with steps found by backtracking, and with the
    bound of its curvature that holds everywhere (not ISTA, which takes hours); OWL-QN to 1e-12 tells the optimum."""
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


def noise(clean: Trial, noisy: Trial, strengths: tuple[float, ...], ridges: tuple[float, ...]) -> dict[str, Any]:
    """L1 and L2 with and without noise, by the tree-reweighted bound, for each strength."""
    rows: dict[str, Any] = {}
    for kind, solver, penalties in (
        ("L1", "owlqn", [L1(s) for s in (1000.0, 300.0, *strengths)]),
        ("L2", "lbfgs", [L2(s) for s in ridges]),
    ):
        for name, trial in (("clean", clean), ("noisy", noisy)):
            w, path = np.zeros(trial.field.size), []
            for penalty in penalties:
                row, w, _ = train(trial, "trw", solver, penalty, w, watch=False)
                images = _by_image(trial, w)
                path.append({**row, "by_image": images.tolist(), "noise_kept": _noise_kept(trial, w)})
                print(f"  {kind} {name} {penalty.name}: {row['test']:.4f}, {path[-1]['noise_kept']}", flush=True)
            rows[f"{kind}, {name}"] = {"path": path, **_choices(path)}
    return rows


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
        f"{REAL} features of noise beside the {REAL} real ones, tree-reweighted bound; the strength with the fewest "
        "validation errors, and the strongest within one standard error of it:",
        "",
        "| trial | | strength | noise dropped, unary | pairwise | test error, % | without noise |",
        "|---|---|---|---|---|---|---|",
    ]
    for seed, rows in trials.items():
        for kind in ("L1", "L2"):
            for rule in ("best", "one_se"):
                noisy, clean = (rows[f"{kind}, {name}"] for name in ("noisy", "clean"))
                row, same = noisy["path"][noisy[rule]], clean["path"][clean[rule]]
                dropped = [100 * (1 - row["noise_kept"][part] / REAL) for part in ("unary", "pairwise")]
                name = f"{kind}, {'best' if rule == 'best' else 'one s.e.'}"
                lines.append(
                    f"| {seed} | {name} | {row['penalty']} | {dropped[0]:.0f} % | {dropped[1]:.0f} % "
                    f"| {100 * row['test']:.2f} | {100 * same['test']:.2f} |"
                )
    return lines
