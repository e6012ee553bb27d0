"""All benchmarks whose figures stand in README and documentation, one after the other: `make bench`.

    python benchmarks/run_all.py [--list] [--only speed,solvers] [--fresh] [--quick]

A run that was interrupted continues: a step is skipped if it has ended on this machine with the same src and cpp, and
scripts that measure in parts keep the parts that they have. --fresh measures everything again. --quick tries every step
on little data, whose figures mean nothing, and writes into build/benchmarks. A step whose data, program or package is
missing is skipped with a sentence. Leave the machine alone meanwhile; each file of results has the load before it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

from common import HERE, RESULTS, SCRATCH, SHARED, Report, machine, same_run

DATA = SHARED / "data"
STATE = SCRATCH / "run_all.json"
QUICK = SCRATCH / "quick"
CONLL = "conll2000"
OUT = "{out}"  # the file of results, without its suffix


@dataclass(frozen=True)
class Step:
    """A benchmark: its arguments, those that try it quickly, and what it needs."""

    name: str  # of the script and of the file of results
    minutes: float  # on two cores
    full: tuple[str, ...]
    quick: tuple[str, ...] | None  # None: there is no quick way
    data: tuple[str, ...] = (CONLL,)
    packages: tuple[str, ...] = ()
    resumes: bool = False  # whether the script has --resume

    def missing(self) -> str | None:
        """Return what is not there, as a sentence."""
        for name in self.data:
            if not (SHARED / name if "/" in name else DATA / name).exists():
                return f"there is no {name} in the folder of data (benchmarks/README.md)"
        for name in self.packages:
            if importlib.util.find_spec(name) is None:
                return f"the package {name} is not installed (pip install -e '.[bench,peers]')"
        return None

    def command(self, quick: bool, fresh: bool) -> list[str]:
        out = (QUICK if quick else RESULTS) / self.name
        arguments = (self.quick or ()) if quick else self.full
        resume = ["--resume"] if self.resumes and not quick and not fresh else []
        script = str(HERE / f"{self.name}.py")
        return [sys.executable, "-W", "ignore", script, *(a.replace(OUT, str(out)) for a in arguments), *resume]


OUTPUT, JSON = ("--output", OUT), ("--output", f"{OUT}.json")
STEPS = (
    Step("speed", 24, OUTPUT, ("--quick",), packages=("pycrfsuite",), resumes=True),
    Step("peers", 13, OUTPUT, ("--quick",), packages=("pycrfsuite",), resumes=True),
    Step("crfpp_commands", 0.3, JSON, (*JSON, "--rounds", "1"), data=(CONLL, "reference/crfpp")),
    Step("wapiti_command", 3, JSON, (*JSON, "--sentences", "100", "--runs", "1")),
    Step(
        "crfsuite_switch",
        1,
        OUTPUT,
        (*OUTPUT, "--sequences", "100", "--iterations", "20", "--rounds", "1"),
        packages=("sklearn_crfsuite",),
    ),
    Step("tagging", 1.5, JSON, (*JSON, "--rounds", "1"), packages=("pycrfsuite", "sklearn_crfsuite")),
    Step("decoding", 3, ("--out", f"{OUT}.json"), ("--out", f"{OUT}.json", "--rounds", "1"), (CONLL,)),
    Step(
        "packages",
        3,
        ("--out", f"{OUT}.json"),
        ("--out", f"{OUT}.json", "--inputs", "20"),
        data=(),
        packages=("eli5", "nltk", "parserator", "probablepeople", "pythainlp", "usaddress"),
    ),
    Step(
        "solvers", 17, OUTPUT, (*OUTPUT, "--sequences", "150", "--limit", "1"), packages=("pycrfsuite",), resumes=True
    ),
    Step("phases", 1.5, OUTPUT, ("--quick",)),
    Step(
        "scaling",
        3,
        (*OUTPUT, "--curves", "labels,attributes,threads,order"),
        ("--curves", "labels,attributes,threads,order", "--quick"),
        data=(),
        resumes=True,
    ),
    Step("memory", 4, OUTPUT, ("--quick",), resumes=True),
    Step("out_of_core", 2, (str(DATA), *JSON), (str(DATA), *JSON, "--times", "1")),
    Step("text_features", 3, (*JSON, "--parts", "speed,hashing"), None, (CONLL, "conll2002_spanish"), resumes=True),
    Step("inference", 4, OUTPUT, (*OUTPUT, "--parts", "exact", "--rounds", "1"), data=(), resumes=True),
    Step("segment", 1, OUTPUT, (*OUTPUT, "--count", "4"), data=()),
    Step(
        "segment_features",
        4,
        (*JSON, "--sizes", "6,12,50"),
        (*JSON, "--sizes", "6", "--test", "4", "--horses", "0"),
        data=(),
        resumes=True,
    ),
    Step("structure", 1, JSON, (*JSON, "--sizes", "20x1000"), data=()),
)


def duration(minutes: float) -> str:
    return f"{minutes:.0f} min" if minutes >= 1.5 else f"{60 * minutes:.0f} s"


def finished(step: Step, state: Report) -> bool:
    """Return whether a step has ended on this machine with these sources, and its results are there."""
    path = RESULTS / f"{step.name}.json"
    if step.name not in state or not path.is_file():
        return False
    return same_run(state[step.name], machine()) and same_run(json.loads(path.read_text())["machine"], machine())


def show(steps: tuple[Step, ...]) -> None:
    for step in steps:
        missing = step.missing()
        text = f"skipped: {missing}" if missing else f"{step.name}.py {' '.join(step.full).replace(OUT, 'results/…')}"
        print(f"{step.name:16} {duration(step.minutes):>7}   {text}")
    print(f"{'all':16} {duration(sum(step.minutes for step in steps)):>7}   estimated for two cores")


def run(steps: tuple[Step, ...], quick: bool, fresh: bool) -> list[str]:
    """Run the steps; return the names of those that failed."""
    state: Report = json.loads(STATE.read_text()) if STATE.is_file() else {}
    failed, expected, taken = [], 0.0, 0.0
    (QUICK if quick else RESULTS).mkdir(parents=True, exist_ok=True)
    for k, step in enumerate(steps):
        title = f"[{k + 1}/{len(steps)}] {step.name}"
        if missing := step.missing():
            print(f"{title}: skipped: {missing}", flush=True)
            continue
        if quick and step.quick is None:
            print(f"{title}: skipped: there is no quick way to try it", flush=True)
            continue
        if not quick and not fresh and finished(step, state):
            print(f"{title}: skipped: measured on this machine with these sources; --fresh measures again", flush=True)
            continue
        rest = sum(s.minutes for s in steps[k:] if not s.missing() and (fresh or not finished(s, state)))
        left = "" if quick else f", about {duration(rest * (taken / expected if expected else 1.0))} left for all"
        print(f"{title} … {'' if quick else duration(step.minutes)}{left}", flush=True)
        begin = time.perf_counter()
        code = subprocess.run(step.command(quick, fresh)).returncode
        spent = (time.perf_counter() - begin) / 60
        print(f"{title}: {'ended' if code == 0 else f'failed with code {code}'} after {duration(spent)}", flush=True)
        if code:
            failed.append(step.name)
        elif not quick:
            expected, taken = expected + step.minutes, taken + spent
            state[step.name] = {**machine(), "minutes": round(spent, 2)}
            STATE.parent.mkdir(parents=True, exist_ok=True)
            STATE.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the steps with their minutes, and run nothing")
    parser.add_argument("--only", help=f"some of {', '.join(step.name for step in STEPS)}")
    parser.add_argument("--fresh", action="store_true", help="measure again what has been measured")
    parser.add_argument("--quick", action="store_true", help="try every step on little data")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [step.name for step in STEPS]
    if unknown := sorted(set(names) - {step.name for step in STEPS}):
        parser.error(f"unknown steps: {', '.join(unknown)}; --list shows those that there are")
    steps = tuple(step for step in STEPS if step.name in names)
    if options.list:
        show(steps)
        return
    if (load := os.getloadavg()[0]) > 0.5 and not options.quick:
        print(f"The load of this machine is {load:.1f}: other programs disturb the figures.", flush=True)
    failed = run(steps, options.quick, options.fresh)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")
    print("`make figures` writes the figures into README and documentation." if not options.quick else "all steps ran")


if __name__ == "__main__":
    main()
