"""Graphs that StructureLearner's default finds, beside nodewise logistic regressions with the extended BIC.

    python experiments/structure/planted.py [--seeds 0-4] [--rows 150,300,1000,3000] [--tables 100] [--tuned]

F1 on planted fields (random, hubs, grid, scale-free, a copied column, rare pairs; see fields.py), and false edges on 30
independent columns. The rival has γ = .25 and the AND rule, with the likelihood of penalised fits, as IsingFit, and of
refits. `--tuned` runs on the fields that `ebic_gamma`'s default was chosen on, which are of other sizes, couplings and
seeds, and saves nothing. On one thread; writes planted.json, which is merged with what is there, and planted.md.
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
from fields import FAMILIES, REPORTED, TUNED, draw, independent
from nodewise import nodewise

from crfkit import StructureLearner

HERE = Path(__file__).resolve().parent
KINDS = ("default", "nodewise, penalised", "nodewise, refitted")


def trial(family: str, rows: int, seed: int, tuned: bool) -> dict[str, float]:
    field = draw(family, rows, seed, TUNED if tuned else REPORTED)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--rows", default="150,300,1000,3000")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--tables", type=int, default=100, help="of independent columns")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--output", type=Path, default=HERE)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    file = options.output / "planted.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() and not options.tuned else {}
    first, _, last = options.seeds.partition("-")
    numbers = [int(n) for n in options.rows.split(",")]

    results["ebic_gamma"] = StructureLearner().ebic_gamma

    def save() -> None:
        if not options.tuned:
            file.write_text(json.dumps(results, indent=1) + "\n")
            (options.output / "planted.md").write_text(report(results))

    for seed in range(int(first), int(last or first) + 1):
        for rows in numbers:
            for family in options.families.split(","):
                found = trial(family, rows, seed, options.tuned)
                results.setdefault("fields", {}).setdefault(f"{family} {rows}", {})[str(seed)] = found
                save()
    for table in range(options.tables):
        for rows in numbers:
            learner = StructureLearner(n_threads=1).fit(independent(rows, 30, table))
            results.setdefault("independent", {}).setdefault(str(rows), {})[str(table)] = len(learner.edges_)
        save()
    print(report(results))


if __name__ == "__main__":
    main()
