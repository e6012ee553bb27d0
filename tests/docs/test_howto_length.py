"""Pages in docs/howto are short answers: at most 40 lines, a snippet that runs, a way on, and a line in the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "howto"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "index.md")
INDEX = (FOLDER / "index.md").read_text(encoding="utf-8")
LONGEST = 40


def test_there_are_twenty_answers() -> None:
    assert len(PAGES) >= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_is_a_short_answer(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    title, *rest = text.splitlines()
    assert len(rest) < LONGEST, f"{page.name} has {len(rest) + 1} lines; {LONGEST} are allowed"
    assert title.startswith("# ")
    assert re.search(r"^```(python|sh|console|text)$", text, re.MULTILINE), f"{page.name} has no snippet"
    assert re.search(r"\]\([^)]+\.md(#[^)]*)?\)", text), f"{page.name} links to no other page"
    assert f"]({page.name})" in INDEX, f"{page.name} is missing in index.md"
