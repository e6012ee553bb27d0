"""Lists of members (help, documentation, error messages) are made from the registries: all have every member."""

import runpy
from functools import cache
from pathlib import Path

import pytest

from crfkit.cli.runtime.help import registry
from crfkit.errors import ParameterError
from crfkit.graph.inference.engines import ENGINES, make_engine
from crfkit.losses import LOSSES, loss_class
from crfkit.penalties import PENALTIES
from crfkit.solvers import SOLVERS, make_solver


@cache
def page():
    """The page that docs/_ext/members.py writes, by heading."""
    text = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "_ext" / "members.py"))["page"]()
    return {part.split("\n")[0]: part for part in text.split("\n## ")}


@pytest.mark.parametrize("name", list(SOLVERS))
def test_solvers(name):
    assert f"| `{name}` |" in page()["Solvers"]
    assert name in registry("solvers")
    with pytest.raises(ParameterError, match=rf"\b{name}\b"):
        make_solver("no such solver")


@pytest.mark.parametrize("name", list(ENGINES))
def test_engines(name):
    assert f"| `{name}` |" in page()["Engines of inference on graphs"]
    assert name in registry("engines")
    with pytest.raises(ParameterError, match=rf"\b{name}\b"):
        make_engine("no such engine")


@pytest.mark.parametrize("name", list(LOSSES))
def test_losses(name):
    assert f"| `{name}` |" in page()["Losses"]
    with pytest.raises(ParameterError, match=rf"\b{name}\b"):
        loss_class("no such loss")


@pytest.mark.parametrize("name", list(PENALTIES))
def test_penalties(name):
    assert f"| `{name}` |" in page()["Penalties"]
    takers = [line for line in page()["Solvers"].splitlines() if f"`{name}`" in line]
    assert takers or name == "by-block"  # which needs a loss to know what it is
