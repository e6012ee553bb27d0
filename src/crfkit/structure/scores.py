"""The probability of rows under a graph that was learned, by the requested engine or the best one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from crfkit._types import Floats, Ids
from crfkit.graph.data import GraphData
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.inference.annealed import Annealed
from crfkit.graph.inference.annealed_runs import estimate_log_z
from crfkit.graph.inference.defaults import EXACT_ENGINES, default_engine
from crfkit.graph.inference.gibbs import Gibbs
from crfkit.graph.inference.marginals import Engine, InferenceStatus
from crfkit.graph.model import BLOCK, GraphModel
from crfkit.structure.losses.ordinal import pseudo_likelihood
from crfkit.structure.observations import Observations

ERROR_RANGE = 0.02, 0.05  # limits of the standard error that a mean log-likelihood has to reach; between them
ERROR_PER_SPREAD = 0.1  # the error is this share of the standard error of the mean over rows


@dataclass(frozen=True, eq=False)
class Scored:
    """Hold log p(y) of rows, and how far it can be trusted."""

    rows: Floats
    status: InferenceStatus
    error: float | None = None  # standard error of the mean, if it was sampled
    kind: str = "exact"  # what the numbers are, in words


KINDS = {
    "exact": "exact",
    "upper": "a lower bound: {} bounds log Z from above",
    "lower": "an upper bound: {} bounds log Z from below",
    "approximation": "an approximation by {}, neither an upper nor a lower bound",
    "estimate": "an estimate from samples",
}


def best_inference(model: GraphModel) -> str | Engine:
    """Return the engine for scoring or drawing rows of a table: the named one, or what "auto" means.

    It is exact where the graph allows that, otherwise it samples: with particles (without inputs) or by Gibbs sampling.
    """
    if model.inference != "auto":
        return model.inference
    encoder = model.encoder
    name = default_engine(encoder.structure, model.field.max_states, "sampling")  # type: ignore[union-attr]
    if name in EXACT_ENGINES:
        return name
    if encoder.features is None:  # type: ignore[union-attr]
        return Annealed(ERROR_RANGE[0], seed=model.seed, n_threads=model.n_threads)
    return name


def score_rows(model: GraphModel, data: GraphData, states: Ids) -> Scored:
    """Return log p(y) of fully labelled rows."""
    inference = best_inference(model)
    if isinstance(inference, Gibbs):
        return _sampled(model, data, states, inference)
    if inference == "gibbs" or (model.inference == "auto" and isinstance(inference, Annealed)):
        return _annealed(model, data, states)
    ready = replace(model, inference=inference)
    rows, found = ready.log_likelihood(data, states)
    engine = ready.engine(data.graph)
    error = None if found.errors is None else float(found.errors.max())
    bound = "exact" if found.status is InferenceStatus.EXACT else engine.bound
    if bound == "estimate" and error is None:
        bound = "approximation"
    kind = KINDS[bound].format(engine.name)
    return Scored(rows, found.status, error, kind)


def _annealed(model: GraphModel, data: GraphData, states: Ids) -> Scored:
    """Estimate log Z once for all rows with the same inputs, by as many annealed runs as the mean needs."""
    scores = model.score(data, states)
    spread = float(scores.std(ddof=1)) / math.sqrt(len(scores)) if len(scores) > 1 else math.inf
    error = float(np.clip(ERROR_PER_SPREAD * spread, *ERROR_RANGE))
    first, place = distinct_inputs(model, data)
    times = np.bincount(place)
    log_z, variance, begin = np.empty(len(first)), 0.0, 0
    for part in data.take(first).blocks(BLOCK // model.field.max_states**2):
        end = begin + len(part)
        potentials = model.potentials(part)
        bases = [potentials.unary]
        if len(part) == 1:
            bases.append(Annealed(seed=model.seed, n_threads=model.n_threads).start(potentials))
        share = float(times[begin:end].sum()) / len(data)
        found = estimate_log_z(
            potentials,
            error / math.sqrt(share),
            bases,
            times=times[begin:end].astype(np.float64),
            bias=error,
            seed=model.seed,
            n_threads=model.n_threads,
        )
        log_z[begin:end] = found.values
        variance += (share * found.error) ** 2
        begin = end
    return Scored(scores - log_z[place], InferenceStatus.SAMPLED, math.sqrt(variance), KINDS["estimate"])


def distinct_inputs(model: GraphModel, data: GraphData) -> tuple[Ids, Ids]:
    """Return (the first row with each different input, the number of its input for each row)."""
    if isinstance(model.encoder, TableEncoder) and model.encoder.features is None:
        return np.zeros(1, dtype=np.int32), np.zeros(len(data), dtype=np.int32)
    features = data.node_features
    if not isinstance(features, np.ndarray):
        every = np.arange(len(data), dtype=np.int32)
        return every, every
    rows = features if data.node_rows is None else features[data.node_rows[data.graph.node_offsets[:-1]]]
    _, first, place = np.unique(rows.reshape(len(data), -1), axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int32), place.reshape(-1).astype(np.int32)


def _sampled(model: GraphModel, data: GraphData, states: Ids, given: Gibbs) -> Scored:
    """Estimate by the annealed runs of an engine that was given."""
    some, times = model.distinct(data, None)
    found = replace(given, n_sweeps=given.thin, burn_in=0, n_chains=1).run(model.potentials(some))  # only for log Z
    assert found.errors is not None
    rows = model.potentials(data).score(states) - np.tile(found.log_z, times)
    return Scored(rows, found.status, _mean_error(found.errors), KINDS["estimate"])


def _mean_error(errors: Floats) -> float:
    """Return the standard error of the mean over graphs, whose errors are independent."""
    return float(math.sqrt(np.square(errors).sum()) / len(errors))


def conditionals(model: GraphModel, states: Ids) -> list[Floats]:
    """Return p(variable | the other variables of its row), an array [rows, labels] for each variable."""
    encoder = model.encoder
    assert isinstance(encoder, TableEncoder)
    if not len(states):
        return [np.zeros((0, k)) for k in encoder.n_states]
    form, K = model.field.edge_form, np.array(encoder.n_states, dtype=np.int32)
    table = Observations(
        states,
        K,
        None,
        np.ones(len(states)),
        form == "ising",
        ordinal=form == "ordinal",
        reference=form == "reference",
        scored=model.field.scored,
    )
    ends = encoder.structure.edges
    loss = pseudo_likelihood(table, ends, ends[:, 0].astype(np.int64) * len(encoder.classes) + ends[:, 1])
    return loss.at(np.asarray(model.w)).conditionals
