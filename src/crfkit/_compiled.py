"""The compiled core for solvers and penalties, which can do without it: on tensors they use PyTorch."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

HAS_CORE = find_spec("crfkit._core") is not None

if TYPE_CHECKING or HAS_CORE:
    from crfkit import _core as _core
else:
    _core = None
