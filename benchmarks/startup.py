"""How long crfkit takes to start: medians over fresh processes, taken in turns.

    python benchmarks/startup.py [--runs 15] [--json FILE]

Wall seconds are what a person waits on a quiet machine; CPU seconds mean something on a busy one, too.
`import numpy` is there to compare with: nothing that reads a model can start faster.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import write_results

from crfkit import ChainCRF
from crfkit.cli.demo.data import TEMPLATE
from crfkit.synthetic import entity_corpus, write_columns

COMMANDS = {
    "python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import crfkit": ["-c", "import crfkit"],
    "from crfkit import ChainCRF": ["-c", "from crfkit import ChainCRF"],
    "import sklearn.base": ["-c", "import sklearn.base"],
    "crfkit tag, one sentence": ["-m", "crfkit", "tag", "model.crf", "one.txt"],
    "ChainModel.load, one sentence": [
        "-c",
        "from crfkit import ChainModel; ChainModel.load('model.crf').predict([[('a', 'x')]])",
    ],
    "ChainCRF.load, one sentence": [
        "-c",
        "from crfkit import ChainCRF; ChainCRF.load('model.crf').predict([[('a', 'x')]])",
    ],
}


def run(arguments: list[str], folder: Path) -> tuple[float, float]:
    """(wall seconds, CPU seconds) of one process."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_columns(str(folder / "train.txt"), entity_corpus(300, 1))
        write_columns(str(folder / "one.txt"), entity_corpus(1, 2))
        ChainCRF(TEMPLATE).fit_file(folder / "train.txt").save(folder / "model.crf")
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
        for turn in range(options.runs + 1):
            for name, arguments in COMMANDS.items():
                seconds = run(arguments, folder)
                if turn:  # the first writes byte code and fills the file cache
                    found[name].append(seconds)
    result = {}
    print(f"{'':30}  wall s   CPU s   (medians of {options.runs})")
    for name, seconds in found.items():
        wall, cpu = (statistics.median(column) for column in zip(*seconds, strict=True))
        result[name] = {"wall": round(wall, 3), "cpu": round(cpu, 3)}
        print(f"{name:30}  {wall:6.3f}  {cpu:6.3f}")
    if options.json:
        write_results(options.json, result)


if __name__ == "__main__":
    main()
