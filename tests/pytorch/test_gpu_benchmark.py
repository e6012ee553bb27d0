"""benchmarks/gpu.py and gpu_fields.py run on the CPU with small data, also without the compiled core."""

import json
import os
import subprocess
import sys
from pathlib import Path

from optional import optional

optional("torch")

FOLDER = Path(__file__).parents[2] / "benchmarks"
RUN = """
import runpy, sys
sys.modules["crfkit._core"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_on_the_cpu(script, out, *options):
    command = [sys.executable, "-c", RUN, FOLDER / script, "--device", "torch:cpu", "--out", out, *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text())


def test_chains(tmp_path):
    found = run_on_the_cpu("gpu.py", tmp_path / "gpu.json", "--quick", "--big", "20000")
    assert found["machine"]["device"] == "CPU"
    assert found["training"]["evaluations"] > 5
    assert found["big: evaluation"]["tokens"] > 10_000


def test_fields(tmp_path):
    found = run_on_the_cpu("gpu_fields.py", tmp_path / "fields.json", "--side", "30", "--rounds", "2")
    assert [run["directed_messages"] for run in found["runs"]] == [4 * 30 * 29] * 2
    assert found["runs"][0]["belief_propagation"]["updates_per_second"] > 0
    assert found["largest_difference"] < 1e-4
