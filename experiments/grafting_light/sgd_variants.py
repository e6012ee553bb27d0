"""Which inputs stochastic gradients keep under L1, by how the penalty is applied (Tsuruoka, Tsujii & Ananiadou 2009).

    naive       w ← w − η·(g + λ/N·sgn(w)): no weight is ever exactly zero
    clipping    w ← w − η·g, then each weight towards zero by η·λ/N, but not across it
    cumulative  the same with what each weight should have received in total (crfkit's `sgd`, the method "sgd-l1")

The first two are written out here for chains of two labels, with the step sizes of `sgd`.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import store
from synthetic_chains import TRAIN, Chains

from crfkit.losses import ChainLikelihood
from crfkit.penalties import L1
from crfkit.solvers import SGD
from crfkit.solvers.sgd import step_sizes
from crfkit.synthetic import gaussian_chains

KEYS = ("penalty", "seed")


def residual(scores: Any, edge: Any, y: Any) -> tuple[Any, Any]:
    """Return p(y_t) − [y_t] [T, 2] and the same of pairs of labels, summed [2, 2]."""
    T = len(scores)
    alpha, beta = np.empty((T, 2)), np.zeros((T, 2))
    alpha[0] = scores[0]
    for t in range(1, T):
        alpha[t] = scores[t] + np.logaddexp(alpha[t - 1, 0] + edge[0], alpha[t - 1, 1] + edge[1])
    for t in range(T - 2, -1, -1):
        onward = scores[t + 1] + beta[t + 1]
        beta[t] = np.logaddexp(edge[:, 0] + onward[0], edge[:, 1] + onward[1])
    log_z = np.logaddexp(*alpha[-1])
    nodes = np.exp(alpha + beta - log_z)
    pairs = np.exp(alpha[:-1, :, None] + edge + (scores[1:] + beta[1:])[:, None, :] - log_z).sum(axis=0)
    nodes[np.arange(T), y] -= 1.0
    np.subtract.at(pairs, (y[:-1], y[1:]), 1.0)
    return nodes, pairs


def learn(X: Any, y: Any, strength: float, how: str, step_size: float, seed: int, epochs: int) -> Any:
    """Return the weights [inputs, 2] and of pairs of labels [2, 2] after so many epochs."""
    n = len(X)
    w, edge = np.zeros((X.shape[2], 2)), np.zeros((2, 2))
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        steps = step_sizes(step_size, 0.0, n, epoch * n, n)
        for k, eta in zip(rng.permutation(n), steps, strict=True):
            nodes, pairs = residual(X[k] @ w, edge, y[k])
            pull = eta * strength / n
            if how == "naive":
                w -= pull * np.sign(w)
                edge -= pull * np.sign(edge)
            w -= eta * (X[k].T @ nodes)
            edge -= eta * pairs
            if how == "clipping":
                w -= np.clip(w, -pull, pull)
                edge -= np.clip(edge, -pull, pull)
    return w, edge


def run(given: argparse.Namespace) -> None:
    """Run the first two ways on one draw of the data."""
    path = given.output / "results.json"
    for seed in given.seeds:
        wanted = [
            how for how in ("naive", "clipping") if given.again or not store.found(path, "sgd", KEYS, (how, seed))
        ]
        if not wanted:
            continue
        chains = Chains(seed)
        loss = ChainLikelihood(chains.data, chains.field, 1)
        trial = SGD(seed=seed, max_iterations=0).minimize(loss, L1(given.strength), np.zeros(loss.size))
        X, y, relevant = gaussian_chains(seed=seed)
        for how in wanted:
            begin = time.process_time()
            step_size = float(trial.state["step_size"])
            w, edge = learn(X[:TRAIN], y[:TRAIN], given.strength, how, step_size, seed, given.epochs)
            seconds = round(time.process_time() - begin, 3)
            kept = np.flatnonzero((w != 0).any(axis=1))
            full = np.concatenate([w.ravel(), edge.ravel()])
            hits = int(np.isin(kept, relevant).sum())
            record = {
                "penalty": how,
                "seed": seed,
                "epochs": given.epochs,
                "step_size": step_size,
                "objective": float(loss.at(full).value + given.strength * np.abs(full).sum()),
                "nonzero_inputs": len(kept),
                "relevant_kept": hits,
                "irrelevant_kept": len(kept) - hits,
                "cpu_seconds": seconds,
            }
            print(json.dumps(record), flush=True)
            store.merge(path, "sgd", KEYS, record)
