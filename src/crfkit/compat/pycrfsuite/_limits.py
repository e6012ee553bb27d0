"""The number of threads where there is no parameter for it."""

from __future__ import annotations

import os


def thread_limit() -> int | None:
    """Return the value of OMP_NUM_THREADS, which joblib sets for its workers; None, all cores, if it is not set.

    >>> import os
    >>> os.environ["OMP_NUM_THREADS"] = "2"
    >>> thread_limit()
    2
    >>> del os.environ["OMP_NUM_THREADS"]
    """
    text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None
