"""Check an installed crfkit from outside the repository: python smoke.py [README.md]

Needs nothing but crfkit and its dependencies. Runs the first Python block of the README, the commands a person tries
first, and what should say which extra to install.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distribution
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def main(readme: Path | None) -> None:
    import crfkit
    from crfkit import extras

    home = Path(crfkit.__file__).parent
    assert not home.is_relative_to(REPOSITORY), f"{home} is the repository, not an installed crfkit"
    assert distribution("crfkit").version == crfkit.__version__
    for name in ("py.typed", "_core.pyi"):
        assert (home / name).is_file(), f"{name} is not installed"
    if readme is not None:
        step("the first Python block of the README", lambda: first_block(readme))
    with tempfile.TemporaryDirectory() as folder:

        def run(*command: str, code: int = 0) -> str:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8")
            assert done.returncode == code, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
            return done.stdout + done.stderr

        program = str(Path(sys.executable).parent / "crfkit")
        print(run(program, "--version").strip())
        step("crfkit demo --data-only", lambda: run(program, "demo", "--data-only", "--output", "."))
        train = (program, "train", "train.txt", "--template", "template", "--model", "model.crf", "--quiet")
        step("crfkit train", lambda: run(*train))
        step("crfkit tag", lambda: run(program, "tag", "model.crf", "test.txt", "--output", "tagged.txt"))
        assert (Path(folder) / "tagged.txt").stat().st_size > 0
        if not extras.is_installed("matplotlib"):
            plot = (program, "structure", "learn", "survey.csv", "--model", "s.crf", "--plot", "plot.png")
            assert "pip install 'crfkit[plots]'" in run(*plot, code=2)
            print("a missing extra is named")


def first_block(readme: Path) -> None:
    found = re.search(r"^```python\n(.*?)^```", readme.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found, f"{readme} has no Python block"
    test = doctest.DocTestParser().get_doctest(found[1], {}, readme.name, str(readme), 0)
    assert test.examples
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0


def step(name: str, work) -> None:
    start = time.perf_counter()
    work()
    print(f"{name}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None)
