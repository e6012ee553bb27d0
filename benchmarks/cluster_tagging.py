"""Tagging a bag on a Dask cluster of two processes against one process with two threads, on CoNLL-2000 chunking.

    python benchmarks/cluster_tagging.py [--data DIR] [--output results/cluster_tagging.json] [--copies 20] [--rounds 5]

The test file is tagged so many times over. The sentences are on the workers, as they are when each worker reads its
own files; `with transfer` also sends them from here and the labels back. Rounds take turns, and the median counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import dask.bag
from common import RESULTS, SHARED, say, seconds, write_results

from crfkit import ChainCRF, ChainModel, Template, read_columns
from crfkit.distributed import connect, tag_bag
from crfkit.distributed.worker_models import models_loaded

PARTITIONS = 16


def tokens_of(labels: Any) -> int:
    return sum(map(len, labels))


def train(data: Path, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 30 iterations do not converge
        template = Template.read(data / "chunking.template")
        ChainCRF(template, solver="lbfgs", max_iterations=30).fit(*read_columns(data / "train.txt")).save(path)


def measure(data: Path, path: Path, copies: int, rounds: int) -> dict[str, Any]:
    X = read_columns(data / "test.txt")[0] * copies
    n = sum(map(len, X))
    single = ChainModel.load(path, n_threads=2)
    expected = single.predict(X)
    with connect("local:2") as client:
        bag = dask.bag.from_sequence(X, npartitions=PARTITIONS)
        there = client.persist(bag)
        before = client.run(models_loaded)
        # numbers of tokens come back
        work = {
            "one process, 2 threads": lambda: single.predict(X),
            "cluster": lambda: client.compute(tag_bag(path, there).map_partitions(_sizes).sum()).result(),
            "cluster, model sent": lambda: client.compute(tag_bag(single, there).map_partitions(_sizes).sum()).result(),
            "cluster, with transfer": lambda: client.compute(tag_bag(path, bag)).result(),
        }
        assert work["cluster"]() == n
        after = client.run(models_loaded)
        assert work["cluster, with transfer"]() == expected
        work["cluster, model sent"]()
        times: dict[str, list[float]] = {name: [] for name in work}
        for k in range(rounds):
            say(f"round {k + 1} of {rounds}")
            for name, job in work.items():
                times[name].append(seconds(job))
        last = client.run(models_loaded)
    speed = {name: n / statistics.median(values) for name, values in times.items()}
    alone = times["one process, 2 threads"]
    return {
        "sentences": len(X),
        "tokens": n,
        "partitions": PARTITIONS,
        "model_megabytes": path.stat().st_size / 1e6,
        "tokens_per_second": speed,
        # of each round: they show how much the load of the machine varied
        "speed_of_cluster_by_one_process": [a / b for a, b in zip(alone, times["cluster"], strict=True)],
        "loads_per_worker_first_bag": [after[worker] - before[worker] for worker in after],
        "loads_per_worker_all": [last[worker] - before[worker] for worker in last],  # two models: one sent
        "seconds": times,
        "load": os.getloadavg()[0],  # of the machine; others may have been at work on it
    }


def _sizes(labels: Any) -> list[int]:
    return [tokens_of(labels)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "conll2000")
    parser.add_argument("--output", type=Path, default=RESULTS / "cluster_tagging.json")
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.crf"
        train(options.data, path)
        results = measure(options.data, path, options.copies, options.rounds)
    results |= {"date": time.strftime("%Y-%m-%d")}
    write_results(options.output, results)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
