"""Which variables depend on each other: StructureLearner beside mutual information and logistic regressions.

    python experiments/structure/run.py PART … [--seeds 40-44] [--data DIR] [--output DIR] [--again]

planted:      tables of binary columns whose graph is known, of six families (fields.py); F1 by the rule of each
              method, F1 at equal numbers of edges, average precision
independent:  false edges among 30 independent columns
tuned:        several γ on fields of other sizes, couplings and seeds, where `ebic_gamma` was chosen
rules:        20 binary variables, 24 edges with couplings of ±.5 to .9, 3,000 exact samples: "ebic", "cv", "stability"
conditional:  random pairwise CRFs of 15 nodes with 5 features each, every pair an edge with probability .5,
              1,000 samples; --light leaves out what takes long
ordinal:      chains of ratings, with one weight per edge and with tables of weights
density:      held-out log-likelihood of nltcs and plants (DIR/nltcs/nltcs.train.data.gz …)

On one thread. Every finished unit is merged into results.json; one that is there is computed again with --again only.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # results_file

import conditional
import density
import ordinal
import planted
import rules
from fields import FAMILIES
from store import Store

HERE = Path(__file__).resolve().parent
ROWS = (150, 300, 1000, 3000)
GAMMAS = (0.25, 0.35, 0.5)
TABLE = 200  # of independent columns: the first hundred were seen while the price of the first edges was settled


class Run:
    """The parts of the experiment; each skips units that are there."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._store = options, Store(options.output)
        self._rows = [int(n) for n in options.rows.split(",")]
        self._families = options.families.split(",")

    def planted(self) -> None:
        for family, rows, seed in self._fields():
            self._unit(lambda: planted.trial(family, rows, seed), "planted", f"{family} {rows}", seed)  # noqa: B023

    def independent(self) -> None:
        for table in range(TABLE, TABLE + self._options.tables):
            for rows in self._rows:
                self._unit(lambda: planted.empty(rows, table), "independent", rows, table)  # noqa: B023

    def tuned(self) -> None:
        gammas = [float(gamma) for gamma in self._options.gammas.split(",")]
        for family, rows, seed in self._fields():
            self._unit(lambda: planted.tune(family, rows, seed, gammas), "tuned", f"{family} {rows}", seed)  # noqa: B023
        first = planted.TUNED_TABLES
        for table in range(first, first + self._options.tables):
            for rows in self._rows:
                self._unit(lambda: planted.empties(rows, table, gammas), "tuned_independent", rows, table)  # noqa: B023

    def _fields(self) -> Iterator[tuple[str, int, int]]:
        """Yield the family, rows and seed of every planted field."""
        for seed in numbers(self._options.seeds):
            for rows in self._rows:
                for family in self._families:
                    yield family, rows, seed

    def rules(self) -> None:
        for seed in numbers(self._options.seeds):
            self._unit(lambda s=seed: rules.trial(s), "rules", seed)

    def conditional(self) -> None:
        for seed in numbers(self._options.seeds):
            for name, make in conditional.units(seed, self._options.light).items():
                if self._options.only in name:
                    self._unit(make, "conditional", seed, name)

    def ordinal(self) -> None:
        for levels, coupling, form in ordinal.KINDS:
            self._unit(
                lambda k=levels, c=coupling, f=form: ordinal.counts(k, c, f, self._options.chains),
                "ordinal",
                f"{levels} {form}",
            )

    def density(self) -> None:
        if self._options.data is None:
            raise SystemExit("density needs --data, the folder of nltcs and plants")
        for name in self._options.tables_of.split(","):
            self._unit(lambda name=name: density.rows(self._options.data, name), "density", name)

    def _unit(self, make: Callable[[], Any], *path: Any) -> None:
        """Compute what is at a path of keys, at once."""
        keys = [str(key) for key in path]
        if self._store.has(*keys) and not self._options.again:
            return
        begin = time.process_time()
        value = make()
        seconds = time.process_time() - begin
        self._store.put(value, *keys)
        self._store.put(seconds, "cpu_seconds", " ".join(keys))
        print(*keys, f"{seconds:.1f} s", flush=True)


def numbers(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if last else [int(n) for n in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[name for name in vars(Run) if not name.startswith("_")])
    parser.add_argument("--seeds", default="40-44")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--gammas", default=",".join(map(str, GAMMAS)), help="of tuned")
    parser.add_argument("--tables", type=int, default=100, help="tables of independent columns")
    parser.add_argument("--light", action="store_true", help="of conditional: without what takes long")
    parser.add_argument("--only", default="", help="of conditional: units whose name has this in it")
    parser.add_argument("--chains", type=int, default=20, help="of ordinal, of each kind")
    parser.add_argument("--tables-of", default="nltcs,plants", help="of density")
    parser.add_argument("--data", type=Path, help="the folder of nltcs and plants")
    parser.add_argument("--output", type=Path, default=HERE)
    parser.add_argument("--again", action="store_true", help="compute again what is there")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    run = Run(options)
    for part in options.parts:
        getattr(run, part)()


if __name__ == "__main__":
    main()
