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
SUITE = ["test_chain_loss.py", "test_tensor_tagging.py", "kernel_cases.py"]


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


COMPILE = """
import json, sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from crfkit.torch.kernels import chains, messages, sums, viterbi
import torch

SHARED = 227 * 1024  # bytes that a program may have on the GPUs of compute capability 9.0

def check(kernel, types, constants, warps):
    signature = {name: "constexpr" if name in constants else types[name] for name in kernel.arg_names}
    places = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    made = triton.compile(
        ASTSource(kernel, signature, constexprs=places), target=GPUTarget("cuda", 90, 32),
        options={"num_warps": warps, "num_stages": 1},
    )
    assert made.metadata.shared <= SHARED, (kernel, constants, made.metadata.shared)

for dtype, name in ((torch.float32, "*fp32"), (torch.float64, "*fp64")):
    tables = "unary E_table a_out b_out a_in b_in terms scratch pairs pair_top out pair_out table"
    of = dict.fromkeys(tables.split(), name)
    of |= dict.fromkeys("first lengths labels before begins ends targets".split(), "*i64")
    of |= dict.fromkeys("log_z weights value_out factors".split(), "*fp64")
    of |= dict.fromkeys("n_sequences n_labels n_rows n_lists n_columns".split(), "i32")
    of |= {"rows": "*i32", "pointers": "*u8"}
    for width, warps in chains.WARPS.items():
        common = {"PRECISION": chains.PRODUCT[dtype], "WIDTH": width, "SMALLEST": chains.SMALLEST[dtype]}
        parts = chains.PARTS[dtype].get(width, 1)
        check(messages.messages, of, {**common, "PARTS": parts, "SEQUENCES": chains.SEQUENCES}, warps)
        pairs = width <= chains.WIDEST_PAIRS
        check(messages.residuals, of, {**common, "WEIGHTED": True, "PAIRS": pairs, "ROWS": chains.ROWS[width]}, warps)
        check(sums._sum_lists, of, {"POWER": 1, "LISTS": max(1, sums.CELLS // width), "WIDTH": width}, 4)
        if width == 32:  # the number 1 is a constant for Triton
            few = {**common, "PARTS": parts, "SEQUENCES": chains.SEQUENCES, "n_labels": 1}
            check(messages.messages, of, few, warps)
        check(viterbi._viterbi, {**of, "labels": "*i32"}, {"WIDTH": width}, viterbi.WARPS[width])
print("done")
"""


@pytest.mark.slow
def test_they_compile_for_a_gpu():
    """Triton compiles without a GPU: types fit, and a program's tables fit into shared memory."""
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, check=False)
    assert "done" in done.stdout, done.stderr[-3000:]
