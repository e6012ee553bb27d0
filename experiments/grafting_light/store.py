"""Results as JSON files, to which each finished run is added at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results_file import read, write

Record = dict[str, Any]


def key_of(record: Record, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(record.get(key) for key in keys)


def found(path: Path, part: str, keys: Sequence[str], wanted: Sequence[Any]) -> Record | None:
    """Return the record of a part with these values of its keys; None if it was not measured yet."""
    rows = (record for record in read(path).get(part, []) if key_of(record, keys) == tuple(wanted))
    return next(rows, None)


def settled(record: Record | None, seconds: float | None) -> bool:
    """Return whether a run is there and a larger limit of CPU time would not change it."""
    if record is None:
        return False
    limit = record.get("limit")
    return record["status"] != "STOPPED_BY_CALLBACK" or (seconds is not None and limit is not None and seconds <= limit)


def merge(path: Path, part: str, keys: Sequence[str], record: Record) -> None:
    """Add a record to a part; it replaces the one with the same keys."""
    everything = read(path)
    rows = [row for row in everything.get(part, []) if key_of(row, keys) != key_of(record, keys)]
    rows.append(record)
    everything[part] = sorted(rows, key=lambda row: [str(value).rjust(12) for value in key_of(row, keys)])
    write(path, everything)
