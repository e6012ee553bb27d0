"""Signals wait in functions that crfkit.cli.runtime.signals knows by name: those must exist."""

from pathlib import Path

import crfkit
from crfkit.cli.runtime.signals import _LOOP, _WRITING


def test_the_places_where_signals_wait_exist():
    sources = {path.name: path.read_text("utf-8") for path in Path(crfkit.__file__).parent.rglob("*.py")}
    for file, function in _LOOP | _WRITING:
        assert f"def {function}(" in sources[file], (file, function)
