"""Run the property-based tests with fresh seeds until a time is over: `make explore MINUTES=10`.

Each round takes a new seed. The first failure ends the run with exit code 1; the example that fails and the command
that repeats it are printed. Arguments after the number of minutes go to pytest, such as a folder or `-k NAME`.
"""

from __future__ import annotations

import argparse
import secrets
import shlex
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def command(seed: int, rest: list[str]) -> list[str]:
    options = ["-m", "hypothesis", "--hypothesis-profile=explore", f"--hypothesis-seed={seed}"]
    return [sys.executable, "-m", "pytest", "-x", "-rfE", *options, *rest]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float)
    options, rest = parser.parse_known_args()
    if not options.minutes > 0:
        parser.error(f"expected a number of minutes > 0, not {options.minutes:g}")
    end, rounds = time.monotonic() + 60 * options.minutes, 0
    while (left := end - time.monotonic()) > 0:
        seed = secrets.randbelow(2**32)
        print(f"round {rounds + 1}, seed {seed}, {left / 60:.1f} minutes left", flush=True)
        with subprocess.Popen(command(seed, rest), cwd=REPOSITORY) as tests:
            try:
                code = tests.wait(left)
            except subprocess.TimeoutExpired:
                tests.terminate()
                tests.wait()
                print(f"the time is over; {rounds} complete rounds passed, and part of another")
                return 0
        if code:
            again = shlex.join(["python", *command(seed, rest)[1:]])
            print(f"\nround {rounds + 1} failed. To repeat it: {again}")
            return 1
        rounds += 1
    print(f"the time is over; {rounds} rounds passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
