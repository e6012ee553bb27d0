"""Does OWL-QN stall? Three ways to take its direction, on noun phrases and on synthetic chains.

With p = −⋄ (the shortest sub-gradient), e the orthant of w (of p where w = 0), and H the L-BFGS matrix:

    free      H of the free weights alone, d = H·p on them and H₀·p on those that leave zero   (crfkit's default)
    original  d = π(H·p; p), which drops coordinates whose sign disagrees with p               (Andrew & Gao 2007)
    printed   d = H·π(p; e), which drops from p every weight that has to shrink                (Zhu et al. 2010)

All search the first η = 1, ½, ¼, … with J(π(w + η·d; e)) ≤ J(w) − 1e-4·pᵀ(π(w + η·d; e) − w).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

import np_chunking
import numpy as np
import store
import synthetic_chains
from store import Record

from crfkit.chain.fields.field import ChainField
from crfkit.losses import ChainLikelihood
from crfkit.penalties import L1
from crfkit.solvers import OWLQN, GradientNorm
from crfkit.solvers.parts.secant_pairs import two_loop
from crfkit.synthetic import gaussian_chains

KEYS = ("problem", "variant")
VARIANTS = ("free", "original", "printed")
ITERATIONS = 400
MEMORY = 10
GAPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
HALVINGS = 40
SENTENCES = 500


def problems(folder: Any) -> dict[str, tuple[ChainLikelihood, float]]:
    """Return losses and strengths of L1 by name."""
    X, y, _ = gaussian_chains(n=600, n_inputs=200, n_relevant=20, seed=0)
    data = synthetic_chains.encode(X, y)
    field = ChainField.from_data(data, 2, 200, all_states=True, all_transitions=True)
    found = {"synthetic": (ChainLikelihood(data, field, 1), 16.0)}
    if folder is not None:
        phrases = np_chunking.NounPhrases(folder, SENTENCES)
        found["noun phrases"] = (ChainLikelihood(phrases.data, phrases.field, 1), 1.0)
    return found


def printed(loss: ChainLikelihood, strength: float, iterations: int) -> tuple[list[tuple[int, float]], str, Any]:
    """Return ((evaluations, objective) by iteration, why it ended, weights) of the direction as printed."""
    w = np.zeros(loss.size)
    at = loss.at(w)
    value, gradient, pairs, calls = at.value, at.grad, [], 1
    trace = [(calls, value)]
    for _ in range(iterations):
        p = -L1(strength).min_norm_subgradient(w, gradient)
        e = np.where(w != 0, np.sign(w), np.sign(p))
        kept = np.where(np.sign(p) == e, p, 0.0)
        if not kept.any():
            return trace, "nothing is left of p", w
        d = two_loop(kept, pairs)[0]
        step = 1.0 if pairs else 1.0 / np.linalg.norm(d)
        for _ in range(HALVINGS):
            moved = w + step * d
            new = np.where(np.sign(moved) == e, moved, 0.0)
            there = loss.at(new)
            new_value = there.value + strength * np.abs(new).sum()
            calls += 1
            if new_value <= value - 1e-4 * (p @ (new - w)) and (new != w).any():
                break
            step *= 0.5
        else:
            return trace, "no step decreases the objective", w
        s, y = new - w, there.grad - gradient
        if s @ y > 0:
            pairs = [*pairs, (s, y)][-MEMORY:]
        w, value, gradient = new, new_value, there.grad
        trace.append((calls, value))
    return trace, "iteration limit", w


def one(loss: ChainLikelihood, strength: float, variant: str) -> Record:
    """Return what a variant reaches."""
    begin = time.process_time()
    if variant == "printed":
        trace, status, w = printed(loss, strength, ITERATIONS)
    else:
        rule = {"stopping": GradientNorm(1e-6), "max_iterations": ITERATIONS}
        result = OWLQN(memory=MEMORY, variant=variant, **rule).minimize(loss, L1(strength), np.zeros(loss.size))
        trace = [(row.evaluations, row.value) for row in result.trace]
        status, w = result.status.name, result.w
    gradient = loss.at(w).grad
    left = np.linalg.norm(L1(strength).min_norm_subgradient(w, gradient))
    first = np.linalg.norm(L1(strength).min_norm_subgradient(0 * w, loss.at(0 * w).grad))
    return {
        "variant": variant,
        "strength": strength,
        "weights": loss.size,
        "status": status,
        "iterations": len(trace) - 1,
        "evaluations": trace[-1][0],
        "objective": float(trace[-1][1]),
        "optimality": float(left / first),  # the shortest sub-gradient's length, of that at zero
        "nonzero_weights": int(np.count_nonzero(w)),
        "trace": [[calls, float(value)] for calls, value in trace],
        "cpu_seconds": round(time.process_time() - begin, 3),
    }


def gaps(records: Sequence[Record]) -> None:
    """Add to each record its relative gap to the best objective, and the evaluations until gaps were reached."""
    for problem in {record["problem"] for record in records}:
        here = [record for record in records if record["problem"] == problem]
        best = min(record["objective"] for record in here)
        for record in here:
            record["gap"] = record["objective"] / best - 1.0
            record["reached"] = {
                f"{gap:g}": next((calls for calls, value in record["trace"] if value <= best * (1 + gap)), None)
                for gap in GAPS
            }


def run(given: argparse.Namespace) -> None:
    """Run every variant on every problem; noun phrases need --data."""
    path = given.output / "results.json"
    for problem, (loss, strength) in problems(given.data).items():
        for variant in VARIANTS:
            if given.again or not store.found(path, "owlqn", KEYS, (problem, variant)):
                record = {"problem": problem, **one(loss, strength, variant)}
                print(json.dumps({key: value for key, value in record.items() if key != "trace"}), flush=True)
                store.merge(path, "owlqn", KEYS, record)
    everything = store.read(path)
    gaps(everything["owlqn"])
    store.write(path, everything)
