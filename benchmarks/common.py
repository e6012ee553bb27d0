"""What the benchmarks share: clocks, data, CRFsuite as the peer, processes of their own, and results that are kept."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from crfkit import Template, read_columns
from crfkit._core import build, default_kernels
from crfkit._threads import count_threads

HERE = Path(__file__).resolve().parent
SHARED = HERE.parent.parent / "shared"
RESULTS = HERE / "results"
SCRATCH = HERE.parent / "build" / "benchmarks"  # generated files; a later run uses them again
Sequences = list[list[list[str]]]
Report = dict[str, Any]
_BEGIN = time.perf_counter()
_LOAD = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def say(text: str) -> None:
    """Print a line of progress, with the seconds since the start."""
    print(f"[{time.perf_counter() - _BEGIN:7.1f} s] {text}", flush=True)


def seconds(work: Callable[[], Any]) -> float:
    """Return the wall-clock time of a call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def median_seconds(work: Callable[[], Any], times: int) -> float:
    """Return the median of several calls."""
    return statistics.median(seconds(work) for _ in range(times))


def attributes(path: Path, template: Template, most: int | None = None) -> tuple[Sequences, list[list[str]]]:
    """Return a column file as lists of attributes and labels, the first `most` sequences of it."""
    rows, labels = read_columns(path)
    return [[u for u, _ in template.expand([list(r) for r in x])] for x in rows[:most]], labels[:most]


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the slope of log time over log size, by least squares: 1 is linear, 2 quadratic."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


# --- the machine


def git(*arguments: str) -> str:
    """Return what git prints about this repository; an empty text outside a checkout."""
    try:
        command = ["git", "-C", str(HERE), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def sources() -> str:
    """Return the last commit that changed src or cpp, with a `+` if they have changes that are not committed."""
    return git("log", "-1", "--format=%h", "--", ":/src", ":/cpp") + (
        "+" if git("status", "--porcelain", "--", ":/src", ":/cpp") else ""
    )


def processor() -> str:
    if Path("/proc/cpuinfo").is_file():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


def machine() -> Report:
    """Return what the figures depend on; every file of results has it as `machine`."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "kernels": default_kernels(),
        "threads": count_threads(None),
        "load": _LOAD,  # mean number of running processes in the minute before the benchmark
        "crfkit": version("crfkit"),
        "commit": git("rev-parse", "--short", "HEAD"),
        "sources": sources(),
        "compiler": build()[1],
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


SAME_RUN = ("processor", "cores", "kernels", "threads", "sources")


def same_run(one: Report | None, two: Report) -> bool:
    """Return whether two machine blocks are of the same machine and of the same sources."""
    return one is not None and all(one.get(key) == two[key] for key in SAME_RUN)


# --- CRFsuite


def crfsuite_train(
    X: Sequences, y: list[list[str]], model: Path, iterations: int, algorithm: str = "lbfgs", **options: float
) -> Report:
    """Train with python-crfsuite; `log` has seconds since the start of training and the value of each iteration."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    append = seconds(lambda: [trainer.append(a, b) for a, b in zip(X, y, strict=True)])
    trainer.select(algorithm)
    trainer.set_params({"c2": 1.0, "max_iterations": iterations, **options})
    train = seconds(lambda: trainer.train(str(model)))
    rows = trainer.logparser.iterations
    trials = [row.get("linesearch_trials", 1) for row in rows]
    return {
        "append": append,
        "train": train,
        "iterations": len(rows),
        "evaluations": sum(trials),
        "objective": rows[-1]["loss"],
        "per_iteration": statistics.median(row["time"] for row in rows),
        "per_evaluation": statistics.median(row["time"] / n for row, n in zip(rows, trials, strict=True)),
        "log": list(zip(np.cumsum([row["time"] for row in rows]).tolist(), [row["loss"] for row in rows], strict=True)),
    }


def first_below(log: Iterable[tuple[float, float]], value: float) -> float | None:
    """Return the seconds of the first (seconds, value) of a log that is not above a value; None if there is none."""
    return next((s for s, v in log if v <= value), None)


# --- processes of their own

# Runs between the benchmark and the process that is measured: a child's peak starts at the size of its parent.
WATCHER = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, flush=True)
sys.stdout.buffer.write(done.stdout)
sys.exit(done.returncode)
"""


def watched(command: Sequence[str | Path]) -> tuple[int, str]:
    """Run a command; return the peak of its resident memory in bytes and what it printed."""
    text = subprocess.run(
        [sys.executable, "-c", WATCHER, *map(str, command)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    peak, _, printed = text.partition("\n")
    return int(peak), printed


def child(script: str, *arguments: Any) -> Report:
    """Run a benchmark script in a process of its own; return the JSON that it prints last, with `peak_bytes`."""
    peak, printed = watched([sys.executable, "-W", "ignore", script, *map(str, arguments)])
    return {**json.loads(printed.splitlines()[-1]), "peak_bytes": peak}


# --- results


def write_results(path: Path, results: Report) -> None:
    """Write results as JSON, with the machine and the commit that they are of."""
    text = json.dumps({**results, "machine": machine()}, indent=1, ensure_ascii=False)
    text = re.sub(r"\[[-\d.e,+\s]+\]", lambda numbers: " ".join(numbers[0].split()), text)  # a line for each list
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


class Store:
    """A JSON file of results by part, written after every part, so that an interrupted run can continue.

    Parts that are kept from another machine or from other sources are listed in `other_runs`, with their machine.
    """

    def __init__(self, path: Path, resume: bool = False, keep: bool = True) -> None:
        self.path, self.resume = path, resume
        self.results: Report = json.loads(path.read_text(encoding="utf-8")) if keep and path.is_file() else {}
        others: Report = self.results.setdefault("other_runs", {})
        before = self.results.pop("machine", None)
        if not same_run(before, machine()):
            others |= {part: before for part in self.results if part != "other_runs" and part not in others}

    def has(self, part: str) -> bool:
        """Return whether a part was measured on this machine with these sources."""
        return part in self.results and part not in self.results["other_runs"]

    def part(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the results of a part: of an earlier run with `resume`, else measured now."""
        if self.resume and self.has(name):
            say(f"{name}: there are results; not measured again")
        else:
            say(f"{name} …")
            self.put(name, make())
        return self.results[name]

    def put(self, name: str, found: Any) -> None:
        """Keep what has been measured now."""
        self.results[name] = found
        self.results["other_runs"].pop(name, None)
        self.write()

    def write(self) -> None:
        write_results(self.path, self.results)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"
