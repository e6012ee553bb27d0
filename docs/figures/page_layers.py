"""Figures of the layers for PyTorch: next to pytorch-crf, and a network next to features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from page_forms import megabytes, seconds, short, table, times

Load = Callable[[str], Any]


def layer(load: Load) -> dict[str, str]:
    """On one thread: on more, what else runs on the machine decides."""
    rows = []
    for run in load("torch_layer")["runs"]:
        if run["threads"] != 1:
            continue
        ours, theirs = run["layers"]["crfkit"], run["layers"]["pytorch-crf"]
        rows.append(
            (
                " × ".join(map(str, run["shape"])),
                *(f"{short(side['step_ms'])}" for side in (ours, theirs)),
                times(run["step_times_faster_than_pytorch_crf"]),
                *(f"{short(side['decode_ms'])}" for side in (ours, theirs)),
                times(run["decode_times_faster_than_pytorch_crf"]),
                *(megabytes(side["peak_mb"]) for side in (ours, theirs)),
            )
        )
    theirs = ("pytorch-crf", "faster")
    head = ("batch × steps × tags", "training", *theirs, "decoding", *theirs, "memory", "pytorch-crf")
    return {"layer.table": table(head, rows)}


def networks(load: Load) -> dict[str, str]:
    found = load("bilstm_crf")
    rows = [
        (name, f"{100 * side['f1']:.2f} %", seconds(side["seconds"]), f"{side['parameters']:,}")
        for name, side in (("`ChainCRF` with CRF++'s template", found["features"]), ("BiLSTM-CRF", found["bilstm"]))
    ]
    share = found["bilstm"]["seconds_in_crf_layer"] / found["bilstm"]["seconds"]
    return {
        "layer.networks": table(("", "F1 on the test set", "training", "parameters"), rows),
        "layer.share": f"{100 * share:.0f} %",
    }
