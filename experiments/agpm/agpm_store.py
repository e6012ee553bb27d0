"""results.json: nested dictionaries, written whole after every unit."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from results_file import read, write


class Store:
    """The results so far. With `again`, units are begun anew when they are first asked for."""

    def __init__(self, path: Path, again: bool = False) -> None:
        self.path = path
        self.again = again
        self.results = read(path)

    def at(self, *keys: str) -> dict[str, Any]:
        """Return the unit with these keys, empty if it is new."""
        found = self.results
        for key in keys[:-1]:
            found = found.setdefault(key, {})
        if self.again or keys[-1] not in found:
            found[keys[-1]] = {}
        unit: dict[str, Any] = found[keys[-1]]
        return unit

    def spent(self, part: str, begin: float) -> None:
        """Add the CPU seconds since `begin` to those of a part, and write all results."""
        cpu = self.results.setdefault("cpu", {})
        cpu[part] = round(cpu.get(part, 0.0) + time.process_time() - begin, 2)
        write(self.path, self.results, dumps)


def dumps(value: Any, indent: str = "") -> str:
    """Return JSON with one line for every dictionary that has none inside."""
    if not isinstance(value, dict) or not any(isinstance(inner, dict) for inner in value.values()):
        return json.dumps(value, ensure_ascii=False)
    inside = indent + " "
    lines = [f"{inside}{json.dumps(key, ensure_ascii=False)}: {dumps(inner, inside)}" for key, inner in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + indent + "}"
