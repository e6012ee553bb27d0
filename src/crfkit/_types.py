"""Names for the arrays that are handed around."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Features = Any  # a dense matrix of doubles or a scipy.sparse CSR one
