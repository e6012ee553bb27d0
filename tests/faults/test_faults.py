"""A short form of `make faults`, which has all kinds."""

import sys

import pytest
from kinds import KINDS
from workshop import Workshop

SHORT = {"kills": 1, "kills while saving": 2, "SIGINT": 1, "overwritten in place": 4}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals and limits of Linux")
@pytest.mark.parametrize(
    "kind", ["kills", *(pytest.param(kind, marks=pytest.mark.slow) for kind in SHORT if kind != "kills")]
)
def test_nothing_is_lost(kind, tmp_path):
    KINDS[kind](Workshop(tmp_path / "shop", 1, 40), SHORT[kind])
