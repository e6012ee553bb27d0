"""Encoded, frozen data."""

from crfkit.data.sequences import SequenceData

__all__ = ["SequenceData"]
