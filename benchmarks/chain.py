"""Linear chains against python-crfsuite, in one run on CoNLL-2000 chunking.

    python benchmarks/chain.py [--data DIR] [--output results/chain] [--rounds 3] [--quick]

Short measurements alternate between the two and are given as medians of per-round ratios; trainings are run
ours – theirs – ours. Peak memory is that of a process of its own. Writes JSON and a Markdown table.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite

from crfkit import L2, ChainCRF, ChainModel, Template, evaluate, read_columns
from crfkit._core import available_kernels
from crfkit.encoders.sequences import learn_file
from crfkit.fields import ChainField
from crfkit.losses import ChainLikelihood

HERE = Path(__file__).resolve().parent
Sequences = list[list[list[str]]]


def seconds(work: Any) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def attributes(path: Path, template: Template) -> tuple[Sequences, list[list[str]]]:
    rows, labels = read_columns(path)
    return [[u for u, _ in template.expand([list(r) for r in x])] for x in rows], labels


def crfsuite_train(X: Sequences, y: list[list[str]], model: Path, iterations: int) -> dict[str, Any]:
    trainer = pycrfsuite.Trainer(verbose=False)
    append = seconds(lambda: [trainer.append(a, b) for a, b in zip(X, y, strict=True)])
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": iterations})
    train = seconds(lambda: trainer.train(str(model)))
    log = trainer.logparser.iterations
    return {
        "append": append,
        "train": train,
        "iterations": len(log),
        "evaluations": sum(row["linesearch_trials"] for row in log),
        "objective": log[-1]["loss"],
        "per_evaluation": statistics.median(row["time"] / row["linesearch_trials"] for row in log),
    }


# Run between the benchmark and the process that is measured: a child's peak starts at the size of its parent.
WATCHER = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def peak_memory(command: list[str]) -> int:
    """Largest resident size of a process, in bytes."""
    return int(subprocess.check_output([sys.executable, "-c", WATCHER, *command]))


CRFSUITE_CHILD = """
import sys, pycrfsuite
from crfkit.features import Template
from crfkit.readers.columns import ColumnFile, _sequences
template = Template.read(sys.argv[2])
trainer = pycrfsuite.Trainer(verbose=False)
for rows in _sequences(ColumnFile(sys.argv[1]), True):
    trainer.append([u for u, _ in template.expand([list(r[:-1]) for r in rows])], [r[-1] for r in rows])
trainer.select("lbfgs")
trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": 10})
trainer.train(sys.argv[3])
"""


class Bench:
    def __init__(self, data: Path, rounds: int, folder: Path) -> None:
        self.train_file, self.test_file = data / "train.txt", data / "test.txt"
        self.template_file = data / "chunking.template"
        self.template = Template.read(self.template_file)
        self.rounds, self.folder = rounds, folder
        self.X, self.y = attributes(self.train_file, self.template)
        self.X_test, self.y_test = attributes(self.test_file, self.template)
        gc.freeze()

    def f1(self, predicted: list[list[str]]) -> float:
        return evaluate(self.y_test, predicted).overall.f1

    def evaluations(self) -> dict[str, Any]:
        """One value and gradient: observed set, CRF++ set, CRFsuite."""
        corpus = learn_file(self.train_file, self.template, 1)
        n_labels, n_attributes = len(corpus.classes), len(corpus.vocabulary.attributes)
        losses = {}
        for name, full in (("observed", False), ("crfpp", True)):
            field = ChainField.from_data(corpus.data, n_labels, n_attributes, all_states=full, all_transitions=full)
            losses[name] = ChainLikelihood(corpus.data, field)
        rounds: dict[str, list[float]] = {"crfsuite": [], "observed": [], "crfpp": []}
        for _ in range(self.rounds):
            for name, loss in losses.items():
                w = np.random.default_rng(0).normal(scale=0.1, size=loss.size)
                loss.at(w).value  # noqa: B018 - evaluates
                times = [seconds(lambda loss=loss, w=w: loss.at(w).value) for _ in range(15)]
                rounds[name].append(statistics.median(times))
            rounds["crfsuite"].append(crfsuite_train(self.X, self.y, self.folder / "short", 10)["per_evaluation"])
        ratios = {
            name: statistics.median(b / a for a, b in zip(rounds[name], rounds["crfsuite"], strict=True))
            for name in ("observed", "crfpp")
        }
        return {
            "weights": {name: loss.size for name, loss in losses.items()},
            "attributes": n_attributes,
            "seconds": rounds,
            "times_faster": ratios,
        }

    def training(self) -> dict[str, Any]:
        """fit (encoding included) against append + train, to the same objective, c2 = 1."""

        def fit() -> tuple[float, ChainCRF]:
            crf = ChainCRF(penalty=L2.from_crfsuite(1.0))
            return seconds(lambda: crf.fit(self.X, self.y)), crf

        first, crf = fit()
        theirs = crfsuite_train(self.X, self.y, self.folder / "model.crfsuite", 1000)
        second, _ = fit()
        ours = statistics.mean([first, second])
        reached = next((row.seconds for row in crf.result_.trace if row.value <= 12_887.3), crf.result_.seconds)
        to_objective = first - (crf.result_.seconds - reached)
        self.crf = crf
        tagger = pycrfsuite.Tagger()
        tagger.open(str(self.folder / "model.crfsuite"))
        result = crf.result_
        return {
            "crfkit": {
                "fit_seconds": [first, second],
                "solver_seconds": result.seconds,
                "fit_seconds_to_12887.3": to_objective,
                "iterations": result.iterations,
                "evaluations": result.evaluations,
                "objective": result.value,
                "weights": len(crf.coef_),
                "f1": self.f1(crf.predict(self.X_test)),
            },
            "crfsuite": theirs | {"f1": self.f1([tagger.tag(x) for x in self.X_test])},
            "times_faster": (theirs["append"] + theirs["train"]) / ours,
        }

    def tagging(self) -> dict[str, Any]:
        """Tokens per second: from attribute lists on one thread, and from a raw column file."""
        self.crf.save(self.folder / "observed.crf")
        single = ChainCRF.load(self.folder / "observed.crf", n_threads=1)
        tagger = pycrfsuite.Tagger()
        tagger.open(str(self.folder / "model.crfsuite"))
        tokens = sum(map(len, self.X_test))
        ours, theirs = [], []
        for _ in range(max(5, self.rounds)):
            ours.append(tokens / seconds(lambda: single.predict(self.X_test)))
            theirs.append(tokens / seconds(lambda: [tagger.tag(x) for x in self.X_test]))
        model = ChainModel.load(self.folder / "crfpp.crf")
        repeated = self.folder / "repeated.txt"
        repeated.write_bytes(self.test_file.read_bytes() * 10)
        raw = [10 * tokens / seconds(lambda: [len(block) for block in model.tag_columns(repeated)]) for _ in range(5)]
        load = statistics.median(seconds(lambda: ChainModel.load(self.folder / "crfpp.crf")) for _ in range(5))
        return {
            "tokens_per_second": {"crfkit": ours, "crfsuite": theirs, "crfkit tag": raw},
            "times_faster": statistics.median(a / b for a, b in zip(ours, theirs, strict=True)),
            "open_seconds": load,
            "model_weights": len(model.w),
        }

    def command_line(self) -> dict[str, Any]:
        """`crfkit train` in processes of their own: peak memory, objective, scores."""
        crfkit = [sys.executable, "-m", "crfkit"]
        result: dict[str, Any] = {}
        for name, options in {
            "crfpp": ["--C", "1", "--all-states"],
            "crfpp_cut3": ["--C", "1", "--all-states", "--min-frequency", "3", "--tolerance", "5e-6"],
            "observed": ["--c2", "1", "--observed-states"],
        }.items():
            model, log = self.folder / f"{name}.crf", self.folder / f"{name}.jsonl"
            command = [*crfkit, "train", self.train_file, "-t", self.template_file, "-m", model, "--log", log, *options]
            memory = peak_memory([str(part) for part in command])
            last = json.loads(log.read_text().splitlines()[-1])
            scores = json.loads(
                subprocess.check_output([*crfkit, "eval", str(model), str(self.test_file), "--json"], text=True)
            )
            trained = ChainModel.load(model)
            result[name] = {
                "weights": len(trained.w),
                "attributes": len(trained.vocabulary.attributes),
                "objective": last["value"],
                "iterations": last["iteration"],
                "seconds": last["seconds"],
                "peak_bytes": memory,
                "accuracy": scores["accuracy"],
                "f1": scores["overall"]["f1"],
            }
        child = [sys.executable, "-c", CRFSUITE_CHILD, self.train_file, self.template_file, self.folder / "child"]
        result["crfsuite"] = {"peak_bytes": peak_memory([str(part) for part in child])}
        return result


def table(r: dict[str, Any]) -> str:
    e, t, g, c = r["evaluation"], r["training"], r["tagging"], r["command_line"]
    med = statistics.median

    def mb(name: str) -> str:
        return f"{c[name]['peak_bytes'] / 1e6:.0f} MB"

    rows = [
        ("one value and gradient, observed pairs", f"{med(e['seconds']['observed']):.4f} s",
         f"{med(e['seconds']['crfsuite']):.3f} s", f"{e['times_faster']['observed']:.1f} × faster"),
        (f"one value and gradient, all pairs ({e['weights']['crfpp']:,} weights)",
         f"{med(e['seconds']['crfpp']):.4f} s", "", f"{1 / e['times_faster']['crfpp']:.2f} of CRFsuite's above"),
        ("training to convergence, encoding included", f"{t['crfkit']['fit_seconds'][0]:.1f} s",
         f"{t['crfsuite']['append'] + t['crfsuite']['train']:.1f} s", f"{t['times_faster']:.1f} × faster"),
        ("objective", f"{t['crfkit']['objective']:.2f}", f"{t['crfsuite']['objective']:.2f}", ""),
        ("evaluations", f"{t['crfkit']['evaluations']}", f"{t['crfsuite']['evaluations']}", ""),
        ("weights", f"{t['crfkit']['weights']:,}", "", ""),
        ("F1", f"{t['crfkit']['f1']:.2%}", f"{t['crfsuite']['f1']:.2%}", ""),
        ("tokens tagged per second, one thread, from lists", f"{med(g['tokens_per_second']['crfkit']):,.0f}",
         f"{med(g['tokens_per_second']['crfsuite']):,.0f}", f"{g['times_faster']:.1f} × faster"),
        ("`crfkit tag` from raw columns, tokens per second",
         f"{med(g['tokens_per_second']['crfkit tag']):,.0f}", "", ""),
        (f"opening a model of {g['model_weights']:,} weights", f"{g['open_seconds']:.3f} s", "", ""),
        ("peak memory of training, observed pairs", mb("observed"), mb("crfsuite"), ""),
        ("peak memory of training, all pairs", mb("crfpp"), "", ""),
        ("all pairs, C = 1: objective, accuracy, F1",
         f"{c['crfpp']['objective']:.2f}, {c['crfpp']['accuracy']:.2%}, {c['crfpp']['f1']:.2%}", "", ""),
        ("all pairs, cut at 3, C = 1, tolerance 5e-6: weights, objective, accuracy, F1",
         f"{c['crfpp_cut3']['weights']:,}, {c['crfpp_cut3']['objective']:.2f}, "
         f"{c['crfpp_cut3']['accuracy']:.2%}, {c['crfpp_cut3']['f1']:.2%}", "", ""),
    ]  # fmt: skip
    lines = ["| | crfkit | python-crfsuite | |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "conll2000")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "chain")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: the CoNLL-2000 data are not in {options.data}; see benchmarks/README.md")
        return
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.data, options.rounds, Path(folder))
        results: dict[str, Any] = {
            "machine": {
                "cores": os.cpu_count(),
                "processor": platform.processor() or platform.machine(),
                "kernels": available_kernels()[0],
                "python": platform.python_version(),
                "numpy": np.__version__,
            }
        }
        parts = ("evaluation", bench.evaluations), ("training", bench.training)
        for name, part in (*parts, ("command_line", bench.command_line), ("tagging", bench.tagging)):
            print(f"{name} …", flush=True)
            results[name] = part()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    options.output.with_suffix(".md").write_text(table(results) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
