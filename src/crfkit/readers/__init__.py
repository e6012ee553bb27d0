"""Readers of the file formats people have."""

from crfkit.readers.columns import read_columns

__all__ = ["read_columns"]
