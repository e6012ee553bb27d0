"""Maximum likelihood of a table without inputs on a graph that is too dense for exact inference.

Each round carries particles from independent variables to the present weights (inference/annealed.py), so that every
mode of the field has its share of them. Newton steps with the moments and covariances of the particles follow, as long
as the particles, weighed by how the field has changed, can stand for it (Geyer & Thompson 1992). When the moments agree
with the data up to the noise of the particles, there is one shorter step per round, and the weights are averaged
(Polyak & Juditsky 1992). Particles that only followed the weights by Gibbs sweeps would keep their numbers in each
mode whatever the field says: their moments match the data when the field's do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from crfkit._types import Floats, Ids
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField
from crfkit.graph.inference.annealed import Annealed, effective

PARTICLES = 2000
ROUNDS = 15  # at most, until the moments agree
AVERAGED = 12  # rounds whose weights are averaged
DAMPED = 0.5  # share of a Newton step: full ones would overshoot by the noise of the covariances
KEPT = 0.8  # share of the effective sample size that a step keeps
LEAST = 0.35  # effective sample size, as a share, from which on new particles are needed
SHRINK = 0.02  # of the particles' covariances towards their diagonal
MEMORY = 0.5  # weight of earlier covariances: the mean of several rounds is less noisy
DENSE = 1500  # weights; with more, steps use the diagonal alone
CALM = 2.0  # Newton decrement, in units of the particles' noise, at which the moments agree;
STILL = 1.3  # at the start, at which nothing is left to do


class Statistics:
    """The statistics that the weights of a field multiply, for states [n, particles] of a graph without features.

    They are in the order of the weights: ones of nodes, then of edges.
    """

    def __init__(self, data: GraphData, field: GraphField) -> None:
        K = field.max_states
        nodes = np.argwhere(field.node_active)
        edges = np.argwhere(field.edge_active)
        self._nodes, self._node_values = nodes[:, 0], field.node_basis[nodes[:, 1]]  # [V], [V, K]
        ends = data.graph.edges[edges[:, 0]]
        self._first, self._second = ends[:, 0], ends[:, 1]
        self._tables = edges[:, 1]
        self._edge_basis = field.edge_basis
        self._K = K

    def of(self, labels: Ids) -> Floats:
        """Return the statistics [particles, weights] of labels."""
        V = len(self._nodes)
        out = np.empty((V + len(self._first), labels.shape[1]))
        for v, (i, values) in enumerate(zip(self._nodes.tolist(), self._node_values, strict=True)):
            out[v] = values[labels[i]]
        pairs = zip(self._first.tolist(), self._second.tolist(), self._tables.tolist(), strict=True)
        for e, (i, j, b) in enumerate(pairs, start=V):
            out[e] = self._edge_basis[b, labels[i], labels[j]]
        return out.T


def sampled_weights(
    data: GraphData,
    field: GraphField,
    states: Ids,
    weights: Floats,
    ridge: Floats,
    w0: Floats,
    seed: int = 0,
    n_threads: int | None = None,
) -> tuple[Floats, int]:
    """Return (weights, rounds) that minimise the negative log-likelihood + Σ ridge/2·w², from a table.

    `data` are its counts, `states` its rows with their weights. `w0` is where to start; it is returned, with 0 rounds,
    if its moments agree with the data.
    """
    total = float(data.graph_weights[0])
    target = field.adjoint(data, *field.observed(data)) / total
    statistics = Statistics(data, field)
    newton = Newton(ridge, total, statistics.of(states.T), weights / total)
    batches = 4
    count = int(np.clip(PARTICLES * 100 // data.graph.n_nodes, PARTICLES // 4, PARTICLES)) // batches
    w, mean, averaged = w0.copy(), np.zeros_like(w0), 0
    for number in range(ROUNDS + AVERAGED):
        engine = Annealed(1.0, count, batches, 1, seed + number, n_threads)
        found = engine.particles(field.potentials(data, w))
        phi, log_w = statistics.of(found.labels), np.log(np.maximum(found.weights, 1e-300))
        share = found.weights
        newton.see(phi, share)
        for inner in range(20):
            gradient = total * (share @ phi - target) + ridge * w
            direction = newton.step(gradient)
            # The decrement of Newton's method, next to what the noise of the particles makes of it.
            decrement = -float(direction @ gradient) / (len(w) * total * float(share @ share))
            calm = decrement <= CALM
            if number == inner == 0 and decrement <= STILL:
                return w0, 0
            if inner == 0 and (calm or averaged or number >= ROUNDS):
                averaged += 1
            elif calm:
                break
            change = phi @ direction
            length = _length(log_w, change, DAMPED / max(1.0, averaged) ** 0.6)
            w = w + length * direction
            log_w = log_w + length * change
            share = np.exp(log_w - log_w.max())
            share /= share.sum()
            if averaged or effective(log_w) < LEAST:
                break
        if averaged:
            mean += (w - mean) / averaged
        if averaged >= AVERAGED:
            break
    return mean, number + 1


class Newton:
    """Newton steps with the mean of two covariances: of the particles, and of the data, which they have to become.

    The first alone may lack what is rare among particles, the second does not know where the field is far off.
    """

    def __init__(self, ridge: Floats, total: float, phi: Floats, share: Floats) -> None:
        self._ridge, self._total = ridge, total
        self._data = covariance(phi, share)
        self._seen = self._data

    def see(self, phi: Floats, share: Floats) -> None:
        self._seen = MEMORY * self._seen + (1.0 - MEMORY) * covariance(phi, share)

    def step(self, gradient: Floats) -> Floats:
        C = 0.5 * (self._data + self._seen)
        if C.ndim == 1:
            return -gradient / (self._total * np.maximum(C, 1e-4) + self._ridge)
        H = (1.0 - SHRINK) * self._total * C
        H[np.diag_indices_from(H)] = self._total * np.maximum(np.diag(C), 1e-4) + self._ridge
        factor: Any = cho_factor(H, overwrite_a=True)
        return np.asarray(-cho_solve(factor, gradient))


def covariance(phi: Floats, share: Floats) -> Floats:
    """Return the covariance of statistics [particles, weights], or only the variances if there are many weights."""
    centred = (phi - share @ phi) * np.sqrt(share)[:, None]
    found: Floats = np.square(centred).sum(axis=0) if phi.shape[1] > DENSE else centred.T @ centred
    return found


def _length(log_w: Floats, change: Floats, most: float) -> float:
    """Return the longest step that keeps most of the effective sample size."""
    least = KEPT * effective(log_w)
    length = most
    for _ in range(40):
        if effective(log_w + length * change) >= least:
            break
        length *= 0.7
    return length
