"""The Triton kernels, run on the CPU by Triton's interpreter in a process of its own, give the numbers of the core."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from optional import optional

optional("torch")
pytest.importorskip("triton", reason="triton is not installed: pip install triton")

HERE = Path(__file__).parent
SUITE = ["test_chain_loss.py", "test_tagging.py", "kernel_cases.py"]


def test_they_give_the_numbers_of_the_core():
    """The interpreter is switched on before Triton is loaded."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(HERE / name) for name in SUITE)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
