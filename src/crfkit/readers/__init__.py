"""Readers of the file formats people have."""

from crfkit.readers.columns import ColumnFile, read_columns

__all__ = ["ColumnFile", "read_columns"]
