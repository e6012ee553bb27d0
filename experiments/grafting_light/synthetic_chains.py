"""Section 6.1.1: chains of 8 binary labels, 1,000 Gaussian inputs of which 100 matter, λ = 64."""

from __future__ import annotations

from typing import Any

import numpy as np
from methods import train

from crfkit.data import SequenceData
from crfkit.fields import ChainField
from crfkit.inference import ChainInference
from crfkit.synthetic import gaussian_chains

TRAIN = 3000


def encode(X: np.ndarray, y: np.ndarray) -> SequenceData:
    n, length, inputs = X.shape
    T = n * length
    ids = np.tile(np.arange(inputs, dtype=np.int32), T)
    return SequenceData(
        np.arange(0, T + 1, length), np.arange(0, T * inputs + 1, inputs), ids, X.ravel(), labels=y.ravel()
    )


def one(method: str, unit: int, strength: float, threads: int, seed: int = 0) -> dict[str, Any]:
    X, y, relevant = gaussian_chains(seed=seed)
    data, test = encode(X[:TRAIN], y[:TRAIN]), encode(X[TRAIN:], y[TRAIN:])
    del X
    n = int(data.attributes.max()) + 1
    field = ChainField.from_data(data, 2, n, all_states=True, all_transitions=True)
    record, w = train(data, field, method, unit, strength, threads)
    chosen = np.flatnonzero((w[: field.n_state].reshape(n, 2) != 0).any(axis=1))
    error = ChainInference(field, w, threads).errors(test)[0]
    return record | {"error": error, "relevant_found": int(np.isin(chosen, relevant).sum()), "chosen": chosen.tolist()}
