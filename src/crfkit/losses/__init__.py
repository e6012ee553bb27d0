"""Losses: functions of the weights. See :mod:`crfkit.protocols`."""

from crfkit.losses.chain import ChainLikelihood, SoftmaxMargin, StructuredHinge

__all__ = ["ChainLikelihood", "SoftmaxMargin", "StructuredHinge"]
