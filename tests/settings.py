"""Run the tests as other machines would: `python tests/settings.py`, with one line for each setting.

A setting chooses the kernels of crfkit and of OpenBLAS, the instructions of NumPy and the numbers of threads, by
environment variables. A test that fails in one of them compares what depends on rounding. Arguments go to pytest;
without any, the tests run whose numbers may depend on the machine. `--only=old` limits the run to settings with that
in their names. The exit code is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crfkit import _core

REPOSITORY = Path(__file__).resolve().parent.parent
# Commands, clusters, faults and the fuzzer train with the same code, in other processes and more slowly.
FOLDERS = [f"tests/{folder}" for folder in ("laws", "products", "parity", "unit")]
DEFAULT = ["-n", "2", "--dist", "worksteal", "-m", "not slow", *FOLDERS]
CORES = {"Nehalem": "generic", "Haswell": "avx2", "SkylakeX": "avx512"}  # of OpenBLAS: what the machine must run


def choices() -> dict[str, dict[str, str]]:
    """Return the environment of every setting that this machine can run, by name."""
    kernels = _core.available_kernels()
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    baseline = {"NPY_DISABLE_CPU_FEATURES": " ".join(simd.get("found", []))}
    settings = {"default": {}}
    settings |= {f"{name} kernels": {"CRFKIT_KERNELS": name} for name in kernels[1:]}
    settings |= {f"threads {n}": {"CRFKIT_TEST_THREADS": str(n), "OPENBLAS_NUM_THREADS": str(n)} for n in (1, 2, 4)}
    if platform.machine().lower() in ("x86_64", "amd64"):
        cores = {name: {"OPENBLAS_CORETYPE": name} for name, needed in CORES.items() if needed in kernels}
    else:
        cores = {}
    settings |= {f"BLAS {name}": environment for name, environment in cores.items()}
    if baseline["NPY_DISABLE_CPU_FEATURES"]:
        settings["NumPy baseline"] = baseline
    old = baseline | cores.get("Nehalem", {}) | {"CRFKIT_KERNELS": kernels[-1]} | settings["threads 1"]
    settings["old machine"] = old
    if "avx2" in kernels:
        settings["old laptop"] = old | {"CRFKIT_KERNELS": "avx2"} | settings["threads 4"]
    return settings


NAMES = {name for environment in choices().values() for name in environment}


@dataclass
class Outcome:
    seconds: float
    passed: int
    skipped: int
    failed: list[str]
    output: str

    def __str__(self) -> str:
        return f"{self.passed} passed, {len(self.failed)} failed, {self.skipped} skipped, {self.seconds:.0f} s"


def run(setting: dict[str, str], arguments: list[str]) -> Outcome:
    environment = {name: value for name, value in os.environ.items() if name not in NAMES} | setting
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", f"--junit-xml={report}", "-o", "junit_family=xunit1", *arguments]
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode not in (0, 1) or not report.is_file():
            raise SystemExit(f"{done.stdout}\npytest ended with exit code {done.returncode}")
        cases = ElementTree.parse(report).getroot().findall("*/testcase")
    failed = [
        f"{case.get('file')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return Outcome(time.monotonic() - start, len(cases) - skipped - len(failed), skipped, failed, done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of the settings to run")
    options, arguments = parser.parse_known_args()
    settings = {name: setting for name, setting in choices().items() if options.only in name}
    if not settings:
        parser.error(f"--only is {options.only!r}; expected part of one of: {', '.join(choices())}")
    some_failed = False
    for name, setting in settings.items():
        outcome = run(setting, arguments or DEFAULT)
        print(f"{name:20} {outcome}", flush=True)
        if outcome.failed:
            some_failed = True
            variables = [f"{key}={shlex.quote(value)}" for key, value in setting.items()]
            again = ["python", "-m", "pytest", *map(shlex.quote, outcome.failed)]
            print(f"{outcome.output}\nTo repeat these: {' '.join(variables + again)}\n", flush=True)
    return int(some_failed)


if __name__ == "__main__":
    sys.exit(main())
