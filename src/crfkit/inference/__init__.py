"""Inference: log-partition functions, marginals, decoding."""

from crfkit.inference.chain import ChainInference

__all__ = ["ChainInference"]
