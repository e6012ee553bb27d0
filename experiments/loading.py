"""Load a module of an experiment, whose folder is not a package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType


def load(folder: Path, name: str) -> ModuleType:
    """Return the module `name` of a folder; its neighbours are for it alone: folders share names."""
    before = dict(sys.modules)
    for other in folder.glob("*.py"):
        sys.modules.pop(other.stem, None)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for other in folder.glob("*.py"):
            sys.modules.pop(other.stem, None)
            if other.stem in before:
                sys.modules[other.stem] = before[other.stem]
