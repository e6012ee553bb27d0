"""Files that are replaced only when they are complete."""

from __future__ import annotations

import os


def make_ordinary(path: str) -> None:
    """Give a temporary file the permissions that a new file would have."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(path, 0o666 & ~umask)
