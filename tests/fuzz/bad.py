"""Targets that do what must be found, for the test of the fuzzer itself."""

from __future__ import annotations

import faulthandler
import random
import time
from pathlib import Path

from fuzz.target import Target


def _crash(path: Path, rng: random.Random) -> None:
    faulthandler._sigsegv()


def _hang(path: Path, rng: random.Random) -> None:
    while True:
        pass


def _memory(path: Path, rng: random.Random) -> None:
    kept = [b"x" * 10_000_000 for _ in range(200)]
    time.sleep(len(kept))


def _error(path: Path, rng: random.Random) -> None:
    raise KeyError


USES = {"crash": _crash, "hang": _hang, "memory": _memory, "error": _error}
TARGETS = [Target(f"bad-{name}", lambda: b"", lambda valid, rng: b"", use) for name, use in USES.items()]
