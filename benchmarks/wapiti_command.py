"""crfkit-wapiti beside Wapiti: seconds of training and labelling, objective and error, on CoNLL-2000.

    python benchmarks/wapiti_command.py [--wapiti PROGRAM] [--pattern FILE] [--sentences 2000] [--runs 3] [--output …]

Both programs get the same arguments and run in turns, on one thread. Wall seconds are what a person waits on a quiet
machine; CPU seconds mean something on a busy one, too. The start of Python is counted.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import RESULTS, SHARED, write_results
from wapiti_program import wapiti_pattern, wapiti_program

DATA = SHARED / "data" / "conll2000"
OURS = [sys.executable, "-c", "from crfkit.compat.wapiti.command import entry; entry()"]
TRAIN = ["train", "-a", "l-bfgs", "-t", "1", "-1", "0.1", "-2", "0.5", "-i", "80"]
LABEL = {
    "label": ["test.txt"],
    "label -s -p": ["-s", "-p", "test.txt"],
    "label -s -n 5": ["-s", "-n", "5", "test.txt"],
    "label of the training file": ["train.txt"],
}


def run(command: list[str]) -> tuple[float, float, str]:
    """(wall seconds, CPU seconds, standard error) of one process."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, done.stderr


def iterations(log: str) -> list[tuple[float, float]]:
    """(objective, seconds in total) of each iteration."""
    found = re.findall(r"obj=([\d.]+).*time=[\d.]+s/([\d.]+)s", log)
    return [(float(value), float(seconds)) for value, seconds in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wapiti", type=Path, metavar="PROGRAM", help="built from PyPI's libwapiti by default")
    parser.add_argument("--pattern", type=Path, metavar="FILE", help="of the template of CoNLL-2000 by default")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS / "wapiti_command.json")
    options = parser.parse_args()
    wapiti = options.wapiti or wapiti_program()
    if not wapiti or not DATA.is_dir():
        print(f"skipped: there is no program of Wapiti, or no {DATA}; see benchmarks/README.md")
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    programs = {"Wapiti": [str(wapiti)], "crfkit-wapiti": OURS}
    results: dict[str, dict[str, list[float]]] = {}

    def note(what: str, who: str, **numbers: float) -> None:
        for name, value in numbers.items():
            results.setdefault(f"{what}, {name}", {}).setdefault(who, []).append(value)

    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder, "train.txt"), DATA / "test.txt"
        blocks = (DATA / "train.txt").read_text(encoding="utf-8").split("\n\n")[: options.sentences]
        train.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
        pattern = options.pattern or Path(folder, "pattern")
        if not options.pattern:
            wapiti_pattern(DATA / "chunking.template", pattern)
        patterns = sum(bool(line.strip()) for line in pattern.read_text(encoding="utf-8").splitlines())
        for _ in range(options.runs):
            target = None  # the objective at which Wapiti ends
            for who, program in programs.items():
                model = str(Path(folder, f"{who}.model"))
                wall, cpu, log = run([*program, *TRAIN, "-p", str(pattern), str(train), model])
                trace = iterations(log)
                target = trace[-1][0] if target is None else target
                reached = next((seconds for value, seconds in trace if value <= target), None)
                note("train", who, seconds=wall, cpu=cpu, iterations=len(trace), objective=trace[-1][0])
                if reached is not None:
                    note("train to Wapiti's objective", who, seconds=reached)
                for name, (*flags, file) in LABEL.items():
                    threads = ["-t", "1"] if program is OURS else []
                    wall, cpu, _ = run([*program, "label", *threads, *flags, "-m", model, str(DATA / file)])
                    note(name, who, seconds=wall, cpu=cpu)
                _, _, log = run([*program, "label", "-c", "-m", model, str(test)])
                note("test", who, token_error=float(re.findall(r"Token error\s*:\s*([\d.]+)", log)[0]))
    medians = {
        what: {who: statistics.median(values) for who, values in found.items()} for what, found in results.items()
    }
    for what, found in medians.items():
        print(f"{what:42}" + "".join(f"  {who} {value:10.2f}" for who, value in found.items()))
    about = {"sentences": options.sentences, "patterns": patterns, "arguments": " ".join(TRAIN)}
    write_results(options.output, {**about, "medians": medians, "runs": results})


if __name__ == "__main__":
    main()
