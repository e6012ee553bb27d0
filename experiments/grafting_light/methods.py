"""The four methods of the paper's Figures 2 and 3, and what is measured of each."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from crfkit.data import SequenceData
from crfkit.fields import ChainField
from crfkit.losses import CandidateChain, ChainLikelihood
from crfkit.penalties import L1, L2
from crfkit.solvers import make_solver

HERE = Path(__file__).resolve().parent
METHODS = ("all-features", "full-opt-l1", "grafting-light", "grafting", "grafting-origin", "gauss-seidel")

BATCH = METHODS[:2]  # all weights from the start; "all-features" has L2 in place of L1


def train(data: SequenceData, field: ChainField, method: str, unit: int, strength: float, threads: int) -> Any:
    """(what was measured, the weights of the whole field)."""
    wall, cpu = time.perf_counter(), time.process_time()
    penalty: Any = L1(strength) if method != "all-features" else L2(1.0)
    if method in BATCH:
        loss: Any = ChainLikelihood(data, field, threads)
        solver = make_solver("auto")  # OWL-QN under L1
    else:
        loss = CandidateChain(data, field, threads)
        options = {"restart": "origin"} if method == "grafting-origin" else {}
        solver = make_solver(method.removesuffix("-origin"), select_unit=unit, **options)
    result = solver.minimize(loss, penalty, np.zeros(loss.size))
    last = result.loss if result.loss is not None else loss
    selecting = isinstance(last, CandidateChain)
    w = last.in_full(result.w) if selecting else result.w
    layout = field.layout
    blocks = _used(w[layout["state"]], field.n_attributes) + _used(w[layout["pair"]], field.n_pair_attributes)
    record = {
        "method": method,
        "M": unit,
        "strength": strength,
        "status": result.status.name,
        "objective": result.value,
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


def in_own_process(part: str, **options: Any) -> dict[str, Any]:
    """One run by `run.py one`, so that its peak of memory is its own."""
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [sys.executable, str(HERE / "run.py"), "one", part, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


def merged(name: str, records: list[dict[str, Any]], output: Path) -> list[dict[str, Any]]:
    """Writes the records of a part to results.json, next to those of the other parts and of other methods."""
    path = output / "results.json"
    everything = json.loads(path.read_text("utf-8")) if path.exists() else {}
    new = {(record["method"], record["M"]) for record in records}
    kept = [record for record in everything.get(name, []) if (record["method"], record["M"]) not in new]
    everything[name] = sorted([*kept, *records], key=lambda record: (METHODS.index(record["method"]), record["M"]))
    path.write_text(json.dumps(everything, indent=1) + "\n", "utf-8")
    return list(everything[name])
