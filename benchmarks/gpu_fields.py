"""Belief propagation on large grids on a GPU: directed message updates per second. It needs no compiled core.

    PYTHONPATH=src python benchmarks/gpu_fields.py [--device cuda] [--side 4000] [--compile] [--out FILE.json]

A sweep updates all directed messages of a grid of pixels with 4 neighbours, two for each edge. Times are medians of
rounds after a warm-up, of CUDA events on a GPU, and of the clock on the CPU. "least bytes" is what a sweep must move if
every number is read and written once: scores and messages in, messages out. --compile fuses the update by
torch.compile. On the CPU the grid is small. First the marginals of a small grid are checked against those of doubles.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from crfkit.torch import grid_messages
from crfkit.torch.devices import find_device
from crfkit.torch.grid_field import GridScores, mean_field
from crfkit.torch.grid_messages import GridMessages, belief_propagation

Report = dict[str, Any]
LABELS = (2, 5)
DAMPING = 0.5
WARM_UP = 3


def grid(side: int, n_labels: int, device: torch.device, dtype: torch.dtype = torch.float32) -> GridScores:
    """Return random scores of one image, with tables that prefer equal labels."""
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(1, n_labels, side, side, generator=generator).to(device, dtype)
    T = (0.4 * torch.eye(n_labels) + 0.05 * torch.randn(2, n_labels, n_labels, generator=generator)).to(device, dtype)
    return GridScores(u, T, None, (), None)


def check(device: torch.device) -> float:
    """Return the largest difference of marginals in single precision on the device from doubles on the CPU."""
    worst = 0.0
    for n_labels in LABELS:
        exact = belief_propagation(grid(40, n_labels, torch.device("cpu"), torch.float64), DAMPING, 500, 1e-12)
        found = belief_propagation(grid(40, n_labels, device), DAMPING, 500, 1e-6)
        worst = max(worst, float((found.marginals.cpu().double() - exact.marginals).abs().max()))
    if worst > 1e-4:
        raise SystemExit(f"marginals differ by {worst:.1e} from those of doubles on the CPU")
    return worst


def seconds(run: Callable[[], object], device: torch.device, rounds: int) -> list[float]:
    """Return the times of rounds, after a warm-up."""
    for _ in range(WARM_UP):
        run()
    if device.type != "cuda":
        found = []
        for _ in range(rounds):
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
        return found
    marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(rounds)]
    for start_mark, end_mark in marks:
        start_mark.record()
        run()
        end_mark.record()
    torch.cuda.synchronize(device)
    return [start_mark.elapsed_time(end_mark) / 1e3 for start_mark, end_mark in marks]


def summary(times: list[float]) -> Report:
    return {"seconds": statistics.median(times), "fastest": min(times), "slowest": max(times), "rounds": len(times)}


@torch.no_grad()
def measure(side: int, n_labels: int, device: torch.device, rounds: int) -> Report:
    """Return the times of a sweep of belief propagation and of mean field."""
    scores = grid(side, n_labels, device)
    messages = GridMessages(scores)
    n_updates = 4 * side * (side - 1)
    size = scores.u.element_size()
    width = 1 if n_labels == 2 else n_labels
    numbers = width * (side * side + 2 * n_updates)
    found: Report = {"side": side, "labels": n_labels, "directed_messages": n_updates, "least_bytes": size * numbers}

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    found["belief_propagation"] = by = summary(seconds(partial(messages.sweep, DAMPING, False), device, rounds))
    by["updates_per_second"] = n_updates / by["seconds"]
    by["least_bytes_per_second"] = found["least_bytes"] / by["seconds"]
    if device.type == "cuda":
        by["peak_bytes"] = torch.cuda.max_memory_allocated(device)
    del messages
    found["mean_field_sweep"] = summary(seconds(partial(mean_field, scores, 1, DAMPING), device, rounds))
    return found


def machine(device: torch.device) -> Report:
    on_gpu = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if on_gpu else platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "threads": None if on_gpu else torch.get_num_threads(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cuda, cuda:1 or torch:cpu; default: cuda if there is one")
    parser.add_argument("--side", type=int, help="rows and columns of the grid; default: 4000, on the CPU 500")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--compile", action="store_true", help="fuse the binary update by torch.compile")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device = find_device(given.device or ("cuda" if torch.cuda.is_available() else "torch:cpu"))
    side = given.side or (4000 if device.type == "cuda" else 500)
    if given.compile:
        torch._dynamo.config.recompile_limit = 64  # every direction has its own shape and strides
        grid_messages.odds_message = torch.compile(grid_messages.odds_message, dynamic=False)
    report: Report = {"machine": machine(device), "compiled": given.compile, "largest_difference": check(device)}
    report["runs"] = []
    for n_labels in LABELS:
        run = measure(side, n_labels, device, given.rounds)
        report["runs"].append(run)
        by = run["belief_propagation"]
        print(
            f"{report['machine']['device']}, {side} x {side}, {n_labels} labels: a sweep {1e3 * by['seconds']:.2f} ms, "
            f"{by['updates_per_second'] / 1e9:.3f} billion updates/s, {by['least_bytes_per_second'] / 1e9:.1f} GB/s "
            f"of the least bytes; mean field {1e3 * run['mean_field_sweep']['seconds']:.2f} ms a sweep",
            flush=True,
        )
    if given.out is not None:
        given.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
