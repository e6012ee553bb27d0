"""Learning structure by adaptive gradient projection: the experiments of Xue & Zhang (2016).

    python experiments/agpm/run.py --parts table,likelihood,figure1,figure2,engines,rules,variants,traces
        [--nodes 5,10,15] [--features 5,10,15,20] [--draws 5] [--repeats 3] [--output DIR]

table       Table 1 under the pseudo-likelihood: 5, 10, 15 nodes x 5, 10, 15, 20 features, 100 training samples
likelihood  Table 1 under the likelihood, by exact inference
figure1     as Table 1 with 500 training samples
figure2     10 nodes, 10, 15, 20 features, 1,000 training samples
engines     seconds per evaluation of the likelihood and of the pseudo-likelihood
rules       every step rule with every line search, and other solvers, at 10 nodes and 10 features
variants    constants and line searches of AGPM in all settings of Table 1
traces      the objective against evaluations, for a figure
figures     draws the figures from results.json

All on one thread, whose CPU seconds count. A run is repeated until it has been timed --repeats times; its other numbers
are the same each time. Every finished unit is merged into results.json, and one that is there is not run again unless
--again is given.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # results_file

from agpm_store import Store
from problem import METHODS, SETTINGS, Problem, paper_rule
from studies import engines, rules, traces, variants

HERE = Path(__file__).resolve().parent
# name of the part: (where it is kept, loss, training samples)
COMPARISONS = {
    "table": ("Table 1", "pl", 100),
    "likelihood": ("Table 1", "likelihood", 100),
    "figure1": ("Figure 1", "pl", 500),
    "figure2": ("Figure 2", "pl", 1000),
}
STUDIES: dict[str, Callable[..., None]] = {"engines": engines, "rules": rules, "variants": variants, "traces": traces}


def compare(store: Store, part: str, settings: list[tuple[int, int]], draws: int, repeats: int) -> None:
    """Run all methods on each draw of each setting. Methods take turns."""
    key, kind, n_train = COMPARISONS[part]
    if part == "figure2":
        settings = [(nodes, features) for nodes, features in settings if nodes == 10 and features >= 10]
    for draw in range(draws):
        for nodes, features in settings:
            rows = store.at(key, kind, f"{nodes}/{features}", str(draw))
            if rows and min(len(row["cpu"]) for row in rows.values()) >= repeats:
                continue
            begin = time.process_time()
            problem = Problem(kind, nodes, features, n_train, draw)
            while not rows or min(len(row["cpu"]) for row in rows.values()) < repeats:
                for name, make in METHODS.items():
                    result, cpu = problem.minimize(paper_rule(make))
                    if name in rows:
                        assert result.evaluations == rows[name]["evaluations"], "the same run took another path"
                        rows[name]["cpu"].append(round(cpu, 4))
                    else:
                        rows[name] = problem.row(result, cpu)
            check(rows)
            told = ", ".join(f"{n} {r['evaluations']} {min(r['cpu']):.2f} s {r['error']:.3f}" for n, r in rows.items())
            print(key, kind, f"{nodes}/{features} draw {draw}:", told, flush=True)
            store.spent(part, begin)


def check(rows: dict[str, Any]) -> None:
    """All that have converged have found one optimum."""
    ended = [row["objective"] for row in rows.values() if row["status"] == "CONVERGED"]
    assert not ended or max(ended) < min(ended) * (1 + 1e-4) + 1e-4, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join([*COMPARISONS, *STUDIES, "figures"]))
    parser.add_argument("--nodes", default="5,10,15")
    parser.add_argument("--features", default="5,10,15,20")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="run units that are there already, too")
    parser.add_argument("--output", type=Path, default=HERE)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    nodes, features = ({int(number) for number in text.split(",")} for text in (options.nodes, options.features))
    settings = [setting for setting in SETTINGS if setting[0] in nodes and setting[1] in features]
    store = Store(options.output / "results.json", options.again)
    for part in options.parts.split(","):
        if part in COMPARISONS:
            compare(store, part, settings, options.draws, options.repeats)
        elif part in STUDIES:
            STUDIES[part](store, settings, options.draws, options.repeats)
        elif part == "figures":
            from figures import draw

            draw(store.results, options.output)
        else:
            parser.error(f"unknown part {part!r}; expected {', '.join([*COMPARISONS, *STUDIES, 'figures'])}")


if __name__ == "__main__":
    main()
