"""Training time of crfkit next to other tools: programs on one objective until their own rule stops, and packages.

    python benchmarks/peers.py [--wapiti PROGRAM] [--parts crfsuite,wapiti,…] [--quick] [--output results/peers.json]

crfsuite   all of CoNLL-2000, the pairs of attribute and label that occur, NLL + ‖w‖²; from lists of attributes to a
           model
wapiti     all of CoNLL-2000, all pairs (7.4 million weights), NLL + ‖w‖²/2, two threads; from the file to the model
           file
crfpp      the first 500 sentences, attributes that occur three times, NLL + ‖w‖²/2, two threads; CPU seconds, because
           CRF++ prints those. They are from its log (`--crfpp-log`), written on another machine
chaine, underthesea, crfs, sklearn
           Python packages, from the same lists of attributes: training, tagging on one thread, F1 (peer_packages.py)

Ours run before and after theirs, and the median counts; wapiti is the program of Wapiti 1.5. Parts that are not run
keep their last results. The objective of either is in the results: crfkit's may not be higher by more than 10⁻⁴ of it.
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
from pathlib import Path
from typing import Any

from common import RESULTS, SCRATCH, SHARED, Report, attributes, crfsuite_train, machine, say, seconds
from peer_packages import PACKAGES, compare

from crfkit import L2, ChainCRF, Template

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


def row(
    peer: str, unit: str, theirs: float, their_objective: float, our: list[float], objective: float
) -> dict[str, Any]:
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


def crfsuite(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    X, y = attributes(options.data / "train.txt", Template.read(options.data / "chunking.template"), options.most)
    times, objective = [], 0.0

    def fit() -> None:
        nonlocal objective
        objective = ChainCRF(penalty=L2.from_crfsuite(1.0)).fit(X, y).result_.value

    times.append(seconds(fit))
    theirs = crfsuite_train(X, y, folder / "crfsuite.model", 10_000)
    times += [seconds(fit), seconds(fit)]
    return row("CRFsuite", "seconds", theirs["append"] + theirs["train"], theirs["objective"], times, objective)


def wapiti(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    train, template = options.data / "train.txt", options.data / "chunking.template"
    pattern = folder / "pattern"
    pattern.write_text(re.sub(r"^#.*\n", "", template.read_text(encoding="utf-8"), flags=re.MULTILINE))
    ask: Callable[[], Any] = lambda: ours(train, template, folder, "--all-states", "--rho2", "1", "-p", "2")  # noqa: E731
    first = ask()
    command = [options.wapiti, "train", "-a", "l-bfgs", "-t", "2", "-1", "0", "-2", "1", "-p", str(pattern)]
    wall, _, log = run([*command, str(train), str(folder / "wapiti.model")])
    last = [float(value) for value in re.findall(r"obj=([\d.]+)", log)][-1]
    rest = [ask(), ask()]
    return row("Wapiti", "seconds", wall, last, [first[0], *(r[0] for r in rest)], first[2])


def crfpp(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    sentences = (options.data / "train.txt").read_text(encoding="utf-8").split("\n\n")[:500]
    train = folder / "first.txt"
    train.write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
    log = options.crfpp_log.read_text(encoding="utf-8")
    objective = float(re.findall(r"obj=([\d.]+)", log)[-1])
    printed = float(re.findall(r"Done!([\d.]+) s", log)[-1])
    template = options.crfpp_log.with_suffix(".template")
    runs = [ours(train, template, folder, "--all-states", "-f", "3", "--C", "1", "-p", "2") for _ in range(3)]
    return row("CRF++", "CPU seconds", printed, objective, [r[1] for r in runs], runs[0][2])


PROGRAMS = {"crfsuite": crfsuite, "wapiti": wapiti, "crfpp": crfpp}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "conll2000")
    parser.add_argument("--wapiti", metavar="PROGRAM", help="the program of Wapiti 1.5")
    parser.add_argument("--crfpp-log", type=Path, default=SHARED / "reference" / "crfpp" / "chunking.log")
    parser.add_argument("--parts", default=",".join([*PROGRAMS, *PACKAGES]))
    parser.add_argument("--rounds", type=int, default=3, help="of packages")
    parser.add_argument("--quick", action="store_true", help="300 sentences, one round: to try the command")
    parser.add_argument("--output", type=Path, default=RESULTS / "peers.json")
    options = parser.parse_args()
    options.most = 300 if options.quick else None
    if options.quick:
        options.output, options.rounds = SCRATCH / "peers_quick.json", 1
    found: Report = json.loads(options.output.read_text(encoding="utf-8")) if options.output.is_file() else {}
    for part in options.parts.split(","):
        if (part == "wapiti" and not options.wapiti) or (part == "crfpp" and not options.crfpp_log.is_file()):
            say(f"{part}: left out; name the program with --wapiti, the log with --crfpp-log")
            continue
        say(f"{part} …")
        with tempfile.TemporaryDirectory() as folder:
            if part in PROGRAMS:
                found.setdefault("rows", {})[part] = PROGRAMS[part](options, Path(folder))
            else:
                try:
                    row = compare(part, options.data, Path(folder), options.rounds, options.quick)
                except ImportError as error:
                    say(f"{part}: left out: {error}")
                    continue
                found.setdefault("packages", {})[part] = row
        found["machine"] = machine()
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
