"""Losses: smooth functions of the weights. See :mod:`crfkit.protocols`."""

from crfkit.losses.chain import ChainLikelihood

__all__ = ["ChainLikelihood"]
