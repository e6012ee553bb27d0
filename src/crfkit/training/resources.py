"""Free memory, used memory, and seconds in words."""

from __future__ import annotations

import sys


def available_memory() -> int | None:
    """Return the memory that the system can still give to this process, in bytes; None where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # another system than Linux
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return free if limit == resource.RLIM_INFINITY else min(free, max(0, limit - (peak_memory() or 0)))


def peak_memory() -> int | None:
    """Return the most memory that this process has had so far, in bytes; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def seconds_text(seconds: float) -> str:
    """Return a duration for people.

    >>> seconds_text(0.0123), seconds_text(75), seconds_text(7200)
    ('0.012 s', '75 s', '2 h')
    """
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.2g} h"
