"""Arrays that end where readable memory ends: one element too far and the process dies. POSIX only.

Run as a script, evaluates small likelihoods with such weight and gradient vectors; exits with 0 if all is well.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
from oracle import likelihood, make_problem, select

from crfkit import _core
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.losses import ChainLikelihood

_alive = []


def guarded(n: int) -> np.ndarray:
    """n doubles; the page behind them cannot be read or written."""
    size = -(-8 * max(n, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    block = mmap.mmap(-1, size + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address + size), ctypes.c_size_t(mmap.PAGESIZE), 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    _alive.append(block)
    return np.frombuffer(block, dtype=np.float64, count=n, offset=size - 8 * n)


def main() -> None:
    for n_labels in (1, 2, 3, 7, 8, 9, 17):
        for n_attributes in (1, 2, 9):
            for states, transitions in (("all", "none"), ("all", "all"), ("observed", "none"), ("subset", "observed")):
                problem = make_problem(
                    n_labels, n_labels, (3, 0, 2), n_attributes, 0, False, False, states, transitions
                )
                _check(problem.data, problem.field)
                _check(problem.data, ChainField(n_labels, n_attributes))
                _check(select(problem.data, [2]), problem.field)
            _check_dense(n_labels, n_attributes)
    for seed in range(40):
        _check_derivatives(seed)


def _check_derivatives(seed: int) -> None:
    """Everything of a loss, with every array at the end of memory, on chains of all shapes."""
    rng = np.random.default_rng(seed)
    problem = make_problem(
        seed,
        int(rng.choice([1, 2, 3, 8, 9, 17])),
        (3, 0, 2, 4),
        int(rng.choice([1, 2, 9])),
        n_pair_attributes=seed % 2,
        values=bool(rng.integers(2)),
        weights=bool(rng.integers(2)),
        states=str(rng.choice(["all", "observed", "subset"])),
        transitions=str(rng.choice(["all", "observed", "none"])),
        order=1 + seed // 2 % 2,
        forbidden=(None, 0.4)[seed // 4 % 2],
        n_classes=(0, 2)[seed // 8 % 2],
        scale=float(rng.choice([1.0, 100.0])),
    )
    data, field, n = problem.data.native, problem.field.native, problem.field.size
    cost = _copy((1.0 - np.eye(problem.field.n_labels)).ravel())
    w = _copy(problem.w)
    order = np.arange(len(problem.data))
    for kernels in _core.available_kernels():
        objective = _core.Objective(data, field, 2, kernels, cost)
        objective.value_gradient(w, guarded(n), True)
        objective.hessian_product(_copy(problem.w), guarded(n))
        objective.hessian_diagonal(w, guarded(n))
        _core.Objective(data, field, 2, kernels, cost, True).value_gradient(w, guarded(n))
        online = _core.Online(data, field, kernels, cost, bool(seed % 2))
        online.start(w)
        online.sgd(order, np.full(len(order), 0.01), 0.1, 0.1, True)
        online.perceptron(order)
        online.arow(order, 1.0, 1.0)
        online.weights(guarded(n))
        online.average(guarded(n))
        online.variances(guarded(n))


def _check_dense(n_labels: int, steps: int) -> None:
    """What layers of networks call, padded and not, with every array of doubles at the end of memory."""
    batch = 3
    lengths = np.array([steps, 0, 1], dtype=np.int64)
    sizes = {"u": (batch, steps, n_labels), "jumps": (batch, n_labels, n_labels)}
    u, transitions = _copy(np.ones(batch * steps * n_labels)), _copy(np.ones(n_labels * n_labels))
    for forbidding in (False, True):
        if forbidding:
            u[-1] = transitions[-1] = -np.inf
        given = (
            u.reshape(sizes["u"]),
            False,
            guarded(n_labels),
            transitions.reshape(n_labels, n_labels),
            guarded(n_labels),
            lengths,
            1,
        )
        direction = [_copy(np.ones(int(np.prod(size)))).reshape(size) for size in sizes.values()]
        outputs = [guarded(int(np.prod(size))) for size in sizes.values()]
        for kernels in _core.available_kernels():
            _core.dense_beliefs(*given, guarded(batch), *outputs, kernels=kernels)
            _core.dense_covariances(*given, *direction, *outputs, kernels=kernels)
            labels = guarded(-(-batch * steps // 2)).view(np.int32)[-batch * steps :]
            _core.dense_viterbi(*given, labels, guarded(batch), kernels=kernels)


def _copy(x) -> np.ndarray:
    array = guarded(len(x))
    array[:] = x
    return array


def _check(data, field) -> None:
    w, gradient = guarded(field.size), guarded(field.size)
    w[:] = np.random.default_rng(0).normal(size=field.size)
    value, expected = likelihood(data, field, w)
    for kernels in _core.available_kernels():
        for n_threads in (1, 2):
            objective = ChainLikelihood(data, field, n_threads, kernels)._objective
            np.testing.assert_allclose(objective.value_gradient(w, gradient), value, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(gradient, expected, atol=1e-10)
        ChainInference(field, w, 1, kernels).decode(data)
        ChainInference(field, w, 1, kernels).node_marginals(data)


if __name__ == "__main__":
    main()
