"""Graphs that StructureLearner's default finds, beside nodewise logistic regressions with the extended BIC.

    python experiments/structure/planted.py [--seeds 10-14] [--rows 150,300,1000,3000] [--tables 100]
    python experiments/structure/planted.py --tuned [--gammas 0.15,0.25,0.35,0.5] --seeds 0-9 [--tables 20]

F1 on planted fields (random, hubs, grid, scale-free, a copied column, rare pairs; see fields.py), and false edges on 30
independent columns. The rival has γ = .25 and the AND rule, with the likelihood of penalised fits, as IsingFit, and of
refits. `--tuned` runs on the fields that `ebic_gamma`'s default was chosen on, which are of other sizes, couplings and
seeds, compares several γ and writes tuned.md. On one thread; otherwise writes planted.json, which is merged with what
is there, and planted.md.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from fields import FAMILIES, TUNED, draw, independent
from nodewise import nodewise

from crfkit import StructureLearner

HERE = Path(__file__).resolve().parent
FIRST_TABLE = 200  # of independent columns: the first hundred were seen while the price of the first edges was settled
KINDS = ("default", "nodewise, penalised", "nodewise, refitted")


def trial(family: str, rows: int, seed: int) -> dict[str, float]:
    field = draw(family, rows, seed)
    begin = time.process_time()
    learner = StructureLearner(n_threads=1).fit(field.Y)
    seconds = time.process_time() - begin
    found = ({(i, j) for i, j, _ in learner.edges_}, *nodewise(field.Y))
    return {**{kind: field.f1(edges) for kind, edges in zip(KINDS, found, strict=True)}, "seconds": seconds}


def report(results: dict[str, Any]) -> str:
    lines = [f"### F1 on planted fields, mean over seeds (ebic_gamma {results['ebic_gamma']})\n"]
    lines += [
        "| field | rows | seeds | default | nodewise, penalised fits | nodewise, refits |",
        "|---|---|---|---|---|---|",
    ]
    cells = results.get("fields", {})
    for family in FAMILIES:
        for rows in sorted({int(key.split()[1]) for key in cells}):
            those = list(cells.get(f"{family} {rows}", {}).values())
            if those:
                means = " | ".join(f"{np.mean([t[kind] for t in those]):.3f}" for kind in KINDS)
                lines.append(f"| {family} | {rows} | {len(those)} | {means} |")
    if empty := results.get("independent"):
        lines += [
            "\n### False edges on 30 independent columns\n",
            "| rows | tables | edges per table |",
            "|---|---|---|",
        ]
        lines += [f"| {rows} | {len(c)} | {np.mean(list(c.values())):.3f} |" for rows, c in empty.items()]
    return "\n".join(lines) + "\n"


def tune(gammas: list[float], families: list[str], rows: list[int], seeds: range, tables: int) -> str:
    """F1 of several γ less that of the better rival, and false edges, on the fields for choosing."""
    lines = ["### Choosing γ: F1 less that of the better rival; false edges per table of 30 independent columns\n"]
    lines += ["| field | rows | rival | " + " | ".join(f"γ = {gamma:g}" for gamma in gammas) + " |"]
    lines += ["|---" * (3 + len(gammas)) + "|"]
    for n in rows:
        for family in families:
            found, rivals = [], []
            for seed in seeds:
                field = draw(family, n, seed, TUNED)
                rivals.append([field.f1(edges) for edges in nodewise(field.Y)])
                learners = [StructureLearner(n_threads=1, ebic_gamma=gamma).fit(field.Y) for gamma in gammas]
                found.append([field.f1({(i, j) for i, j, _ in learner.edges_}) for learner in learners])
            rival = np.mean(rivals, axis=0).max()
            gains = " | ".join(f"{gain:+.3f}" for gain in np.mean(found, axis=0) - rival)
            lines.append(f"| {family} | {n} | {rival:.3f} | {gains} |")
            print(lines[-1], flush=True)
        if tables:
            counts = [
                [len(StructureLearner(n_threads=1, ebic_gamma=g).fit(Y).edges_) for g in gammas]
                for Y in (independent(n, 30, 10_000 + t) for t in range(tables))
            ]
            lines.append(f"| independent | {n} | | " + " | ".join(f"{c:.3f}" for c in np.mean(counts, axis=0)) + " |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="10-14")
    parser.add_argument("--rows", default="150,300,1000,3000")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--tables", type=int, default=100, help="of independent columns")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--gammas", default="0.15,0.25,0.35,0.5", help="with --tuned")
    parser.add_argument("--output", type=Path, default=HERE)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    file = options.output / "planted.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    first, _, last = options.seeds.partition("-")
    numbers = [int(n) for n in options.rows.split(",")]
    if options.tuned:
        gammas = [float(gamma) for gamma in options.gammas.split(",")]
        seeds = range(int(first), int(last or first) + 1)
        table = tune(gammas, options.families.split(","), numbers, seeds, options.tables)
        (options.output / "tuned.md").write_text(table)
        return

    results["ebic_gamma"] = StructureLearner().ebic_gamma

    def save() -> None:
        file.write_text(json.dumps(results, indent=1) + "\n")
        (options.output / "planted.md").write_text(report(results))

    for seed in range(int(first), int(last or first) + 1):
        for rows in numbers:
            for family in options.families.split(","):
                found = trial(family, rows, seed)
                results.setdefault("fields", {}).setdefault(f"{family} {rows}", {})[str(seed)] = found
                save()
    for table in range(FIRST_TABLE, FIRST_TABLE + options.tables):
        for rows in numbers:
            learner = StructureLearner(n_threads=1).fit(independent(rows, 30, table))
            results.setdefault("independent", {}).setdefault(str(rows), {})[str(table)] = len(learner.edges_)
        save()
    print(report(results))


if __name__ == "__main__":
    main()
