"""The cores and threads of a process that runs tests. To be imported before NumPy, which asks once.

Each process of `pytest -n` gets a core of its own, as threads of two processes on the same cores wait for each other.
Tests of several threads name their number. Only the defaults, as many as there are cores, are one here;
CRFKIT_TEST_THREADS makes that of crfkit another number on every machine, and OPENBLAS_NUM_THREADS that of OpenBLAS.
"""

from __future__ import annotations

import os


def choose() -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if threads := os.environ.get("CRFKIT_TEST_THREADS"):
        os.sched_getaffinity = lambda pid: set(range(int(threads)))
    elif worker.startswith("gw") and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker[2:]) % len(cores)]})
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


choose()
