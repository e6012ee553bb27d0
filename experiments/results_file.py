"""results.json of an experiment: it is read whole, and replaced whole after every unit, so a run can be interrupted."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

Results = dict[str, Any]


def read(path: Path) -> Results:
    """Return the results in a file; empty if there is none."""
    found: Results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def indented(value: Any) -> str:
    """Return JSON with an item per line."""
    return json.dumps(value, indent=1)


def write(path: Path, results: Any, text: Callable[[Any], str] = indented) -> None:
    """Replace a file of results; after an interruption it holds the old or the new ones. `text` makes the JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(text(results) + "\n", encoding="utf-8")
    os.replace(draft, path)


def compact(value: Any) -> str:
    """Return JSON of numbers with twelve digits, which gaps need, and every list of numbers on one line."""
    text = indented(_rounded(value))
    return re.sub(r"\[[-\d.e,+\snul]+\]", lambda numbers: " ".join(numbers[0].split()), text)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value
