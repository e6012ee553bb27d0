"""Tables T_b [B, K, K] that the pairwise part of a field is made of.

Unit tables have one entry each: as an array they would take K⁴ numbers. They are a view of 2K² − 1 numbers instead,
which can be indexed like any array but must not be copied, and the functions here see to that.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from crfkit._types import Floats


def unit_tables(K: int) -> Floats:
    """Return the K² unit tables [K², K, K], read-only, as a view of a few numbers.

    >>> bool((unit_tables(3).reshape(9, 9) == np.eye(9)).all())
    True
    """
    n = K * K
    band = np.zeros(2 * n - 1)
    band[n - 1] = 1.0  # row i of the identity is band[n − 1 − i : 2n − 1 − i]
    size = band.itemsize
    return as_strided(band[n - 1 :], (n, K, K), (-size, K * size, size), writeable=False)


def is_unit(basis: Floats) -> bool:
    """Return whether these are all unit tables, in order."""
    B, K = basis.shape[:2]
    if K * K != B:
        return False
    if basis.strides == (-8, 8 * K, 8) and not basis.flags.writeable:  # constant along diagonals
        first, others = basis[0].ravel(), basis[:, 0, 0]
        return bool(first[0] == 1.0 and not first[1:].any() and not others[1:].any())
    return bool(np.array_equal(basis.reshape(B, B), np.eye(B)))


def native_basis(basis: Floats) -> Floats:
    """Return the tables as the core reads them: none means all unit tables."""
    return np.empty((0, *basis.shape[1:])) if is_unit(basis) else np.ascontiguousarray(basis, dtype=np.float64)


def expanded(coefficients: Floats, basis: Floats) -> Floats:
    """Return Σ_b coefficients[…, b] · T_b, an array […, K, K]."""
    K = basis.shape[1]
    if not is_unit(basis):
        coefficients = coefficients @ basis.reshape(len(basis), K * K)
    return coefficients.reshape(*coefficients.shape[:-1], K, K)


def projected(tables: Floats, basis: Floats) -> Floats:
    """Return Σ_kl tables[e, k, l] · T_b(k, l) of tables [E, K, K], an array [E, B]."""
    flat = tables.reshape(len(tables), basis.shape[1] ** 2)
    found: Floats = flat if is_unit(basis) else flat @ basis.reshape(len(basis), -1).T
    return found
