"""All targets."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from importlib import import_module

from fuzz.target import Target

MODULES = ("chains", "fields", "checkpoints", "imported", "texts", "pictures", "inputs")


def find_targets(patterns: str = "") -> list[Target]:
    """Return the targets whose names begin with one of the patterns; blanks or commas are between them."""
    wanted = patterns.replace(",", " ").split()
    modules = ("bad",) if os.environ.get("CRFKIT_FUZZ_BAD") else MODULES
    found = [target for module in modules for target in import_module(f"fuzz.{module}").TARGETS]
    return [target for target in found if not wanted or any(fnmatch(target.name, f"{p}*") for p in wanted)]
