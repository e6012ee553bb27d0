"""Workers on this machine load this module first: they leave Ctrl-C and messages to the program that trains."""

from __future__ import annotations

import logging
import signal
import threading


def dask_setup(worker: object) -> None:
    """Ignore SIGINT and complaints of connections that were closed at the end; Dask calls this in every worker."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("distributed", "distributed.worker", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
