"""The exact probability that a span is among the phrases of a labelling, as conlleval reads phrases.

A phrase goes on from one position to the next if both labels have its type, the first does not end a phrase (E, S, L,
U) and the second does not begin one (B, S, U). With C(i, j) = 1 if it goes on from label i to label j, the span s … e
of a type is in y if y_s has that type, C(y_{s−1}, y_s) = 0, C(y_{t−1}, y_t) = 1 for s < t < e, and C(y_{e−1}, y_e) = 0.
In a chain of order 1, with node marginals p and edge marginals q,

    v_s(j) = p_s(j) − Σ_i q_s(i, j) C(i, j),    v_t(j) = Σ_i v_{t−1}(i) q_t(i, j) C(i, j) / p_{t−1}(i),
    p(span) = Σ_j v_{e−1}(j) (1 − Σ_k q_e(j, k) C(j, k) / p_{e−1}(j)),

where all labels are of the span's type. In other chains it is the sum, over the labels that a span may begin and end
with, of the log Z of the labellings that keep to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Floats, Ints
from crfkit.data.sequences import SequenceData
from crfkit.errors import ParameterError
from crfkit.inference.chain import ChainInference
from crfkit.schemes import obstacle, phrases, split_label

if TYPE_CHECKING:
    from crfkit.models.chain import ChainModel


class Span(NamedTuple):
    """A phrase: positions start … end − 1, its type, and the probability that it is in the labelling exactly so."""

    start: int
    end: int
    type: str
    probability: float


def predict_spans(model: ChainModel, X: Iterable[Any]) -> list[list[Span]]:
    """Return the phrases of the best labelling of each sequence with their probabilities."""
    why = obstacle(model.class_list)
    if why is not None:
        raise ParameterError(f"the labels of this model do not mark phrases: {why}")
    data = model.encode(X)
    found = [list(phrases(labels)) for labels in model.decode(data)]
    wanted = [(n, p.begin, p.end, p.type) for n, row in enumerate(found) for p in row]
    chances = iter(span_probabilities(model, data, wanted).tolist())
    return [[Span(p.begin, p.end, p.type, next(chances)) for p in row] for row in found]


def span_probabilities(model: ChainModel, data: SequenceData, spans: Sequence[tuple[int, int, int, str]]) -> Floats:
    """Return the probabilities of spans (sequence, start, end, type)."""
    if not spans:
        return np.zeros(0)
    run = Runs(model.class_list)
    chances = _by_marginals if model.field.order == 1 else _by_partition
    return np.clip(chances(model.inference, data, run, spans), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Runs:
    """How phrases go on from label to label."""

    labels: Sequence[str]

    @cached_property
    def parts(self) -> list[tuple[str, str]]:
        return [split_label(label) or ("O", "") for label in self.labels]

    @cached_property
    def goes_on(self) -> NDArray[np.bool_]:
        """C(i, j)."""
        return np.array(
            [
                [a not in "OESLU" and b not in "OBSU" and kind == other for b, other in self.parts]
                for a, kind in self.parts
            ]
        )

    @cached_property
    def of_type(self) -> dict[str, Ints]:
        """The labels of each type."""
        kinds = sorted({kind for tag, kind in self.parts if tag != "O"})
        return {
            kind: np.array([j for j, (tag, own) in enumerate(self.parts) if own == kind and tag != "O"])
            for kind in kinds
        }


def _by_marginals(
    inference: ChainInference, data: SequenceData, run: Runs, spans: Sequence[tuple[int, int, int, str]]
) -> Floats:
    """The recursion of the module's text, for all spans side by side; labels of a type are padded to the most."""
    L, most = len(run.labels), max(map(len, run.of_type.values()))
    number = np.array([n for n, *_ in spans])
    begin = data.starts[number] + np.array([s for _, s, _, _ in spans])
    end = data.starts[number] + np.array([e for _, _, e, _ in spans])  # one past the last position
    padded = {kind: [*ids, *[L] * (most - len(ids))] for kind, ids in run.of_type.items()}  # L: no label
    ids = np.array([padded[kind] for *_, kind in spans])

    # q_t(i, j) C(i, j) of the labels of each span's type, at begin … end: row first[k] + (t − begin[k])
    sizes = end - begin + 1
    first = np.cumsum(sizes) - sizes
    of = np.repeat(np.arange(len(spans)), sizes)
    at = begin[of] + np.arange(len(of)) - first[of]
    inside = (at > data.starts[number[of]]) & (at < data.starts[number[of] + 1])  # a position with one before it
    i, j = ids[of][:, :, None], ids[of][:, None, :]
    going = np.pad(run.goes_on, ((0, 1), (0, 1)))[i, j] & inside[:, None, None]
    at = np.minimum(at, data.n_positions - 1)
    order = np.argsort(at, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=data.n_positions))]) * most * most
    codes = np.where(going, i * L + j, 0).astype(np.int32)[order]
    node, picked = inference.picked_marginals(data, offsets.astype(np.int64), codes.ravel())
    onward = np.empty(going.shape)
    onward[order] = picked.reshape(codes.shape)
    onward *= going
    node = np.pad(node, ((0, 0), (0, 1)))

    def follow(v: Floats, rows: Ints, t: Ints) -> Floats:
        """Return Σ_i v(i) q_t(i, j) C(i, j) / p_{t−1}(i) of some spans."""
        p = node[t[:, None] - 1, ids[rows]]
        shares = np.divide(v, p, out=np.zeros_like(v), where=p > 0)
        moved: Floats = np.einsum("si,sij->sj", shares, onward[first[rows] + t - begin[rows]])
        return moved

    every = np.arange(len(spans))
    v = node[begin[:, None], ids] - onward[first].sum(axis=1)
    for step in range(1, int((end - begin).max())):
        rows = every[begin + step < end]
        v[rows] = follow(v[rows], rows, begin[rows] + step)
    chance: Floats = v.sum(axis=1) - follow(v, every, end).sum(axis=1)
    return chance


def _by_partition(
    inference: ChainInference, data: SequenceData, run: Runs, spans: Sequence[tuple[int, int, int, str]]
) -> Floats:
    """Σ exp(log Z of the labellings that have the span, with given first and last labels, − log Z)."""
    log_z = inference.log_partition(data)
    cases = [(k, *ends) for k, (_, s, e, kind) in enumerate(spans) for ends in _ends(run, kind, e - s)]
    copies = data.take([spans[k][0] for k, *_ in cases])
    allowed = np.ones((copies.n_positions, len(run.labels)), dtype=bool)
    for (k, first, middle, last), at, stop in zip(cases, copies.starts[:-1], copies.starts[1:], strict=True):
        _, s, e, _ = spans[k]
        allowed[at + s : at + e] = False
        allowed[at + s, first] = allowed[at + e - 1, last] = True
        allowed[at + s + 1 : at + e - 1, middle] = True
        if s > 0:
            allowed[at + s - 1] = ~run.goes_on[:, first]
        if at + e < stop:
            allowed[at + e] = ~run.goes_on[last]
    total = np.zeros(len(spans))
    of = [spans[k][0] for k, *_ in cases]
    np.add.at(total, [k for k, *_ in cases], np.exp(inference.log_partition_or_none(copies, allowed) - log_z[of]))
    return total


def _ends(run: Runs, kind: str, length: int) -> Iterable[tuple[int, list[int], int]]:
    """Yield (first label, labels between, last label) of phrases of a type and a length."""
    ids, goes_on = run.of_type[kind].tolist(), run.goes_on
    if length == 1:
        yield from ((j, [], j) for j in ids)
        return
    between = [j for j in ids if goes_on[j, j]]  # inside: the only labels that may follow each other for long
    for first, last in product(ids, ids):
        if length == 2 and goes_on[first, last]:
            yield first, [], last
        elif length > 2 and any(goes_on[first, j] and goes_on[j, last] for j in between):
            yield first, between, last
