"""crfkit-wapiti beside Wapiti: seconds of training and labelling, objective and error, on CoNLL-2000.

    python benchmarks/wapiti_command.py --wapiti PROGRAM --pattern FILE [--sentences 2000] [--runs 3] [--json FILE]

Both programs get the same arguments and run in turns, on one thread. Wall seconds are what a person waits on a quiet
machine; CPU seconds mean something on a busy one, too. The start of Python is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "conll2000"
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
    parser.add_argument("--wapiti", required=True, metavar="PROGRAM")
    parser.add_argument("--pattern", required=True, metavar="FILE")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    programs = {"Wapiti": [options.wapiti], "crfkit-wapiti": OURS}
    results: dict[str, dict[str, list[float]]] = {}

    def note(what: str, who: str, **numbers: float) -> None:
        for name, value in numbers.items():
            results.setdefault(f"{what}, {name}", {}).setdefault(who, []).append(value)

    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder, "train.txt"), DATA / "test.txt"
        blocks = (DATA / "train.txt").read_text(encoding="utf-8").split("\n\n")[: options.sentences]
        train.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
        for _ in range(options.runs):
            target = None  # the objective at which Wapiti ends
            for who, program in programs.items():
                model = str(Path(folder, f"{who}.model"))
                wall, cpu, log = run([*program, *TRAIN, "-p", options.pattern, str(train), model])
                trace = iterations(log)
                target = trace[-1][0] if target is None else target
                reached = next((seconds for value, seconds in trace if value <= target), float("nan"))
                note("train", who, seconds=wall, cpu=cpu, iterations=len(trace), objective=trace[-1][0])
                note("train to Wapiti's objective", who, seconds=reached)
                for name, (*flags, file) in LABEL.items():
                    threads = ["-t", "1"] if program is OURS else []
                    wall, cpu, _ = run([*program, "label", *threads, *flags, "-m", model, str(DATA / file)])
                    note(name, who, seconds=wall, cpu=cpu)
                _, _, log = run([*program, "label", "-c", "-m", model, str(test)])
                note("test", who, token_error=float(re.findall(r"Token error\s*:\s*([\d.]+)", log)[0]))
    for what, found in results.items():
        medians = {who: statistics.median(values) for who, values in found.items()}
        print(f"{what:42}" + "".join(f"  {who} {value:10.2f}" for who, value in medians.items()))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
