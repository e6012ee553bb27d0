"""Slow, obvious twins of the chain kernels, and random problems to compare them on.

`enumerate_chain` looks at every labelling; `forward_backward` is the textbook recursion in log space for chains that
have too many. Both take unary scores U[t, j] and pair scores P[t, i, j] (of the labels at t−1 and t; P[0] is unused).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from crfkit.data import SequenceData
from crfkit.fields import ChainField


@dataclass(frozen=True)
class Answer:
    log_z: float
    node: np.ndarray  # [T, L]
    edge: np.ndarray  # [T, L, L], zero at t = 0
    best: np.ndarray  # [T]
    best_score: float


def logsumexp(x, axis=None, keepdims=False):
    """SciPy's, without its overhead on small arrays."""
    top = np.max(x, axis=axis, keepdims=True)
    result = top + np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True))
    return result if keepdims else np.squeeze(result, axis=axis)


def path_score(U, P, labels) -> float:
    score = sum(U[t, y] for t, y in enumerate(labels))
    return float(score + sum(P[t, labels[t - 1], labels[t]] for t in range(1, len(labels))))


def enumerate_chain(U, P) -> Answer:
    T, L = U.shape
    paths = list(itertools.product(range(L), repeat=T))
    scores = np.array([path_score(U, P, path) for path in paths])
    log_z = float(logsumexp(scores))
    node, edge = np.zeros((T, L)), np.zeros((T, L, L))
    for path, p in zip(paths, np.exp(scores - log_z), strict=True):
        for t, j in enumerate(path):
            node[t, j] += p
            if t > 0:
                edge[t, path[t - 1], j] += p
    k = int(np.argmax(scores))
    return Answer(log_z, node, edge, np.array(paths[k], dtype=int), float(scores[k]))


def forward_backward(U, P) -> Answer:
    """The recursions in log space; log α_t and log β_t are normalised at every position, so nothing grows."""
    T, L = U.shape
    if T == 0:
        return Answer(0.0, np.zeros((0, L)), np.zeros((0, L, L)), np.zeros(0, dtype=int), 0.0)
    alpha, beta, log_z = np.zeros((T, L)), np.zeros((T, L)), 0.0
    for t in range(T):
        row = U[t] + (logsumexp(alpha[t - 1][:, None] + P[t], axis=0) if t else 0.0)
        log_z += logsumexp(row)
        alpha[t] = row - logsumexp(row)
    for t in range(T - 1, 0, -1):
        row = logsumexp(P[t] + U[t] + beta[t], axis=1)
        beta[t - 1] = row - logsumexp(row)
    node = alpha + beta
    node = np.exp(node - logsumexp(node, axis=1, keepdims=True))
    edge = np.zeros((T, L, L))
    for t in range(1, T):
        row = alpha[t - 1][:, None] + P[t] + U[t] + beta[t]
        edge[t] = np.exp(row - logsumexp(row))
    return Answer(float(log_z), node, edge, *_viterbi(U, P))


def _viterbi(U, P) -> tuple[np.ndarray, float]:
    delta, back = U[0], []
    for t in range(1, len(U)):
        table = delta[:, None] + P[t]
        back.append(table.argmax(axis=0))
        delta = U[t] + table.max(axis=0)
    best = [int(delta.argmax())]
    for pointers in reversed(back):
        best.append(int(pointers[best[-1]]))
    return np.array(best[::-1]), float(delta.max())


def solve(U, P) -> Answer:
    T, L = U.shape
    return enumerate_chain(U, P) if L**T <= 300 else forward_backward(U, P)


# --- the score map: weights to U and P, and its adjoint


def weight_indices(field: ChainField) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the weight of (attribute, label), (label, label), (pair attribute, label, label) stands; −1: nowhere."""
    L, counter = field.n_labels, itertools.count()

    def listed(n, width, offsets, codes):
        index = np.full((n, width), -1)
        for a in range(n):
            for code in range(width) if codes is None else codes[offsets[a] : offsets[a + 1]]:
                index[a, code] = next(counter)
        return index

    state = listed(field.n_attributes, L, field.state_offsets, field.state_labels)
    transition = np.full(L * L, -1)
    if field.n_transition:
        for code in range(L * L) if field.transition_codes is None else field.transition_codes:
            transition[code] = next(counter)
    pair = listed(field.n_pair_attributes, L * L, field.pair_offsets, field.pair_codes)
    assert next(counter) == field.size
    return state, transition.reshape(L, L), pair.reshape(-1, L, L)


def attributes_at(data: SequenceData, t: int) -> list[tuple[int, float]]:
    where = range(data.offsets[t], data.offsets[t + 1])
    return [(int(data.attributes[k]), 1.0 if data.values is None else float(data.values[k])) for k in where]


def pair_attributes_at(data: SequenceData, t: int) -> list[int]:
    if data.pair_offsets is None:
        return []
    return [int(a) for a in data.pair_attributes[data.pair_offsets[t] : data.pair_offsets[t + 1]]]


def potentials(data: SequenceData, field: ChainField, w) -> list[tuple[np.ndarray, np.ndarray]]:
    """(U, P) of every sequence."""
    state, transition, pair = (np.append(w, 0.0)[index] for index in weight_indices(field))
    result = []
    for begin, end in itertools.pairwise(data.starts.tolist()):
        U = np.zeros((end - begin, field.n_labels))
        P = np.zeros((end - begin, field.n_labels, field.n_labels))
        for t in range(begin, end):
            for a, value in attributes_at(data, t):
                U[t - begin] += value * state[a]
            P[t - begin] = transition + sum(pair[b] for b in pair_attributes_at(data, t))
        result.append((U, P))
    return result


def likelihood(data: SequenceData, field: ChainField, w) -> tuple[float, np.ndarray]:
    """Σ weight · (log Z − score of the labels) and its gradient, expected minus observed counts."""
    state, transition, pair = weight_indices(field)
    value, gradient = 0.0, np.zeros(field.size + 1)  # the last entry takes what has no weight
    for n, (U, P) in enumerate(potentials(data, field, w)):
        weight = 1.0 if data.weights is None else data.weights[n]
        begin, end = data.starts[n], data.starts[n + 1]
        labels, answer = data.labels[begin:end], solve(U, P)
        value += weight * (answer.log_z - path_score(U, P, labels))
        for t in range(end - begin):
            residual = answer.node[t].copy()
            residual[labels[t]] -= 1.0
            for a, x in attributes_at(data, begin + t):
                gradient[state[a]] += weight * x * residual
            if t > 0:
                residual = answer.edge[t].copy()
                residual[labels[t - 1], labels[t]] -= 1.0
                gradient[transition] += weight * residual
                for b in pair_attributes_at(data, begin + t):
                    gradient[pair[b]] += weight * residual
    return value, gradient[:-1]


# --- random problems


@dataclass(frozen=True)
class Problem:
    data: SequenceData
    field: ChainField
    w: np.ndarray

    def potentials(self):
        return potentials(self.data, self.field, self.w)


def make_problem(
    seed: int = 0,
    n_labels: int = 3,
    lengths: tuple[int, ...] = (3, 0, 1, 4),
    n_attributes: int = 5,
    n_pair_attributes: int = 0,
    values: bool = False,
    weights: bool = False,
    states: str = "all",  # all, observed, subset (some labels of each attribute, whatever the data)
    transitions: str = "all",  # all, observed, none
    scale: float = 1.0,
    per_position: int = 3,
) -> Problem:
    """Random sequences, a field and weights. Attributes may occur several times in a position, once, or never."""
    rng = np.random.default_rng(seed)
    T = sum(lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    attributes = [np.sort(rng.integers(0, n_attributes, rng.integers(0, per_position + 1))) for _ in range(T)]
    extra = {}
    if n_pair_attributes:
        first = set(starts[:-1].tolist())
        pairs = [np.sort(rng.integers(0, n_pair_attributes, 0 if t in first else rng.integers(0, 3))) for t in range(T)]
        extra = {"pair_offsets": _offsets(pairs), "pair_attributes": _flat(pairs)}
    if values:
        extra["values"] = rng.normal(size=sum(map(len, attributes)))
    if weights:
        extra["weights"] = rng.choice([0.0, 0.5, 1.0, 2.5], len(lengths))
    labels = rng.integers(0, n_labels, T)
    data = SequenceData(starts, _offsets(attributes), _flat(attributes), labels=labels, **extra)
    field = ChainField.from_data(
        data,
        n_labels,
        n_attributes,
        n_pair_attributes,
        all_states=states != "observed",
        all_transitions=transitions == "all",
        transitions=transitions != "none",
    )
    if states == "subset":
        chosen = [np.flatnonzero(rng.random(n_labels) < rng.choice([0.1, 0.9])) for _ in range(n_attributes)]
        field = replace(field, state_offsets=_offsets(chosen), state_labels=_flat(chosen))
    return Problem(data, field, scale * rng.normal(size=field.size))


def _offsets(parts) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _flat(parts) -> np.ndarray:
    return np.concatenate([*parts, np.zeros(0)]).astype(np.int32)


@st.composite
def problems(draw, scales=(0.1, 1.0, 5.0)) -> Problem:
    """All shapes of small problems; 9, 17 and 50 labels need several SIMD vectors."""
    n_labels = draw(st.sampled_from([1, 2, 3, 4, 8, 9, 17, 50]))
    lengths = draw(st.lists(st.integers(0, 5 if n_labels < 9 else 3), min_size=1, max_size=5))
    return make_problem(
        seed=draw(st.integers(0, 10**6)),
        n_labels=n_labels,
        lengths=tuple(lengths),
        n_attributes=draw(st.integers(1, 8)),
        n_pair_attributes=draw(st.sampled_from([0, 0, 1, 3])),
        values=draw(st.booleans()),
        weights=draw(st.booleans()),
        states=draw(st.sampled_from(["all", "observed", "subset"])),
        transitions=draw(st.sampled_from(["all", "observed", "none"])),
        scale=draw(st.sampled_from(scales)),
    )


def select(data: SequenceData, order) -> SequenceData:
    """The sequences of `data` at these places, which may repeat."""
    order = list(order)
    positions = [t for n in order for t in range(data.starts[n], data.starts[n + 1])]

    def rows(offsets, flat):
        return [flat[offsets[t] : offsets[t + 1]] for t in positions]

    attributes = rows(data.offsets, data.attributes)
    extra = {}
    if data.values is not None:
        extra["values"] = np.concatenate([*rows(data.offsets, data.values), np.zeros(0)])
    if data.pair_offsets is not None:
        pairs = rows(data.pair_offsets, data.pair_attributes)
        extra |= {"pair_offsets": _offsets(pairs), "pair_attributes": _flat(pairs)}
    if data.weights is not None:
        extra["weights"] = data.weights[order]
    starts = np.concatenate([[0], np.cumsum(data.lengths[order])])
    return SequenceData(starts, _offsets(attributes), _flat(attributes), labels=data.labels[positions], **extra)
