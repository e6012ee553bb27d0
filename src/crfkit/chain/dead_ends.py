"""Where a sequence runs out of labellings: which position no allowed path reaches."""

from __future__ import annotations

import numpy as np

from crfkit._types import Flags
from crfkit.chain.fields.field import ChainField


def dead_end(field: ChainField, length: int, allowed: Flags | None) -> str | None:
    """Return a sentence that names the first position which no labelling reaches, or None if there is a labelling.

    `allowed` is [positions, labels] of this sequence, or None.
    """
    if length == 0:
        return None
    L = field.n_labels
    limits = np.ones((length, L), dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
    reached = limits[0] if field.allowed_start is None else limits[0] & field.allowed_start
    if not reached.any():
        return "at position 0, no label that is allowed there may begin a sequence"
    for t in range(1, length):
        follows = np.ones(L, dtype=bool) if field.allowed is None else field.allowed[reached].any(axis=0)
        reached = follows & limits[t]
        if not reached.any():
            return f"at position {t}, no label that is allowed there may follow those that are possible before it"
    if field.allowed_end is not None and not (reached & field.allowed_end).any():
        return f"at position {length - 1}, its last, no label that is possible there may end a sequence"
    return None
