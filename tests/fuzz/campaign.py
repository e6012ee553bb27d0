"""A run of the fuzzer: seeds are made once, cases go to watched workers, findings are kept once for each place."""

from __future__ import annotations

import itertools
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.target import Target
from fuzz.watched import Worker


@dataclass
class Options:
    seconds: float = 60.0  # or until there are no more cases
    cases: int = 10**9  # of each target, at most
    seed: int = 0
    jobs: int = 2
    memory: int = 2 * 10**9  # bytes that a process may have
    timeout: float = 10.0  # seconds that a case may take
    folder: Path = Path("build/fuzz")


@dataclass
class Campaign:
    """What happened: numbers of cases by target and outcome, and the findings by place."""

    options: Options
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, targets: Sequence[Target]) -> None:
        """Run all cases that there is time for; each target gets as many."""
        by_name = {target.name: target for target in targets}
        seeds = self.make_seeds(targets)
        self.counts = {name: Counter() for name in by_name}
        numbers = ((name, n) for n in itertools.takewhile(self._goes_on, itertools.count()) for name in by_name)
        self._deadline = time.monotonic() + self.options.seconds
        threads = [
            threading.Thread(target=self._work, args=(seeds, numbers, by_name))
            for _ in range(max(1, self.options.jobs))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def make_seeds(self, targets: Sequence[Target]) -> Path:
        """Write the valid file of each target and return their folder."""
        folder = self.options.folder / "seeds"
        folder.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for target in targets:
                (folder / target.name).write_bytes(target.seed())
        return folder

    def _goes_on(self, number: int) -> bool:
        return number < self.options.cases

    def _work(self, seeds: Path, numbers: Iterator[tuple[str, int]], by_name: dict[str, Target]) -> None:
        o = self.options
        worker = Worker(seeds, o.seed, o.timeout, o.memory)
        try:
            while time.monotonic() < self._deadline:
                with self._lock:
                    case = next(numbers, None)
                if case is None:
                    return
                answer = worker.run(*case)
                with self._lock:
                    self.counts[case[0]][answer["outcome"]] += 1
                    if answer["outcome"] == "finding":
                        self._keep(by_name[case[0]], case[1], seeds, answer)
        finally:
            worker.close()

    def _keep(self, target: Target, number: int, seeds: Path, answer: dict[str, Any]) -> None:
        place = answer["place"]
        known = self.findings.setdefault(place, {"target": target.name, "number": number, "times": 0})
        known["times"] += 1
        if known["times"] > 1:
            return
        folder = self.options.folder / f"finding-{len(self.findings):03d}-{target.name}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        valid = (seeds / target.name).read_bytes()
        (folder / f"case{target.suffix}").write_bytes(target.case(valid, self.options.seed, number))
        again = f"make fuzz CASE={target.name}:{number} SEED={self.options.seed}"
        (folder / "report.txt").write_text(f"{place}\n{again}\n\n{answer['text']}", errors="backslashreplace")
        print(f"{place}\n    {again}", flush=True)

    def summary(self) -> str:
        """Return a table of the targets and one of the findings."""
        lines = [f"{'target':32} {'cases':>8} {'fine':>8} {'refused':>8} {'findings':>8}"]
        total: Counter[str] = Counter()
        for name, count in self.counts.items():
            total += count
            lines.append(_row(name, count))
        lines.append(_row("all", total))
        if self.findings:
            lines.append(f"\n{len(self.findings)} places, in {self.options.folder}:")
        for place, known in sorted(self.findings.items(), key=lambda item: -item[1]["times"]):
            lines.append(f"{known['times']:6} {place}   {known['target']}:{known['number']}")
        return "\n".join(lines)


def _row(name: str, count: Counter[str]) -> str:
    return f"{name:32} {count.total():8} {count['fine']:8} {count['refused']:8} {count['finding']:8}"
