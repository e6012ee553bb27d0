"""Pages that are written from the code, from benchmark results and from the experiments, before Sphinx reads pages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import api
import commands
import experiments
import members
import performance

DOCS = Path(__file__).resolve().parents[1]
FOLDERS = ("reference/api", "reference/commands", "performance", "experiments")  # hold nothing else


def pages() -> Iterable[tuple[str, str]]:
    """Yield path below docs and text of every generated page."""
    yield "reference/members.md", members.page()
    yield from commands.pages()
    yield from api.pages()
    yield from performance.pages()
    yield from experiments.pages()


def write(app: Any, config: Any) -> None:
    """Write what has changed and remove what is gone; a page that stays as it was is not read again."""
    made = dict(pages())
    for old in (page for folder in FOLDERS for page in (DOCS / folder).glob("*.md")):
        if old.relative_to(DOCS).as_posix() not in made:
            old.unlink()
    for name, text in made.items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    experiments.copy_pictures(DOCS)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("config-inited", write)
    return {"parallel_read_safe": True}
