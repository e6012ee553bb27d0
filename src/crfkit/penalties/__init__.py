"""Penalties: functions of the weights that are added to the loss. See :mod:`crfkit.protocols`."""

from crfkit.penalties.l2 import L2
from crfkit.penalties.none import NoPenalty

__all__ = ["L2", "NoPenalty"]
