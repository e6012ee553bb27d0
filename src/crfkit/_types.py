"""Names for the arrays and other values that are handed around."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Array = NDArray[Any]  # of any type of numbers, or of labels
Features = Any  # a dense matrix of doubles or a scipy.sparse CSR one
Sparse = Any  # a scipy.sparse matrix
Frame = Any  # a data frame of pandas or Polars
Label = Any  # what people call a state: a string, a number, anything hashable
Sequences = Iterable[object]  # what a model of chains reads: each as features, tokens, a matrix …
Entries = dict[str, Any]  # an object of JSON
Record = Mapping[str, Any]  # the same, to be read only
