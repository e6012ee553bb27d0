"""Names for the arrays and the other values that are handed around."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._values import Axes as Axes
from crfkit._values import Client as Client
from crfkit._values import Delayed as Delayed
from crfkit._values import Entries as Entries
from crfkit._values import Frame as Frame
from crfkit._values import Future as Future
from crfkit._values import Label as Label
from crfkit._values import Record as Record
from crfkit._values import Samples as Samples
from crfkit._values import Sequences as Sequences
from crfkit._values import Sparse as Sparse
from crfkit._values import Tabular as Tabular
from crfkit._values import Vector as Vector

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Array = NDArray[Any]  # of any type of numbers, or of labels
Features = Any  # a dense matrix of doubles or a scipy.sparse CSR one
