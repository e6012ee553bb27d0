"""A process that runs cases: it reads "target number" from standard input and answers with a line of JSON for each."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crfkit.errors import CrfkitError
from fuzz.target import Target
from fuzz.targets import find_targets

SOURCES = str(Path(sys.modules["crfkit"].__file__ or "").parent)


def run_case(target: Target, valid: bytes, seed: int, number: int, folder: Path) -> None:
    """Make a case and use it. Raises what the use of it raises."""
    path = folder / f"case{target.suffix}"
    with suppress(FileNotFoundError):
        path.unlink()  # models of the last case may still be mapped
    path.write_bytes(target.case(valid, seed, number))
    os.utime(path, (1e9, 1e9))  # not a file that somebody may just be writing
    with np_quiet():
        target.use(path, target.random(seed, number, "use"))


@contextmanager
def np_quiet() -> Iterator[None]:
    import numpy as np

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def judge(error: BaseException | None) -> dict[str, Any]:
    """Return what happened: nothing, an error of crfkit, or a finding with the place in crfkit that it came from."""
    if error is None:
        return {"outcome": "fine"}
    if isinstance(error, CrfkitError):
        return {"outcome": "refused"}
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(SOURCES)] or frames[-1:]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "nowhere"
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-25))
    return {"outcome": "finding", "place": f"{type(error).__name__} at {place}", "text": text[-6000:]}


def peak_memory() -> int:
    """Return the most bytes of memory that this process has had."""
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def main() -> None:
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever is printed goes elsewhere
    targets = {target.name: target for target in find_targets()}
    valid: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as work:
        answers.write("ready\n")
        for line in sys.stdin:
            name, number = line.split()
            target = targets[name]
            if name not in valid:
                valid[name] = (folder / name).read_bytes()
            raised: BaseException | None = None
            try:
                run_case(target, valid[name], seed, int(number), Path(work))
            except BaseException as error:
                raised = error
            answer = judge(raised)
            del raised
            answers.write(json.dumps({**answer, "peak": peak_memory()}) + "\n")


if __name__ == "__main__":
    main()
