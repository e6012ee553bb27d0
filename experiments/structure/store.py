"""results.json: what has been computed so far, written after every unit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class Store:
    """The results of a folder. A unit has a path of keys; one that is there is not computed again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "results.json"

    def read(self) -> dict[str, Any]:
        return json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}

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
        temporary = self._file.with_suffix(".tmp")
        temporary.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(temporary, self._file)
