"""Run the steps of several experiments side by side, and remember which are done."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from steps import Step

HERE = Path(__file__).resolve().parent
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


@dataclass
class Journal:
    """Which steps are done, with their seconds; a step counts as done only with the command that it has now."""

    path: Path
    done: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, restart: bool = False) -> Journal:
        kept = json.loads(path.read_text("utf-8")) if path.exists() and not restart else {}
        return cls(path, kept)

    def has(self, experiment: str, step: Step) -> bool:
        return self.done.get(f"{experiment}/{step.name}", {}).get("command") == list(step.command)

    def add(self, experiment: str, step: Step, seconds: float) -> None:
        self.done[f"{experiment}/{step.name}"] = {"command": list(step.command), "seconds": round(seconds, 1)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".new")
        unfinished.write_text(json.dumps(self.done, indent=1) + "\n", "utf-8")
        os.replace(unfinished, self.path)


@dataclass
class Queue:
    """The steps of one experiment, in order: each may read what those before it have written."""

    name: str
    output: Path
    waiting: list[Step]
    done: list[Step]
    missing: list[Step]  # their data are not there

    @property
    def minutes(self) -> float:
        return sum(step.minutes for step in self.waiting)


@dataclass
class Running:
    """A step that is under way."""

    queue: Queue
    step: Step
    process: subprocess.Popen[bytes]
    log: TextIO
    began: float

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


class Runner:
    """Start steps, the longest queue first, until all are done; at most one step of an experiment at a time."""

    def __init__(self, queues: list[Queue], journal: Journal, jobs: int, logs: Path) -> None:
        self.queues, self.journal, self.jobs, self.logs = queues, journal, jobs, logs
        self.running: list[Running] = []
        self.failed: list[str] = []
        self.planned = self.spent = 0.0  # minutes of finished steps: as expected, and as they were

    def run(self) -> Iterator[str]:
        """Yield a line for each step that ends, and an empty one every half second."""
        try:
            while any(queue.waiting for queue in self.queues) or self.running:
                while len(self.running) < self.jobs and (queue := self._next()) is not None:
                    self._start(queue)
                time.sleep(0.5)
                ended = [run for run in self.running if run.process.poll() is not None]
                for run in ended:
                    yield self._end(run)
                yield ""
        finally:
            for run in self.running:
                os.killpg(run.process.pid, signal.SIGTERM)  # the processes that a step has started, too
            for run in self.running:
                run.process.wait()
                run.log.close()

    def remaining(self) -> float:
        """Return the expected seconds until all steps are done."""
        pace = self.spent / self.planned if self.planned > 0.2 else 1.0
        left = {queue.name: 60 * pace * queue.minutes for queue in self.queues}
        for run in self.running:
            left[run.queue.name] += max(60 * pace * run.step.minutes - run.seconds, 1.0)
        return max(max(left.values(), default=0.0), sum(left.values()) / self.jobs)

    def _next(self) -> Queue | None:
        busy = {run.queue.name for run in self.running}
        free = [queue for queue in self.queues if queue.waiting and queue.name not in busy]
        return max(free, key=lambda queue: queue.minutes, default=None)

    def _start(self, queue: Queue) -> None:
        step = queue.waiting.pop(0)
        queue.output.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]+", "_", f"{queue.name}-{step.name}")
        log = (self.logs / f"{name}.log").open("w", encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, *step.command],
            cwd=HERE / queue.name,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ONE_THREAD},
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the step
        )
        self.running.append(Running(queue, step, process, log, time.monotonic()))

    def _end(self, run: Running) -> str:
        self.running.remove(run)
        run.log.close()
        name = f"{run.queue.name}/{run.step.name}"
        if run.process.returncode:
            self.failed.append(name)
            left_out = len(run.queue.waiting)
            run.queue.waiting.clear()  # they build on it
            later = f", {left_out} later steps left out" if left_out else ""
            return f"{name}: failed with exit code {run.process.returncode}{later}; see {run.log.name}"
        self.planned += run.step.minutes
        self.spent += run.seconds / 60
        self.journal.add(run.queue.name, run.step, run.seconds)
        run.queue.done.append(run.step)
        return f"{name}: done in {clock(run.seconds)}"


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
