"""Losses of chains with the attributes that were selected; all others are candidates.

The gradient of an attribute a without weights is Σ_{t : a at t} value·(p(y_t = · | x) − [y_t = ·]), and of a pair
attribute the same with pairs of labels: sums of residuals of the current model over the positions of a. They are
computed in passes over an index of those positions. Weights, curvature and kernels hold selected attributes only. For
the softmax margin p is the distribution with the costs in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._threads import count_threads
from crfkit._types import Floats, Ints
from crfkit.chain.attribute_index import AttributeIndex, block_norms
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.chain.losses.costs import with_costs
from crfkit.chain.losses.likelihood import ChainEvaluation, ChainLikelihood
from crfkit.chain.losses.pool import KINDS, Pool
from crfkit.errors import ParameterError
from crfkit.names import check_name
from crfkit.protocols import BlockNorm, Capability, Evaluation, GrowingLoss, LossOptions

MEMORY_LIMIT = 1 << 30
CHUNK = 1 << 16  # weights whose gradients are computed at once, unless the limit allows less: they stay in the cache


class CandidateChain(ChainLikelihood, GrowingLoss):
    """The chain likelihood of selected attributes, from none to all of those of a training set.

    Parameters
    ----------
    data : labelled sequences with all attributes.
    field : of all attributes.
    memory_limit : bytes that a pass over the candidates may take, next to the index itself and a number for each
        candidate. If the residuals of all positions ([T, L], with pair attributes [T, L, L]) take more than half of
        it, sequences come in chunks.
    names : ids of the attributes ("state") and of the pair attributes ("pair"), ascending; None: their numbers, pair
        attributes after the others.

    A candidate is an attribute with all its label weights. Attributes that are added later have ids after all others.

    >>> import numpy as np
    >>> from crfkit.chain.encoding.sequences import learn
    >>> from crfkit.chain.training.train import ChainTraining
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    >>> corpus, training = learn(X, [["DET", "NOUN", "VERB"]] * 2, None, 1), ChainTraining()
    >>> field, _ = training.make_field(corpus.data, corpus.vocabulary, corpus.classes.tolist())
    >>> loss = CandidateChain(corpus.data, field)
    >>> loss.size, loss.n_candidates  # two transitions are always on
    (2, 6)
    >>> larger, place = loss.activate([0, 4])
    >>> larger.size, larger.n_candidates, place.tolist()
    (4, 4, [2, 3])
    """

    capabilities = frozenset({Capability.SMOOTH, Capability.HESSP, Capability.HESS_DIAG, Capability.CANDIDATES})
    has_single = False
    growing_form = partial_form = None
    _cost: Floats | None = None  # [gold label, label]

    @classmethod
    def make(cls, data: SequenceData, field: ChainField, options: LossOptions) -> CandidateChain:
        given = {"cost": options.cost} if cls.takes_cost else {}
        return cls(data, field, n_threads=options.n_threads, names=options.attributes, **given)

    def __init__(
        self,
        data: SequenceData,
        field: ChainField,
        n_threads: int | None = None,
        kernels: str = "auto",
        memory_limit: int = MEMORY_LIMIT,
        names: Mapping[str, Ints] | None = None,
    ) -> None:
        if not memory_limit > 0:
            raise ParameterError(f"memory_limit must be > 0, not {memory_limit!r}")
        self._set(Pool.of(data, field, names), {kind: np.zeros(0, np.int64) for kind in KINDS}, n_threads, kernels)
        self.memory_limit = memory_limit

    def _set(self, pool: Pool, active: Mapping[str, Ints], n_threads: int | None, kernels: str) -> None:
        self.pool = pool
        self.active = active  # attributes that are switched on, ascending; of KINDS
        super().__init__(*pool.restricted(active), n_threads, kernels, cost=self._cost)

    def _grown(self, pool: Pool, active: Mapping[str, Ints]) -> CandidateChain:
        other = object.__new__(type(self))
        other._cost = self._cost
        other._set(pool, active, self.n_threads, self.kernels)
        other.memory_limit = self.memory_limit
        return other

    @property
    def _numbers(self) -> int:
        """In half of the limit."""
        return max(int(self.memory_limit) // 16, 1)

    # --- what is on

    @property
    def growing(self) -> tuple[str, ...]:
        return tuple(kind for kind in KINDS if len(self.pool.indices[kind]))

    @property
    def n_candidates(self) -> int:
        return self.pool.n_ids - len(self.active_ids)

    @cached_property
    def active_ids(self) -> Ints:
        return np.sort(np.concatenate([self.pool.ids[kind][self.active[kind]] for kind in KINDS]))

    @cached_property
    def block_index(self) -> Ints:
        index = np.full(self.size, -1, dtype=np.int64)
        for kind in KINDS:
            counts = np.diff(self.pool.indices[kind].weight_offsets)[self.active[kind]]
            index[self.layout[kind]] = np.repeat(self.pool.ids[kind][self.active[kind]], counts)
        return index

    def activate(self, ids: ArrayLike) -> tuple[CandidateChain, Ints]:
        wanted = np.unique(np.asarray(ids, dtype=np.int64))
        active = {}
        for kind in KINDS:
            new = np.flatnonzero(np.isin(self.pool.ids[kind], wanted, assume_unique=True))
            active[kind] = np.union1d(self.active[kind], new)
        known = sum(int(np.isin(wanted, self.pool.ids[kind]).sum()) for kind in KINDS)
        if known < len(wanted):
            raise ParameterError(f"{len(wanted) - known} of {len(wanted)} ids are of no candidate")
        larger = self._grown(self.pool, active)
        return larger, self._place(larger)

    def _place(self, larger: CandidateChain) -> Ints:
        """Where each weight stands in the larger loss: blocks keep their order."""
        place = np.empty(self.size, dtype=np.int64)
        for name, block in self.layout.items():
            there = larger.layout[name].start + np.arange(larger.layout[name].stop - larger.layout[name].start)
            if name in KINDS:
                there = there[np.isin(larger.block_index[larger.layout[name]], self.active_ids)]
            place[block] = there
        return place

    def add_candidates(self, data: SequenceData, n_attributes: int | None = None) -> CandidateChain:
        """With more attributes: `data` are the same sequences with the new attributes (numbered 0, 1, …) only."""
        return self._grown(self.pool.joined(data, n_attributes), self.active)

    # --- gradients of candidates

    def at(self, w: Floats, warm: Evaluation | None = None) -> CandidateEvaluation:
        return CandidateEvaluation(self, w)

    def candidates(self, evaluation: Any, norm: str = BlockNorm.MAX, above: float = 0.0) -> tuple[Ints, Floats]:
        check_name("norm", norm, BlockNorm)
        ids, scores = [], []
        for kind in KINDS:
            found = self._norms(evaluation, kind, norm)
            found[self.active[kind]] = -np.inf
            chosen = np.flatnonzero(found > above)
            ids.append(self.pool.ids[kind][chosen])
            scores.append(found[chosen])
        names, values = np.concatenate(ids), np.concatenate(scores)
        order = np.lexsort((names, -values))
        return names[order], values[order]

    def _norms(self, evaluation: CandidateEvaluation, kind: str, norm: str) -> Floats:
        """Return the gradient norm of every attribute of this kind."""
        index = self.pool.indices[kind]
        norms = np.zeros(len(index))
        if len(index) == 0:
            return norms
        limit = self._chunk(index)
        for first, last in index.chunks(min(self._numbers, CHUNK) if limit is None else self._numbers):
            begin, end = index.weight_offsets[first], index.weight_offsets[last]
            gradient = np.zeros(end - begin)
            for t0, residual in evaluation.residuals(kind, limit):
                index.add_gradients(first, last, residual, t0, gradient, count_threads(self.n_threads))
            norms[first:last] = block_norms(gradient, index.weight_offsets[first : last + 1] - begin, norm)
        return norms

    def _chunk(self, index: AttributeIndex) -> int | None:
        """How many residuals to compute at a time; None: all."""
        return None if index.n_positions * index.width <= self._numbers else self._numbers

    def carry(self, evaluation: CandidateEvaluation, place: Ints) -> CandidateEvaluation:
        """This loss at the zero-extended weights of a smaller one's evaluation, from its residuals."""
        w, gradient = np.zeros(self.size), np.zeros(self.size)
        w[place] = evaluation.w
        gradient[place] = evaluation.grad
        smaller: CandidateChain = evaluation._loss
        for kind in KINDS:
            index, start = self.pool.indices[kind], self.layout[kind].start
            new = np.setdiff1d(self.active[kind], smaller.active[kind])
            if len(new) == 0:
                continue
            first = np.searchsorted(self.active[kind], new)
            ends = np.concatenate([[0], np.cumsum(np.diff(index.weight_offsets)[self.active[kind]])])
            for t0, residual in evaluation.residuals(kind, self._chunk(index)):
                for a, k in zip(new.tolist(), first.tolist(), strict=True):
                    out = gradient[start + ends[k] : start + ends[k + 1]]
                    index.add_gradients(a, a + 1, residual, t0, out, 1)
        carried = CandidateEvaluation(self, w)
        carried._both = evaluation.value, gradient
        carried._whole = evaluation._whole
        return carried

    # --- to and from all attributes

    @cached_property
    def full_places(self) -> Ints:
        """The place of every weight in the vector of the field of all attributes."""
        full = self.pool.field.layout
        places = np.empty(self.size, dtype=np.int64)
        for name, block in self.layout.items():
            if name in KINDS:
                offsets = self.pool.indices[name].weight_offsets
                chosen = self.active[name]
                counts = np.diff(offsets)[chosen]
                begins = np.concatenate([[0], np.cumsum(counts)])[:-1]
                places[block] = full[name].start + np.arange(counts.sum()) + np.repeat(offsets[chosen] - begins, counts)
            else:
                places[block] = np.arange(full[name].start, full[name].stop)
        return places

    def in_full(self, w: Floats) -> Floats:
        """The weights of the field of all attributes."""
        full = np.zeros(self.pool.field.size)
        full[self.full_places] = w
        return full

    def used_ids(self, full: Floats) -> Ints:
        """Ids of the attributes that have a weight other than zero in a vector of the field of all attributes."""
        used = []
        for kind in KINDS:
            size = block_norms(full[self.pool.field.layout[kind]], self.pool.indices[kind].weight_offsets, "max")
            used.append(self.pool.ids[kind][size > 0])
        return np.concatenate(used)


class CandidateEvaluation(ChainEvaluation):
    """A chain loss at w; its residuals are kept where they fit."""

    _whole: dict[str, Floats] | None = None

    def _evaluate(self) -> tuple[float, Floats]:
        both = super()._evaluate()
        if not self._loss._curved:
            self._loss._held = None  # a cycle would keep the losses of all stages in memory
        return both

    def residuals(self, kind: str, numbers: int | None) -> Iterator[tuple[int, Floats]]:
        """(first position, residuals [n, width]) of all sequences, or, with `numbers`, of so many numbers at most."""
        if numbers is None:
            if self._whole is None:
                self._whole = {}
            if kind not in self._whole:
                self._whole[kind] = self._residual(kind, None)
            yield 0, self._whole[kind]
            return
        starts = self._loss.data.starts
        width = self._loss.pool.indices[kind].width
        first = 0
        while first < len(starts) - 1:
            last = int(np.searchsorted(starts, starts[first] + numbers // width, side="right")) - 1
            last = max(last, first + 1)
            yield int(starts[first]), self._residual(kind, np.arange(first, last))
            first = last

    def _residual(self, kind: str, sequences: Ints | None) -> Floats:
        """Marginals less what is observed, times the weight of the sequence; [positions, width]."""
        loss = self._loss
        data: SequenceData = loss.data if sequences is None else loss.data.take(sequences)
        labels, n = data.labels, data.n_positions
        assert labels is not None
        field, w = loss.field, self.w
        if loss.cost is not None:
            data, field, w = with_costs(data, field, w, loss.cost)
        inference = ChainInference(field, w, loss.n_threads, loss.kernels)
        if kind == "state":
            residual, at, codes = inference.node_marginals(data), np.arange(n), labels
        else:
            residual = inference.edge_marginals(data).reshape(n, field.n_labels**2)
            later = np.ones(n, dtype=bool)
            later[data.starts[:-1][data.lengths > 0]] = False
            at = np.flatnonzero(later)
            codes = labels[at - 1] * field.n_labels + labels[at]
        residual[at, codes] -= 1.0
        if data.weights is not None:
            residual *= np.repeat(data.weights, data.lengths)[:, None]
        return residual
