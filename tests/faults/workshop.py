"""A folder with data and models, and `crfkit` as processes that things happen to."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crfkit import ChainCRF
from crfkit.cli.demo.data import TEMPLATE
from crfkit.errors import CrfkitError
from crfkit.files.checkpoint import Checkpoint
from crfkit.files.temporary import SUFFIX
from crfkit.synthetic import entity_corpus, write_columns

# Says that it has begun (a signal before that is Python's own affair), then runs the command.
LAUNCH = "import os; from crfkit.cli.entry import main; os.write(int(os.environ['BEGUN']), b'.'); main()"
PATIENCE = 60  # seconds


@dataclass
class Ended:
    code: int
    out: bytes
    err: str
    seconds: float  # since it had begun

    def __str__(self) -> str:
        return f"exit code {self.code}, stderr {self.err[-300:]!r}"


class Violation(AssertionError):  # noqa: N818
    """Something happened that must not."""


def require(condition: object, what: object) -> None:
    if not condition:
        raise Violation(str(what))


class Workshop:
    """Small data, and the command that trains on them with checkpoints."""

    def __init__(self, folder: Path, seed: int = 0, sentences: int = 100) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "template").write_text(TEMPLATE, encoding="utf-8")
        write_columns(str(folder / "train.txt"), entity_corpus(sentences, 1))
        write_columns(str(folder / "test.txt"), entity_corpus(40, 2))
        self.model, self.checkpoint = folder / "model.crf", folder / "run.ckpt"
        self.train = ["train", "train.txt", "-t", "template", "-m", "model.crf", "--checkpoint", "run.ckpt"]
        self.train += ["--checkpoint-every", "4it"]

    def start(
        self, *arguments: str, limits: Mapping[int, int] | None = None, environment: Mapping[str, str] | None = None,
        stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        """Start `crfkit …`; return when it has begun."""
        ours, theirs = os.pipe()

        def limit() -> None:
            for which, value in (limits or {}).items():
                resource.setrlimit(which, (value, value))

        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "BEGUN": str(theirs), **(environment or {})},
            pass_fds=[theirs],
            preexec_fn=limit if limits else None,
        )
        os.close(theirs)
        os.read(ours, 1)
        os.close(ours)
        return process

    def run(
        self, *arguments: str, at: float | None = None, signal_: int = signal.SIGKILL,
        limits: Mapping[int, int] | None = None, environment: Mapping[str, str] | None = None,
    ) -> Ended:  # fmt: skip
        """Run `crfkit …` to its end; send it a signal so many seconds after it has begun."""
        process = self.start(*arguments, limits=limits, environment=environment)
        begin = time.monotonic()
        if at is not None:
            time.sleep(at)
            process.send_signal(signal_)
        out, err = process.communicate(timeout=PATIENCE)
        return Ended(process.returncode, out, err.decode("utf-8", "replace"), time.monotonic() - begin)

    def strays(self) -> list[str]:
        return [path.name for path in self.folder.iterdir() if path.name.endswith(SUFFIX) or path.name.startswith(".")]

    def check_model(self, may_be_missing: bool = False) -> None:
        """Raise Violation unless the model loads and predicts."""
        if may_be_missing and not self.model.exists():
            return
        try:
            labels = ChainCRF.load(self.model).predict([[("we", "x"), ("saw", "x")]])
        except CrfkitError as error:
            raise Violation(f"the model is lost: {error}") from None
        require(len(labels[0]) == 2, labels)

    def check_checkpoint(self, may_be_missing: bool = True) -> None:
        """Raise Violation unless the checkpoint loads."""
        if may_be_missing and not self.checkpoint.exists():
            return
        try:
            Checkpoint.load(self.checkpoint)
        except CrfkitError as error:
            raise Violation(f"the checkpoint is lost: {error}") from None

    def forget(self) -> None:
        for path in (self.model, self.checkpoint):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def no_traceback(ended: Ended) -> None:
    require("Traceback" not in ended.err, ended)
    require("Exception ignored" not in ended.err, ended)


Kind = Callable[[Workshop, int], str]


def moments(shop: Workshop, n: int, longest: float) -> Sequence[float]:
    """Return moments of a run, drawn from its whole length and a little more."""
    return [shop.random.uniform(0.0, 1.1 * longest) for _ in range(n)]
