"""A short form of `make faults`, which has all kinds."""

import sys

import pytest
from kinds import KINDS
from workshop import Workshop

SHORT = {"kills": 2, "kills while saving": 3, "SIGINT": 2, "SIGTERM": 1, "memory limits": 2, "overwritten in place": 8}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals and limits of Linux")
@pytest.mark.parametrize("kind", SHORT)
def test_nothing_is_lost(kind, tmp_path):
    KINDS[kind](Workshop(tmp_path / "shop", 1, 40), SHORT[kind])
