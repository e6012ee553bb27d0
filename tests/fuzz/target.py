"""What is fuzzed: a target has the bytes of a valid file, a way to change them and a way to use the result."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Mutate = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """Case 0 is the valid file as it is."""

    name: str
    seed: Callable[[], bytes]  # makes the valid file, once in a run
    mutate: Mutate
    use: Callable[[Path, random.Random], None]  # loads the file and does with it what a user would do
    suffix: str = ""

    def case(self, valid: bytes, seed: int, number: int) -> bytes:
        """Return the file of a case, which depends on nothing but the arguments."""
        return valid if number == 0 else self.mutate(valid, self.random(seed, number))

    def random(self, seed: int, number: int, purpose: str = "mutate") -> random.Random:
        return random.Random(f"{seed}/{self.name}/{number}/{purpose}")
