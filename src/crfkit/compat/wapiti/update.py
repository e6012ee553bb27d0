"""``crfkit-wapiti update``: a model with weights that a patch, in the form of `dump`, changes; and compact models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from crfkit.convert.wapiti_model import WapitiModel
from crfkit.errors import DataError


def update(model: WapitiModel, lines: Iterable[bytes], name: str) -> WapitiModel:
    """Return the model with the weights of a patch: lines of observation, label before or #, label, weight."""
    observations = {text: i for i, text in enumerate(model.observations)}
    labels = {text: i for i, text in enumerate(model.labels)}
    starts, n = model.starts(), len(model.labels)
    weights = dict(zip(model.index.tolist(), model.weights.tolist(), strict=True))
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if not cells:
            continue
        if len(cells) != 4:
            raise DataError(
                f"{len(cells)} columns; expected 4: observation, label before or #, label, weight", name, number
            )
        text, before, label, weight = cells
        for what, given, known in (("observation", text, observations), ("label", label, labels)):
            if given not in known:
                raise DataError(f"the model has no {what} {given.decode('utf-8', 'replace')!r}", name, number)
        if before != b"#" and before not in labels:
            raise DataError(f"the model has no label {before.decode('utf-8', 'replace')!r}", name, number)
        if text[:1] == (b"b" if before == b"#" else b"u"):
            kind = "single labels" if before == b"#" else "label pairs"
            raise DataError(
                f"the observation {text.decode('utf-8', 'replace')!r} has no weights of {kind}", name, number
            )
        place = labels[label]
        if before != b"#":
            place += labels[before] * n + (n if text.startswith(b"*") else 0)
        weights[int(starts[observations[text]]) + place] = _number(weight, name, number)
    index = np.array(sorted(weights), dtype=np.int64)
    return replace(model, index=index, weights=np.array([weights[place] for place in index.tolist()]))


def _number(text: bytes, name: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"the weight {text.decode('utf-8', 'replace')!r} is not a finite number", name, line)
    return value


def compact(model: WapitiModel, say: Callable[[str], None]) -> WapitiModel:
    """Return the model without observations that have no weights; say how many they were."""
    say("* Compacting the model\n    - Scan the model\n    - Compact it\n")
    used = model.weights != 0
    owner = np.searchsorted(model.starts(), model.index[used], side="right") - 1
    kept = np.unique(owner)
    small = replace(model, observations=tuple(model.observations[i] for i in kept.tolist()))
    begin = small.starts()[np.searchsorted(kept, owner)] - model.starts()[owner]
    say(f"    {len(model.observations) - len(kept):8d} observations removed\n")
    say(f"    {int(model.starts()[-1] - small.starts()[-1]):8d} features removed\n")
    return replace(small, index=model.index[used] + begin, weights=model.weights[used])
