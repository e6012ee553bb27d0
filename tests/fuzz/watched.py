"""Worker processes that are watched: a limit of time for each case, and a limit of memory."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PATIENCE = 10  # times the limit of work, for a process that waits for something
TESTS = Path(__file__).resolve().parent.parent


class Worker:
    """One process. `run` gives it a case and returns what happened; the process is replaced if it had to end."""

    def __init__(self, seeds: Path, seed: int, seconds: float, memory: int) -> None:
        self._arguments = (str(seeds), str(seed))
        self._seconds, self._memory = seconds, memory
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, target: str, number: int) -> dict[str, Any]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{target} {number}\n".encode())
        process.stdin.flush()
        # seconds of work, so that a busy machine makes no hangs
        limit, last = _worked(process.pid) + self._seconds, time.monotonic() + PATIENCE * self._seconds
        while True:
            if select.select([process.stdout], [], [], 0.1)[0]:
                line = process.stdout.readline()
                if not line:
                    return self._died()
                return self._checked(json.loads(line))
            if _worked(process.pid) > limit or time.monotonic() > last:
                return self._ended(f"hang: more than {self._seconds:g} s")
            if _resident(process.pid) > self._memory:
                return self._ended(f"more than {self._memory / 1e9:.3g} GB of memory")

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
            self._errors.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker", *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=TESTS.parent,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
            )
            assert self._process.stdout is not None
            if not self._process.stdout.readline():  # it answers when it is ready
                self._errors.seek(0)
                raise RuntimeError(f"a worker could not start: {self._errors.read().decode(errors='replace')}")
        return self._process

    def _checked(self, answer: dict[str, Any]) -> dict[str, Any]:
        if answer["peak"] > self._memory and answer["outcome"] != "finding":
            self.close()
            return {"outcome": "finding", "place": f"peak over {self._memory / 1e9:.3g} GB of memory", "text": ""}
        if answer["peak"] > 0.5 * self._memory:  # the next case begins with little
            self.close()
        return answer

    def _died(self) -> dict[str, Any]:
        assert self._process is not None
        code = self._process.wait()
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return self._finding(f"process died: {name}")

    def _ended(self, why: str) -> dict[str, Any]:
        """End a process that goes on too long, after it has written where it is."""
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.3)
        return self._finding(why)

    def _finding(self, why: str) -> dict[str, Any]:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 8000))
        text = self._errors.read().decode(errors="replace")
        self.close()
        ours = [line.strip() for line in text.splitlines() if "crfkit" in line and "File" in line]
        place = ours[0].replace("File ", "").split("crfkit/")[-1] if ours else "an unknown place"
        return {"outcome": "finding", "place": f"{why} at {place}", "text": text}


def _worked(pid: int) -> float:
    """Return the seconds that a process has computed."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
            return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


def _resident(pid: int) -> int:
    """Return the bytes of memory that a process has now."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
