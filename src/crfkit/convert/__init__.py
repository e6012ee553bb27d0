"""Models of other tools: read as chains, and written where a chain fits the format."""

from crfkit.convert.loading import load, model_kind
from crfkit.convert.saving import save

__all__ = ["load", "model_kind", "save"]
