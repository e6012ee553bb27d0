"""Training on workers in network namespaces of their own: hosts of their own, as far as the network is concerned.

    python benchmarks/cluster_network.py [--data DIR] [--output results/cluster_network.json]

Needs Linux, root and iproute2. Two namespaces with a Dask worker each hang on a bridge; the scheduler and the client
are outside. Measured are an evaluation, its value against one process, and a training in which the link of a worker is
cut. The namespaces and the bridge are removed at the end.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from cluster import Corpus
from common import RESULTS, SHARED, Report, say, write_results

from crfkit import L2
from crfkit.distributed import Cluster, connect
from crfkit.distributed.chains import sharded_chain
from crfkit.solvers import make_solver
from crfkit.solvers.parts.stopping import GradientNorm

BRIDGE, NET, PORT, WORKERS = "crfkit0", "10.77.0", 8790, (1, 2)
TIMEOUT = 5.0  # seconds that an evaluation may take before its workers are looked for


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def network() -> Iterator[None]:
    """A bridge, and a namespace for each worker."""
    with ExitStack() as made:
        ip("link", "add", BRIDGE, "type", "bridge")
        made.callback(ip, "link", "del", BRIDGE)
        ip("addr", "add", f"{NET}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for k in WORKERS:
            space, outer, inner = f"crfkit{k}", f"crfo{k}", f"crfi{k}"
            ip("netns", "add", space)
            made.callback(ip, "netns", "del", space)
            ip("link", "add", outer, "type", "veth", "peer", "name", inner)
            ip("link", "set", inner, "netns", space)
            ip("link", "set", outer, "master", BRIDGE, "up")
            ip("-n", space, "addr", "add", f"{NET}.{10 + k}/24", "dev", inner)
            ip("-n", space, "link", "set", inner, "up")
            ip("-n", space, "link", "set", "lo", "up")
        yield


@contextmanager
def dask() -> Iterator[str]:
    """A scheduler outside and a worker in each namespace; yields the address of the scheduler."""
    address = f"tcp://{NET}.1:{PORT}"
    scheduler = ["-m", "distributed.cli.dask_scheduler", "--host", f"{NET}.1", "--port", str(PORT), "--no-dashboard"]
    commands = [[sys.executable, *scheduler]]
    for k in WORKERS:
        worker = ["-m", "distributed.cli.dask_worker", address, "--host", f"{NET}.{10 + k}", "--nthreads", "1"]
        commands.append(["ip", "netns", "exec", f"crfkit{k}", sys.executable, *worker, "--no-dashboard"])
    running = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for c in commands]
    try:
        yield address
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(30)


def measure(corpus: Corpus, address: str) -> Report:
    training, problem = corpus.problem(corpus.file())
    double = ChainDouble(corpus)
    found: Report = {"weights": problem.field.size}
    with connect(Cluster(address)) as client:
        client.wait_for_workers(len(WORKERS), timeout=60)
        w = 0.1 * np.random.default_rng(0).normal(size=problem.field.size)
        loss = sharded_chain(client, Cluster(client), training, problem.data, problem.field)
        found["shards"] = loss.shards.describe()
        taken = []
        for _ in range(20):
            begin = time.perf_counter()
            _ = loss.at(w).value
            taken.append(time.perf_counter() - begin)
        found["evaluation"] = statistics.median(taken)
        loss.shards.close()
        exact = sharded_chain(client, Cluster(client), double.training, double.problem.data, double.problem.field)
        v = np.random.default_rng(1).normal(size=double.problem.field.size)
        found["value"] = abs(exact.at(v).value / double.problem.loss.at(v).value - 1.0)
        exact.shards.close()
        say(f"evaluation: {found}")

        solver = make_solver("lbfgs", stopping=GradientNorm(1e-7), max_iterations=1000)
        start, penalty = np.zeros(double.problem.field.size), L2(1.0)
        here = solver.minimize(double.problem.loss, penalty, start)
        options = Cluster(client, timeout=TIMEOUT)
        cut = sharded_chain(client, options, double.training, double.problem.data, double.problem.field)
        begin = time.perf_counter()
        threading.Timer(1.0, ip, ("link", "set", "crfo1", "down")).start()
        there = solver.minimize(cut, penalty, start)
        found["cut link"] = {
            "difference": abs(there.value / here.value - 1.0),
            "shards made again": cut.shards.traffic.lost,
            "seconds": time.perf_counter() - begin,
        }
        say(f"cut link: {found['cut link']}")
    return found


class ChainDouble:
    """The first 1,000 sentences in double precision."""

    def __init__(self, corpus: Corpus) -> None:
        self.training, self.problem = corpus.problem(corpus.file(sentences=1000), precision="double")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "conll2000")
    parser.add_argument("--output", type=Path, default=RESULTS / "cluster_network.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, network(), dask() as address:
        found = measure(Corpus(options.data, Path(folder), False), address)
    write_results(options.output, found)


if __name__ == "__main__":
    main()
