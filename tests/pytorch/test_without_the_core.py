"""Losses on tensors, solvers and penalties work on machines that do not have the compiled core."""

import subprocess
import sys

from optional import optional

optional("torch")

from tensor_cases import chains  # noqa: E402

from crfkit.torch.chain_arrays import ChainArrays  # noqa: E402

TRAIN = """
import sys
sys.modules["crfkit._core"] = None
from crfkit.penalties import L1, L2
from crfkit.solvers import make_solver
from crfkit.torch.chain_arrays import ChainArrays
from crfkit.torch.chain_loss import TensorChainLikelihood
import numpy as np, crfkit.torch
loss = TensorChainLikelihood(ChainArrays.load(sys.argv[1]), "torch:cpu")
for name, penalty in (("lbfgs", L2(0.5)), ("tron", L2(0.5)), ("owlqn", L1(0.5)), ("fista", L1(0.5))):
    result = make_solver(name).minimize(loss, penalty, loss.zeros())
    assert result.status.converged, (name, result)
    assert np.isfinite(result.value)
print("done")
"""


def test_training(tmp_path):
    ChainArrays.of(*chains()).save(tmp_path / "chains.npz")
    found = subprocess.run(
        [sys.executable, "-c", TRAIN, str(tmp_path / "chains.npz")], capture_output=True, text=True, check=False
    )
    assert found.stdout.strip() == "done", found.stderr[-3000:]
