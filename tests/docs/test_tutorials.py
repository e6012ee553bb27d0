"""The tutorials are one path: the list has them all, each leads to the next, and their pictures are there and small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "tutorials"
LIST = (FOLDER / "index.md").read_text(encoding="utf-8")
PAGES = re.findall(r"^\| \[[^]]+\]\((\w+)\.md\)", LIST, re.MULTILINE)
PICTURE = re.compile(r"!\[(.*?)\]\((.*?)\)")


def text(page: str) -> str:
    return (FOLDER / f"{page}.md").read_text(encoding="utf-8")


def test_the_list_has_every_tutorial_in_the_order_of_the_site():
    assert sorted(PAGES) == sorted(page.stem for page in FOLDER.glob("*.md") if page.stem != "index")
    assert re.findall(r"^(\w+)$", LIST.partition("{toctree}")[2], re.MULTILINE) == PAGES


@pytest.mark.parametrize(("page", "following"), list(zip(PAGES, [*PAGES[1:], "index"], strict=True)))
def test_each_leads_to_the_next(page, following):
    last = text(page).rstrip().rpartition("\n\n")[2]
    assert last.startswith("Next: ")
    assert f"]({following}.md)" in last


def test_the_title_is_the_one_in_the_list():
    for page in PAGES:
        assert f"[{text(page).splitlines()[0].removeprefix('# ')}]({page}.md)" in LIST


def test_pictures_are_there_small_and_described():
    used = set()
    for page in PAGES:
        found = PICTURE.findall(text(page))
        assert found, f"{page} has no picture"
        for description, path in found:
            assert len(description) > 20, f"{page}: {path} needs a description"
            picture = (FOLDER / path).resolve()
            used.add(picture)
            if picture.parent.name == "tutorials":
                assert picture.stat().st_size <= 60 * 1024
    assert used >= set((DOCS / "images" / "tutorials").glob("*.png")), "a picture is not used"
