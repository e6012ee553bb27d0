"""Exact inference on chains: forward–backward and Viterbi, in the compiled core."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crfkit import _core
from crfkit._threads import count_threads
from crfkit._types import Flags, Floats, Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.errors import DataError


@dataclass(frozen=True, eq=False)
class ChainInference:
    """A field with its weights.

    With `allowed` ([positions, labels], True where a label may be taken), everything is about the labellings that keep
    to it: some labels are known, or only some are possible.
    """

    field: ChainField
    w: Floats
    n_threads: int | None = None
    kernels: str = "auto"

    @cached_property
    def decoder(self) -> _core.Decoder:
        return _core.Decoder(self.field.native, self.w, self.kernels)

    def log_partition(self, data: SequenceData, allowed: Flags | None = None) -> Floats:
        """Return log Z of each sequence."""
        return self._marginals(data, allowed, nodes=False)[0]

    def node_marginals(self, data: SequenceData, allowed: Flags | None = None) -> Floats:
        """Return p(y_t = j | x), [T, L]."""
        return self._marginals(data, allowed)[1]

    def edge_marginals(self, data: SequenceData, allowed: Flags | None = None) -> Floats:
        """Return p(y_{t−1} = i, y_t = j | x), [T, L, L]; zero at the first position of each sequence."""
        return self._marginals(data, allowed, nodes=False, edges=True)[2]

    def beliefs(self, data: SequenceData, allowed: Flags | None = None) -> tuple[Floats, Floats]:
        """Return (log Z of each sequence, node marginals) of one pass."""
        found = self._marginals(data, allowed)
        return found[0], found[1]

    def entropies(self, data: SequenceData, allowed: Flags | None = None) -> Floats:
        """Return the entropy of the labelling of each sequence, −Σ_y p(y | x) log p(y | x), in nats."""
        log_z, entropy = self.decoder.entropies(data.native, self.threads, self._limits(data, allowed))
        self.check_possible(log_z, data, allowed)
        return entropy

    def sample(self, data: SequenceData, n: int, seed: int, allowed: Flags | None = None) -> list[Ids]:
        """Return n exact samples of the labelling of each sequence, [n, positions]; they depend on the seed alone."""
        log_z, labels = self.decoder.sample(data.native, self.threads, n, seed, self._limits(data, allowed))
        self.check_possible(log_z, data, allowed)
        return [labels[n * a : n * b].reshape(n, b - a) for a, b in pairwise(data.starts.tolist())]

    def score(self, data: SequenceData, labels: Ids) -> Floats:
        """Return the score of given labels [T] for each sequence, −inf where constraints forbid them."""
        # The only labelling that is left is the given one.
        limits = (labels[:, None] == np.arange(self.field.n_labels)).view(np.uint8).ravel()
        return self.decoder.viterbi(data.native, self.threads, limits)[1]

    def decode(self, data: SequenceData, allowed: Flags | None = None) -> tuple[Ids, Floats]:
        """Return (the most probable labels [T], their score per sequence [N])."""
        labels, scores = self.decoder.viterbi(data.native, self.threads, self._limits(data, allowed))
        self.check_possible(scores, data, allowed)
        return labels, scores

    def nbest(self, data: SequenceData, n: int, allowed: Flags | None = None) -> list[list[tuple[Ids, float]]]:
        """Return the n best labellings of each sequence with their scores, best first; fewer where no more exist.

        ``exp(score − log_partition)`` is the probability of a labelling.
        """
        found = self.decoder.nbest(data.native, self.threads, n, self._limits(data, allowed))
        return _listed(data, *found[:3])

    def nbest_one_run(
        self, data: SequenceData, n: int, groups: Ids, goes_on: Flags, limit: int, allowed: Flags | None = None
    ) -> tuple[list[list[tuple[Ids, float]]], Flags]:
        """Return the n best labellings in which each group of labels has at most one run, and whether each is exact.

        groups: the group of each label, −1 for labels without a limit. goes_on[i, j]: whether a run continues from
        label i to j. limit: how many partial labellings of a sequence the search looks at before it turns to a beam.
        """
        counts, scores, labels, exact = self.decoder.nbest(
            data.native,
            self.threads,
            n,
            self._limits(data, allowed),
            np.ascontiguousarray(groups, dtype=np.int32),
            np.ascontiguousarray(goes_on, dtype=np.uint8).ravel(),
            limit,
        )
        return _listed(data, counts, scores, labels), exact.astype(bool)

    def errors(self, data: SequenceData) -> tuple[float, float]:
        """Return (share of positions, share of sequences) that decoding labels wrongly."""
        if data.labels is None or data.n_positions == 0:
            return 0.0, 0.0
        wrong = self.decode(data)[0] != data.labels
        per_sequence = np.add.reduceat(wrong, data.starts[:-1][data.lengths > 0])
        return float(wrong.mean()), float((per_sequence > 0).sum() / len(data))

    def _marginals(
        self, data: SequenceData, allowed: Flags | None, nodes: bool = True, edges: bool = False
    ) -> tuple[Floats, Floats, Floats]:
        limits = self._limits(data, allowed)
        found = self.decoder.marginals(data.native, self.threads, nodes, edges, limits)
        self.check_possible(found[0], data, allowed)
        return found

    def _limits(self, data: SequenceData, allowed: Flags | None) -> NDArray[np.uint8] | None:
        """Return what single positions allow as the core takes it."""
        if allowed is None:
            return None
        shape = (data.n_positions, self.field.n_labels)
        if np.shape(allowed) != shape:
            raise DataError(f"allowed has shape {np.shape(allowed)}; expected {shape}: positions by labels")
        limits = np.ascontiguousarray(allowed, dtype=bool)
        none = np.flatnonzero(~limits.any(axis=1))
        if len(none):
            n = int(np.searchsorted(data.starts, none[0], side="right")) - 1
            raise DataError(f"sequence {n}, position {none[0] - data.starts[n]}: no label is allowed")
        return limits.view(np.uint8).ravel()

    def check_possible(self, scores: Floats, data: SequenceData, allowed: Flags | None = None) -> None:
        """Raise DataError if no labelling of a sequence is allowed (its log Z is −inf)."""
        if (self.field.constrained or allowed is not None) and np.isneginf(scores).any():
            n = int(np.argmin(scores))
            begin, end = int(data.starts[n]), int(data.starts[n + 1])
            where = _dead_end(self.field, end - begin, None if allowed is None else allowed[begin:end])
            what = (
                "constraints allow" if allowed is None else "constraints and the labels allowed at its positions leave"
            )
            raise DataError(f"the {what} no labelling of sequence {n}{f': {where}' if where else ''}")

    @property
    def threads(self) -> int:
        return count_threads(self.n_threads)


def _listed(data: SequenceData, counts: Ints, scores: Floats, labels: Ids) -> list[list[tuple[Ids, float]]]:
    """Return the labellings of each sequence, which the core returns one after the other."""
    found, score, at = [], iter(scores.tolist()), 0
    for length, count in zip(data.lengths.tolist(), counts.tolist(), strict=True):
        found.append([(labels[at + k * length : at + (k + 1) * length], next(score)) for k in range(count)])
        at += count * length
    return found


def _dead_end(field: ChainField, length: int, allowed: Flags | None) -> str | None:
    """Return a sentence that names the first position that no labelling reaches; None if there is a labelling.

    `allowed` is [positions, labels] of this sequence, or None.
    """
    if length == 0:
        return None
    L = field.n_labels
    limits = np.ones((length, L), dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
    reached = limits[0] if field.allowed_start is None else limits[0] & field.allowed_start
    if not reached.any():
        return "at position 0, no label that is allowed there may begin a sequence"
    for t in range(1, length):
        follows = np.ones(L, dtype=bool) if field.allowed is None else field.allowed[reached].any(axis=0)
        reached = follows & limits[t]
        if not reached.any():
            return f"at position {t}, no label that is allowed there may follow those that are possible before it"
    if field.allowed_end is not None and not (reached & field.allowed_end).any():
        return f"at position {length - 1}, its last, no label that is possible there may end a sequence"
    return None
