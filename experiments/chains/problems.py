"""The chain problem that is small enough for dense matrices, and a quadratic function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from crfkit import Template, read_columns
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.fields.field import ChainField
from crfkit.losses import ChainLikelihood
from crfkit.protocols import Loss

SENTENCES = 200
MIN_FREQUENCY = 2
TEMPLATE = "U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-1,1]\nU03:%x[1,1]\nB"


def small_chains(data: Path, sentences: int = SENTENCES) -> ChainLikelihood:
    """Return the likelihood of the first sentences of CoNLL-2000 with weights for observed pairs."""
    rows, labels = (part[:sentences] for part in read_columns(data / "conll2000" / "train.txt"))
    corpus = learn(rows, labels, Template(TEMPLATE), MIN_FREQUENCY)
    n_labels, n_attributes = len(corpus.classes), len(corpus.vocabulary.attributes)
    field = ChainField.from_data(corpus.data, n_labels, n_attributes, all_states=False, all_transitions=False)
    return ChainLikelihood(corpus.data, field, 1)


class Quadratic(Loss):
    """½(w − m)ᵀG(w − m), with eigenvalues of G from 1 to `condition`."""

    name = "quadratic"
    capabilities = frozenset({"smooth", "hessp"})

    def __init__(self, size: int, condition: float, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
        self.size = size
        self.matrix = basis * np.geomspace(1.0, condition, size) @ basis.T
        self.optimum = rng.normal(size=size)

    @property
    def layout(self) -> dict[str, slice]:
        return {"all": slice(0, self.size)}

    def at(self, w: Any, warm: Any = None) -> QuadraticAt:
        return QuadraticAt(self, w)


class QuadraticAt:
    """The quadratic function at w."""

    def __init__(self, loss: Quadratic, w: Any) -> None:
        self._matrix = loss.matrix
        self.grad = loss.matrix @ (w - loss.optimum)
        self.value = 0.5 * float((w - loss.optimum) @ self.grad)

    def hessp(self, v: Any) -> Any:
        return self._matrix @ v
