"""Names for values other than arrays that are handed around. Importing them takes no time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Vector = Any  # an array of any library that follows the array API
Samples = object  # rows, graphs or images as people have them: arrays, data frames, lists, files
Tabular = Any  # the same where somebody looks into it: an array, a data frame, a matrix, a list
Label = Any  # what people call a state: a string, a number, anything hashable
Sequences = Iterable[object]  # what a model of chains reads: each as features, tokens, a matrix …
Frame = Any  # a data frame of pandas or Polars
Axes = Any  # of Matplotlib
Sparse = Any  # a scipy.sparse matrix
Client = Any  # of Dask, as the next two
Future = Any
Delayed = Any
Entries = dict[str, Any]  # an object of JSON
Record = Mapping[str, Any]  # the same, to be read only
