"""Slow, obvious twins of the chain kernels, and random problems to compare them on.

`enumerate_labellings` writes down every labelling that a field allows with its features, whatever the field has (label
triples, masks, classes); all else follows from the definitions: `exact`, `exact_hinge`, `exact_marginals`. Where there
are too many labellings, `recursion` is forward–backward over label pairs in log space.

`enumerate_chain` and `forward_backward` are the same for first-order chains given by unary scores U[t, j] and pair
scores P[t, i, j] (of the labels at t−1 and t; P[0] is unused).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crfkit import _core
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.losses import ChainLikelihood

KERNELS = _core.available_kernels()


@dataclass(frozen=True)
class Answer:
    log_z: float
    node: np.ndarray  # [T, L]
    edge: np.ndarray  # [T, L, L], zero at t = 0
    best: np.ndarray  # [T]
    best_score: float


def logsumexp(x, axis=None, keepdims=False):
    """SciPy's, without its overhead on small arrays; of nothing but −∞ it is −∞."""
    top = np.max(x.real, axis=axis, keepdims=True)
    top = np.where(top == -np.inf, 0.0, top)
    with np.errstate(divide="ignore"):
        result = top + np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True))
    return result if keepdims else np.squeeze(result, axis=axis)


def path_score(U, P, labels) -> float:
    score = sum(U[t, y] for t, y in enumerate(labels))
    return score + sum(P[t, labels[t - 1], labels[t]] for t in range(1, len(labels)))


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


@dataclass(frozen=True)
class Indices:
    """Where the weight of a combination stands in the weight vector; −1: nowhere."""

    state: np.ndarray  # [A, L]
    transition: np.ndarray  # [L, L]
    pair: np.ndarray  # [B, L, L]
    triple: np.ndarray  # [L, L, L]
    by_class: np.ndarray  # [A, C]


def indices(field: ChainField) -> Indices:
    L, counter = field.n_labels, itertools.count()

    def listed(n, width, offsets, codes):
        index = np.full((n, width), -1)
        for a in range(n):
            for code in range(width) if codes is None else codes[offsets[a] : offsets[a + 1]]:
                index[a, code] = next(counter)
        return index

    def flat(n, width, codes):
        index = np.full(width, -1)
        for code in [] if n == 0 else range(width) if codes is None else codes:
            index[code] = next(counter)
        return index

    state = listed(field.n_attributes, L, field.state_offsets, field.state_labels)
    transition = flat(field.n_transition, L**2, field.transition_codes).reshape(L, L)
    pair = listed(field.n_pair_attributes, L * L, field.pair_offsets, field.pair_codes).reshape(-1, L, L)
    triple = flat(field.n_triple, L**3, field.triple_codes).reshape(L, L, L)
    by_class = listed(field.n_attributes, field.n_classes, field.class_offsets, field.class_codes)
    assert next(counter) == field.size
    return Indices(state, transition, pair, triple, by_class)


def weight_indices(field: ChainField) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of (attribute, label), (label, label), (pair attribute, label, label), in fields that have no others."""
    index = indices(field)
    return index.state, index.transition, index.pair


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
    for begin, end in pairwise(data.starts.tolist()):
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


# --- problems, and every labelling of one of their sequences


@dataclass(frozen=True)
class Problem:
    data: SequenceData
    field: ChainField
    w: np.ndarray

    def potentials(self):
        return potentials(self.data, self.field, self.w)

    def span(self, n: int) -> tuple[int, int]:
        return int(self.data.starts[n]), int(self.data.starts[n + 1])

    def labels(self, n: int) -> np.ndarray:
        begin, end = self.span(n)
        return self.data.labels[begin:end]

    def weight(self, n: int) -> float:
        return 1.0 if self.data.weights is None else float(self.data.weights[n])


def permitted(field: ChainField, path) -> bool:
    """Whether the field's masks allow a labelling."""
    if len(path) == 0:
        return True
    start = field.allowed_start is None or field.allowed_start[path[0]]
    end = field.allowed_end is None or field.allowed_end[path[-1]]
    return bool(start and end and (field.allowed is None or all(field.allowed[i, j] for i, j in pairwise(path))))


@dataclass(frozen=True)
class Labellings:
    """All K labellings of a sequence that are allowed."""

    paths: np.ndarray  # [K, T]
    features: np.ndarray  # [K, size]: a labelling's score is features·w

    def at(self, labels) -> int:
        """Which one this is."""
        (found,) = np.flatnonzero((self.paths == labels).all(axis=1))
        return int(found)

    def cost(self, cost, gold) -> np.ndarray:
        """Σ_t cost[gold_t, y_t] of each."""
        return cost[gold, self.paths].sum(axis=1)


def enumerate_labellings(problem: Problem, n: int) -> Labellings:
    """From the definition: the score is Σ over the features that fire, each its value times its weight."""
    data, field, index = problem.data, problem.field, indices(problem.field)
    begin, end = problem.span(n)
    paths = np.array(list(itertools.product(range(field.n_labels), repeat=end - begin)), dtype=int)
    paths = paths[[permitted(field, path) for path in paths]]
    y, rows = paths.T, np.arange(len(paths))
    features = np.zeros((len(paths), field.size + 1))  # the last column takes what has no weight
    for t in range(end - begin):
        for a, value in attributes_at(data, begin + t):
            features[rows, index.state[a, y[t]]] += value
            if field.label_classes is not None:
                features[rows, index.by_class[a, field.label_classes[y[t]]]] += value
        if t > 0:
            features[rows, index.transition[y[t - 1], y[t]]] += 1.0
            for b in pair_attributes_at(data, begin + t):
                features[rows, index.pair[b, y[t - 1], y[t]]] += 1.0
        if t > 1:
            features[rows, index.triple[y[t - 2], y[t - 1], y[t]]] += 1.0
    return Labellings(paths, features[:, :-1])


def hamming(n_labels: int) -> np.ndarray:
    return 1.0 - np.eye(n_labels)


class Exact:
    """Σ weight · (log Σ_y exp(score(y) + cost(gold, y)) − score(gold)), its gradient and Hessian; cost None: 0."""

    def __init__(self, problem: Problem, cost=None) -> None:
        self.value, self.grad, self._parts = 0.0, np.zeros(problem.field.size), []  # (probabilities, deviations)
        for n in range(len(problem.data)):
            all_, gold, weight = enumerate_labellings(problem, n), problem.labels(n), problem.weight(n)
            scores = all_.features @ problem.w
            raised = scores if cost is None else scores + all_.cost(cost, gold)
            log_z, k = float(logsumexp(raised)), all_.at(gold)
            p = np.exp(raised - log_z)
            self.value += weight * (log_z - scores[k])
            self.grad += weight * (p @ all_.features - all_.features[k])
            self._parts.append((weight * p, all_.features - p @ all_.features))

    def hessp(self, v) -> np.ndarray:
        """The covariance of the features times v."""
        return sum(((p * (deviation @ v)) @ deviation for p, deviation in self._parts), np.zeros(len(v)))

    def hessian(self) -> np.ndarray:
        return sum((p[:, None] * deviation).T @ deviation for p, deviation in self._parts)

    def hess_diag(self) -> np.ndarray:
        """The true diagonal; what the kernels give is equal where a feature fires at most once in a sequence."""
        return sum(p @ deviation**2 for p, deviation in self._parts)


def exact_hinge(problem: Problem, cost) -> tuple[float, np.ndarray]:
    """Σ weight · (max_y score(y) + cost(gold, y) − score(gold)), and the features of the maximiser minus gold's."""
    value, gradient = 0.0, np.zeros(problem.field.size)
    for n in range(len(problem.data)):
        all_, gold, weight = enumerate_labellings(problem, n), problem.labels(n), problem.weight(n)
        scores = all_.features @ problem.w
        raised = scores + all_.cost(cost, gold)
        best, k = int(np.argmax(raised)), all_.at(gold)
        value += weight * (raised[best] - scores[k])
        gradient += weight * (all_.features[best] - all_.features[k])
    return value, gradient


@dataclass(frozen=True)
class Marginals:
    log_z: float
    node: np.ndarray  # [T, L]
    edge: np.ndarray  # [T, L, L], zero at t = 0
    triple: np.ndarray  # [T, L, L, L], zero at t < 2
    best: np.ndarray  # [T]
    best_score: float


def one_hot(path, n_labels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(node, edge, triple) of one labelling."""
    node, edge, triple = _zeros(len(path), n_labels)
    for t in range(len(path)):
        node[t, path[t]] = 1.0
        if t > 0:
            edge[t, path[t - 1], path[t]] = 1.0
        if t > 1:
            triple[t, path[t - 2], path[t - 1], path[t]] = 1.0
    return node, edge, triple


def _zeros(T: int, L: int, dtype=float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((T, L), dtype), np.zeros((T, L, L), dtype), np.zeros((T, L, L, L), dtype)


def exact_marginals(problem: Problem, n: int) -> Marginals:
    all_ = enumerate_labellings(problem, n)
    scores = all_.features @ problem.w
    log_z, best = float(logsumexp(scores)), int(np.argmax(scores))
    tables, y, p = _zeros(all_.paths.shape[1], problem.field.n_labels), all_.paths.T, np.exp(scores - log_z)
    for t in range(len(y)):
        for k, table in enumerate(tables[: t + 1]):
            np.add.at(table[t], tuple(y[t - k : t + 1]), p)
    return Marginals(log_z, *tables, all_.paths[best], float(scores[best]))


# --- the same for chains that have too many labellings


def potentials_of(problem: Problem, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U [T, L], P [T, L, L] and Q [L, L, L] of a sequence; −∞: not allowed."""
    data, field, index = problem.data, problem.field, indices(problem.field)
    begin, end = problem.span(n)
    w = np.append(problem.w, 0.0)
    U, P, _ = _zeros(end - begin, field.n_labels, w.dtype)
    for t in range(end - begin):
        for a, value in attributes_at(data, begin + t):
            U[t] += value * w[index.state[a]]
            if field.label_classes is not None:
                U[t] += value * w[index.by_class[a, field.label_classes]]
        P[t] = w[index.transition] + sum(w[index.pair[b]] for b in pair_attributes_at(data, begin + t))
        if field.allowed is not None:
            P[t][~field.allowed] = -np.inf
    if end > begin and field.allowed_start is not None:
        U[0][~field.allowed_start] = -np.inf
    if end > begin and field.allowed_end is not None:
        U[-1][~field.allowed_end] = -np.inf
    return U, P, w[index.triple]


def labelling_score(problem: Problem, n: int, path) -> float:
    """−∞ if it is not allowed."""
    U, P, Q = potentials_of(problem, n)
    return path_score(U, P, path) + sum(Q[tuple(path[t - 2 : t + 1])] for t in range(2, len(path)))


def recursion(problem: Problem, n: int) -> Marginals:
    """Forward–backward over (label at t−1, label at t), in log space; at t = 0 the former is 0."""
    U, P, Q = potentials_of(problem, n)
    T, L = U.shape
    if T == 0:
        return Marginals(0.0, *_zeros(0, L), np.zeros(0, dtype=int), 0.0)
    step = [U[t] + P[t] + (Q if t > 1 else np.zeros_like(Q)) for t in range(T)]  # [i, j, k]: y_{t−2}, y_{t−1}, y_t
    alpha, beta, log_z = np.full((T, L, L), -np.inf, U.dtype), np.zeros((T, L, L), U.dtype), 0.0
    alpha[0, 0] = U[0]
    for t in range(T):
        if t > 0:
            alpha[t] = logsumexp(alpha[t - 1][:, :, None] + step[t], axis=0)
        scale = logsumexp(alpha[t])
        alpha[t], log_z = alpha[t] - scale, log_z + scale
    for t in range(T - 1, 0, -1):
        beta[t - 1] = logsumexp(step[t] + beta[t], axis=2)
        beta[t - 1] -= logsumexp(beta[t - 1])
    _, edge, triple = _zeros(T, L, U.dtype)
    for t in range(T):
        row = alpha[t] + beta[t]
        edge[t] = np.exp(row - logsumexp(row))
        if t > 1:
            row = alpha[t - 1][:, :, None] + step[t] + beta[t]
            triple[t] = np.exp(row - logsumexp(row))
    node, edge[0] = edge.sum(axis=1), 0.0
    return Marginals(log_z, node, edge, triple, *_best_labels(U[0].real, [scores.real for scores in step]))


def _best_labels(first, step) -> tuple[np.ndarray, float]:
    delta, back = np.where(np.arange(len(first))[:, None] == 0, first, -np.inf), []
    for scores in step[1:]:
        table = delta[:, :, None] + scores
        back.append(table.argmax(axis=0))
        delta = table.max(axis=0)
    i, j = np.unravel_index(delta.argmax(), delta.shape)
    best = [int(j)]
    for pointers in reversed(back):
        i, j = pointers[i, j], i
        best.append(int(j))
    return np.array(best[::-1]), float(delta.max())


def counts(problem: Problem, n: int, node, edge, triple, power: int = 1) -> np.ndarray:
    """The adjoint of the score map: Σ over a weight's occurrences of value^power times its entry of the tables."""
    data, field, index = problem.data, problem.field, indices(problem.field)
    begin, end = problem.span(n)
    result = np.zeros(field.size + 1, node.dtype)  # the last entry takes what has no weight
    for t in range(end - begin):
        for a, value in attributes_at(data, begin + t):
            np.add.at(result, index.state[a], value**power * node[t])
            if field.label_classes is not None:
                np.add.at(result, index.by_class[a, field.label_classes], value**power * node[t])
        np.add.at(result, index.transition, edge[t])
        for b in pair_attributes_at(data, begin + t):
            np.add.at(result, index.pair[b], edge[t])
        np.add.at(result, index.triple, triple[t])
    return result[:-1]


def recursive_likelihood(problem: Problem) -> tuple[float, np.ndarray]:
    value, gradient = 0.0, np.zeros(problem.field.size, problem.w.dtype)
    for n in range(len(problem.data)):
        found, gold, weight = recursion(problem, n), problem.labels(n), problem.weight(n)
        residual = [p - y for p, y in zip(tables(found), one_hot(gold, problem.field.n_labels), strict=True)]
        value += weight * (found.log_z - labelling_score(problem, n, gold))
        gradient += weight * counts(problem, n, *residual)
    return value, gradient


def recursive_derivatives(problem: Problem, v) -> tuple[float, np.ndarray, np.ndarray]:
    """(value, gradient, Hessian times v), the last by a complex step: f(w + i·h·v) = f(w) + i·h·f′(w)·v − O(h²)."""
    h = 1e-30
    value, gradient = recursive_likelihood(replace(problem, w=problem.w + 1j * h * v))
    return value.real, gradient.real, gradient.imag / h


def diagonal_formula(problem: Problem) -> np.ndarray:
    """What `hess_diag` promises: Σ over a weight's occurrences of value²·p·(1 − p), as if they were independent."""
    result = np.zeros(problem.field.size)
    for n in range(len(problem.data)):
        variances = [p * (1 - p) for p in tables(recursion(problem, n))]
        result += problem.weight(n) * counts(problem, n, *variances, power=2)
    return result


def tables(marginals: Marginals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return marginals.node, marginals.edge, marginals.triple


def derivative(f, h: float = 1e-3):
    """f′(0), by four points."""
    return (f(-2 * h) - 8 * f(-h) + 8 * f(h) - f(2 * h)) / (12 * h)


# --- the kernels against them


def check_likelihood(problem: Problem, n_threads=(1,), caches=(1 << 30,), tolerance: float = 1e-9) -> None:
    """Value, gradient and products with the Hessian against enumeration; caches: bytes for keeping the lattices."""
    expected = Exact(problem)
    rng = np.random.default_rng(problem.field.size)
    directions = [(v, expected.hessp(v)) for v in rng.normal(size=(2, problem.field.size))]
    for kernels, threads, cache in itertools.product(KERNELS, n_threads, caches):
        found, who = _evaluate(problem, kernels, threads, cache)
        _close(found.value, expected.value, tolerance, f"value: {who}")
        _close(found.grad, expected.grad, tolerance, f"gradient: {who}")
        for v, product in directions:
            _close(found.hessp(v), product, tolerance, f"product: {who}")


def check_long_likelihood(problem: Problem, n_threads=(1,), caches=(1 << 30,), tolerance: float = 1e-9) -> None:
    """The same against the recursion."""
    v = np.random.default_rng(problem.field.size).normal(size=problem.field.size)
    value, gradient, product = recursive_derivatives(problem, v)
    for kernels, threads, cache in itertools.product(KERNELS, n_threads, caches):
        found, who = _evaluate(problem, kernels, threads, cache)
        _close(found.value, value, tolerance, f"value: {who}")
        _close(found.grad, gradient, tolerance, f"gradient: {who}")
        _close(found.hessp(v), product, tolerance, f"product: {who}")


def check_inference(problem: Problem, n_threads=(1,), solver=exact_marginals, tolerance: float = 1e-9) -> None:
    data, expected = problem.data, [solver(problem, n) for n in range(len(problem.data))]
    for kernels, threads in itertools.product(KERNELS, n_threads):
        inference = ChainInference(problem.field, problem.w, threads, kernels)
        log_z, node, edge = (
            inference.log_partition(data),
            inference.node_marginals(data),
            inference.edge_marginals(data),
        )
        labels, scores = inference.decode(data)
        for n, answer in enumerate(expected):
            here, who = slice(*problem.span(n)), f"{kernels}, {threads} threads, sequence {n}"
            _close(log_z[n], answer.log_z, tolerance, who)
            assert_allclose(node[here], answer.node, atol=tolerance, rtol=0, err_msg=who)
            assert_allclose(edge[here], answer.edge, atol=tolerance, rtol=0, err_msg=who)
            _close(scores[n], answer.best_score, tolerance, who)
            # Ties and near-ties may be broken either way; the labels must have the best score.
            _close(labelling_score(problem, n, labels[here]), answer.best_score, tolerance, who)


def _evaluate(problem: Problem, kernels: str, n_threads: int, cache_bytes: int):
    loss = ChainLikelihood(problem.data, problem.field, n_threads, kernels, cache_bytes)
    return loss.at(problem.w), f"{kernels}, {n_threads} threads, {cache_bytes} bytes"


def _close(found, expected, tolerance: float, who: str) -> None:
    """To this share of the largest number, or of 1."""
    size = max(1.0, float(np.abs(expected).max(initial=0.0)))
    assert_allclose(found, expected, rtol=0, atol=tolerance * size, err_msg=who)


# --- random problems


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
    order: int = 1,
    triples: str = "as transitions",  # or: none, subset
    forbidden: float | None = None,  # the share of transitions, starts and ends that masks forbid; None: no masks
    n_classes: int = 0,
    company: bool = False,
) -> Problem:
    """Random sequences, a field and weights. Attributes may occur several times in a position, once, or never.

    In company, attributes come in threes that are always together, and trailing attributes occur once. Masks never
    forbid the labels of the data.
    """
    rng = np.random.default_rng(seed)
    T = sum(lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    attributes = [np.sort(rng.integers(0, n_attributes, rng.integers(0, per_position + 1))) for _ in range(T)]
    if company:
        attributes = [(3 * np.repeat(row, 3) + [*range(3)] * len(row)).tolist() for row in attributes]
        attributes = [[*sorted(row), *([3 * n_attributes + t] if t % 2 else [])] for t, row in enumerate(attributes)]
        n_attributes = 3 * n_attributes + T
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
    options = {} if forbidden is None else _masks(data, n_labels, forbidden, rng)
    if n_classes:
        options["label_classes"] = rng.permutation(np.arange(n_labels) % min(n_classes, n_labels))
    field = ChainField.from_data(
        data,
        n_labels,
        n_attributes,
        n_pair_attributes,
        all_states=states != "observed",
        all_transitions=transitions == "all",
        transitions=transitions != "none",
        order=order,
        **options,
    )

    def some(n):
        return np.flatnonzero(rng.random(n) < rng.choice([0.1, 0.9]))

    if states == "subset":
        chosen = [some(n_labels) for _ in range(n_attributes)]
        field = replace(field, state_offsets=_offsets(chosen), state_labels=_flat(chosen))
        if n_classes:
            chosen = [some(field.n_classes) for _ in range(n_attributes)]
            field = replace(field, class_offsets=_offsets(chosen), class_codes=_flat(chosen))
    if order == 2 and triples != "as transitions":
        codes = some(n_labels**3) if triples == "subset" else []
        field = replace(field, triple_codes=_flat([codes]), n_triple=len(codes))
    return Problem(data, field, scale * rng.normal(size=field.size))


def _masks(data: SequenceData, n_labels: int, forbidden: float, rng) -> dict[str, np.ndarray]:
    allowed = rng.random((n_labels, n_labels)) >= forbidden
    start, end = rng.random((2, n_labels)) >= forbidden
    for labels in data.split(data.labels):
        if len(labels):
            allowed[labels[:-1], labels[1:]] = True
            start[labels[0]] = end[labels[-1]] = True
    return {"allowed": allowed, "allowed_start": start, "allowed_end": end}


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


@st.composite
def small_problems(
    draw, scales=(0.1, 1.0, 5.0), orders=(1, 2), masks=(None, None, 0.0, 0.4, 1.0), classes=(0, 0, 2, 5), weights=True
) -> Problem:
    """Problems with every kind of field, in which a sequence has few enough labellings to enumerate."""
    n_labels, longest = draw(st.sampled_from([(1, 5), (2, 6), (3, 5), (4, 4), (8, 3), (9, 3), (17, 2), (33, 2)]))
    order = draw(st.sampled_from(orders))
    return make_problem(
        seed=draw(st.integers(0, 10**6)),
        n_labels=n_labels,
        lengths=tuple(draw(st.lists(st.integers(0, longest), min_size=1, max_size=4))),
        n_attributes=draw(st.integers(1, 6)),
        n_pair_attributes=draw(st.sampled_from([0, 0, 1, 3])),
        values=draw(st.booleans()),
        weights=weights and draw(st.booleans()),
        states=draw(st.sampled_from(["all", "observed", "subset"])),
        transitions=draw(st.sampled_from(["all", "observed", "none"])),
        scale=draw(st.sampled_from(scales)),
        order=order if n_labels < 17 else 1,
        triples=draw(st.sampled_from(["as transitions", "as transitions", "subset", "none"])),
        forbidden=draw(st.sampled_from(masks)),
        n_classes=draw(st.sampled_from(classes)),
        company=draw(st.booleans()),
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
