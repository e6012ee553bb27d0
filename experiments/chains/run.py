"""The methods of the text on one chain problem, what it proves of them, and CRF++'s training loop.

    python experiments/chains/run.py --data DIR [--output DIR] [--parts theory crfpp methods] [--methods NAME]

theory    forward–backward and enumeration; DFP, BFGS, steepest descent and Newton's method on a quadratic function
crfpp     crfkit-learn beside the logs of CRF++, which are in DIR/../reference; left out where they are not
methods   steepest descent, Newton, DFP, BFGS, L-BFGS and IIS to a gap of 1e-8

One thread; seconds are CPU seconds of the process without callbacks.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))  # results_file

import crfpp
import theory
from methods import METHODS, STRENGTH, lipschitz, one_method, optimum
from problems import MIN_FREQUENCY, SENTENCES, TEMPLATE, small_chains
from results_file import compact, read, write

HERE = Path(__file__).resolve().parent
PARTS = ("theory", "crfpp", "methods")
Report = dict[str, Any]


class Results:
    """The JSON file, written after every unit."""

    def __init__(self, folder: Path, again: bool) -> None:
        self.path, self.again = folder / "results.json", again
        self.found: Report = {"cpu seconds": 0.0, **read(self.path)}

    @contextmanager
    def unit(self) -> Iterator[None]:
        """Count the CPU seconds of a unit and write what it found."""
        begin = time.process_time()
        yield
        self.found["cpu seconds"] += time.process_time() - begin
        write(self.path, self.found, compact)


def run_theory(results: Results, options: argparse.Namespace) -> None:
    with results.unit():
        results.found["theory"] = {
            "chains": theory.chains(options.longest),
            "quadratic": theory.quadratic(),
            "two loops": theory.two_loops(),
        }


def run_crfpp(results: Results, options: argparse.Namespace) -> None:
    reference = options.data.parent / "reference"
    if not (reference / "crfpp").is_dir():
        print(f"there is no crfpp in {reference}: left out", flush=True)
        return
    with results.unit():
        results.found["crfpp"] = {name: crfpp.trace(options.data, reference, name) for name in ("chunking", "cond")}


def run_methods(results: Results, options: argparse.Namespace) -> None:
    loss = small_chains(options.data, options.sentences)
    found = results.found.get("methods")
    if found is None or results.again or found["sentences"] != options.sentences:
        with results.unit():
            found = results.found["methods"] = {
                "sentences": options.sentences,
                "tokens": loss.data.n_positions,
                "labels": loss.field.n_labels,
                "weights": loss.size,
                "min frequency": MIN_FREQUENCY,
                "template": TEMPLATE,
                "strength": STRENGTH,
                "limit": options.limit,
                "lipschitz": lipschitz(loss),
                "optimum": optimum(loss),
                "runs": {},
            }
    for name in options.methods:
        if name in found["runs"] and not results.again:
            continue
        with results.unit():
            run = found["runs"][name] = one_method(loss, name, found["optimum"]["value"], options.limit)
        trace, best = run["trace"], found["optimum"]["value"]
        print(
            f"{name}: {run['iterations']} iterations, {trace['evaluations'][-1]} evaluations, "
            f"{trace['seconds'][-1]:.1f} s, gap {trace['value'][-1] / best - 1:.1e}, {run['status']}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parents[2] / "shared" / "data")
    parser.add_argument("--output", type=Path, default=HERE)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="NAME")
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="of the problem for all methods")
    parser.add_argument("--limit", type=float, default=45.0, help="CPU seconds of a method")
    parser.add_argument("--longest", type=int, default=9, help="chain that is enumerated")
    parser.add_argument("--again", action="store_true", help="compute again what the results have")
    options = parser.parse_args()
    results = Results(options.output, options.again)
    works = {"theory": run_theory, "crfpp": run_crfpp, "methods": run_methods}
    for part in options.parts:
        if part == "methods" or results.again or part not in results.found:
            works[part](results, options)


if __name__ == "__main__":
    main()
