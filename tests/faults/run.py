"""`make faults`: what goes wrong around a command, at random moments. One line per kind; exit code 1 on a violation.

KILLS, SIGINTS and SIGTERMS say how many signals, TIMES how often the other kinds, SEED which moments.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kinds import KINDS
from workshop import Violation, Workshop

NUMBERS = {
    "kills": ("KILLS", 200),
    "kills while saving": ("KILLS", 200),
    "SIGINT": ("SIGINTS", 100),
    "SIGTERM": ("SIGTERMS", 30),
}


def main(wanted: list[str]) -> int:
    # a shell that starts this in the background has SIGINT ignored, and the commands would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = int(os.environ.get("SEED") or "0")

    def one(name: str) -> bool:
        variable, default = NUMBERS.get(name, ("TIMES", 20))
        n = int(os.environ.get(variable) or default)
        n = n // 4 if name == "kills while saving" else n
        shop = Workshop(Path(tempfile.mkdtemp(prefix="crfkit-faults-")), seed)
        begin = time.monotonic()
        try:
            line, good = KINDS[name](shop, n), "ok"
        except (Violation, AssertionError) as error:
            line, good = f"{type(error).__name__}: {error}", "VIOLATION"
        finally:
            shop.close()
        print(f"{good:10}{name:22}{line}  ({time.monotonic() - begin:.0f} s)", flush=True)
        return good == "ok"

    with ThreadPoolExecutor(2) as pool:
        return 0 if all(list(pool.map(one, wanted or KINDS))) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
