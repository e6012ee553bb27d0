"""The paper's protocol: nine cells {ISTA, FISTA, OGM} × {belief propagation, mean field, pseudo-likelihood} of a trial.

The objective is that of eq. (7): the sum over all blocks of the training images, not their mean, plus λ·‖θ‖₁. Each
cell tries λ in {.01, .1, 1, 10, 100} and, for OGM, μ in {.01, .1, 1}; the errors on the validation images choose, the
largest λ (then μ) first among equals. Runs start from normal noise of scale .01 and end after T = 400 iterations or
when the objective changes by less than ε = 10⁻⁴ of its value. Nothing ends earlier. Steps are as in Algorithms 1 and 2,
of fixed length 1/L_f, for OGM 1/(L_f + λ/μ); L_f is eq. (9) at θ = 0, where each covariance in it is largest. FISTA has
no restarts and OGM no proximal finish. OGM's prox-centre is its start: the paper's θ* = θ^k would move each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from protocol import ITERATIONS, Case, Trial, engine_of, predict, train_all, wrong

from crfkit.penalties import L1

INFERENCES = ("bp", "mean-field", "pl")
SOLVERS = ("ista", "fista", "ogm")
LAMBDAS = (100.0, 10.0, 1.0, 0.1, 0.01)
MUS = (1.0, 0.1, 0.01)
SCALE = 0.01  # of the random start
AS_WRITTEN: dict[str, dict[str, Any]] = {"ista": {}, "fista": {"restart": "none"}, "ogm": {"finish": False}}
MOMENTS = sorted({round(2 ** (k / 2)) for k in range(2 * int(np.log2(ITERATIONS)) + 2)})  # iterations of a curve
SHOWN = 5  # test images whose segmentation is kept


def curvature(trial: Trial, inference: str) -> float:
    """Return L_f: the largest eigenvalue of the sum of the cliques' covariances at θ = 0, where labels are ±1."""
    if inference == "pl":
        return float(trial.loss("pl").lipschitz())
    h, g = trial.sets[0].node_features, trial.sets[0].edge_features
    return float(max(np.linalg.eigvalsh(h.T @ h)[-1], np.linalg.eigvalsh(g.T @ g)[-1]))


class Snapshots:
    """Callback: keep the weights at some iterations, so that errors along the chosen run can be computed afterwards."""

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []

    def __call__(self, iteration: Any) -> None:
        row = iteration.row
        if row.iteration in MOMENTS or row.iteration == 0:
            at = {"iteration": row.iteration, "evaluations": row.evaluations, "objective": row.value}
            self.kept.append({**at, "w": iteration.w.copy()})


def settings(solver: str, lambdas: tuple[float, ...], mus: tuple[float, ...]) -> list[dict[str, float]]:
    """Return what a cell tries, the strongest first."""
    if solver == "ogm":
        return [{"lambda": strength, "mu": mu} for strength in lambdas for mu in mus]
    return [{"lambda": strength} for strength in lambdas]


def cells(
    trial: Trial,
    inference: str,
    curves: bool = False,
    solvers: tuple[str, ...] = SOLVERS,
    lambdas: tuple[float, ...] = LAMBDAS,
    mus: tuple[float, ...] = MUS,
    most: int = ITERATIONS,
) -> dict[str, Any]:
    """Return the cells of an inference: all tries, and the test error of the one that the validation images choose."""
    begin, L = time.process_time(), curvature(trial, inference)
    tries = [(solver, setting) for solver in solvers for setting in settings(solver, lambdas, mus)]
    snapshots = [Snapshots() for _ in tries]
    cases = []
    for (solver, setting), kept in zip(tries, snapshots, strict=True):
        options = {"lipschitz": L, "random_start": SCALE, "seed": trial.seed, **AS_WRITTEN[solver]}
        if "mu" in setting:
            options["mu"] = setting["mu"]
        w0, penalty = np.zeros(trial.field.size), L1(setting["lambda"])
        cases.append(Case(solver, penalty, w0, (kept,) if curves else (), options))
    found = train_all(trial, inference, cases, most=most)
    spent = time.process_time() - begin
    rows: dict[str, Any] = {}
    for solver in solvers:
        mine = [k for k, (name, _) in enumerate(tries) if name == solver]
        row = _choose(trial, inference, [(tries[k][1], *found[k][:2], snapshots[k]) for k in mine], curves)
        rows[f"{inference}, {solver}"] = {**row, "lipschitz": L, "together_cpu_seconds": spent}
    return rows


def _choose(trial: Trial, inference: str, found: list[Any], curves: bool) -> dict[str, Any]:
    """Return a cell from what its runs gave: (setting, what was measured, w, snapshots) of each."""
    engine = engine_of(inference)
    tries = [
        {**setting, **row, "validation": wrong(trial.field, trial.sets[1], w, engine)} for setting, row, w, _ in found
    ]
    k = min(range(len(tries)), key=lambda k: tries[k]["validation"])
    w, snapshots = found[k][2:]
    row = {
        "chosen": tries[k],
        "test": wrong(trial.field, trial.sets[2], w, engine),
        "train": wrong(trial.field, trial.sets[0], w, engine),
        "search_cpu_seconds": sum(each["cpu_seconds"] for each in tries),
        "tries": tries,
    }
    if curves:
        row["curve"] = [_errors(trial, engine, moment) for moment in snapshots.kept]
        row["segmentations"] = segmentations(trial, engine, w)
    return row


def _errors(trial: Trial, engine: str, moment: dict[str, Any]) -> dict[str, Any]:
    w = moment.pop("w")
    return {**moment, **trial.errors(w, engine, ("train", "test"))}


def segmentations(trial: Trial, engine: str, w: Any) -> list[dict[str, Any]]:
    """Return the first test images by name with the bits of their predicted blocks, as hexadecimal digits."""
    found = []
    test = trial.sets[2]
    for k in range(min(SHOWN, test.graph.n_graphs)):
        data = test.take([k])
        labels = predict(trial.field, data, w, engine)
        name = trial.chosen[len(trial.chosen) - test.graph.n_graphs + k][0].name
        wrongly = float((labels != data.labels).mean())
        found.append({"image": name, "error": wrongly, "blocks": np.packbits(labels).tobytes().hex()})
    return found


def run(
    trial: Trial, done: dict[str, Any], save: Callable[[], None], inferences: Any, curves: bool, **grid: Any
) -> None:
    """Fill in the cells of a trial that are not there yet, and save after each inference."""
    for inference in inferences:
        if all(f"{inference}, {solver}" in done for solver in grid.get("solvers", SOLVERS)):
            continue
        rows = cells(trial, inference, curves, **grid)
        done |= rows
        save()
        for name, row in rows.items():
            chosen = row["chosen"]
            print(
                f"  {name:18} λ {chosen['lambda']:g} μ {chosen.get('mu', 0):g}: test {100 * row['test']:.2f} %, "
                f"{chosen['iterations']} iterations, {chosen['unsettled']} unsettled, {chosen['cpu_seconds']:.0f} "
                f"CPU s of {row['search_cpu_seconds']:.0f}; together {row['together_cpu_seconds']:.0f}",
                flush=True,
            )
