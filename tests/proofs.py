"""What once ended the process, took gigabytes or hours, or raised an error of its own: each is refused with a sentence.

    python tests/proofs.py

prints a line for every proof: the error, its CPU seconds, and how much memory it took. Exits with 1 if an error is not
one of crfkit.errors, or took more than 2 seconds or 500 MB.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fuzz import chains, checkpoints, fields
from fuzz.containers import put_together, take_apart
from scipy.sparse import csr_array

from crfkit import ChainCRF, ChainModel, GraphCRF, ImageSegmenter
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.errors import CrfkitError
from crfkit.files.columns import read_columns
from crfkit.files.images import read_image
from crfkit.files.tables import read_table

SECONDS, MEGABYTES = 2.0, 500.0
SEEDS = {target.name: target for module in (chains, fields, checkpoints) for target in module.TARGETS}
WRAPS = np.array([0, 2**31 - 1, -(2**31), -1], dtype=np.int32)  # differences of int32 that all seem to be positive

Proof = Callable[[], object]
PROOFS: dict[str, Callable[[Path], Proof]] = {}


def proof(name: str) -> Callable[[Callable[[Path], Proof]], None]:
    """Register a function that prepares a proof in a folder, and returns what is measured."""

    def register(prepare: Callable[[Path], Proof]) -> None:
        PROOFS[name] = prepare

    return register


@cache
def valid(name: str) -> bytes:
    return SEEDS[name].seed()


def changed(folder: Path, name: str, change: Callable[[Any, Any], None]) -> Path:
    """Write a valid file of the fuzzer with other contents and right checksums."""
    metadata, tensors = take_apart(valid(name))
    tensors = {key: np.array(array) for key, array in tensors.items()}
    change(metadata, tensors)
    path = folder / "model.crf"
    path.write_bytes(put_together(metadata, tensors))
    return path


def model(name: str, change: Callable[[Any, Any], None], load: Callable[[Path], object]) -> Callable[[Path], Proof]:
    def prepare(folder: Path) -> Proof:
        path = changed(folder, name, change)
        return lambda: load(path)

    return prepare


# --- indices

proof("codes that wrap around in a model")(
    model(
        "chain-observed",
        lambda m, t: (m.update(n_transition=4), t.update({"field.transition_codes": WRAPS})),
        ChainModel.load,
    )
)
proof("offsets that wrap around in a model")(
    model(
        "chain-observed",
        lambda m, t: t["field.state_offsets"].__setitem__(slice(1, 3), [2**63 - 1, -(2**63)]),
        ChainModel.load,
    )
)
proof("codes that wrap around in Python")(
    lambda folder: lambda: ChainField(40_000, 1, transition_codes=WRAPS, n_transition=4)
)


def labelled(n: int) -> SequenceData:
    return SequenceData(np.array([0, n]), np.arange(n + 1), np.zeros(n, np.int32), labels=np.arange(n, dtype=np.int32))


def train_field(n: int, order: int) -> ChainField:
    return ChainField.from_data(labelled(n), n, 1, all_states=False, all_transitions=False, order=order)


proof("1,400 labels at order 2")(lambda folder: lambda: train_field(1_400, 2))
proof("50,000 labels at order 1")(lambda folder: lambda: train_field(50_000, 1))


def broken_matrix() -> Any:
    matrix = csr_array(np.eye(4))
    matrix.indices[1] = 2**30
    return matrix


proof("a sparse matrix of a chain")(lambda folder: lambda: ChainCRF().fit([broken_matrix()], [["a", "b", "a", "b"]]))
proof("a sparse matrix of a table")(lambda folder: lambda: GraphCRF().fit(broken_matrix(), [[0, 1], [1, 0]] * 2))
proof("a masked array")(
    lambda folder: lambda: GraphCRF().fit(np.ma.masked_greater(np.eye(4), 0.5), [[0, 1], [1, 0]] * 2)
)

# --- small files that ask for much


def many_labels(metadata: Any, tensors: Any) -> None:
    metadata.update(labels=[f"l{k}" for k in range(30_000)], n_transition=0)
    tensors["field.transition_codes"] = np.zeros(0, np.int32)


def option(name: str, value: object) -> Callable[[Any, Any], None]:
    return lambda metadata, tensors: metadata["inference"]["options"].update({name: value})


proof("30,000 labels in a small file")(model("chain-observed", many_labels, ChainModel.load))
proof("10¹² sweeps")(model("graph-gibbs", option("n_sweeps", 10**12), GraphCRF.load))
proof("10¹² trees")(model("graph-trw", option("n_trees", 10**12), GraphCRF.load))
proof("own_features: 300,000,000")(
    model("graph-inputs", lambda m, t: m.update(own_features=300_000_000), GraphCRF.load)
)
proof("images of 60,000 × 60,000 pixels")(
    model("segmenter", lambda m, t: m["image_features"].update(size=[60_000, 60_000]), ImageSegmenter.load)
)


@proof("a PNG of 13,300 × 13,300 pixels")
def large_picture(folder: Path) -> Proof:
    from PIL import Image

    path = folder / "large.png"
    Image.new("1", (13_300, 13_300)).save(path)
    return lambda: read_image(path)


@proof("a line without end in a gzip")
def long_line(folder: Path) -> Proof:
    path = folder / "line.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(200):
            stream.write(b"a" * 1_000_000)
    return lambda: read_columns(path)


@proof("200,000 columns of a CSV file")
def wide_table(folder: Path) -> Proof:
    path = folder / "wide.csv"
    path.write_text((",".join("1" * 200_000) + "\n") * 3)
    return lambda: read_table(path)


# --- errors of other kinds


def many_dimensions(folder: Path) -> Proof:
    path = changed(folder, "chain-items", lambda m, t: t.update(weights=np.zeros(1)))
    blob, old = path.read_bytes(), b'"dtype": "F64", "shape": [1]'
    new = b'"dtype": "F64", "shape": %s' % str([1] * 65).encode()
    header = int.from_bytes(blob[:8], "little") + len(new) - len(old)
    path.write_bytes(header.to_bytes(8, "little") + blob[8:].replace(old, new))
    return lambda: ChainModel.load(path)


proof("a tensor of 65 dimensions")(many_dimensions)
proof("an engine's option named engine")(model("graph-trw", option("engine", 4), GraphCRF.load))
proof("an engine's option named graph")(model("graph-trw", option("graph", 4), GraphCRF.load))
proof("lone surrogates in labels")(lambda folder: lambda: ChainCRF().fit([[["x"], ["y"]]], [["\ud800", "b"]]))
proof("100,000 threads")(lambda folder: lambda: ChainCRF(n_threads=100_000).fit([[["x"], ["y"]]], [["a", "b"]]))


@proof("a loop of symbolic links")
def loop(folder: Path) -> Proof:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    return lambda: ChainModel.load(folder / "a")


def resumed(name: str, change: Callable[[Any, Any], None]) -> Callable[[Path], Proof]:
    def prepare(folder: Path) -> Proof:
        path = changed(folder, name, change)
        target = SEEDS[name]
        return lambda: target.use(path, target.random(0, 0))

    return prepare


proof("a checkpoint of BFGS with another matrix")(
    resumed("checkpoint-bfgs-0", lambda m, t: t.update({"state.inverse": np.eye(2)}))
)
proof("a checkpoint of L-BFGS with too few products")(
    resumed("checkpoint-lbfgs-0", lambda m, t: t.update({"state.products": np.zeros(2)}))
)
proof("a checkpoint of ADMM with a huge count")(resumed("checkpoint-admm-1", lambda m, t: m["state"].update(k=10**400)))


# --- measuring


def peak() -> float:
    """Return the most memory since the last `forget_peak`, in megabytes; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM")), 0.0)


def forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def attempt(run: Proof) -> tuple[str, bool]:
    """Return what a proof raises as a line, and whether it may."""
    forget_peak()
    before, begin = peak(), time.process_time()
    try:
        run()
        said, allowed = "nothing was raised", False
    except CrfkitError as error:
        said, allowed = f"{type(error).__name__}: {error}", True
    except Exception as error:
        said, allowed = f"NOT OF CRFKIT: {error!r}", False
    seconds, memory = time.process_time() - begin, peak() - before
    allowed = allowed and seconds <= SECONDS and memory <= MEGABYTES
    return f"{seconds:6.3f} s {memory:6.1f} MB  {said}", allowed


def main() -> int:
    warnings.simplefilter("ignore")
    wrong = 0
    for name, prepare in PROOFS.items():
        with tempfile.TemporaryDirectory() as folder:
            line, allowed = attempt(prepare(Path(folder)))
        wrong += not allowed
        print(f"{'ok' if allowed else 'WRONG':6}{name:50}{line.replace(folder, '…')}", flush=True)
    print(f"{len(PROOFS)} proofs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
