"""What .ci/prepare says on a machine that lacks something: one sentence, with what to install."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "dirname", "mktemp", "rm", "cat", "head", "grep", "sed", "tr", "env")
OLD_PYTHON = '#!/bin/sh\n[ "$1" = -V ] && echo Python 3.8.10 && exit\ncase "$2" in *version_info*) exit 1;; esac\n'
NO_VENV = f'#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n'
NO_HEADERS = f'#!/bin/sh\ncase "$2" in *Python.h*) exit 1;; esac\nexec {sys.executable} "$@"\n'
OLD_COMPILER = '#!/bin/sh\n[ "$1" = --version ] && echo "g++ 9.3.0" && exit\necho "1:2: error: too new" >&2\nexit 1\n'
CASES = {
    "no Python": ({}, "'python3' was not found. crfkit needs Python 3.10 or newer"),
    "an old Python": ({"python3": OLD_PYTHON}, "crfkit needs Python 3.10 or newer, and 'python3' is Python 3.8.10"),
    "no venv": ({"python3": NO_VENV}, "The venv module is missing: apt install python3-venv"),
    "no headers": ({"python3": NO_HEADERS}, "The headers of Python are missing: apt install python3-dev"),
    "no compiler": ({"python3": None}, "No C++ compiler was found. Install a C++ compiler: apt install g++"),
    "an old compiler": ({"python3": None, "c++": OLD_COMPILER}, "c++ (g++ 9.3.0) cannot compile C++20"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_sentence(case: str, tmp_path: Path) -> None:
    programs, sentence = CASES[case]
    path = tmp_path / "bin"
    path.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (path / tool).symlink_to(found)
    for name, text in programs.items():
        (path / name).write_text(text or f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
        (path / name).chmod(0o755)
    command = ["bash", str(ROOT / ".ci" / "prepare"), str(tmp_path / "venv")]
    done = subprocess.run(command, env={"PATH": str(path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: " + sentence)
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "venv").exists()
