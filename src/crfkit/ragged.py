"""Lists of sequences of different lengths that NumPy and scikit-learn can put together."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from crfkit._types import Array

Row = TypeVar("Row")


class Ragged(list[Row]):
    """A list with an entry for each sequence; as an array, it is a one-dimensional array of objects.

    So the predictions of several folds can be put together (`cross_val_predict`), whether or not their sequences have
    the same length.

    >>> found = Ragged([["DET", "NOUN"], ["VERB"]])
    >>> found
    [['DET', 'NOUN'], ['VERB']]
    >>> np.asarray(found).shape
    (2,)
    """

    __slots__ = ()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a list cannot become an array without a copy; leave copy=False out")
        array = np.empty(len(self), dtype=object)
        for k, row in enumerate(self):
            array[k] = row
        return array if dtype is None else array.astype(dtype)
