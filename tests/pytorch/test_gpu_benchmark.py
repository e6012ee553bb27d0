"""benchmarks/gpu.py runs on the CPU with small data, also without the compiled core."""

import json
import os
import subprocess
import sys
from pathlib import Path

from optional import optional

optional("torch")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.py"
RUN = """
import runpy, sys
sys.modules["crfkit._core"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_it_runs_on_the_cpu(tmp_path):
    out = tmp_path / "gpu.json"
    command = [sys.executable, "-c", RUN, SCRIPT, "--device", "torch:cpu", "--quick", "--out", out, "--big", "20000"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(out.read_text())
    assert found["machine"]["device"] == "CPU"
    assert found["training"]["evaluations"] > 5
    assert found["big: evaluation"]["tokens"] > 10_000
