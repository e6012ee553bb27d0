"""Tables of the documentation list what the registries have, no more and no less; links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crfkit.extras import PACKAGES
from crfkit.graph.fields.field import EDGE_FORMS, NODE_FORMS
from crfkit.graph.inference.engines import ENGINES
from crfkit.graph.model import DECODERS
from crfkit.losses import LOSSES, ContrastiveDivergence, GraphLikelihood, PseudoLikelihood
from crfkit.result import Status
from crfkit.schemes import TAG_SCHEMES
from crfkit.solvers import SOLVERS
from crfkit.structure import options as structure_options

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("tutorials", "howto", "guides", "migration", "explanation")
PAGES = [DOCS.parent / "README.md", DOCS / "index.md", *(p for f in FOLDERS for p in sorted((DOCS / f).glob("*.md")))]
# Written when the site is built, which checks links to them.
GENERATED = ("changelog.md", "experiments", "gallery", "performance", "reference/api", "reference/commands")


def first_column(page: str, title: str) -> list[str]:
    """The names in code marks in the first column of the table whose header row begins with a title."""
    lines = (DOCS / "guides" / page).read_text(encoding="utf-8").splitlines()
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
        ("choose_a_solver.md", "status", [status.name for status in Status]),
        ("graphs.md", "`loss=`", ["auto", *LOSSES.options("graph")]),
        ("graphs.md", "`decode=`", DECODERS),
        ("graphs.md", "`node_form`", NODE_FORMS),
        ("graphs.md", "`edge_form`", EDGE_FORMS),
        ("structure.md", "`loss`", LOSSES.options("structure")),
        ("structure.md", "`method`", structure_options.METHODS),
        ("structure.md", "`edge_strength`", structure_options.RULES),
        ("structure.md", "`refit`", structure_options.REFITS),
        ("tagging_schemes.md", "scheme", TAG_SCHEMES),
    ],
)
def test_a_table_lists_the_registry(page, title, registry):
    assert sorted(first_column(page, title)) == sorted(registry)


@pytest.mark.parametrize(
    ("page", "title", "registry"),
    [("choose_a_solver.md", "solver", SOLVERS), ("graphs.md", "engine", ["auto", *ENGINES])],
)
def test_a_guide_names_members_of_the_registry_only(page, title, registry):
    """It may leave some out: the page that docs/_ext/members.py writes has them all (test_member_lists.py)."""
    assert set(first_column(page, title)) <= set(registry)


def test_the_solvers_of_graphs_are_those_that_their_losses_allow():
    """Each row of the table "On graphs" names all solvers whose needs the losses meet, and no others."""
    text = (DOCS / "guides" / "choose_a_solver.md").read_text(encoding="utf-8").partition("\n## On graphs\n")[2]
    rows = [row.split("|")[1:3] for row in text.partition("\n## ")[0].splitlines() if row.startswith("| ")][1:]
    listed: set[str] = set()
    for (said, names), loss in zip(rows, (GraphLikelihood, PseudoLikelihood, ContrastiveDivergence), strict=True):
        listed = set(re.findall(r"`([^`]+)`", names)) | (listed if "the same" in names else set())
        own = {name: kind for name, kind in SOLVERS.items() if kind.__module__.startswith("crfkit.")}  # not the toy
        can = {name for name, kind in own.items() if kind().needs <= loss.example().capabilities}
        assert listed == can, said


def test_the_page_on_installing_lists_the_extras_of_users():
    """pyproject.toml also declares extras for those who work on crfkit; they bring tools, not functions."""
    text = (DOCS.parent / "pyproject.toml").read_text(encoding="utf-8")
    section = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    declared = set(re.findall(r"(?m)^(\w+) = \[", section))
    listed = first_column("../howto/install.md", "extra")
    assert len(listed) == len(set(listed))
    assert set(listed) == declared - {"bench", "dev", "peers", "site"}
    assert {extra for _, extra in PACKAGES.values()} == set(listed)


def test_every_loss_of_chains_is_documented():
    text = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in LOSSES.options("chain") if name not in text] == []


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if path.is_relative_to(DOCS) and str(path.relative_to(DOCS)).startswith(GENERATED):
            continue
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target
