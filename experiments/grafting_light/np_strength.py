"""λ of Figure 3: five-fold cross-validation of Full-Opt-L1 on the training file, with standard errors.

In each fold λ goes from strong to weak, and each solution starts from the one before. Attributes that λ holds at zero
in the training part are left out (crfkit.chain.fields.screened). Minimisation ends at a relative decrease of 1e-3 in
ten iterations, looser than in the figure: errors of held-out labels differ by a few percent of themselves between
folds.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from typing import Any

import np_chunking
import numpy as np
import store

from crfkit.chain.fields.screened import screened
from crfkit.chain.inference import ChainInference
from crfkit.losses import ChainLikelihood
from crfkit.penalties import L1
from crfkit.solvers import OWLQN, PeriodDecrease

STRENGTHS = (2.0, 1.0, 0.5)
FOLDS = 5
STOPPING = 1e-3
KEYS = ("fold", "strength")


def run(given: argparse.Namespace) -> None:
    """Run the folds that were asked for, and choose λ by those that are there."""
    path = given.output / "np_strength.json"
    wanted = [k for k in given.folds if given.again or not _done(path, k)]
    if wanted:
        phrases = np_chunking.NounPhrases(given.data, given.sentences)
        for k in wanted:
            for row in fold_path(phrases, k, given.threads):
                print(json.dumps(row), flush=True)
                store.merge(path, "folds", KEYS, row)
    store.write(path, summary(store.read(path)))


def _done(path: Any, fold: int) -> bool:
    return all(store.found(path, "folds", KEYS, (fold, strength)) for strength in STRENGTHS)


def fold_path(phrases: np_chunking.NounPhrases, fold: int, threads: int) -> Any:
    """Yield the held-out error and −log-likelihood per position of one fold, by λ from strong to weak."""
    data, field = phrases.data, phrases.field
    folds = np.arange(len(data)) % FOLDS
    held, inside = data.take(np.flatnonzero(folds == fold)), data.take(np.flatnonzero(folds != fold))
    outside = ChainLikelihood(held, field, threads)
    w = np.zeros(field.size)
    for strength in STRENGTHS:
        begin = time.process_time()
        part = screened(inside, field, {"state": strength, "pair": strength})
        small, part_field = (inside, field) if part is None else (part.data(inside), part.field)
        start = w if part is None else w[part.places]
        solver = OWLQN(stopping=PeriodDecrease(STOPPING))
        result = solver.minimize(ChainLikelihood(small, part_field, threads), L1(strength), start)
        w = np.zeros(field.size)
        w[slice(None) if part is None else part.places] = result.w
        yield {
            "fold": fold,
            "strength": strength,
            "sentences": len(data),
            "error": ChainInference(field, w, threads).errors(held)[0],
            "nll": outside.at(w).value / held.n_positions,
            "nonzero_weights": int(np.count_nonzero(w)),
            "status": result.status.name,
            "evaluations": result.evaluations,
            "cpu_seconds": round(time.process_time() - begin, 3),
        }


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Return the folds with the mean and the standard error of each λ, and the best.

    λ are compared on the folds that have all of them. The held-out likelihood chooses: it is what the methods fit, and
    its differences between neighbouring λ are larger, in standard errors, than those of the share of wrong labels.
    """
    rows = found["folds"]
    whole = [k for k in range(FOLDS) if all(any(_is(row, k, s) for row in rows) for s in STRENGTHS)]
    scores = {}
    for strength in STRENGTHS:
        here = [row for row in rows if row["strength"] == strength and row["fold"] in whole]
        if here:
            scores[str(strength)] = {
                key: {
                    "mean": float(np.mean([row[key] for row in here])),
                    "se": float(np.std([row[key] for row in here], ddof=1) / math.sqrt(len(here)))
                    if len(here) > 1
                    else None,
                }
                for key in ("error", "nll")
            }
    best = {key: float(min(scores, key=lambda s: scores[s][key]["mean"])) for key in ("error", "nll")} if scores else {}
    return {
        "sentences": max(row["sentences"] for row in rows),
        "folds_of": FOLDS,
        "folds_run": len(whole),
        "stopping": STOPPING,
        "scores": scores,
        "best": best.get("nll"),
        "best_by_error": best.get("error"),
        "cpu_seconds": round(sum(row["cpu_seconds"] for row in rows), 1),
        "folds": rows,
    }


def _is(row: dict[str, Any], fold: int, strength: float) -> bool:
    return bool(row["fold"] == fold and row["strength"] == strength)
