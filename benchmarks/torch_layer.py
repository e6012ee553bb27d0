"""The CRF layer for PyTorch next to pytorch-crf and torch-struct: forward + backward, decoding, peak memory.

    python benchmarks/torch_layer.py [--device cpu] [--threads 1 2] [--rounds 15] [--output results/torch_layer.json]

The layers take turns in one process, with the same weights, emissions and number of threads; the figures are medians of
the rounds. On a GPU, times are those of CUDA events after a warm-up. Memory is that of a process that does nothing
else, above what it has with the inputs in place. "plain" is our layer without the compiled core.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from crfkit.torch import CRF, native

if native.available():
    from common import machine, say
else:  # GPU machines have no compiled core, which common needs

    def machine() -> dict[str, Any]:
        return {"processor": platform.processor(), "python": platform.python_version(), "kernels": None}

    def say(text: str) -> None:
        print(text, flush=True)


RESULTS = Path(__file__).parent / "results"
SHAPES = ((64, 128, 32), (8, 2048, 64), (512, 32, 9))  # batch, time, tags
MOST_POTENTIALS = 10_000_000  # numbers: torch-struct takes a hundred times their memory
LAYERS = ("crfkit", "plain", "pytorch-crf", "torch-struct")


class Ours:
    def __init__(self, shape: tuple[int, int, int], device: str, compiled: bool = True) -> None:
        self.layer = CRF(shape[2], batch_first=True).to(device)
        self.compiled = compiled

    def __enter__(self) -> None:
        self.before = native.available
        if not self.compiled:
            native.available = lambda: False

    def __exit__(self, *_: object) -> None:
        native.available = self.before

    def loss(self, u: Tensor, tags: Tensor) -> Tensor:
        with self:
            return -self.layer(u, tags)

    def decode(self, u: Tensor) -> Any:
        with self:
            return self.layer.decode(u)


class PytorchCRF:
    def __init__(self, shape: tuple[int, int, int], device: str) -> None:
        import torchcrf

        self.layer = torchcrf.CRF(shape[2], batch_first=True).to(device)
        self.mask = torch.ones(shape[:2], dtype=torch.bool, device=device)

    def loss(self, u: Tensor, tags: Tensor) -> Tensor:
        return -self.layer(u, tags, self.mask)

    def decode(self, u: Tensor) -> Any:
        return self.layer.decode(u, self.mask)


class TorchStruct:
    """It has no layer: potentials [batch, time − 1, next tag, tag] are made of emissions and transitions."""

    def __init__(self, shape: tuple[int, int, int], device: str) -> None:
        import torch_struct

        if shape[0] * shape[1] * shape[2] ** 2 > MOST_POTENTIALS:
            raise RuntimeError("left out: its table of potentials would take the machine's memory")
        self.chain = torch_struct.LinearChainCRF
        self.layer = CRF(shape[2], batch_first=True).to(device)  # for its parameters

    def potentials(self, u: Tensor) -> Tensor:
        layer = self.layer
        rows = u[:, 1:].clone()
        rows[:, -1] += layer.end_transitions
        first = u[:, 0] + layer.start_transitions
        scores = layer.transitions.T + rows[:, :, :, None]
        return torch.cat([scores[:, :1] + first[:, None, None, :], scores[:, 1:]], dim=1)

    def loss(self, u: Tensor, tags: Tensor) -> Tensor:
        scores = self.potentials(u)
        batch, steps, n, _ = scores.shape
        pairs = tags[:, 1:] * n + tags[:, :-1]
        gold = scores.reshape(batch, steps, n * n).gather(2, pairs[:, :, None]).sum()
        return self.chain(scores).partition.sum() - gold

    def decode(self, u: Tensor) -> Any:
        return self.chain(self.potentials(u)).argmax


def make(name: str, shape: tuple[int, int, int], device: str) -> Any:
    if name == "pytorch-crf":
        return PytorchCRF(shape, device)
    if name == "torch-struct":
        return TorchStruct(shape, device)
    return Ours(shape, device, name == "crfkit")


def clock(work: Callable[[], Any], device: str) -> float:
    """Return the milliseconds of a call."""
    if device == "cpu":
        begin = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - begin)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def inputs(shape: tuple[int, int, int], device: str) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    u, tags = torch.randn(shape, device=device), torch.randint(shape[2], shape[:2], device=device)
    return u.requires_grad_(), tags


def step(layer: Any, u: Tensor, tags: Tensor) -> float:
    u.grad = None
    loss = layer.loss(u, tags)
    loss.backward()
    return float(loss)


def measure(shape: tuple[int, int, int], device: str, rounds: int) -> dict[str, Any]:
    u, tags = inputs(shape, device)
    layers, values, missing = {}, {}, {}
    for name in LAYERS:
        if name == "plain" and (device != "cpu" or not native.available()):
            continue
        try:
            layer = make(name, shape, device)
            layer.layer.load_state_dict((layers.get("crfkit") or layer).layer.state_dict())
            values[name] = step(layer, u, tags)
            with torch.no_grad():
                layer.decode(u)
            layers[name] = layer
        except (ImportError, RuntimeError, AttributeError, TypeError, NotImplementedError) as error:
            missing[name] = f"{type(error).__name__}: {error}"[:200]
    times: dict[str, dict[str, list[float]]] = {name: {"step": [], "decode": []} for name in layers}
    for _ in range(rounds):
        for name, layer in layers.items():
            if len(times[name]["step"]) >= 2 and sum(times[name]["step"]) > 5e3:
                continue  # slow enough
            times[name]["step"].append(clock(lambda layer=layer: step(layer, u, tags), device))
            with torch.no_grad():
                times[name]["decode"].append(clock(lambda layer=layer: layer.decode(u), device))
    found: dict[str, Any] = {"shape": shape, "missing": missing, "layers": {}}
    for name, of_layer in times.items():
        row = {f"{what}_ms": round(statistics.median(ms), 3) for what, ms in of_layer.items()}
        row |= {f"{what}_best_ms": round(min(ms), 3) for what, ms in of_layer.items()}
        row["loss"] = values[name]
        row["peak_mb"] = peak(name, shape, device)
        found["layers"][name] = row
    if "pytorch-crf" in layers:
        for what in ("step", "decode"):
            ratios = [b / a for a, b in zip(times["crfkit"][what], times["pytorch-crf"][what], strict=False)]
            found[f"{what}_times_faster_than_pytorch_crf"] = round(statistics.median(ratios), 1)
    return found


def peak(name: str, shape: tuple[int, int, int], device: str) -> float:
    """Return the peak memory of forward + backward in MB, in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--device", device, "--threads", str(torch.get_num_threads())]
    command += ["--peak", name, *map(str, shape)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def print_peak(name: str, shape: tuple[int, int, int], device: str) -> None:
    small = (2, 3, shape[2])
    warm = make(name, small, device)
    step(warm, *inputs(small, device))  # loads what is needed
    u, tags = inputs(shape, device)
    layer = make(name, shape, device)
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step(layer, u, tags)
        print((torch.cuda.max_memory_allocated() - before) / 1e6)
        return
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = memory("VmRSS")
    step(layer, u, tags)
    print((memory("VmHWM") - before) / 1e3)


def memory(name: str) -> int:
    """Return a line of Linux's account of this process, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--threads", type=int, nargs="+", default=sorted({1, torch.get_num_threads()}), help="of all layers"
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="how many of the shapes")
    parser.add_argument("--output", type=Path, default=RESULTS / "torch_layer.json")
    parser.add_argument("--peak", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads[0])
    if given.peak:
        name, *shape = given.peak
        print_peak(name, tuple(map(int, shape)), given.device)
        return
    name = torch.cuda.get_device_name() if given.device != "cpu" else machine()["processor"]
    report: dict[str, Any] = {
        "machine": machine(),
        "device": name,
        "command": " ".join(["python", *sys.argv]),
        "torch": torch.__version__,
        "rounds": given.rounds,
        "runs": [],
    }
    runs = [(threads, shape) for threads in given.threads for shape in SHAPES[: given.shapes]]
    for threads, shape in runs:
        torch.set_num_threads(threads)
        found = measure(shape, given.device, given.rounds)
        report["runs"].append({"threads": threads} | found)
        for layer, row in found["layers"].items():
            say(f"{threads} threads, {'×'.join(map(str, shape))}  {layer:12} {row}")
        for layer, why in found["missing"].items():
            say(f"{layer}: {why}")
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
