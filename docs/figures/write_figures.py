"""Write the measured figures of README, documentation and benchmarks/README.md into their places.

    python docs/figures/write_figures.py [--check]

A place is `<!--=NAME-->text<!--/-->`, and page_texts.py computes the text of NAME from benchmarks/results. A place
whose text begins on a line of its own holds a whole block, such as a table; any other place may not begin a line, where
Markdown would end the paragraph. Readers see the text alone, because Markdown shows no comments. --check writes
nothing, lists the places that differ and exits with 1 if there are any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from page_texts import Texts, texts

ROOT = Path(__file__).parents[2]
PLACE = re.compile(r"<!--=([\w.]+)-->(.*?)<!--/-->", re.DOTALL)


def pages() -> list[Path]:
    """Return the pages that may hold figures; generated pages of the site have none."""
    folders = ("tutorials", "howto", "guides", "migration", "explanation", "reference")
    found = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", ROOT / "docs" / "index.md"]
    return found + [page for name in folders for page in sorted((ROOT / "docs" / name).glob("*.md"))]


def render(page: str, found: Texts) -> str:
    """Return a page with the texts in their places."""

    def put(place: re.Match[str]) -> str:
        name, before = place.groups()
        if name not in found:
            raise KeyError(f"there is no figure {name!r}; page_texts.py has {', '.join(found)}")
        text = f"\n{found[name]}\n" if before.startswith("\n") else found[name]
        return f"<!--={name}-->{text}<!--/-->"

    return PLACE.sub(put, page)


def differences(page: str, found: Texts) -> Iterator[str]:
    """Yield what a page says in another way than the results."""
    for name, text in PLACE.findall(page):
        if name not in found:
            yield f"{name}: there are no results for it"
        elif text.strip("\n") != found[name]:
            yield f"{name}: the page has {text.strip()!r}, the results {found[name]!r}"


def main() -> None:
    found, wrong = texts(), []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if "--check" in sys.argv[1:]:
            wrong += [f"{page.relative_to(ROOT)}: {what}" for what in differences(text, found)]
        elif (rendered := render(text, found)) != text:
            page.write_text(rendered, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: figures written")
    if wrong:
        raise SystemExit("\n".join([*wrong, "run `make figures`"]))


if __name__ == "__main__":
    main()
