"""A command whose extra is not installed stops before it computes anything and names what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "extra", "command"),
    [
        ("matplotlib", "plots", "calibrate model.crf test.txt -o c.crf --plot p.png"),
        ("matplotlib", "plots", "tune train.txt --dev test.txt -m t.crf --plot p.png"),
        ("matplotlib", "plots", "structure learn table.csv -m s.crf --plot p.png"),
        ("networkx", "graphs", "structure learn table.csv -m s.crf --graph g.graphml"),
        ("PIL", "images", "segment train pictures masks -m s.crf"),
        ("PIL", "images", "refine train maps pictures masks -m r.crf"),
    ],
)
def test_a_missing_extra_is_named(workspace, fails, monkeypatch, module, extra, command):
    Path("table.csv").write_text("a,b\n0,1\n1,0\n1,1\n0,0\n", encoding="utf-8")
    for name in ("pictures/a.png", "masks/a.png", "maps/a.npy"):
        Path(name).parent.mkdir()
        Path(name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, module, None)
    assert f"install it with pip install 'crfkit[{extra}]'" in fails(*command.split())
