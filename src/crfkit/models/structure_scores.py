"""The probability of rows under a graph that was learned, by the engine asked for or the best one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from crfkit._types import Floats, Ids
from crfkit.data.graphs import GraphData
from crfkit.data.observations import Observations
from crfkit.encoders.tables import TableEncoder
from crfkit.inference.annealed import Annealed
from crfkit.inference.defaults import EXACT_ENGINES, default_engine
from crfkit.inference.gibbs import Gibbs
from crfkit.inference.marginals import Engine, InferenceStatus
from crfkit.losses.structure_ordinal import pseudo_likelihood
from crfkit.models.graph import GraphModel

ERROR = 0.02  # standard error of a mean log-likelihood to reach
MOST = 5  # times that annealed runs are doubled


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
    """Return the engine that "auto" stands for when rows of a table are scored or drawn; what was named is kept.

    It is exact where the graph allows that, else it samples: with particles (without inputs) or by Gibbs sampling.
    """
    if model.inference != "auto":
        return model.inference
    encoder = model.encoder
    name = default_engine(encoder.structure, model.field.max_states, "sampling")  # type: ignore[union-attr]
    if name in EXACT_ENGINES:
        return name
    if encoder.features is None:  # type: ignore[union-attr]
        return Annealed(ERROR, seed=model.seed, n_threads=model.n_threads)
    return name


def score_rows(model: GraphModel, data: GraphData, states: Ids) -> Scored:
    """Return log p(y) of fully labelled rows."""
    inference = best_inference(model)
    if inference == "gibbs" or isinstance(inference, Gibbs):
        return _sampled(model, data, states, inference if isinstance(inference, Gibbs) else None)
    ready = replace(model, inference=inference)
    rows, found = ready.log_likelihood(data, states)
    engine = ready.engine(data.graph)
    error = None if found.errors is None else float(found.errors.max())
    bound = "exact" if found.status is InferenceStatus.EXACT else engine.bound
    if bound == "estimate" and error is None:
        bound = "approximation"
    kind = KINDS[bound].format(engine.name)
    return Scored(rows, found.status, error, kind)


def _sampled(model: GraphModel, data: GraphData, states: Ids, given: Gibbs | None) -> Scored:
    """Estimate by annealed importance sampling; double temperatures and runs until the mean is known well enough."""
    some, times = model.distinct(data, None)
    potentials = model.potentials(some)
    engine = given or Gibbs(seed=model.seed, n_threads=model.n_threads)
    engine = replace(engine, n_sweeps=engine.thin, burn_in=0, n_chains=1)  # only log Z is needed
    found = engine.run(potentials)
    for _ in range(MOST if given is None else 0):
        assert found.errors is not None
        if _mean_error(found.errors) <= ERROR:
            break
        engine = replace(engine, ais_steps=2 * engine.ais_steps, ais_runs=2 * engine.ais_runs)
        found = engine.run(potentials)
    assert found.errors is not None
    log_z = np.tile(found.log_z, times)
    rows = model.potentials(data).score(states) - log_z
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
