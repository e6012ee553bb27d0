"""Sequential Monte Carlo: particles that are carried from independent variables to a field (Del Moral et al. 2006).

    p_β(y) ∝ Π_i m_i(y_i) · exp(β·R(y)),    R = score − Σ_i log m_i,    β = 0 … 1

At β = 0 the variables are independent with the marginals m, which a short pilot run finds. Each step raises β by as
much as the particles' weights allow, draws anew where the weights have become too unequal, and makes a Gibbs sweep.
The mean weights give log Z; independent batches of particles give its standard error. Unlike one long Gibbs chain,
particles are in all modes of the field from the start, and their numbers there follow the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crfkit import _core
from crfkit._checks import check_count
from crfkit._threads import count_threads
from crfkit._types import Floats, Ids, Ints
from crfkit.errors import ParameterError
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.gibbs import gibbs_plan
from crfkit.graph.inference.marginals import InferenceStatus, Marginals

STEP_SAMPLE_SIZE = 0.98  # conditional effective sample size that a rise of β keeps
RESAMPLING_THRESHOLD = 0.5  # effective sample size, as a share, below which particles are drawn anew
MIN_MARGINAL = 0.02  # marginals of the start are at least this, so that no state is missing among the particles
PILOT_PARTICLES = 32  # particles per batch that find the marginals of the start
SWEEPS = 30  # whose conditional probabilities are averaged for marginals
DENSE = 50  # entries of a matrix of all tables, for each edge, up to which its products are faster than look-ups
STREAM = 77  # of random numbers


@dataclass(frozen=True, eq=False)
class Particles:
    """Weighted states of one graph."""

    labels: Ids  # [n, particles]
    weights: Floats  # [particles], their sum is 1
    log_z: float
    error: float  # standard error of log_z

    def draw(self, n_samples: int, seed: int) -> Ids:
        """Return states [n_samples, n], drawn by their weights: each particle about in proportion to its weight."""
        chosen = systematic(self.weights, n_samples, np.random.default_rng(seed))
        found: Ids = self.labels[:, np.random.default_rng(seed + 1).permutation(chosen)].T
        return np.ascontiguousarray(found)


@dataclass(frozen=True)
class Annealed:
    """Estimates log Z, marginals and samples of fields whose graph is too dense for exact inference.

    Parameters
    ----------
    error : standard error of log Z to reach: particles and sweeps are added until then.
    n_particles : per batch, in the first round.
    n_batches : independent estimates whose spread gives the standard error.
    max_rounds : each round takes twice the time of the one before.
    seed : of everything random.

    >>> field = Potentials.from_tables(Graph.grid((2, 2)), np.zeros((4, 2)), np.eye(2))
    >>> found = Annealed().run(field)
    >>> bool(abs(found.log_z[0] - np.log(2 * np.e**4 + 12 * np.e**2 + 2)) < 4 * found.errors[0] + 0.01)
    True
    """

    error: float = 0.02
    n_particles: int = 128
    n_batches: int = 16
    max_rounds: int = 6
    seed: int = 0
    n_threads: int | None = None

    name = "annealed"
    bound = "estimate"

    def __post_init__(self) -> None:
        for name, least in (("n_particles", 2), ("n_batches", 2), ("max_rounds", 1), ("seed", 0)):
            check_count(least, **{name: getattr(self, name)})
        if not self.error > 0:
            raise ParameterError(f"error must be > 0, not {self.error!r}")

    def particles(self, potentials: Potentials) -> Particles:
        """Return particles of a field of one graph, as many as the standard error of log Z needs."""
        if potentials.graph.n_graphs != 1:
            raise ParameterError(f"particles need a single graph; there are {potentials.graph.n_graphs}")
        pilot = self._round(potentials, potentials.unary, PILOT_PARTICLES, 1, 0)
        base = self._marginals(pilot, potentials)
        found = pilot
        sweeps, count = 1, self.n_particles
        for number in range(1, self.max_rounds + 1):
            found = self._round(potentials, base, count, sweeps, number)
            if found.error <= self.error:
                break
            base = self._marginals(found, potentials)
            # Where weights are very unequal more sweeps help, otherwise more particles.
            if found.error > 4 * self.error:
                sweeps *= 2
            else:
                count = int(count * min(4.0, max(1.5, 1.3 * (found.error / self.error) ** 2)))
        return found

    def start(self, potentials: Potentials) -> Floats:
        """Return log marginals [n, K] of one graph, from a few particles: a good start for longer runs."""
        return self._marginals(self._round(potentials, potentials.unary, PILOT_PARTICLES, 1, 0), potentials)

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        graph, K = potentials.graph, potentials.n_states
        log_z, errors = np.zeros(graph.n_graphs), np.zeros(graph.n_graphs)
        nodes, edges = np.zeros((graph.n_nodes, K)), np.zeros((graph.n_edges, K, K))
        for g in range(graph.n_graphs):
            part = potentials if graph.n_graphs == 1 else _graph(potentials, g)
            found = self.particles(part)
            log_z[g], errors[g] = found.log_z, found.error
            here = slice(*graph.node_offsets[g : g + 2]), slice(*graph.edge_offsets[g : g + 2])
            nodes[here[0]], edges[here[1]] = self._means(part, found)
        return Marginals(log_z, nodes, lambda: edges, InferenceStatus.SAMPLED, errors=errors)

    def sample(self, potentials: Potentials, n_samples: int, seed: int = 0) -> Ids:
        """Return labellings [n_samples, n], by the weights of at least as many particles."""
        if potentials.graph.n_graphs == 1:
            count = max(self.n_particles, -(-n_samples // self.n_batches))
            return replace(self, n_particles=count, seed=seed).particles(potentials).draw(n_samples, seed)
        parts = [_graph(potentials, g) for g in range(potentials.graph.n_graphs)]
        return np.hstack([self.sample(part, n_samples, seed + g) for g, part in enumerate(parts)])

    def _means(self, potentials: Potentials, found: Particles) -> tuple[Floats, Floats]:
        """Return (node marginals, edge marginals), means of conditional probabilities over SWEEPS sweeps."""
        labels = np.ascontiguousarray(found.draw(len(found.weights), self.seed).T)
        plan, threads = gibbs_plan(potentials.graph), count_threads(self.n_threads)
        unary, tables = np.ascontiguousarray(potentials.unary), np.ascontiguousarray(potentials.tables)
        return _core.gibbs_marginals(
            plan, unary, tables, labels, 0, SWEEPS, 1, False, self.seed, STREAM + 1, threads
        )  # fmt: skip

    # --- one round

    def _marginals(self, found: Particles, potentials: Potentials) -> Floats:
        """Return log marginals [n, K] to start from: those of particles, mixed with possible states."""
        allowed = potentials.allowed
        even = allowed / allowed.sum(axis=1, keepdims=True)
        mixed = (1.0 - MIN_MARGINAL) * _node_marginals(found, potentials.n_states) + MIN_MARGINAL * even
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(allowed, mixed, 0.0)))

    def _round(self, potentials: Potentials, base: Floats, count: int, sweeps: int, number: int) -> Particles:
        """Carry batches of `count` particles from the independent variables of `base` to the field."""
        graph, B, threads = potentials.graph, self.n_batches, count_threads(self.n_threads)
        start, unary, tables = rebased(potentials, base)
        rng = np.random.default_rng([self.seed, number])
        seed = int(rng.integers(2**62))
        plan = gibbs_plan(graph)
        labels = np.empty((graph.n_nodes, B * count), dtype=np.int32)
        _core.gibbs_start(plan, unary, labels, seed, STREAM, threads)
        log_w, log_z = np.zeros((B, count)), np.full(B, start)
        beta, done = 0.0, 0
        while beta < 1.0:
            energy = pair_energies(graph, tables, labels).reshape(B, count)
            rise = _rise(energy, log_w, 1.0 - beta)
            beta = 1.0 if rise >= 1.0 - beta else beta + rise
            log_w += rise * energy
            if beta < 1.0:
                log_z += _drawn_anew(log_w, labels, rng)
                _core.gibbs_sweeps(plan, unary, beta * tables, labels, done, sweeps, False, seed, STREAM, threads)
                done += sweeps
        top = log_w.max(axis=1, keepdims=True)
        weights = np.exp(log_w - top)
        log_z += top[:, 0] + np.log(weights.mean(axis=1))
        shares = np.exp(log_z - log_z.max())
        error = float(shares.std(ddof=1) / (shares.mean() * np.sqrt(B)))
        weights *= (shares / weights.sum(axis=1))[:, None]
        return Particles(
            labels, (weights / weights.sum()).ravel(), float(log_z.max() + np.log(shares.mean())), error
        )  # fmt: skip


def rebased(potentials: Potentials, base: Floats) -> tuple[float, Floats, Floats]:
    """Return (log Z of the start, its unary part, the tables of all that is left): the same score in other parts.

    The start has the unary log-potentials of `base`. What a node's own potentials have beyond that goes into the tables
    of its edges, in equal parts; a node without edges keeps its own.
    """
    graph = potentials.graph
    degree = np.bincount(graph.edges.ravel(), minlength=graph.n_nodes)
    own = (degree == 0)[:, None] | ~potentials.allowed
    unary = np.where(own, potentials.unary, base)
    with np.errstate(invalid="ignore"):
        beyond = np.where(own, 0.0, potentials.unary - base) / np.maximum(degree, 1)[:, None]
    i, j = graph.edges.T
    tables = potentials.tables + beyond[i][:, :, None] + beyond[j][:, None, :]
    start = float(np.logaddexp.reduce(unary, axis=1).sum())
    return start, np.ascontiguousarray(unary), np.ascontiguousarray(tables)


def pair_energies(graph: Graph, tables: Floats, labels: Ids) -> Floats:
    """Return an array [particles]: the sum of all tables at the labels [n, particles]."""
    K, total = tables.shape[1], np.zeros(labels.shape[1])
    if (graph.n_nodes * K) ** 2 <= DENSE * graph.n_edges and np.isfinite(tables).all():
        return _dense_energies(graph, tables, labels)
    flat = tables.reshape(len(tables), K * K)
    for (i, j), values in zip(graph.edges.tolist(), flat, strict=True):
        total += values[labels[i] * K + labels[j]]
    return total


def _dense_energies(graph: Graph, tables: Floats, labels: Ids) -> Floats:
    """Return the energies xᵀTx of indicators x [n·K] of labels, for T with the tables of all edges as its blocks."""
    n, K = graph.n_nodes, tables.shape[1]
    blocks = np.zeros((n, n, K, K))
    np.add.at(blocks, (graph.edges[:, 0], graph.edges[:, 1]), tables)
    T = np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)).reshape(n * K, n * K)
    x = (labels[:, None, :] == np.arange(K)[:, None]).reshape(n * K, -1).astype(np.float64)
    return np.asarray(np.einsum("ap,ap->p", x, T @ x))


def effective(log_w: Floats) -> float:
    """Return the effective sample size of log weights, as a share."""
    w = np.exp(log_w - log_w.max())
    return float(w.sum() ** 2 / (len(w) * (w @ w)))


def systematic(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Return [n] numbers of particles, each n times its weight, rounded up or down."""
    places = (rng.random() + np.arange(n)) / n
    return np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)


def _rise(energy: Floats, log_w: Floats, most: float) -> float:
    """Return the step of β that keeps the conditional effective sample size (Zhou et al. 2016) at STEP_SAMPLE_SIZE."""
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    w = (w / w.sum(axis=1, keepdims=True)).ravel()
    e = energy.ravel() - energy.max()

    def kept(rise: float) -> float:
        v = np.exp(rise * (e - e.max()))
        return float(np.dot(w, v) ** 2 / (w.sum() * np.dot(w, v * v)))

    if kept(most) >= STEP_SAMPLE_SIZE:
        return most
    low, high = 0.0, most
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if kept(middle) >= STEP_SAMPLE_SIZE else (low, middle)
    return max(low, 1e-6)


def _drawn_anew(log_w: Floats, labels: Ids, rng: np.random.Generator) -> Floats:
    """Resample batches in place where needed; return their log mean weights [batches], 0 for the other batches."""
    B, count = log_w.shape
    gained = np.zeros(B)
    for b in range(B):
        if effective(log_w[b]) >= RESAMPLING_THRESHOLD:
            continue
        top = log_w[b].max()
        w = np.exp(log_w[b] - top)
        gained[b] = top + np.log(w.mean())
        here = slice(b * count, (b + 1) * count)
        labels[:, here] = labels[:, here][:, systematic(w / w.sum(), count, rng)]
        log_w[b] = 0.0
    return gained


def _node_marginals(found: Particles, K: int) -> Floats:
    """Return an array [n, K]."""
    return np.stack([(found.labels == k) @ found.weights for k in range(K)], axis=1)


def _graph(potentials: Potentials, g: int) -> Potentials:
    """Return the field of one of the graphs."""
    graph = potentials.graph
    n0, n1 = graph.node_offsets[g : g + 2].tolist()
    e0, e1 = graph.edge_offsets[g : g + 2].tolist()
    edges = (graph.edges[e0:e1] - n0).astype(np.int32)
    return potentials.part(Graph(n1 - n0, edges), slice(n0, n1), slice(e0, e1))
