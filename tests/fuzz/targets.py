"""All targets."""

from __future__ import annotations

from fnmatch import fnmatch
from importlib import import_module

from fuzz.target import Target

MODULES = ("chains", "fields", "checkpoints")


def find_targets(patterns: str = "") -> list[Target]:
    """Return the targets whose names begin with one of the patterns; blanks or commas are between them."""
    wanted = patterns.replace(",", " ").split()
    found = [target for module in MODULES for target in import_module(f"fuzz.{module}").TARGETS]
    return [target for target in found if not wanted or any(fnmatch(target.name, f"{p}*") for p in wanted)]
