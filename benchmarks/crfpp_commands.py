"""crfkit-learn and crfkit-test next to what CRF++ 0.58 printed: the same training, its trace and its CPU seconds.

    python benchmarks/crfpp_commands.py [--threads 2] [--rounds 3] [--output results/crfpp_commands.json]

Needs ../shared/reference (the logs and models of CRF++, whose seconds were measured on another machine) and
../shared/data/conll2000. CRF++ prints CPU seconds of all threads, and so does
this; ours are the median of the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import re
import statistics
import tempfile
import time
from pathlib import Path

from common import RESULTS, SHARED, Report, write_results

from crfkit.compat.crfpp import learn, tag

REFERENCE, DATA = SHARED / "reference" / "crfpp", SHARED / "data" / "conll2000"
RUNS = {
    "chunking": ("chunking", ["-f", "3", "-e", "0.00001"]),
    "cond": ("cond", ["-f", "3", "-e", "0.00001"]),
    "l1": ("chunking", ["-f", "3", "-a", "CRF-L1"]),
    "mira": ("chunking", ["-f", "3", "-a", "MIRA"]),
}


def first_sentences(name: str, n: int, folder: Path) -> str:
    """The first n sequences of a file, as a file of their own."""
    blocks = (DATA / name).read_text("utf-8").split("\n\n")[:n]
    (folder / name).write_text("\n\n".join(blocks) + "\n\n", "utf-8")
    return str(folder / name)


def numbers(log: str, name: str) -> list[float]:
    return [float(x) for x in re.findall(rf" {name}=(\S+)", log)]


def seconds(log: str) -> float:
    """The seconds of the training itself; those of reading stand before."""
    return float(re.findall(r"Done!([\d.]+) s", log)[1])


def train(name: str, threads: int, rounds: int, folder: Path, data: str) -> Report:
    template, options = RUNS[name]
    theirs = (REFERENCE / f"{name}.log").read_text("utf-8")
    arguments = [*options, "-p", str(threads), str(REFERENCE / f"{template}.template"), data, str(folder / name)]
    taken = []
    for _ in range(rounds):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            learn.learn(arguments)
        ours = out.getvalue()
        taken.append(seconds(ours))
    a, b = numbers(ours, "obj"), numbers(theirs, "obj")
    same = len(a) == len(b)
    return {
        "lines": len(a),
        "lines of CRF++": len(b),
        "objective": a[-1],
        "objective of CRF++": b[-1],
        "largest relative difference": max(abs(x - y) / y for x, y in zip(a, b, strict=True)) if same else None,
        "seconds": statistics.median(taken),
        "seconds of CRF++": seconds(theirs),
        "times faster": seconds(theirs) / statistics.median(taken),
    }


def test(name: str, flag: str, folder: Path, data: str) -> Report:
    model, out = folder / f"{name}.model", folder / "out"
    model.write_bytes(gzip.decompress((REFERENCE / f"{name}.model.gz").read_bytes()))
    start = time.process_time()
    tag.tag(["-m", str(model), flag, "-o", str(out), data])
    spent = time.process_time() - start
    ours = out.read_text("utf-8")
    theirs = gzip.decompress((REFERENCE / f"{name}.{flag[1:]}.gz").read_bytes()).decode()
    number = re.compile(r"\d\.\d{6}")
    pairs = list(zip(number.findall(ours), number.findall(theirs), strict=True))
    return {
        "same text": float(number.sub("", ours) == number.sub("", theirs)),
        "numbers": len(pairs),
        "other last digit": sum(a != b for a, b in pairs),
        "largest difference": max(abs(float(a) - float(b)) for a, b in pairs),
        "seconds": spent,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS / "crfpp_commands.json")
    options = parser.parse_args()
    if not (REFERENCE.is_dir() and DATA.is_dir()):
        print(f"skipped: there is no {REFERENCE} or no {DATA}; see benchmarks/README.md")
        return
    results: Report = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, unseen = first_sentences("train.txt", 500, folder), first_sentences("test.txt", 200, folder)
        for run in RUNS:
            results[f"crfkit-learn {run}"] = train(run, options.threads, options.rounds, folder, data)
        for run in ("chunking", "cond"):
            for flag in ("-v1", "-v2", "-n5"):
                results[f"crfkit-test {run} {flag}"] = test(run, flag, folder, unseen)
    for title, result in results.items():
        print(title, ", ".join(f"{key} {value}" for key, value in result.items()), sep="\n    ")
    write_results(options.output, results)


if __name__ == "__main__":
    main()
