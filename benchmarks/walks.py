"""How many files, folders, rooms and functions of crfkit a call passes through: what a reader of that path has to open.

    python benchmarks/walks.py [--output benchmarks/results/walks.json] [--before CLONE]

Seven paths: `crfkit train`, `crfkit tag`, ChainCRF.fit with L1, StructureLearner.fit, ChainCRF.fit on a cluster (this
process), ImageSegmenter.fit, and sklearn_crfsuite's CRF. Code that runs as modules are imported does not count, nor do
class bodies. --before runs the same on another version: a clone with an environment of its own (`make .venv/.user`,
and `pip install distributed` for the cluster).
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent


def sentences() -> tuple[Any, Any]:
    X = [[[f"w={(3 * i + k) % 11}", f"p={(3 * i + k - 1) % 11}"] for k in range(6)] for i in range(40)]
    return X, [["AB"[(3 * i + k) % 11 < 5] for k in range(6)] for i in range(40)]


def column_file(folder: Path) -> Path:
    X, y = sentences()
    rows = (
        "\n".join(f"{a[0]} {label}" for a, label in zip(x, labels, strict=True)) for x, labels in zip(X, y, strict=True)
    )
    (folder / "train.txt").write_text("\n\n".join(rows) + "\n\n", encoding="utf-8")
    (folder / "template").write_text("U0:%x[0,0]\nB\n", encoding="utf-8")
    return folder / "train.txt"


def command(*arguments: str) -> None:
    from crfkit.cli.entry import main

    sys.argv = ["crfkit", *arguments]
    with suppress(SystemExit):
        main()


def train(folder: Path) -> Callable[[], Any]:
    file = str(column_file(folder))
    return lambda: command("train", file, "-t", str(folder / "template"), "-m", str(folder / "m.crf"), "--quiet")


def tag(folder: Path) -> Callable[[], Any]:
    train(folder)()
    return lambda: command("tag", str(folder / "m.crf"), str(folder / "train.txt"), "-o", str(folder / "out.txt"))


def fit_l1(folder: Path) -> Callable[[], Any]:
    from crfkit import L1, ChainCRF

    return lambda: ChainCRF(penalty=L1(0.5)).fit(*sentences())


def structure(folder: Path) -> Callable[[], Any]:
    import numpy as np

    from crfkit import StructureLearner

    rng = np.random.default_rng(0)
    Y = (rng.normal(size=(300, 1)) + rng.normal(size=(300, 6)) > 0).astype(int)
    return lambda: StructureLearner().fit(Y)


def cluster(folder: Path) -> Callable[[], Any]:
    from crfkit import ChainCRF

    return lambda: ChainCRF(cluster="local:1").fit(*sentences())


def segmenter(folder: Path) -> Callable[[], Any]:
    import numpy as np

    from crfkit import ImageSegmenter

    mask = np.zeros((24, 32), dtype=int)
    mask[6:18, 8:24] = 1
    rng = np.random.default_rng(0)
    images = [np.clip(0.3 + 0.4 * mask + rng.normal(0, 0.05, mask.shape), 0, 1) for _ in range(2)]
    return lambda: ImageSegmenter(colour=True).fit(images, [mask, mask])


def peer(folder: Path) -> Callable[[], Any]:
    from crfkit.compat import sklearn_crfsuite

    X, y = sentences()
    items = [[dict.fromkeys(a, 1.0) for a in x] for x in X]
    return lambda: sklearn_crfsuite.CRF(c1=0.1, c2=0.1, max_iterations=20).fit(items, y)


WALKS = {
    "crfkit train": train,
    "crfkit tag": tag,
    "ChainCRF.fit with L1": fit_l1,
    "StructureLearner.fit": structure,
    "ChainCRF.fit on a cluster": cluster,
    "ImageSegmenter.fit": segmenter,
    "sklearn_crfsuite.CRF.fit": peer,
}


def importing(frame: FrameType | None) -> bool:
    """Return whether a call comes from the body of a module, such as a decorator or a registry's entry."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and "crfkit" in frame.f_globals.get("__name__", ""):
            return True
        frame = frame.f_back
    return False


def walk(name: str) -> dict[str, int]:
    """Return how many files, folders, rooms and functions one path passes through."""
    import crfkit

    root = str(Path(crfkit.__file__).parent) + os.sep
    seen: set[tuple[str, str]] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(root) or code.co_name.startswith("<"):
            return
        function = code.co_filename, getattr(code, "co_qualname", code.co_name)
        if function not in seen and code.co_flags & inspect.CO_OPTIMIZED and not importing(frame):
            seen.add(function)

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call = WALKS[name](Path(folder))
        sys.setprofile(watch)
        try:
            call()
        finally:
            sys.setprofile(None)
    files = {file for file, _ in seen}
    places = [Path(file).relative_to(root).parts for file in files]
    return {
        "files": len(files),
        "folders": len({place[:-1] for place in places}),
        "rooms": len({place[0] for place in places if len(place) > 1}),  # folders of crfkit itself
        "functions": len(seen),
    }


def run(name: str, python: Path) -> dict[str, int] | None:
    """Walk one path in a process of its own; return None if it failed."""
    command = [str(python), str(Path(__file__).resolve()), "--one", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    found: dict[str, int] | None = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "walks.json")
    parser.add_argument("--before", type=Path, help="a clone of another version, with its environment in .venv")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(walk(options.one)))
        return
    versions = {"now": Path(sys.executable)}
    if options.before is not None:
        versions = {"before": options.before.absolute() / ".venv" / "bin" / "python", **versions}
    found: dict[str, Any] = {name: {} for name in WALKS}
    for name, walks in found.items():
        for version, python in versions.items():
            walks[version] = run(name, python)
            print(f"{name:28} {version:7} {walks[version] or 'failed'}", flush=True)
    from common import write_results  # imports crfkit, which the walks above do in processes of their own

    write_results(options.output, found)


if __name__ == "__main__":
    main()
