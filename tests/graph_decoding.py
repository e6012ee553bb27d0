"""Decoding by enumeration, for the tests of estimators where crfkit.inference.decoding cannot be imported."""

from __future__ import annotations

import importlib.util
import sys
import types
from dataclasses import dataclass
from typing import Any

from crfkit.inference.enumerate import Enumerate


@dataclass(frozen=True)
class Decoding:
    labels: Any
    score: Any
    method: str
    optimal: bool
    status: str


def decode(potentials, method="auto", n_threads=None):
    labels = Enumerate().decode(potentials)
    return Decoding(labels, potentials.score(labels), "enumerate", True, "optimal")


def provide() -> None:
    if importlib.util.find_spec("crfkit.inference.decoding") is None:
        module = types.ModuleType("crfkit.inference.decoding")
        module.Decoding, module.decode = Decoding, decode
        sys.modules[module.__name__] = module
        import crfkit.inference

        crfkit.inference.decoding = module
