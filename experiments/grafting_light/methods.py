"""The methods of the paper's Figures 2 and 3, and what is measured of each."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from store import Record

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.errors import StopTraining
from crfkit.losses import CandidateChain, ChainLikelihood
from crfkit.penalties import L1, L2
from crfkit.solvers import make_solver

BATCH = ("all-features", "full-opt-l1", "sgd-l1")  # all weights from the start; "all-features" has L2 in place of L1
SELECTING = ("grafting-light", "grafting", "grafting-origin", "gauss-seidel")
METHODS = (*BATCH, *SELECTING)
SOLVER_OF = {"all-features": "lbfgs", "full-opt-l1": "owlqn", "sgd-l1": "sgd", "grafting-origin": "grafting"}


def cpu_limit(seconds: float | None) -> Callable[[Any], None]:
    """Return a callback that stops a run after so many CPU seconds of this process from now on."""
    begin = time.process_time()

    def check(_: Any) -> None:
        if seconds is not None and time.process_time() - begin > seconds:
            raise StopTraining

    return check


def train(
    data: SequenceData,
    field: ChainField,
    method: str,
    unit: int,
    strength: float,
    threads: int,
    seconds: float | None = None,
    **options: Any,
) -> tuple[Record, np.ndarray]:
    """Return what was measured, and the weights of the whole field. `seconds`: the limit of CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    penalty: Any = L1(strength) if method != "all-features" else L2(1.0)
    if method in BATCH:
        loss: Any = ChainLikelihood(data, field, threads)
    else:
        loss = CandidateChain(data, field, threads)
        options |= {"select_unit": unit} | ({"restart": "origin"} if method == "grafting-origin" else {})
    solver = make_solver(SOLVER_OF.get(method, method), **options)
    result = solver.minimize(loss, penalty, np.zeros(loss.size), [cpu_limit(seconds)])
    last = result.loss if result.loss is not None else loss
    selecting = isinstance(last, CandidateChain)
    w = last.in_full(result.w) if selecting else result.w
    layout = field.layout
    blocks = _used(w[layout["state"]], field.n_attributes) + _used(w[layout["pair"]], field.n_pair_attributes)
    record = {
        "method": method,
        "M": unit if method in SELECTING else 0,
        "strength": strength,
        "limit": seconds,
        "status": result.status.name,
        "objective": result.value,
        "optimality": float(result.optimality),
        "nll": result.value - penalty.value(w),
        "nonzero_weights": int(np.count_nonzero(w)),
        "nonzero_inputs": blocks,
        "selected_inputs": len(last.active_ids) if selecting else field.n_attributes + field.n_pair_attributes,
        "selected_weights": int(last.size),
        "weights": int(field.size),
        "inputs": field.n_attributes + field.n_pair_attributes,
        "iterations": result.iterations,
        "evaluations": result.evaluations,
        "passes": result.passes,
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    return record, w


def _used(weights: np.ndarray, n: int) -> int:
    return int((weights.reshape(n, -1) != 0).any(axis=1).sum()) if n else 0


def in_own_process(work: Callable[[], Record]) -> Record:
    """Return what a function measures in a process of its own: a copy of this one, in which the data have been read.

    Its peak of memory is its own then, with the data. `all_cpu_seconds` has training and testing.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run() -> None:
        record = work()
        there.send(record | {"all_cpu_seconds": round(time.process_time(), 3)})

    process = context.Process(target=run)
    process.start()
    there.close()
    try:
        record: Record = here.recv()
    except EOFError:
        raise RuntimeError("a run ended without a result; its error is above") from None
    finally:
        process.join()
    return record
