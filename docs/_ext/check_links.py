"""Check the links of a built site: every page, picture, style and anchor that a page names must be there.

    python docs/_ext/check_links.py build/site

Addresses of other sites are counted but not fetched.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value and tag != "base":
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links(site: Path) -> tuple[list[str], int, int]:
    """Return the dead links of a site, and how many links into it and out of it there are."""
    paths = (path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts)
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in paths}
    dead, inside, outside = [], 0, 0
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside += 1
                continue
            inside += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                dead.append(f"{path.relative_to(site)}: {link}: no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                dead.append(f"{path.relative_to(site)}: {link}: no such anchor")
    return dead, inside, outside


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    dead, inside, outside = dead_links(site)
    print("\n".join(dead), end="\n" if dead else "")
    print(f"{inside} links within the site, {len(dead)} of them dead; {outside} links to other sites, not checked")
    sys.exit(1 if dead or not inside else 0)


if __name__ == "__main__":
    main()
