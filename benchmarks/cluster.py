"""Training on a Dask cluster against training in one process: the same optimum, overhead, kills, memory.

    python benchmarks/cluster.py [--parts equality,training,overhead,kills,memory,workers] [--data DIR] [--quick]

All on CoNLL-2000 chunking with the observed weights; workers are processes of this machine.

equality  value and gradient at the same weights, and the attributes, for 1, 2, 4 and 7 shards
training  lbfgs, tron, owlqn and ogm on the first 300 sentences: objectives, weights and predictions
overhead  an evaluation by two workers with a thread each against one process with two threads, alternating
kills     20 trainings, in each of which a worker is killed at a random moment
memory    the peak of the client that trains from files, for one and ten copies of the corpus
workers   seconds and bytes of an evaluation for 1, 2 and 4 workers with a thread each

Writes results/cluster.json after every part.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from common import HERE, RESULTS, SHARED, Report, child, say, write_results

from crfkit import L2, ElasticNet, Template
from crfkit.chain.encoding.sequences import learn_file
from crfkit.chain.training.problem import Problem
from crfkit.chain.training.train import ChainTraining
from crfkit.distributed import Cluster, connect
from crfkit.distributed.chains import sharded_chain
from crfkit.distributed.training import fit_urls
from crfkit.losses import ChainLikelihood
from crfkit.solvers import make_solver
from crfkit.solvers.parts.stopping import GradientNorm

SHARDS = (1, 2, 4, 7)
SOLVERS = {"lbfgs": L2(1.0), "tron": L2(1.0), "owlqn": ElasticNet(0.5, 1.0), "ogm": L2(10.0)}


class Corpus:
    """The training file, some of its sentences, and copies of it."""

    def __init__(self, data: Path, folder: Path, quick: bool) -> None:
        self.template = Template.read(data / "chunking.template")
        self.folder = folder
        self.text = (data / "train.txt").read_text(encoding="utf-8")
        if quick:
            self.text = "\n\n".join(self.text.split("\n\n")[:300]) + "\n\n"

    def file(self, copies: int = 1, sentences: int | None = None) -> Path:
        path = self.folder / f"train-{copies}-{sentences}.txt"
        if not path.exists():
            text = self.text if sentences is None else "\n\n".join(self.text.split("\n\n")[:sentences]) + "\n\n"
            path.write_text(text * copies, encoding="utf-8")
        return path

    def problem(self, file: Path, **options: Any) -> tuple[ChainTraining, Problem]:
        training = ChainTraining(template=self.template, **options)
        return training, training.make_problem(learn_file(file, self.template, 1))


def equality(corpus: Corpus, client: Any) -> Report:
    training, problem = corpus.problem(corpus.file(), precision="double")
    w = np.random.default_rng(0).normal(size=problem.field.size)
    one = problem.loss.at(w)
    found: Report = {"weights": problem.field.size}
    for n in SHARDS:
        loss = sharded_chain(client, Cluster(client, shards=n), training, problem.data, problem.field)
        many = loss.at(w)
        step = ChainTraining(template=corpus.template, precision="double", solver="lbfgs", max_iterations=1)
        model, _ = fit_urls(step, Cluster(client, shards=n), [corpus.file()])
        found[str(n)] = {
            "value": abs(many.value / one.value - 1.0),
            "gradient": float(np.linalg.norm(many.grad - one.grad) / np.linalg.norm(one.grad)),
            "same attributes": model.vocabulary.attributes.to_list() == problem.corpus.vocabulary.attributes.to_list(),
            "same weights": bool(
                np.array_equal(model.field.state_labels, problem.field.state_labels)
                and np.array_equal(model.field.transition_codes, problem.field.transition_codes)
            ),
        }
        loss.shards.close()
        say(f"equality {n}: {found[str(n)]}")
    return found


def training_part(corpus: Corpus, client: Any) -> Report:
    training, problem = corpus.problem(corpus.file(sentences=300), precision="double")
    X = [[row.split(" ")[:2] for row in s.splitlines()] for s in corpus.text.split("\n\n")[:300] if s]
    found: Report = {"weights": problem.field.size}
    for name, penalty in SOLVERS.items():
        solver = make_solver(name, stopping=GradientNorm(1e-7), max_iterations=20_000)
        one = solver.minimize(problem.loss, penalty, np.zeros(problem.field.size))
        known = training.model_of(problem, one).predict(X)
        found[name] = {"evaluations": one.evaluations, "status": one.status.name}
        for n in SHARDS:
            loss = sharded_chain(client, Cluster(client, shards=n), training, problem.data, problem.field)
            many = solver.minimize(loss, penalty, np.zeros(problem.field.size))
            found[name][str(n)] = {
                "objective": abs(many.value / one.value - 1.0),
                "weights": float(np.abs(many.w - one.w).max()),
                "same predictions": training.model_of(problem, many).predict(X) == known,
            }
            loss.shards.close()
        say(f"training {name}: {found[name]}")
    return found


def overhead(corpus: Corpus, client: Any, rounds: int) -> Report:
    found: Report = {}
    for copies in (1, 10):
        training, problem = corpus.problem(corpus.file(copies))
        w = 0.1 * np.random.default_rng(0).normal(size=problem.field.size)
        here: Any = ChainLikelihood(problem.data, problem.field, 2, precision="auto")
        there = {
            transport: sharded_chain(
                client, Cluster(client, shards=2, transport=transport), training, problem.data, problem.field
            )
            for transport in ("double", "single")
        }
        seconds: dict[str, list[float]] = {"threads": [], **{name: [] for name in there}}
        slowest: dict[str, list[float]] = {name: [] for name in there}
        for _ in range(rounds if copies == 1 else max(3, rounds // 2)):
            for name, loss in {"threads": here, **there}.items():
                before = loss.shards.traffic.computing if name in there else 0.0
                begin = time.perf_counter()
                _ = loss.at(w).value
                seconds[name].append(time.perf_counter() - begin)
                if name in there:
                    slowest[name].append(loss.shards.traffic.computing - before)
        base = statistics.median(seconds["threads"])
        traffic = there["double"].shards.traffic
        found[str(copies)] = {
            "threads": base,
            "megabytes": (traffic.sent + traffic.received) / traffic.requests / 1e6,
            **{
                name: {
                    "seconds": statistics.median(seconds[name]),
                    "of which the slowest shard computes": statistics.median(slowest[name]),
                    "overhead": statistics.median(seconds[name]) / base - 1.0,
                }
                for name in there
            },
        }
        for loss in there.values():
            loss.shards.close()
        say(f"overhead, {copies} copies: {found[str(copies)]}")
    return found


def kills(corpus: Corpus, client: Any, times: int) -> Report:
    """Train `times` times; kill a random worker after a random part of the time that a training takes."""
    rng = random.Random(0)
    training, problem = corpus.problem(corpus.file(sentences=1000), precision="double")
    solver = make_solver("lbfgs", stopping=GradientNorm(1e-7), max_iterations=1000)

    def run() -> tuple[float, int, float]:
        loss = sharded_chain(client, Cluster(client, shards=3), training, problem.data, problem.field)
        begin = time.perf_counter()
        result = solver.minimize(loss, L2(1.0), np.zeros(problem.field.size))
        loss.shards.close()
        return result.value, loss.shards.traffic.lost, time.perf_counter() - begin

    expected, _, usual = run()
    differences, lost = [], 0
    for k in range(times):
        client.wait_for_workers(2, timeout=60)
        victim = rng.choice(list(client.run(os.getpid).values()))
        timer = threading.Timer(rng.uniform(0.0, 0.9) * usual, _kill, (victim,))
        timer.start()
        value, again, _ = run()
        timer.cancel()
        differences.append(abs(value / expected - 1.0))
        lost += again
        say(f"kill {k + 1}: {differences[-1]:.1e}, {again} shards made again")
    return {
        "trainings": times,
        "completed": len(differences),
        "shards made again": lost,
        "largest difference": max(differences),
    }


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def memory(corpus: Corpus) -> Report:
    """The peak of a client in a process of its own, whose workers are processes that do not count."""
    found: Report = {}
    (corpus.folder / "template").write_text(corpus.template.text, encoding="utf-8")
    for copies in (1, 10):
        made = child(__file__, "--client", corpus.file(copies), corpus.folder / "template")
        found[str(copies)] = {name: made[name] for name in ("peak", "weights", "seconds")}
        say(f"memory, {copies} copies: {found[str(copies)]}")
    found["ratio"] = found["10"]["peak"] / found["1"]["peak"]
    return found


def client_only(train: str, template: str) -> None:
    """Train from a file on two workers and print the peak of this process."""
    training = ChainTraining(template=template, solver="lbfgs", max_iterations=10)
    began = time.perf_counter()
    with connect("local:2") as client:
        model, _ = fit_urls(training, client, [train])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"peak": peak, "weights": len(model.w), "seconds": time.perf_counter() - began}))


def workers(corpus: Corpus, rounds: int) -> Report:
    """Seconds and bytes of an evaluation for several numbers of workers with one thread each."""
    training, problem = corpus.problem(corpus.file())
    w = 0.1 * np.random.default_rng(0).normal(size=problem.field.size)
    found: Report = {"tokens": problem.data.n_positions, "weights": problem.field.size}
    for n in (1, 2, 4):
        with connect(f"local:{n}") as client:
            loss = sharded_chain(client, Cluster(client, shards=n), training, problem.data, problem.field)
            _ = loss.at(w).value
            traffic = loss.shards.traffic
            before, asked = traffic.sent + traffic.received, traffic.computing
            taken = []
            for _ in range(rounds):
                begin = time.perf_counter()
                _ = loss.at(w).value
                taken.append(time.perf_counter() - begin)
            found[str(n)] = {
                "seconds": statistics.median(taken),
                "slowest shard": (traffic.computing - asked) / rounds,
                "megabytes": (traffic.sent + traffic.received - before) / rounds / 1e6,
            }
            small = sharded_chain(
                client, Cluster(client, shards=n), training, problem.data.take([0] * n), problem.field
            )
            _ = small.at(w).value
            begin = time.perf_counter()
            for _ in range(rounds):
                _ = small.at(w).value
            found[str(n)]["latency"] = (time.perf_counter() - begin) / rounds  # next to nothing computed or sent
            for each in (loss, small):
                each.shards.close()
        say(f"workers {n}: {found[str(n)]}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="equality,training,overhead,kills,memory,workers")
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "conll2000")
    parser.add_argument("--output", type=Path, default=RESULTS / "cluster.json")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="300 sentences, few rounds: to see that it runs")
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client_only(*options.client)
        return
    rounds = 4 if options.quick else options.rounds
    results: Report = json.loads(options.output.read_text()) if options.output.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(options.data, Path(folder), options.quick)
        parts: dict[str, Callable[[Any], Report]] = {
            "equality": lambda client: equality(corpus, client),
            "training": lambda client: training_part(corpus, client),
            "overhead": lambda client: overhead(corpus, client, rounds),
            "kills": lambda client: kills(corpus, client, 2 if options.quick else 20),
        }
        for part in options.parts.split(","):
            if part == "memory":
                results[part] = memory(corpus)
            elif part == "workers":
                results[part] = workers(corpus, rounds)
            else:
                with connect("local:2") as client:
                    results[part] = parts[part](client)
            write_results(options.output, results)


if __name__ == "__main__":
    os.chdir(HERE)
    main()
