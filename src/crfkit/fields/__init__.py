"""Fields: structure and weights, no algorithm."""

from crfkit.fields.chain import ChainField

__all__ = ["ChainField"]
