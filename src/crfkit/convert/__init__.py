"""Models of other tools: read as chains, and written where a chain fits the format."""

from crfkit.convert.loading import load

__all__ = ["load"]
