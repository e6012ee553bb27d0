"""Conditional fields of 15 nodes with features: StructureLearner, mutual information and logistic regressions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from planted import USUAL
from regressions import by_ebic, pairs_and_scores, validated
from rivals import mutual_information
from scores import Pairs, Scores, judged, ranking

from crfkit import StructureLearner
from crfkit.synthetic import PairwiseTable, random_pairwise

NODES, FEATURES, SAMPLES = 15, 5, 1000
SHARES = (0.2, 0.13, 0.09, 0.06, 0.04, 0.027)  # of the critical strength: where edges are ranked
STRENGTHS = 12  # of the learner's path


Rows = dict[str, dict[str, Any]]  # method → how well it does


def units(seed: int, light: bool = False) -> dict[str, Callable[[], Rows]]:
    """Return what there is to compute on the field of a seed; `light` leaves out what takes long."""
    table = random_pairwise(NODES, FEATURES, SAMPLES, seed=seed)
    found: dict[str, Callable[[], Rows]] = {
        "mutual information": lambda: informed(table),
        "default": lambda: learnt(table),
        "regressions ±": lambda: regressed(table, indicators=False),
    }
    if light:
        return found
    found |= {
        "regressions indicators": lambda: regressed(table, indicators=True),
        "cross-validation ±": lambda: cross_validated(table, indicators=False),
        "cross-validation indicators": lambda: cross_validated(table, indicators=True),
    }
    for norm in ("inf", "2"):
        for form in ("ising", "full"):
            found[f"ranking L{norm} {form}"] = lambda n=norm, f=form: ranked(table, n, f)  # type: ignore[misc]
    return found


def informed(table: PairwiseTable) -> Rows:
    gamma = StructureLearner().ebic_gamma
    return {"mutual information": judged(*mutual_information(table.Y, gamma), edges_of(table), range(NODES))}


def learnt(table: PairwiseTable) -> Rows:
    """Return how well the default does: Ising couplings with features, chosen by the extended BIC."""
    begin = time.process_time()
    learner = StructureLearner(n_strengths=STRENGTHS, n_threads=1).fit(table.Y, inputs=table.X)
    seconds = time.process_time() - begin
    sizes = {(i, j): weight for i, j, weight in learner.edges_}
    scores = ranking(sizes, {(i, j): strength for i, j, strength in learner.entry_order_})
    row = judged(set(sizes), scores, edges_of(table), range(NODES))
    return {"default": row | {"seconds": seconds, "gamma": learner.ebic_gamma}}


def regressed(table: PairwiseTable, indicators: bool) -> Rows:
    """Return how well logistic regressions with the extended BIC do, by "price γ, rule"."""
    begin = time.process_time()
    found = by_ebic(table, indicators, [StructureLearner().ebic_gamma, USUAL])
    seconds = time.process_time() - begin
    coding = "indicators" if indicators else "±"
    return {
        f"{coding}, {name}, {rule}": _judged(lengths, entries, rule, edges_of(table)) | {"seconds": seconds}
        for name, (lengths, entries) in found.items()
        for rule in ("and", "or")
    }


def cross_validated(table: PairwiseTable, indicators: bool) -> Rows:
    begin = time.process_time()
    lengths = validated(table, indicators)
    seconds = time.process_time() - begin
    coding = "indicators" if indicators else "±"
    rows = {}
    for rule in ("and", "or"):
        chosen, scores = pairs_and_scores(lengths, rule)
        row = judged(chosen, scores, edges_of(table), range(NODES))
        rows[f"{coding}, cross-validation, {rule}"] = row | {"seconds": seconds}
    return rows


def ranked(table: PairwiseTable, norm: str, form: str) -> Rows:
    begin = time.process_time()
    scores = held_out_ranking(table, norm, form)
    row = judged(set(), scores, edges_of(table), range(NODES)) | {"seconds": time.process_time() - begin}
    return {f"L{norm} {form}": {key: row[key] for key in ("ap", "f1_equal", "true", "seconds")}}


def edges_of(table: PairwiseTable) -> Pairs:
    return {(i, j) for i, j in table.edges.tolist()}


def _judged(lengths: NDArray, entries: NDArray, rule: str, true: Pairs) -> dict[str, Any]:
    """Chosen pairs come first, by the length of their coefficients; then others by their entry."""
    chosen, sizes = pairs_and_scores(lengths, rule)
    both = np.minimum(entries, entries.T) if rule == "and" else np.maximum(entries, entries.T)
    entered = {(i, j): float(both[i, j]) for i in range(NODES) for j in range(i + 1, NODES)}
    return judged(chosen, ranking({pair: sizes[pair] for pair in chosen}, entered), true, range(NODES))


def held_out_ranking(table: PairwiseTable, norm: str, form: str) -> Scores:
    """Length of the weights of every edge, at the strength that predicts a held-out fifth of the rows best."""
    learner = StructureLearner(form=form, group_norm=norm, n_threads=1)
    training = learner._training()
    data = training.table.read(table.Y, table.X)
    rows, search, n = data.tables(), training.search, len(data.states)
    loss = training.make_loss(rows(None), None)
    strengths = search.critical_strength(search.empty(loss)) * np.array(SHARES)
    cut = 4 * n // 5
    test = loss.on(rows(np.arange(cut, n)))
    scores: list[float] = []
    for step in search.path(loss.on(rows(np.arange(cut))), strengths * cut / n):
        solution = step.model.penalised
        scores.append(test.with_active(solution.loss.active_ids).at(solution.w).value)
        if scores[-1] > min(scores):
            break
    best = int(np.argmin(scores))
    *_, last = search.path(loss, strengths[: best + 1])
    found, w, p = last.model.penalised.loss, last.model.penalised.w, NODES
    return {divmod(e, p): float(np.linalg.norm(w[found.block_index == e])) for e in found.active_ids.tolist()}
