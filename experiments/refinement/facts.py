"""What the results of the refinement say; only of what has been run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from results_file import read


def facts(folder: Path) -> dict[str, Any]:
    """Return the values of the page from the results in a folder."""
    file = folder / "results.json"
    results: dict[str, Any] = read(file)
    rows = [
        {
            "setting": ", ".join(f"{name}={value}" for name, value in row["setting"].items()),
            "error": float(np.mean(row["errors"])),
            "cpu_seconds": row["cpu_seconds"],
        }
        for row in results.get("choice", {}).values()
    ]
    return {"rows": rows, "out_of_fold": results.get("out_of_fold"), "test": results.get("test")}
