"""How time grows with what a hostile file can make large: the length of a line, the columns of a table, and the number
of attributes that collide in the hash (and of others, as long, to compare: larger tables do not fit into caches).

    python benchmarks/linear.py [--json FILE]

The exponent is the slope of log time over log size: 1 is linear, 2 quadratic. Times are CPU seconds, the least of
several runs. Lines are fed in small blocks, so that a parser that looks at a line again with every block shows.
Large blocks of memory come fresh from the system at all sizes; otherwise small ones alone would be used again.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from common import write_results

from crfkit import GraphCRF, _core
from crfkit.files import limits
from crfkit.files.columns import ColumnFile, rows_of
from crfkit.files.tables import read_table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from collisions import colliding

BLOCK = 1 << 14
LINES = [2_000_000, 4_000_000, 8_000_000, 16_000_000]
COLUMNS = [12_500, 25_000, 50_000, 100_000]
ATTRIBUTES = [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000]


class Blocks(io.BytesIO):
    """A stream that gives small blocks, as a pipe does."""

    def read1(self, size: int | None = -1) -> bytes:
        return self.read(BLOCK)


def read_line(n: int) -> Callable[[], None]:
    data = b"a" * (n - 4) + b" x O\n"

    def run() -> None:
        encoder = _core.Encoder("U:%x[0,1]\nB\n", labelled=True)
        file = ColumnFile(Blocks(data), format="columns")
        for block in file.chunks(labelled=True):
            encoder.feed(block)
        encoder.feed(b"", end=True)
        assert sum(1 for _ in rows_of(ColumnFile(Blocks(data), format="columns"))) == 1

    return run


def read_wide(n: int, folder: Path) -> Callable[[], None]:
    path = folder / f"{n}.csv"
    rows = [",".join(f"c{i}" for i in range(n)), *(",".join(str((i + r) % 2) for i in range(n)) for r in range(4))]
    path.write_text("\n".join(rows) + "\n")

    def run() -> None:
        table = read_table(path)
        X, Y = table.take(list(range(2, n))), table.take([0, 1])
        X.check_numbers()
        GraphCRF(graph="none", max_iterations=1, n_threads=1).fit(X, Y).predict(X)

    return run


def learn(names: list[bytes] | list[str]) -> Callable[[], None]:
    n, items = len(names), [[name] for name in names]

    def run() -> None:
        encoder = _core.Encoder(loose=True)
        encoder.add_items(items)
        table = encoder.table(np.arange(n))
        _core.StringTable(table.offsets, table.bytes, table.slots)  # as a model file is checked
        known = _core.Encoder(attributes=table, loose=True)
        known.add_items(items)

    return run


def exponent(sizes: list[int], make: Callable[[int], Callable[[], None]], repeats: int) -> dict[str, object]:
    """The slope, and the seconds of each size."""
    runs = [make(n) for n in sizes]
    seconds = [np.inf] * len(sizes)
    for _ in range(repeats):
        for k, run in enumerate(runs):
            begin = time.process_time()
            run()
            seconds[k] = min(seconds[k], time.process_time() - begin)
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    return {"exponent": round(float(slope), 3), "sizes": sizes, "seconds": [round(s, 4) for s in seconds]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if sys.platform == "linux":
        ctypes.CDLL(None).mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD
    with TemporaryDirectory() as folder, limits.raised(line=10**9):
        result = {
            "bytes of a line": exponent(LINES, read_line, options.repeats),
            "columns of a table": exponent(COLUMNS, lambda n: read_wide(n, Path(folder)), options.repeats),
            "attributes that collide": exponent(ATTRIBUTES, lambda n: learn(colliding(n)), options.repeats),
            "other attributes": exponent(
                ATTRIBUTES, lambda n: learn([b"%016d" % k for k in range(n)]), options.repeats
            ),
        }
    print(f"{'':26}exponent  seconds")
    for name, found in result.items():
        print(f"{name:26}{found['exponent']:8}  {found['seconds']}")
    if options.json:
        write_results(options.json, result)


if __name__ == "__main__":
    main()
