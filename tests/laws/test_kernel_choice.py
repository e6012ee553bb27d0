"""Every instruction set computes the same: CRFKIT_KERNELS forces one on a process, whose answers are compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_answers import answers
from numpy.testing import assert_allclose

from crfkit import _core

SCRIPT = Path(__file__).resolve().parents[1] / "kernel_answers.py"


def run(kernels: str, *command: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CRFKIT_KERNELS": kernels}
    command = (sys.executable, *map(str, command))
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def default():
    return answers()


@pytest.mark.parametrize("kernels", _core.available_kernels())
def test_forced_kernels_compute_what_the_default_ones_do(kernels, default, tmp_path):
    done = run(kernels, SCRIPT, tmp_path / "answers.npz")
    assert (done.returncode, done.stderr) == (0, "")
    with np.load(tmp_path / "answers.npz") as found:
        assert set(found) == set(default)
        for name, expected in default.items():
            assert_allclose(found[name], expected, rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("kernels", ["auto", ""])
def test_auto_is_the_fastest(kernels):
    done = run(kernels, "-c", "from crfkit import _core; print(_core.default_kernels())")
    assert done.stdout.strip() == _core.available_kernels()[0]


def test_the_version_shows_which_kernels_are_forced():
    done = run("generic", "-m", "crfkit", "--version")
    assert "kernels: generic (set by CRFKIT_KERNELS; also available: " in done.stdout


def test_kernels_that_there_are_not():
    """An error at first use: importing works, and other functions do too."""
    code = """
import crfkit
from crfkit.errors import ParameterError
X, y = [[["a"], ["b"]]], [["A", "B"]]
for use in (lambda: crfkit.ChainCRF().fit(X, y), lambda: crfkit.show_versions()):
    try:
        use()
    except ParameterError as error:
        print(error)
"""
    available = ", ".join(_core.available_kernels())
    message = (
        f"the environment variable CRFKIT_KERNELS is 'sse9', but this machine runs the kernels {available}; set it to "
        "one of them, or unset it"
    )
    done = run("sse9", "-c", code)
    assert (done.stdout.splitlines(), done.stderr) == ([message, message], "")
    done = run("sse9", "-m", "crfkit", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"crfkit: error: {message}\n")
