"""Check what is in an sdist and in wheels: python check_contents.py FILE..."""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path

TOP = {"cpp", "src", "tests", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md",
       "LICENSE", "Makefile", "PKG-INFO", "README.md", "SECURITY.md", "pyproject.toml"}  # fmt: skip
NEEDED = ("py.typed", "_core.pyi", "__init__.py", "explain/report/assets/page.css")
JUNK = re.compile(r"\.(crf|pyc|o|a|log|npz|csv|orig|rej)$|__pycache__|(^|/)(build|dist|\.venv)/")
MEGABYTES = {".gz": 3, ".whl": 6}


def check_sdist(path: Path) -> None:
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {name.partition("/")[0] for name in names} <= TOP, {name.partition("/")[0] for name in names} - TOP
    assert not [name for name in names if name.endswith((".so", ".pyd", ".dylib"))]
    check_names(path, [name.removeprefix("src/") for name in names])
    assert "LICENSE" in names


def check_wheel(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert all(name.startswith(("crfkit/", "crfkit-")) for name in names), names
    assert len([name for name in names if re.fullmatch(r"crfkit/_core\..*(so|pyd)", name)]) == 1
    assert any(name.endswith("licenses/LICENSE") for name in names)
    check_names(path, names)


def check_names(path: Path, names: list[str]) -> None:
    missing = [name for name in NEEDED if f"crfkit/{name}" not in names]
    assert not missing, f"{path.name} lacks {missing}"
    junk = [name for name in names if JUNK.search(name) and not name.startswith("tests/fixtures/")]
    assert not junk, f"{path.name} has {junk}"
    size = path.stat().st_size / 1e6
    assert size < MEGABYTES[path.suffix], f"{path.name} has {size:.1f} MB"
    print(f"{path.name}: {len(names)} files, {size:.1f} MB")


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        (check_wheel if given.suffix == ".whl" else check_sdist)(given)
