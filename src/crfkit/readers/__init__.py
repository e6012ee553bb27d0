"""Readers of the file formats people have."""

from crfkit.readers.columns import ColumnFile, read_columns
from crfkit.readers.crfsuite_data import read_crfsuite

__all__ = ["ColumnFile", "read_columns", "read_crfsuite"]
