"""What the results of the segmenter on folds say; only of what has been run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from results_file import read

NAMES = {
    "L2": "likelihood by trw, L2(1), centred differences: the default",
    "L2, uncentred": "the same, |h_i − h_j| as they are",
    "L1, noise": "L1, with features of noise, centred",
    "L1, noise, uncentred": "the same, uncentred",
    "logistic regression": "logistic regression, block by block",
    "pl": "pseudo-likelihood, the penalty of edges chosen on held-out images",
    "pl, L2(1)": "pseudo-likelihood, L2(1) on all weights",
}


def facts(folder: Path) -> dict[str, Any]:
    """Return the values of the page from the results in a folder."""
    file = folder / "results.json"
    results: dict[str, Any] = read(file)
    variants = results.get("variants", {})
    rows = {name: _row(name, variants[name]) for name in [*NAMES, *variants] if name in variants}
    pair = rows.get("L1, noise"), rows.get("L1, noise, uncentred")
    plain = rows.get("L2"), rows.get("L2, uncentred")
    return {
        "images": results.get("images"),
        "noise": results.get("noise"),
        "strength": results.get("strength"),
        "rows": list(rows.values()),
        "by": {name.replace(", ", "_").replace(" ", "_"): row for name, row in rows.items()},
        "l1": {"centred": pair[0], "uncentred": pair[1]} if all(pair) else None,
        "l2": {"centred": plain[0], "uncentred": plain[1]} if all(plain) else None,
    }


def _row(name: str, folds: dict[str, Any]) -> dict[str, Any]:
    """Return the means over folds."""

    def mean(*keys: str) -> float | None:
        found = []
        for fold in folds.values():
            value: Any = fold
            for key in keys:
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                found.append(value)
        return float(np.mean(found)) if found else None

    return {
        "name": NAMES.get(name, name),
        "folds": len(folds),
        "bilinear": mean("bilinear"),
        "nearest": mean("nearest"),
        "seconds": mean("cpu_seconds"),
        "pairwise": mean("pairwise", "kept"),
        "noise_unary": mean("unary", "noise") if "noise" in name else None,
        "noise_pairwise": mean("pairwise", "noise") if "noise" in name else None,
    }
