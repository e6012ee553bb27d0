"""Tables of the documentation list what the registries have, no more and no less; links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crfkit.fields.graph import EDGE_FORMS, NODE_FORMS
from crfkit.inference.engines import ENGINES
from crfkit.models.graph import DECODERS
from crfkit.result import Status
from crfkit.schemes import TAG_SCHEMES
from crfkit.solvers import SOLVERS
from crfkit.training import chain_problem, graph_problem, structure_options
from crfkit.training.structure_final import REFITS
from crfkit.training.structure_solve import METHODS

DOCS = Path(__file__).parents[2] / "docs"


def first_column(page: str, title: str) -> list[str]:
    """The names in code marks in the first column of the table whose header row begins with a title."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(f"| {title} |"))
    names: list[str] = []
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        names += [name.strip('"') for name in re.findall(r"`([^`]+)`", line.split("|")[1])]
    return names


@pytest.mark.parametrize(
    ("page", "title", "registry"),
    [
        ("choose_a_solver.md", "solver", SOLVERS),
        ("choose_a_solver.md", "status", [status.name for status in Status]),
        ("graphs.md", "engine", ["auto", *ENGINES]),
        ("graphs.md", "`loss=`", graph_problem.LOSSES),
        ("graphs.md", "`decode=`", DECODERS),
        ("graphs.md", "`node_form`", NODE_FORMS),
        ("graphs.md", "`edge_form`", EDGE_FORMS),
        ("structure.md", "`loss`", structure_options.LOSSES),
        ("structure.md", "`method`", METHODS),
        ("structure.md", "`edge_strength`", structure_options.RULES),
        ("structure.md", "`refit`", REFITS),
        ("tagging_schemes.md", "scheme", TAG_SCHEMES),
    ],
)
def test_a_table_lists_the_registry(page, title, registry):
    assert sorted(first_column(page, title)) == sorted(registry)


def test_every_loss_of_chains_is_documented():
    text = " ".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    assert [name for name in chain_problem.LOSSES if name not in text] == []


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        path = (page.parent / name) if name else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target
