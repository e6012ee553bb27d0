"""The tables of docs/explanation/scale.md: what cluster.py measured, and a prediction. write_figures.py puts them in.

The time of an evaluation on n machines is modelled as

    T(n) = tokens·c/(n·cores) + levels(n)·(latency + bytes/bandwidth)

with c the core-seconds of a token, `levels` the depth of the tree of shards, and `bytes` what a node of the tree sends
to and receives from the branches below it: 2·8 bytes for every weight of every branch.
"""

from __future__ import annotations

import math
from typing import Any

FAN_OUT = 8
CORES, BANDWIDTH, LATENCY = 16, 1.25e9, 0.005  # of a machine; bytes and seconds of a 10 Gbit network
MACHINES = (1, 8, 32, 128, 256)
CORPORA = ((1e8, 1e7), (1e9, 3e7), (1e10, 1e8), (1e11, 1e8))  # (tokens, weights)


def levels(n: int) -> int:
    """Return how many levels of branches a tree of n shards has below the client."""
    depth, reached = 0, 0
    while reached < n:
        depth += 1
        reached += FAN_OUT**depth
    return depth


def seconds(tokens: float, weights: float, n: int, per_token: float) -> float:
    """Return the modelled time of an evaluation on n machines; on one there is nothing to send."""
    computing = tokens * per_token / (n * CORES)
    if n == 1:
        return computing
    return computing + levels(n) * (LATENCY + 16.0 * weights * min(n, FAN_OUT) / BANDWIDTH)


def per_token(found: dict[str, Any]) -> float:
    """Return the core-seconds of a token: of one worker with one thread."""
    return float(found["workers"]["1"]["slowest shard"] / found["workers"]["tokens"])


def measured(found: dict[str, Any]) -> str:
    """Return the table of what was measured; the bandwidth of the model is what the evaluation of one worker shows."""
    workers = found["workers"]
    one = workers["1"]
    speed = one["megabytes"] * 1e6 / max(one["seconds"] - one["slowest shard"] - one["latency"], 1e-4)
    lines = [
        "| workers | an evaluation | of which the slowest shard | megabytes moved | the model says |",
        "|---|---|---|---|---|",
    ]
    for n in ("1", "2", "4"):
        row = workers[n]
        model = row["slowest shard"] + row["latency"] + row["megabytes"] * 1e6 / speed
        lines.append(
            f"| {n} | {1000 * row['seconds']:.0f} ms | {1000 * row['slowest shard']:.0f} ms | {row['megabytes']:.1f} | "
            f"{1000 * model:.0f} ms |"
        )
    return "\n".join(lines)


def predicted(found: dict[str, Any]) -> str:
    """Return the table of predictions."""
    head = "| tokens | weights | " + " | ".join(f"{n} machine{'s' if n > 1 else ''}" for n in MACHINES) + " | fastest |"
    lines = [head, "|---" * (len(MACHINES) + 3) + "|"]
    for tokens, weights in CORPORA:
        times = {n: seconds(tokens, weights, n, per_token(found)) for n in MACHINES}
        every = range(1, 4097)
        best = min(every, key=lambda n: seconds(tokens, weights, n, per_token(found)))
        cells = " | ".join(f"{t:.3g} s" if t < 1000 else f"{t:,.0f} s" for t in times.values())
        lines.append(f"| 10^{round(math.log10(tokens))} | {weights / 1e6:,.0f} M | {cells} | {best} |")
    return "\n".join(lines)
