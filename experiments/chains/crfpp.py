"""crfkit-learn beside what crf_learn of CRF++ 0.58 printed for the same 500 sentences, template and flags."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

Report = dict[str, Any]
SENTENCES = 500
ETA = 1e-5
COLUMNS = ("terr", "serr", "act", "obj", "diff")


def lines(log: str) -> dict[str, list[str]]:
    """Return the columns of a log, as they were printed."""
    return {name: re.findall(rf" {name}=(\S+)", log) for name in COLUMNS}


def learn(data: Path, template: Path) -> tuple[str, float]:
    """Return what crfkit-learn prints, and its CPU seconds."""
    from crfkit.compat.crfpp import learn as command

    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder) / "train.txt"
        blocks = (data / "conll2000" / "train.txt").read_text(encoding="utf-8").split("\n\n")[:SENTENCES]
        train.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
        printed = io.StringIO()
        flags = ["-f", "3", "-c", "1.0", "-e", f"{ETA:.5f}", "-p", "1"]
        begin = time.process_time()
        with contextlib.redirect_stdout(printed):
            command.learn([*flags, str(template), str(train), str(Path(folder) / "model")])
        return printed.getvalue(), time.process_time() - begin


def trace(data: Path, reference: Path, name: str) -> Report:
    """Return both traces, and how many lines are the same in each column."""
    theirs_text = (reference / "crfpp" / f"{name}.log").read_text()
    ours_text, seconds = learn(data, reference / "crfpp" / f"{name}.template")
    ours, theirs = lines(ours_text), lines(theirs_text)
    done = [float(x) for x in re.findall(r"Done!(\S+) s", theirs_text)]
    objective = [float(x) for x in theirs["obj"]]
    small = [abs(b - a) / a < ETA for a, b in pairwise(objective)]
    return {
        "evaluations": {"CRF++": len(theirs["obj"]), "crfkit": len(ours["obj"])},
        "same lines": {
            column: sum(a == b for a, b in zip(ours[column], theirs[column], strict=False)) for column in COLUMNS
        },
        "seconds": {"CRF++": done[-1], "crfkit": seconds},
        "third small change": [k + 1 for k, is_small in enumerate(small) if is_small][2],
        "rises": sum(b > a for a, b in pairwise(objective)),
        "CRF++": objective,
        "crfkit": [float(x) for x in ours["obj"]],
    }
