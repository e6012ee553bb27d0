"""The test suites of other packages: fetched from their source distributions and run on crfkit in their place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import pytest

CACHE = Path(tempfile.gettempdir()) / f"crfkit-peer-sources-{os.getuid() if hasattr(os, 'getuid') else 'user'}"

# Ends the run if something else than crfkit stood behind the names. Of the five processes that a cross-validation asks
# for, each of which takes seconds to import scikit-learn, two do the work.
PLUGIN = """
import sys

from joblib._parallel_backends import LokyBackend

wanted = LokyBackend.effective_n_jobs
LokyBackend.effective_n_jobs = lambda self, n_jobs: min(wanted(self, n_jobs), 2)

def pytest_sessionfinish(session):
    loaded = [sys.modules[name] for name in ("pycrfsuite", "sklearn_crfsuite") if name in sys.modules]
    assert loaded and all(module.__name__.startswith("crfkit.compat.") for module in loaded), loaded
"""


@dataclass(frozen=True)
class Outcome:
    passed: set[str]
    failed: set[str]
    expected_failures: set[str]  # that the suite itself marks so
    text: str


def source_tests(name: str, version: str, target: Path) -> Path:
    """Return a copy of the tests of a source distribution; skip the test if it cannot be fetched."""
    archive = CACHE / f"{name.replace('-', '_')}-{version}.tar.gz"
    if not archive.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name, "--retries", "1"]
            try:
                fetched = subprocess.run(
                    [*pip, "-d", fresh, f"{name}=={version}"], capture_output=True, text=True, timeout=120
                )
                error = fetched.stderr.strip()
            except subprocess.TimeoutExpired:
                error = "timed out"
            found = list(Path(fresh).glob("*.tar.gz"))
            if not found:
                pytest.skip(f"the source distribution of {name} {version} cannot be fetched: {error[-200:]}")
            found[0].replace(archive)
    with tarfile.open(archive) as files:
        files.extractall(target, filter="data")
    (unpacked,) = target.iterdir()
    tests = target / "tests"
    shutil.move(unpacked / "tests", tests)  # away from the package itself
    shutil.rmtree(unpacked)
    return tests


def run_suite(tests: Path, *options: str) -> Outcome:
    """Run the tests in a process of their own, with crfkit installed in the place of the package."""
    plugins = tests.parent / "plugins"
    plugins.mkdir()
    (plugins / "ours_only.py").write_text(PLUGIN)
    report = tests.parent / "report.xml"
    command = [
        sys.executable, "-m", "crfkit.compat", "-m", "pytest", str(tests), "-q", "-p", "no:cacheprovider",
        "-p", "no:xdist", "-p", "ours_only", f"--junitxml={report}", f"--rootdir={tests.parent}", *options,
    ]  # fmt: skip
    path = os.pathsep.join([str(plugins), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=tests.parent, env={**os.environ, "PYTHONPATH": path}, timeout=300
    )
    text = run.stdout + run.stderr
    assert run.returncode in (0, 1), text
    assert "in pytest_sessionfinish" not in text, text
    passed, failed, expected = set(), set(), set()
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        group = failed if kinds & {"failure", "error"} else expected if "skipped" in kinds else passed
        group.add(f"{case.get('classname', '').split('.')[-1]}::{case.get('name')}")
    return Outcome(passed, failed, expected, text)
