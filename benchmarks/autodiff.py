"""The log-likelihood of a linear chain in JAX: gradients and Hessian-vector products by automatic differentiation.

    U[t, j] = Σ_{attributes a at t} w[a, j],   loss = Σ_n log Z_n − score(y_n),   log Z by the forward algorithm

Sequences of similar length are padded to one; everything is in double precision and compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField

jax.config.update("jax_enable_x64", True)

ROUND = 8  # lengths are rounded up to a multiple of it


def arrays(data: SequenceData, field: ChainField) -> dict[str, Any]:
    """What the loss reads: an entry for every weight that scores a label at a position, and padded batches."""
    L = field.n_labels
    counts = np.diff(field.state_offsets)[data.attributes]  # weights of each attribute that occurs
    first = field.state_offsets[data.attributes] - np.concatenate([[0], np.cumsum(counts)[:-1]])
    weight = np.arange(counts.sum()) + np.repeat(first, counts)
    position = np.repeat(np.repeat(np.arange(data.n_positions), np.diff(data.offsets)), counts)
    later = np.ones(data.n_positions, dtype=bool)
    later[data.starts[:-1][data.lengths > 0]] = False
    t = np.flatnonzero(later)
    found = {
        "weight": weight.astype(np.int32),
        "cell": (position * L + field.state_labels[weight]).astype(np.int32),
        "code": field.transition_codes,
        "gold": np.arange(data.n_positions) * L + data.labels,
        "gold_pair": data.labels[t - 1] * L + data.labels[t],
        "batches": batches(data),
    }
    return jax.tree_util.tree_map(jnp.asarray, found)


def batches(data: SequenceData) -> list[tuple[Any, Any]]:
    """(positions [T, B], whether there is one [T, B]) of the sequences of each rounded length."""
    rounded = -(-data.lengths // ROUND) * ROUND
    found = []
    for length in np.unique(rounded[rounded > 0]):
        ids = np.flatnonzero(rounded == length)
        t = np.arange(length)[:, None]
        there = t < data.lengths[ids]
        found.append((np.where(there, data.starts[ids] + t, 0), there))
    return found


def log_partition(U: Any, transition: Any, there: Any) -> Any:
    """Σ log Z; U is [T, B, L]. log Σ_i exp(α_i + w_ij) as a product of matrices, with the largest α_i taken out."""
    factors = jnp.exp(transition)

    def forward(alpha: Any, step: tuple[Any, Any]) -> tuple[Any, None]:
        scores, inside = step
        top = lax.stop_gradient(alpha.max(axis=1, keepdims=True))
        new = jnp.log(jnp.exp(alpha - top) @ factors) + top + scores
        return jnp.where(inside[:, None], new, alpha), None

    last, _ = lax.scan(forward, U[0], (U[1:], there[1:]))
    return jax.scipy.special.logsumexp(last, axis=1).sum()


def compiled(data: SequenceData, field: ChainField) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """(w ↦ value and gradient, (w, v) ↦ Hessian times v) of ChainLikelihood(data, field), as NumPy arrays.

    For chains of order 1 whose weights are those of observed attributes and transitions, attributes without values.
    """
    L, T, n_state = field.n_labels, data.n_positions, field.n_state

    def value(w: Any, given: dict[str, Any]) -> Any:
        U = jnp.zeros(T * L).at[given["cell"]].add(w[given["weight"]])
        transition = jnp.zeros(L * L).at[given["code"]].set(w[n_state:])
        score = U[given["gold"]].sum() + transition[given["gold_pair"]].sum()
        table, square = U.reshape(T, L), transition.reshape(L, L)
        return sum(log_partition(table[where], square, there) for where, there in given["batches"]) - score

    both = jax.jit(jax.value_and_grad(value))
    product = jax.jit(lambda w, v, given: jax.jvp(lambda u: jax.grad(value)(u, given), (w,), (v,))[1])
    given = arrays(data, field)

    def value_gradient(w: Any) -> tuple[float, Any]:
        found, gradient = both(w, given)
        return float(found), np.asarray(gradient)

    return value_gradient, lambda w, v: np.asarray(product(w, v, given))
