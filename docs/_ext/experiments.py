"""A page for each experiment, from its README, and the changelog."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from links import REPOSITORY, experiment_pages, rewrite

PICTURE = re.compile(r"(!\[[^\]\n]*\]\()([^)\s/]+\.png\))")


def readmes() -> list[Path]:
    """Return the README files of all experiments."""
    return sorted((REPOSITORY / "experiments").glob("*/README.md"))


def pages() -> Iterable[tuple[str, str]]:
    """Yield a page per experiment, their index, and the changelog."""
    for readme in readmes():
        name = readme.parent.name
        text = rewrite(readme.read_text(encoding="utf-8"), readme.parent, experiment_pages("experiments/x"))
        yield f"experiments/{name}.md", PICTURE.sub(rf"\g<1>pictures/{name}/\g<2>", text)
    folder = REPOSITORY / "experiments"
    index = rewrite((folder / "README.md").read_text(encoding="utf-8"), folder, experiment_pages("experiments/x"))
    names = [readme.parent.name for readme in readmes()]
    yield "experiments/index.md", index + "\n".join(("", "```{toctree}", ":hidden:", *names, "```", ""))
    changes = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    yield "changelog.md", rewrite(changes, REPOSITORY, experiment_pages("changelog"))


def copy_pictures(docs: Path) -> None:
    """Copy the pictures of experiments and benchmarks beside their pages."""
    for readme in readmes():
        folder = docs / "experiments" / "pictures" / readme.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        for picture in readme.parent.glob("*.png"):
            shutil.copyfile(picture, folder / picture.name)
    pictures = docs / "performance" / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    for picture in (REPOSITORY / "benchmarks" / "results").glob("*.png"):
        shutil.copyfile(picture, pictures / picture.name)
