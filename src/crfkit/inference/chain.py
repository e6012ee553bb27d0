"""Exact inference on chains: forward–backward and Viterbi, in the compiled core."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crfkit import _core
from crfkit._threads import count_threads
from crfkit._types import Floats, Ids
from crfkit.data.sequences import SequenceData
from crfkit.errors import DataError
from crfkit.fields.chain import ChainField


@dataclass(frozen=True, eq=False)
class ChainInference:
    """A field with its weights."""

    field: ChainField
    w: Floats
    n_threads: int | None = None
    kernels: str = "auto"

    @cached_property
    def decoder(self) -> _core.Decoder:
        return _core.Decoder(self.field.native, self.w, self.kernels)

    def log_partition(self, data: SequenceData) -> Floats:
        """Return log Z of each sequence."""
        return self._marginals(data, nodes=False)[0]

    def node_marginals(self, data: SequenceData) -> Floats:
        """Return p(y_t = j | x), [T, L]."""
        return self._marginals(data)[1]

    def edge_marginals(self, data: SequenceData) -> Floats:
        """Return p(y_{t−1} = i, y_t = j | x), [T, L, L]; zero at the first position of each sequence."""
        return self._marginals(data, nodes=False, edges=True)[2]

    def decode(self, data: SequenceData) -> tuple[Ids, Floats]:
        """Return (the most probable labels [T], their score per sequence [N])."""
        labels, scores = self.decoder.viterbi(data.native, self._threads)
        self._check_possible(scores)
        return labels, scores

    def nbest(self, data: SequenceData, n: int) -> list[list[tuple[Ids, float]]]:
        """Return the n best labellings of each sequence with their scores, best first; fewer where no more exist.

        ``exp(score − log_partition)`` is the probability of a labelling.
        """
        counts, scores, labels = self.decoder.nbest(data.native, self._threads, n)
        found, score, at = [], iter(scores.tolist()), 0
        for length, count in zip(data.lengths.tolist(), counts.tolist(), strict=True):
            found.append([(labels[at + k * length : at + (k + 1) * length], next(score)) for k in range(count)])
            at += count * length
        return found

    def errors(self, data: SequenceData) -> tuple[float, float]:
        """Return (share of positions, share of sequences) that decoding labels wrongly."""
        if data.labels is None or data.n_positions == 0:
            return 0.0, 0.0
        wrong = self.decode(data)[0] != data.labels
        per_sequence = np.add.reduceat(wrong, data.starts[:-1][data.lengths > 0])
        return float(wrong.mean()), float((per_sequence > 0).sum() / len(data))

    def _marginals(self, data: SequenceData, nodes: bool = True, edges: bool = False) -> tuple[Floats, Floats, Floats]:
        found = self.decoder.marginals(data.native, self._threads, nodes, edges)
        self._check_possible(found[0])
        return found

    def _check_possible(self, scores: Floats) -> None:
        """Raise DataError if the constraints forbid all labellings of a sequence, so that its log Z is −inf."""
        if self.field.constrained and np.isneginf(scores).any():
            raise DataError(f"the constraints allow no labelling of sequence {int(np.argmin(scores))}")

    @property
    def _threads(self) -> int:
        return count_threads(self.n_threads)
