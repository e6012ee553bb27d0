"""From inputs to attributes: templates, items, matrices."""

from crfkit.features.template import Template

__all__ = ["Template"]
