"""Grafting-Light (Zhu, Lao & Xing 2010): Figures 2 to 5.

    python experiments/grafting_light/run.py synthetic                    # Figure 2
    python experiments/grafting_light/run.py np --data CONLL2000          # Figure 3; the folder with train.txt
    python experiments/grafting_light/run.py letters --data OCR_LETTERS   # Figures 4 and 5
    python experiments/grafting_light/run.py owlqn --data CONLL2000       # does the original OWL-QN stall?
    python experiments/grafting_light/run.py sgd                          # which inputs SGD keeps under L1
    python experiments/grafting_light/run.py figures

Runs are added to the results in --output as they finish; one that is there is not run again, unless with --again.
Every run of Figures 2 and 3 is a process of its own with one thread. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # the latter has results_file

import store  # noqa: E402
from methods import BATCH, in_own_process  # noqa: E402

UNITS_OF = {"synthetic": "1,10,20,30,40,50,60,70,80,90,100,110", "np": "100,500,2000"}
METHODS_OF = {
    "synthetic": "full-opt-l1,sgd-l1,grafting-light,grafting",
    "np": "all-features,full-opt-l1,grafting-light,grafting,gauss-seidel",
}
KEYS = ("method", "M", "seed", "strength")
SYNTHETIC_STRENGTH = 64.0


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name in ("synthetic", "np"):
        part = _part(parts, name)
        part.add_argument("--methods", default=METHODS_OF[name])
        part.add_argument("--units", type=numbers, default=numbers(UNITS_OF[name]))
        part.add_argument("--seeds", type=numbers, default=[0, 1, 2] if name == "synthetic" else [0])
        part.add_argument("--strength", type=float, help="of L1; noun phrases: that of np_strength.json by default")
        part.add_argument("--seconds", type=float, help="limit of CPU time of a run")
        part.add_argument("--sentences", type=int, help="noun phrases: of the training file, all by default")
    strength = _part(parts, "np-strength")
    strength.add_argument("--folds", type=numbers, default=[0, 1, 2, 3, 4], help="those to run now, of five")
    strength.add_argument("--sentences", type=int, help="of the training file, all by default")
    strength.add_argument("--threads", type=int, default=1)
    letters = _part(parts, "letters")
    letters.add_argument("--letters", default="acmsig")
    letters.add_argument("--studies", default="bp,pl,units,beyond")
    letters.add_argument("--units", type=numbers, default=numbers("1,10,20,30,40,50,100"))
    letters.add_argument("--seconds", type=float, default=180.0, help="limit of CPU time of a run")
    _part(parts, "owlqn")
    sgd = _part(parts, "sgd")
    sgd.add_argument("--seeds", type=numbers, default=[0])
    sgd.add_argument("--strength", type=float, default=SYNTHETIC_STRENGTH)
    sgd.add_argument("--epochs", type=int, default=25)
    _part(parts, "figures")
    given = parser.parse_args()
    if given.part in ("synthetic", "np"):
        sweep(given)
    else:
        _other(given)


def _part(parts: Any, name: str) -> argparse.ArgumentParser:
    part: argparse.ArgumentParser = parts.add_parser(name)
    part.add_argument("--data", type=Path)
    part.add_argument("--output", type=Path, default=HERE)
    part.add_argument("--again", action="store_true", help="run what is in the results already, too")
    return part


def _other(given: argparse.Namespace) -> None:
    if given.part == "np-strength":
        import np_strength

        np_strength.run(given)
    elif given.part == "letters":
        import letters_run

        letters_run.run(given)
    elif given.part == "owlqn":
        import owlqn_variants

        owlqn_variants.run(given)
    elif given.part == "sgd":
        import sgd_variants

        sgd_variants.run(given)
    else:
        import figures

        figures.draw(given.output)


def sweep(given: argparse.Namespace) -> None:
    """Run every method with every select unit on every seed."""
    path = given.output / "results.json"
    strength = given.strength
    if strength is None:
        strength = SYNTHETIC_STRENGTH if given.part == "synthetic" else _chosen_strength(given.output)
    for seed in given.seeds:
        wanted = [
            (method, unit)
            for method in given.methods.split(",")
            for unit in ([0] if method in BATCH else given.units)
            if given.again
            or not store.settled(store.found(path, given.part, KEYS, (method, unit, seed, strength)), given.seconds)
        ]
        if not wanted:
            continue
        problem = _problem(given, seed)
        for method, unit in wanted:
            run = partial(problem.one, method, unit, strength, given.seconds)
            record = in_own_process(run)
            print(json.dumps(record), flush=True)
            store.merge(path, given.part, KEYS, record)


def _problem(given: argparse.Namespace, seed: int) -> Any:
    if given.part == "np":
        import np_chunking

        return np_chunking.NounPhrases(given.data, given.sentences)
    import synthetic_chains

    return synthetic_chains.Chains(seed)


def _chosen_strength(output: Path) -> float:
    found = store.read(output / "np_strength.json")
    return float(found["best"]) if found else 1.0


if __name__ == "__main__":
    main()
