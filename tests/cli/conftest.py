"""Data, a trained model and two ways to run the command line: as a process, and (faster) inside this one."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import typer.main

from crfkit.cli.demo.data import TEMPLATE
from crfkit.cli.main import main
from crfkit.synthetic import entity_corpus, write_columns

# A program makes the tree of its commands once, in a tenth of a second. Hundreds of calls in this process share theirs.
typer.main.get_command = cache(typer.main.get_command)


@dataclass(frozen=True)
class Outcome:
    code: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode("utf-8")

    @property
    def err(self) -> str:
        return self.stderr.decode("utf-8")


Runner = Callable[..., Outcome]
COMMAND = [sys.executable, "-m", "crfkit"]


def run_process(*args: object, stdin: bytes = b"", cwd: Path | None = None, **environment: str) -> Outcome:
    done = subprocess.run(
        [*COMMAND, *map(str, args)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run(workspace: Path) -> Runner:
    """Runs `crfkit …` as a process in the workspace."""
    return run_process


@pytest.fixture
def start(workspace):
    """Starts `crfkit …` with pipes; ends it if the test does not."""
    started = []

    def popen(*args: str, **options: object) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        started.append(subprocess.Popen([*COMMAND, *args], **pipes))
        return started[-1]

    yield popen
    for process in started:
        process.kill()
        process.communicate()


class _Stdin(io.BytesIO):
    name = "<stdin>"


@pytest.fixture
def call(workspace: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Runner:
    """Runs `crfkit …` in the workspace and in this process; a warning or an uncaught error fails the test."""

    def run_here(*args: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["crfkit", *map(str, args)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(_Stdin(stdin)))
        capsysbinary.readouterr()
        code = 0
        try:
            main()
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else 0 if done.code is None else 1
        return Outcome(code, *capsysbinary.readouterr())

    return run_here


@pytest.fixture
def fails(workspace: Path, call: Runner) -> Callable[..., str]:
    """Runs a command that must fail: one line on stderr, which is returned, and every file as it was."""

    def check(*args: object, stdin: bytes = b"") -> str:
        before = contents(workspace)
        outcome = call(*args, stdin=stdin)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        assert outcome.err.startswith("crfkit: error: ")
        assert outcome.err.count("\n") == 1, outcome.err
        assert contents(workspace) == before
        return outcome.err.removeprefix("crfkit: error: ").strip()

    return check


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def snapshot(workspace: Path) -> Callable[[], dict[str, bytes]]:
    """What is in the workspace now."""
    return lambda: contents(workspace)


@dataclass(frozen=True)
class Trained:
    folder: Path
    outcome: Outcome  # of `crfkit train`


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """train.txt, test.txt, template, and model.crf and log.jsonl as `crfkit train` wrote them."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "template").write_text(TEMPLATE, encoding="utf-8")
    write_columns(str(folder / "train.txt"), entity_corpus(80, 1))
    write_columns(str(folder / "test.txt"), entity_corpus(40, 2))
    arguments = "train train.txt --template template --model model.crf --log log.jsonl"
    return Trained(folder, run_process(*arguments.split(), cwd=folder))


@pytest.fixture
def workspace(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a copy of the files of `trained`."""
    assert trained.outcome.code == 0, trained.outcome.err
    folder = tmp_path / "work"
    shutil.copytree(trained.folder, folder)
    monkeypatch.chdir(folder)
    return folder
