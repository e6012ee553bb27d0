"""From inputs to attributes: templates, items, matrices."""

from crfkit.features.template import Template
from crfkit.features.text import TextFeatures

__all__ = ["Template", "TextFeatures"]
