"""Checks of options and arrays that users give; every message says what was given, where, and what was expected."""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from crfkit._types import Array, Features, Floats, Sparse, Tabular
from crfkit.errors import DataError, ParameterError, option_error
from crfkit.wording import quoted


def unmasked(values: Tabular, what: str) -> Tabular:
    """Return values that are no masked array; raise DataError if entries of one are masked."""
    if type(values) is np.ndarray or not isinstance(values, np.ndarray) or not isinstance(values, np.ma.MaskedArray):
        return values
    if masked := int(np.ma.getmaskarray(values).sum()):
        raise DataError(
            f"{what}: {masked} of {values.size} entries are masked; fill them, with .filled(value), or leave out the "
            "rows that have them"
        )
    return np.ma.getdata(values)


def whole_numbers(
    values: Tabular, what: str, shape: tuple[int, ...] | None = None, dtype: DTypeLike = np.int32, floats: bool = False
) -> Array:
    """Return a new array of integers that fit the type and the shape; with `floats`, 2.0 counts as an integer."""
    return np.array(_whole(values, what, shape, dtype, floats), dtype=dtype, order="C")


def index_array(values: Tabular, what: str, dtype: DTypeLike = np.int32) -> Array:
    """Return contiguous integers that fit the type: the same array if it is contiguous and of this type."""
    values = unmasked(values, what)
    if not isinstance(values, np.ndarray) or values.dtype != dtype:
        values = _whole(values, what, None, dtype, True)
    return np.ascontiguousarray(values, dtype=dtype)


def ascends(values: Array) -> bool:
    """Return whether no entry lies below the one before it. Differences could wrap around; comparisons cannot."""
    return not bool(np.any(values[1:] < values[:-1]))


def _whole(values: Tabular, what: str, shape: tuple[int, ...] | None, dtype: DTypeLike, floats: bool) -> Array:
    try:
        array = np.asarray(unmasked(values, what))
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{what} must be whole numbers") from None
    if shape is not None and array.shape != shape:
        raise DataError(f"{what} must have the shape {shape}; got {array.shape}")
    if array.size == 0:
        return np.zeros(array.shape, dtype=dtype)
    if floats and array.dtype.kind == "f" and np.array_equal(array, np.floor(array)) and np.abs(array).max() < 2**53:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise DataError(f"{what} must be whole numbers, not {array.dtype} values such as {array.flat[0]}")
    limits = np.iinfo(dtype)
    if array.min() < limits.min or array.max() > limits.max:
        wrong = array.max() if array.max() > limits.max else array.min()
        raise DataError(f"{what} must be between {limits.min} and {limits.max}; one is {wrong}")
    return array


def weights_of(values: Tabular, what: str, count: int) -> Floats:
    """Return `count` finite weights >= 0; `what` names in errors what has a weight."""
    values = unmasked(values, f"the weights of {what}s")
    try:
        weights = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"the weights of {what}s must be numbers") from None
    if weights.shape != (count,):
        raise DataError(f"{weights.size} weights for {count} {what}s")
    if (bad := np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))).size:
        raise DataError(f"{what} {bad[0]} has weight {weights[bad[0]]}; expected a finite number >= 0")
    return weights


def sparse_matrix(given: Tabular, what: str) -> Sparse:
    """Return a CSR matrix of doubles with ascending columns, made of checked copies; of any sparse format.

    SciPy trusts the index arrays of a matrix, and somebody may have changed them since it was made, or do so while a
    model is fitted: reading by them could end the process.
    """
    from scipy.sparse import coo_array, csc_array, csr_array

    if getattr(given, _CHECKED, None) is not None and _still_checked(given):
        return given
    if given.ndim != 2:
        raise DataError(f"{what} must be a matrix with a row each; got shape {given.shape}")
    rows, columns = (int(size) for size in given.shape)
    try:
        if given.format in ("csr", "csc"):
            n, end, side = (rows, columns, "column") if given.format == "csr" else (columns, rows, "row")
            offsets, ids = _indices(given.indptr, what), _indices(given.indices, what)
            values = _numbers(given.data, what)
            entries = int(offsets[-1]) if len(offsets) == n + 1 else -1
            if not 0 <= entries <= min(len(ids), len(values)) or offsets[0] != 0 or not ascends(offsets):
                raise DataError(f"{what}: not a valid matrix; indptr must ascend from 0 to the number of entries")
            if entries < max(len(ids), len(values)):
                ids, values = ids[:entries], values[:entries]
            check_indices(ids, end, f"{what}: {side}")
            made = (csr_array if given.format == "csr" else csc_array)((values, ids, offsets), shape=(rows, columns))
            matrix = made if given.format == "csr" else csr_array(made)
        else:
            listed = given.tocoo(copy=True)
            places = _indices(listed.row, what), _indices(listed.col, what)
            check_indices(places[0], rows, f"{what}: row")
            check_indices(places[1], columns, f"{what}: column")
            matrix = csr_array(coo_array((_numbers(listed.data, what), places), shape=(rows, columns)))
        matrix.sum_duplicates()
    except DataError:
        raise
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise DataError(f"{what}: not a valid matrix: {error}") from None
    return mark_checked(matrix)


_CHECKED = "_crfkit_checked"


def mark_checked(matrix: Sparse) -> Sparse:
    """Return a CSR matrix that was made from checked ones, and is not checked again while its indices are the same."""
    arrays = matrix.indptr, matrix.indices
    for array in arrays:
        array.flags.writeable = False
    setattr(matrix, _CHECKED, arrays)
    return matrix


def _still_checked(matrix: Sparse) -> bool:
    offsets, ids = getattr(matrix, _CHECKED)
    same = matrix.indptr is offsets and matrix.indices is ids and len(matrix.data) == len(ids)
    return same and not offsets.flags.writeable and not ids.flags.writeable


def _indices(values: Tabular, what: str) -> Array:
    array = np.array(unmasked(values, what))
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise DataError(f"{what}: not a valid matrix; its indices are {array.dtype} of shape {array.shape}")
    return array


def _numbers(values: Tabular, what: str) -> Floats:
    array = np.asarray(unmasked(values, what))
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} must be numbers, not {array.dtype}")
    return np.array(array, dtype=np.float64).ravel()


def check_indices(ids: Array, end: int, what: str) -> None:
    """Raise DataError unless all are from 0 to end − 1."""
    if ids.size and (ids.min() < 0 or ids.max() >= end):
        wrong = ids.max() if ids.max() >= end else ids.min()
        raise DataError(f"{what} {wrong} does not exist; they are numbered 0 … {end - 1}")


def check_features(features: Features, what: str) -> Features:
    """Return a matrix of finite doubles, dense or CSR; raise DataError with the row of a value that is not finite.

    Matrices that are computed when they are multiplied (`streamed`) have been checked when they were made.
    """
    from scipy.sparse import issparse

    if getattr(features, "streamed", False):
        return features
    if issparse(features):
        matrix = sparse_matrix(features, what)
        if not np.isfinite(matrix.data).all():
            place = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
            row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
            raise DataError(f"{what}: row {row}, column {matrix.indices[place]} is {matrix.data[place]}")
        return matrix
    features = unmasked(features, what)
    try:
        array = np.ascontiguousarray(features, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{what} must be a matrix of numbers") from None
    if np.ndim(features) != 2:
        raise DataError(f"{what} must be a matrix with a row each; got shape {np.shape(features)}")
    # The extremes are finite if and only if all are, and finding them makes no array as large as the features.
    if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise DataError(f"{what}: row {row}, column {column} is {array[row, column]}; fill or drop missing values")
    return array


def check_online(max_iterations: int, seed: int) -> None:
    """Raise ParameterError unless max_iterations and seed are integers >= 0."""
    if max_iterations < 0:
        raise option_error("max_iterations", f" must be >= 0, not {max_iterations!r}")
    check_count(0, seed=seed)


def is_whole(value: object) -> bool:
    """Return whether a value is an integer, of Python or NumPy, and not True or False."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_count(least: int = 1, /, **options: Any) -> None:
    """Raise ParameterError unless each option is an integer >= `least`."""
    for name, value in options.items():
        if not is_whole(value) or value < least:
            raise option_error(name, f" must be an integer >= {least}, not {quoted(value)}")


def check_optional_count(**options: Any) -> None:
    """Raise ParameterError unless each option is None or an integer >= 1."""
    for name, value in options.items():
        if value is not None and (not is_whole(value) or value < 1):
            raise option_error(name, f" must be None or an integer >= 1, not {quoted(value)}")


def make_seed(random_state: Any, default: int | None = 0) -> int:
    """Return the seed that `random_state` stands for: an integer >= 0, a generator of NumPy, or None.

    None is the default or, without one, a new seed each time.
    """
    if random_state is None and default is not None:
        return default
    if is_whole(random_state):
        check_count(0, random_state=random_state)
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31))
    raise ParameterError(f"random_state must be an integer, a generator of NumPy or None, not {quoted(random_state)}")


def check_positive(**options: float) -> None:
    """Raise ParameterError unless each option is a finite number > 0."""
    for name, value in options.items():
        if not (math.isfinite(value) and value > 0):
            raise option_error(name, f" must be a finite number > 0, not {quoted(value)}")


def check_strength(what: str, strength: float) -> None:
    """Raise ParameterError unless the strength of a penalty is a finite number >= 0."""
    if not (math.isfinite(strength) and strength >= 0):
        raise ParameterError(f"the strength of {what} must be a finite number >= 0, not {strength!r}")


def check_encoding(encoding: str) -> None:
    """Raise ParameterError if Python does not know this encoding, or if it is not one of texts."""
    try:
        if getattr(codecs.lookup(encoding), "_is_text_encoding", True):
            return
    except (LookupError, ValueError):  # a name with a zero byte is a ValueError
        pass
    raise ParameterError(f"unknown encoding {encoding!r}; common ones are utf-8, latin-1, cp1252, euc-jp, gb18030")


def is_listed(given: object) -> bool:
    """Return whether a value can be a list of others: it is neither a text nor an array without dimensions."""
    return isinstance(given, Iterable) and not isinstance(given, (str, bytes)) and getattr(given, "ndim", 1) > 0
