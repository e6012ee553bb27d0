"""Training time of crfkit next to Wapiti and Python packages on CoNLL-2000.

    python benchmarks/peers.py [--wapiti PROGRAM] [--parts wapiti,chaine,…] [--resume] [--quick] [--output …]

wapiti     all of CoNLL-2000, all pairs (7.4 million weights), NLL + ‖w‖²/2, two threads; from the file to the model
           file, each until its own rule stops it. The program is built from PyPI's libwapiti (wapiti_program.py)
chaine, underthesea, crfs, sklearn
           Python packages, from the same lists of attributes: training, tagging on one thread, F1 (peer_packages.py)

Ours run before and after theirs, and the median counts. Parts that are not run keep their last results. CRFsuite is in
speed.py, CRF++ in crfpp_commands.py. The objective of either is in the results: crfkit's may not be higher by more
than 10⁻⁴ of it.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from common import RESULTS, SCRATCH, SHARED, Report, Store, say
from peer_packages import PACKAGES, compare
from wapiti_program import wapiti_pattern, wapiti_program

SLACK = 1e-4


def run(command: list[str]) -> tuple[float, float, str]:
    """Return wall seconds, CPU seconds and standard error of a process."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8")
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr


def ours(train: Path, template: Path, folder: Path, *options: str) -> tuple[float, float, float]:
    """Return wall seconds, CPU seconds and the objective of `crfkit train`."""
    model = folder / "crfkit.crf"
    crfkit = [sys.executable, "-m", "crfkit"]
    wall, cpu, _ = run([*crfkit, "train", str(train), "-t", str(template), "-m", str(model), "-q", *options])
    told = json.loads(subprocess.check_output([*crfkit, "inspect", str(model), "--json"]))
    return wall, cpu, float(told["training"]["value"])


def row(peer: str, unit: str, theirs: float, their_objective: float, our: list[float], objective: float) -> Report:
    if objective > their_objective * (1 + SLACK):
        raise SystemExit(f"{peer}: our objective {objective} is above theirs, {their_objective}")
    median = statistics.median(our)
    return {
        "peer": peer,
        "unit": unit,
        "peer_seconds": theirs,
        "crfkit_seconds": median,
        "crfkit_runs": our,
        "times_faster": theirs / median,
        "peer_objective": their_objective,
        "crfkit_objective": objective,
    }


def first_sentences(options: argparse.Namespace, folder: Path, most: int) -> Path:
    sentences = (options.data / "train.txt").read_text(encoding="utf-8").split("\n\n")[:most]
    train = folder / "first.txt"
    train.write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
    return train


def wapiti(options: argparse.Namespace, folder: Path) -> Report:
    train, template = options.data / "train.txt", options.data / "chunking.template"
    if options.quick:
        train = first_sentences(options, folder, 300)
    wapiti_pattern(template, folder / "pattern")
    ask: Callable[[], Any] = lambda: ours(train, template, folder, "--all-states", "--rho2", "1", "-p", "2")  # noqa: E731
    first = ask()
    command = [options.wapiti, "train", "-a", "l-bfgs", "-t", "2", "-1", "0", "-2", "1", "-p", folder / "pattern"]
    wall, _, log = run([*map(str, command), str(train), str(folder / "wapiti.model")])
    last = [float(value) for value in re.findall(r"obj=([\d.]+)", log)][-1]
    rest = [ask(), ask()]
    return row("Wapiti", "seconds", wall, last, [first[0], *(r[0] for r in rest)], first[2])


PROGRAMS = {"wapiti": wapiti}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "conll2000")
    parser.add_argument("--wapiti", type=Path, metavar="PROGRAM", help="a program of Wapiti 1.5; built by default")
    parser.add_argument("--parts", default=",".join([*PROGRAMS, *PACKAGES]))
    parser.add_argument("--rounds", type=int, default=1, help="of packages")
    parser.add_argument("--resume", action="store_true", help="keep parts of this machine and these sources")
    parser.add_argument("--quick", action="store_true", help="300 sentences, one round: to try the command")
    parser.add_argument("--output", type=Path, default=RESULTS / "peers")
    options = parser.parse_args()
    if options.quick:
        options.output = SCRATCH / "peers_quick"
    store = Store(options.output.with_suffix(".json"), options.resume)
    parts = options.parts.split(",")
    if "wapiti" in parts and not options.wapiti:
        options.wapiti = wapiti_program()
    for part in parts:
        if part == "wapiti" and not options.wapiti:
            say("wapiti: skipped; its program could not be built, and --wapiti names none")
        else:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    store.part(part, partial(measure, part, options, Path(folder)))
                except ImportError as error:
                    say(f"{part}: skipped; {error}")


def measure(part: str, options: argparse.Namespace, folder: Path) -> Report:
    if part in PROGRAMS:
        return PROGRAMS[part](options, folder)
    return compare(part, options.data, folder, options.rounds, options.quick)


if __name__ == "__main__":
    main()
