"""results.json: what has been computed so far, written after every unit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from results_file import read, write


class Store:
    """The results of a folder. A unit has a path of keys; one that is there is not computed again."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "results.json"

    def read(self) -> dict[str, Any]:
        return read(self._file)

    def has(self, *keys: str) -> bool:
        found: Any = self.read()
        for key in keys:
            if key not in found:
                return False
            found = found[key]
        return True

    def put(self, value: Any, *keys: str) -> None:
        results = self.read()
        inner = results
        for key in keys[:-1]:
            inner = inner.setdefault(key, {})
        inner[keys[-1]] = value
        write(self._file, results, lambda value: json.dumps(value, indent=1, sort_keys=True))
