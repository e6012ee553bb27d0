"""The structure of handwritten letters, 400 pixels and 79,800 candidate edges: data, methods, what is measured.

A half of each letter's images is learnt from, the other half chooses λ by its pseudo-likelihood, along a path of
strengths that ends where belief propagation no longer leads to an optimum. Then every method starts from the optimum
without edges, at the λ that was chosen.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from methods import cpu_limit

from crfkit.graph.inference.belief_propagation import BeliefPropagation
from crfkit.graph.inference.gibbs import Gibbs
from crfkit.penalties import L1, L2, Blockwise, ByBlock
from crfkit.solvers import PeriodDecrease, make_solver
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.likelihood import StructureLikelihood
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.observations import Observations

LETTERS = "acmsig"
SIDE, HEIGHT, WIDTH = 20, 16, 8
NODE_STRENGTH = 1.0  # of L2 on biases, which keeps those of constant pixels finite
SHARES = {  # of the critical strength: the path of λ
    "bp": (0.7, 0.6, 0.55, 0.5, 0.475, 0.45, 0.425, 0.4, 0.375, 0.35, 0.325, 0.3, 0.275, 0.25),
    "pl": (0.05, 0.02, 0.01, 0.005),
}
UNITS = {"bp": 10, "pl": 50}  # M of Figure 4
OPTIMAL = 0.05  # of λ: the sub-gradient's length at what counts as an optimum
PATH_SECONDS = 20.0  # of CPU time, after which a run of the path is stopped
METHODS = ("grafting-light", "grafting", "full-opt-l1")
SAMPLES = 400


@dataclass
class Letter:
    name: str
    train: Observations
    other: Observations

    @property
    def n_pixels(self) -> int:
        return self.train.n_variables

    def loss(self, kind: str, active: Any = ()) -> EdgeLoss:
        """Return the loss by belief propagation ("bp") or the pseudo-likelihood ("pl") with these edges."""
        if kind == "pl":
            return StructurePseudoLikelihood(self.train, None, active)
        return StructureLikelihood(self.train, None, active, belief_propagation())

    def held_out(self, loss: EdgeLoss, w: Any) -> float:
        """Return −log pseudo-likelihood of the other half, per image."""
        return (
            float(
                loss.on(self.other).at(w).value
                if isinstance(loss, StructurePseudoLikelihood)
                else StructurePseudoLikelihood(self.other, None, loss.active_ids).at(w).value
            )
            / self.other.total
        )


def belief_propagation() -> BeliefPropagation:
    return BeliefPropagation(max_iterations=500, tolerance=1e-6, n_threads=1)


def read(path: Path, seed: int = 0) -> list[Letter]:
    """Return 16×8 images in the middle of 20×20 black squares, in two random halves."""
    path = path / "letter.data.gz" if path.is_dir() else path
    rows: dict[str, list[list[str]]] = {name: [] for name in LETTERS}
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="ascii") as lines:
        for line in lines:
            cells = line.rstrip().split("\t")
            if cells[1] in rows:
                rows[cells[1]].append(cells[6 : 6 + HEIGHT * WIDTH])
    rng = np.random.default_rng(seed)
    top, left = (SIDE - HEIGHT) // 2, (SIDE - WIDTH) // 2
    letters = []
    for name in LETTERS:
        images = np.zeros((len(rows[name]), SIDE, SIDE), dtype=np.int32)
        images[:, top : top + HEIGHT, left : left + WIDTH] = np.array(rows[name], dtype=np.int32).reshape(
            -1, HEIGHT, WIDTH
        )
        pixels = images.reshape(len(images), -1)[rng.permutation(len(images))]
        half = len(pixels) // 2
        train, other = (Observations.of(part, 2, ising=True) for part in (pixels[:half], pixels[half:]))
        letters.append(Letter(name, train, other))
    return letters


# --- one strength


def without_edges(loss: EdgeLoss) -> Any:
    penalty = Blockwise({"node": L2(NODE_STRENGTH), "edge": L2(NODE_STRENGTH)}, loss.layout)
    return make_solver("lbfgs").minimize(loss, penalty, np.zeros(loss.size)).w


def minimise(method: str, loss: EdgeLoss, w: Any, strength: float, unit: int, seconds: float) -> tuple[EdgeLoss, Any]:
    """Return the loss of the selected edges and the solver's result."""
    limit = cpu_limit(seconds)
    stopping = PeriodDecrease(1e-6)
    if method == "full-opt-l1":
        first = len(w)
        loss, _ = loss.activate(loss.candidate_ids)
        w = np.concatenate([w, np.zeros(loss.size - first)])
        solver = make_solver("owlqn", stopping=stopping)
    else:
        solver = make_solver(method, select_unit=unit, stopping=stopping)
    result = solver.minimize(loss, ByBlock(L1, strength, L2(NODE_STRENGTH)), w, [limit])
    return result.loss or loss, result


def measured(
    method: str, kind: str, letter: Letter, strength: float, unit: int, seconds: float
) -> tuple[dict[str, Any], Any, Any]:
    """Return the record, the loss of the edges that are not zero, and their weights."""
    wall, cpu = time.perf_counter(), time.process_time()
    empty = letter.loss(kind)
    loss, result = minimise(method, empty, without_edges(empty), strength, unit, seconds)
    wall_seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    active, selected = loss.nonzero_ids(result.w), len(loss.active_ids)
    unsettled = getattr(loss, "unsettled", 0)
    nll = loss.at(result.w).value / letter.train.total
    loss, w = loss.keep(active, result.w)
    record = {
        "letter": letter.name,
        "loss": kind,
        "method": method,
        "M": 0 if method == "full-opt-l1" else unit,
        "strength": strength,
        "limit": seconds,
        "images": int(letter.train.total),
        "variables": letter.n_pixels,
        "candidates": empty.n_candidates,
        "status": result.status.name,
        "objective": result.value,
        "optimality": result.optimality,
        "nll": float(nll),
        "edges": len(active),
        "selected": selected,
        "evaluations": result.evaluations,
        "passes": result.passes,
        "unsettled": int(unsettled),
        "held_out": letter.held_out(loss, w),
        "seconds": round(wall_seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
    }
    return record, loss, w


def path(letter: Letter, kind: str) -> list[dict[str, Any]]:
    """Return rows of λ from strong to weak, each solution by Grafting-Light from the one before.

    The path ends where there is no optimum to be found, or where the other half has become less probable.
    """
    loss = letter.loss(kind)
    w = without_edges(loss)
    critical = float(loss.candidates(loss.at(w))[1][0])
    rows: list[dict[str, Any]] = []
    for share in SHARES[kind]:
        begin = time.process_time()
        loss, result = minimise("grafting-light", loss, w, share * critical, UNITS[kind], PATH_SECONDS)
        w = result.w
        row = {
            "share": share,
            "strength": share * critical,
            "edges": len(loss.nonzero_ids(w)),
            "held_out": letter.held_out(loss, w),
            "optimality": result.optimality,
            "optimal": bool(result.optimality <= OPTIMAL * share * critical),
            "status": result.status.name,
            "cpu_seconds": round(time.process_time() - begin, 3),
        }
        rows.append(row)
        if not row["optimal"] or (len(rows) > 1 and row["held_out"] > rows[-2]["held_out"]):
            break
    return rows


def best(rows: Sequence[dict[str, Any]]) -> float:
    """Return the strength of the path's optima that the other half likes best."""
    good = [row for row in rows if row["optimal"]]
    return float(min(good, key=lambda row: row["held_out"])["strength"])


# --- images


def by_marginals(letter: Letter, active: Any, w: Any) -> Any:
    """Return p(pixel is ink) [400] by belief propagation."""
    evaluation: Any = letter.loss("bp", active).at(w)
    _ = evaluation.value
    return evaluation.marginals.nodes[:, 1]


def by_samples(letter: Letter, active: Any, w: Any) -> Any:
    """Return the mean [400] of Gibbs samples."""
    loss: Any = letter.loss("bp", active)
    drawn = Gibbs(n_threads=1).sample(loss.field.potentials(loss.data, w), SAMPLES)
    return drawn.mean(axis=0)


def average(letter: Letter) -> Any:
    """Return the mean [400] of the training images."""
    return letter.train.weights @ letter.train.states / letter.train.total


def blur(image: Any) -> float:
    """Return the mean of 4·p·(1 − p) over the pixels: 0 for black and white, 1 for even grey."""
    p = np.asarray(image)
    return float((4 * p * (1 - p)).mean())
