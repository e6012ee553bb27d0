"""Models of other tools: read as chains, and written where a chain fits the format."""

from __future__ import annotations

from pathlib import Path

from crfkit.models.chain import ChainModel


def load(path: str | Path, n_threads: int | None = None, encoding: str = "utf-8") -> ChainModel:
    """Return the model in a file of any kind (until the real one is merged)."""
    from crfkit.convert import crfpp, kinds

    with open(path, "rb") as stream:
        kind = kinds.recognise(stream.read(64))
    if kind in (kinds.CRFPP, kinds.CRFPP_TEXT):
        return crfpp.read(path, n_threads, encoding)
    return ChainModel.load(path, n_threads)
