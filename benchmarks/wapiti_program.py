"""The program of Wapiti 1.5: its sources are in the package libwapiti of PyPI, and `cc` compiles them.

    python benchmarks/wapiti_program.py

Prints the path of the program, build/benchmarks/wapiti/wapiti. It is compiled with the flags of its own Makefile.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "build" / "benchmarks" / "wapiti"
PACKAGE = "libwapiti==0.2.1"


def wapiti_program() -> Path | None:
    """Return the program, downloaded and compiled unless it is there; None if that fails, after saying why."""
    program = FOLDER / "wapiti"
    if program.is_file():
        return program
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            build(Path(folder), program)
    except (OSError, subprocess.CalledProcessError) as error:
        told = getattr(error, "stderr", None) or str(error)
        print(f"Wapiti cannot be built from {PACKAGE}: {told.strip()[-500:]}", file=sys.stderr)
        return None
    return program


def build(folder: Path, program: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", str(folder)]
    subprocess.run([*pip, PACKAGE], check=True, capture_output=True, text=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    sources = next(folder.glob("*/cwapiti/src"))
    compiler = [os.environ.get("CC", "cc"), "-std=c99", "-O3", "-DNDEBUG", "-w", "-o", str(program)]
    files = sorted(map(str, sources.glob("*.c")))
    subprocess.run([*compiler, *files, "-lm", "-lpthread"], check=True, capture_output=True, text=True)


def wapiti_pattern(template: Path, pattern: Path) -> int:
    """Write a template of CRF++ as patterns of Wapiti, which have no comments of `#` there; return their number."""
    text = re.sub(r"^#.*\n", "", template.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pattern.write_text(text, encoding="utf-8")
    return sum(bool(line.strip()) for line in text.splitlines())


if __name__ == "__main__":
    print(wapiti_program() or sys.exit(1))
