"""The commands of CRF++ 0.58, `crfkit-learn` for crf_learn and `crfkit-test` for crf_test, and its Python module.

``import crfkit.compat.crfpp as CRFPP`` has its `Tagger` and `Model`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crfkit.compat.crfpp.tagger import Model as Model
    from crfkit.compat.crfpp.tagger import Tagger as Tagger

VERSION = "0.58"

__all__ = ["VERSION", "Model", "Tagger"]


def __getattr__(name: str) -> object:  # so that the commands start without them
    if name in ("Model", "Tagger"):
        from crfkit.compat.crfpp import tagger

        return getattr(tagger, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
