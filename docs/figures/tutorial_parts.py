"""What the pictures of the tutorials share: the variables of a page, and saving.

A picture is drawn from the variables that the page's own snippets leave behind, so that both show the same run.
"""

from __future__ import annotations

import doctest
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from PIL import Image

matplotlib.use("Agg")

DOCS = Path(__file__).parents[1]


def variables(page: str) -> dict[str, Any]:
    """Run the Python snippets of docs/tutorials/PAGE.md and return their variables."""
    path = DOCS / "tutorials" / f"{page}.md"
    test = doctest.DocTestParser().get_doctest(
        path.read_text(encoding="utf-8"), {"__name__": "__main__"}, page, str(path), 0
    )
    failed = doctest.DocTestRunner(verbose=False).run(test, clear_globs=False).failed
    if failed:
        raise SystemExit(f"{path}: {failed} snippets do not show what the page says")
    return test.globs


def save(figure: Any, name: str, dpi: int = 110) -> None:
    """Write docs/images/tutorials/NAME.png, with a palette, which makes it three times smaller."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=dpi, format="png")
    folder = DOCS / "images" / "tutorials"
    folder.mkdir(parents=True, exist_ok=True)
    Image.open(buffer).convert("RGB").quantize(128).save(folder / f"{name}.png", optimize=True)
