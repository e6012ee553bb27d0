"""Links of Markdown pages to files of the repository that are not pages of the site lead to the code host."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
HOST = "https://github.com/crfkit/crfkit"
LINK = re.compile(r"(!?\[[^\]\n]*\]\()([^)\s#]+)((?:#[^)]*)?\))")

DOCTEST_END = re.compile(r"(^```python\n[^`]*?)\n\n```$", re.MULTILINE)  # doctest needs the empty line, readers do not


def rewrite(text: str, folder: Path, pages: dict[str, str] | None = None) -> str:
    """Return Markdown whose relative links out of `docs` are addresses; `pages` maps paths to pages of the site."""

    def replace(match: re.Match[str]) -> str:
        start, target, end = match.groups()
        if "://" in target or target.startswith(("mailto:", "/")):
            return match[0]
        path = os.path.normpath(folder / target)
        relative = os.path.relpath(path, REPOSITORY).replace(os.sep, "/")
        if pages and relative in pages:
            return f"{start}{pages[relative]}{end}"
        if relative.startswith("docs/") or start.startswith("!"):
            return match[0]
        if not os.path.exists(path):
            raise FileNotFoundError(f"{folder}: a link to {target}, which is not there")
        kind = "tree" if os.path.isdir(path) else "blob"
        return f"{start}{HOST}/{kind}/main/{relative}{end}"

    return LINK.sub(replace, text)


def experiment_pages(docname: str) -> dict[str, str]:
    """Return the README files of experiments with the pages that show them, as seen from a page."""
    up = "../" * docname.count("/")
    found = {}
    for readme in sorted((REPOSITORY / "experiments").glob("*/README.md")):
        name = readme.parent.name
        found[f"experiments/{name}/README.md"] = found[f"experiments/{name}"] = f"{up}experiments/{name}.md"
    found["experiments/README.md"] = found["experiments"] = f"{up}experiments/index.md"
    found["README.md"] = f"{up}index.md"
    found["benchmarks/README.md"] = f"{up}performance/method.md"
    found["examples"] = f"{up}gallery/index.rst"
    found["CHANGELOG.md"] = f"{up}changelog.md"
    return found


def process(app: Any, docname: str, source: list[str]) -> None:
    """Rewrite the source of a page in place; Sphinx calls this for each."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        text = DOCTEST_END.sub(r"\1\n```", source[0])
        source[0] = rewrite(text, path.parent, experiment_pages(docname))


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", process)
    return {"parallel_read_safe": True}
