"""Maximum likelihood of a table without inputs on a graph that is too dense for exact inference.

Each round carries particles from independent variables to the current weights (graph/inference/annealed.py), which
gives every mode of the field its share of them. Newton steps with the moments and covariances of the particles follow
as long as the particles, reweighted by the change of the field, represent it (Geyer & Thompson 1992). When the moments
agree with the data up to the noise of the particles, there is one shorter step per round, and the weights are averaged
(Polyak & Juditsky 1992). Particles that only followed the weights by Gibbs sweeps would keep their numbers in each
mode whatever the field says: their moments match the data when the field's do not.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from crfkit._types import Floats, Ids
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField
from crfkit.graph.inference.annealed import Annealed, effective
from crfkit.structure.losses.likelihood import StructureLikelihood
from crfkit.structure.options import StructureOptions, Tunables


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

    def values(self, labels: Ids) -> Floats:
        """Return [particles, weights] the statistics of labels [n, particles]."""
        V = len(self._nodes)
        out = np.empty((V + len(self._first), labels.shape[1]))
        for v, (i, values) in enumerate(zip(self._nodes.tolist(), self._node_values, strict=True)):
            out[v] = values[labels[i]]
        pairs = zip(self._first.tolist(), self._second.tolist(), self._tables.tolist(), strict=True)
        for e, (i, j, b) in enumerate(pairs, start=V):
            out[e] = self._edge_basis[b, labels[i], labels[j]]
        return out.T


def sampled_weights(
    likelihood: StructureLikelihood, ridge: Floats, start: Floats, options: StructureOptions
) -> tuple[Floats, int]:
    """Return (weights, rounds) that minimise the negative log-likelihood + Σ ridge/2·w² of a table.

    The start is returned, with 0 rounds, if its moments agree with the data.
    """
    data, field, table, tunables = likelihood.data, likelihood.field, likelihood.table, options.tunables
    total = float(data.graph_weights[0])
    target = field.adjoint(data, *field.observed(data)) / total
    statistics = Statistics(data, field)
    newton = ParticleNewton(ridge, total, statistics.values(table.states.T), table.weights / total, tunables)
    batches = 4
    most = tunables.particles
    count = int(np.clip(most * 100 // data.graph.n_nodes, most // 4, most)) // batches
    w, mean, averaged = start.copy(), np.zeros_like(start), 0
    for number in range(tunables.particle_rounds + tunables.averaged_rounds):
        engine = Annealed(
            error=1.0,
            n_particles=count,
            n_batches=batches,
            max_rounds=1,
            seed=options.seed + number,
            n_threads=options.n_threads,
        )
        found = engine.particles(field.potentials(data, w))
        phi, log_w = statistics.values(found.labels), np.log(np.maximum(found.weights, 1e-300))
        share = found.weights
        newton.add(phi, share)
        for inner in range(20):
            gradient = total * (share @ phi - target) + ridge * w
            direction = newton.step(gradient)
            # The decrement of Newton's method, next to what the noise of the particles makes of it.
            decrement = -float(direction @ gradient) / (len(w) * total * float(share @ share))
            converged = decrement <= tunables.converged_decrement
            if number == inner == 0 and decrement <= tunables.start_decrement:
                return start, 0
            if inner == 0 and (converged or averaged or number >= tunables.particle_rounds):
                averaged += 1
            elif converged:
                break
            change = phi @ direction
            longest = tunables.damping / max(1.0, averaged) ** 0.6
            length = _step_length(log_w, change, longest, tunables.step_sample_share)
            w = w + length * direction
            log_w = log_w + length * change
            share = np.exp(log_w - log_w.max())
            share /= share.sum()
            if averaged or effective(log_w) < tunables.least_sample_share:
                break
        if averaged:
            mean += (w - mean) / averaged
        if averaged >= tunables.averaged_rounds:
            break
    return mean, number + 1


class ParticleNewton:
    """Newton steps with the mean of two covariances: of the particles, and of the data, which they approach.

    The first alone may lack what is rare among particles; the second ignores where the field is far off.
    """

    def __init__(self, ridge: Floats, total: float, phi: Floats, share: Floats, tunables: Tunables) -> None:
        self._ridge, self._total, self._tunables = ridge, total, tunables
        self._data = self._covariance(phi, share)
        self._particles = self._data

    def add(self, phi: Floats, share: Floats) -> None:
        """Take in the covariance of new particles, given their statistics and shares."""
        memory = self._tunables.covariance_memory
        self._particles = memory * self._particles + (1.0 - memory) * self._covariance(phi, share)

    def step(self, gradient: Floats) -> Floats:
        """Return the direction of a step."""
        C = 0.5 * (self._data + self._particles)
        if C.ndim == 1:
            return -gradient / (self._total * np.maximum(C, 1e-4) + self._ridge)
        H = (1.0 - self._tunables.covariance_shrinkage) * self._total * C
        H[np.diag_indices_from(H)] = self._total * np.maximum(np.diag(C), 1e-4) + self._ridge
        factor: tuple[Floats, bool] = cho_factor(H, overwrite_a=True)
        return np.asarray(-cho_solve(factor, gradient))

    def _covariance(self, phi: Floats, share: Floats) -> Floats:
        """Return the covariance of statistics [particles, weights], or only the variances if there are many weights."""
        centred = (phi - share @ phi) * np.sqrt(share)[:, None]
        if phi.shape[1] > self._tunables.dense_covariance_weights:
            found: Floats = np.square(centred).sum(axis=0)
            return found
        return np.asarray(centred.T @ centred)


def _step_length(log_w: Floats, change: Floats, longest: float, sample_share: float) -> float:
    """Return the longest step that keeps a share of the effective sample size."""
    least = sample_share * effective(log_w)
    length = longest
    for _ in range(40):
        if effective(log_w + length * change) >= least:
            break
        length *= 0.7
    return length
