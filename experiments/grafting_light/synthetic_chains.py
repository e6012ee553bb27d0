"""Section 6.1.1: chains of 8 binary labels, 1,000 Gaussian inputs of which 100 matter, λ = 64."""

from __future__ import annotations

import numpy as np
from methods import train
from store import Record

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.synthetic import gaussian_chains

TRAIN = 3000


def encode(X: np.ndarray, y: np.ndarray) -> SequenceData:
    n, length, inputs = X.shape
    T = n * length
    ids = np.tile(np.arange(inputs, dtype=np.int32), T)
    return SequenceData(
        np.arange(0, T + 1, length), np.arange(0, T * inputs + 1, inputs), ids, X.ravel(), labels=y.ravel()
    )


class Chains:
    """One draw of the data."""

    def __init__(self, seed: int) -> None:
        X, y, self.relevant = gaussian_chains(seed=seed)
        self.seed = seed
        self.data, self.test = encode(X[:TRAIN], y[:TRAIN]), encode(X[TRAIN:], y[TRAIN:])
        self.n = X.shape[2]
        self.field = ChainField.from_data(self.data, 2, self.n, all_states=True, all_transitions=True)

    def one(self, method: str, unit: int, strength: float, seconds: float | None) -> Record:
        """Return what a method has on these data: six criteria, and which inputs it keeps."""
        options = {"seed": self.seed} if method == "sgd-l1" else {}
        record, w = train(self.data, self.field, method, unit, strength, 1, seconds, **options)
        chosen = np.flatnonzero((w[: self.field.n_state].reshape(self.n, 2) != 0).any(axis=1))
        hits = int(np.isin(chosen, self.relevant).sum())
        return record | {
            "seed": self.seed,
            "error": ChainInference(self.field, w, 1).errors(self.test)[0],
            "relevant": len(self.relevant),
            "relevant_kept": hits,
            "irrelevant_kept": len(chosen) - hits,
        }
