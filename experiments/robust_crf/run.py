"""Robust CRFs on grids: the protocol of Song et al. (2015) on two folders of images and masks, in one command.

    python experiments/robust_crf/run.py IMAGES MASKS [--trials 0-9] [--parts tables,equivalence,noise] [--output DIR]

tables: a trial draws 50 images, resizes them to 80×100, takes blocks of 2×2 and divides them 70/15/15. Node features
are [1, h], edge features [1, |h_i − h_j|], standardised on the training images; at most 400 iterations, or until the
objective changes by less than 10⁻⁴. Every choice is made on the validation images of the trial (see README.md).
equivalence: ISTA, FISTA and OGM on the pseudo-likelihood of five images until nothing changes.
noise: as many features of noise as real ones; which of them L1 and L2 keep.

Writes results.json and results.md, which are merged with what is there, and figures of the first trial.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import figures
import numpy as np
import studies
from protocol import Trial, logistic_regression, train

from crfkit.penalties import L1, L2, Blockwise, HuberL1
from crfkit.readers.images import pair_folders

HERE = Path(__file__).resolve().parent
STRENGTHS = (100.0, 30.0)  # of L1, the strongest first
RIDGES = (100.0, 10.0)  # of L2
SMOOTHING = (0.01,)  # μ of OGM and of Huber
EDGES = (30_000.0, 10_000.0)  # of L1 on the couplings, under pseudo-likelihood
PROXIMAL = ("ista", "fista", "ogm")


def tables(trial: Trial, draw: Path | None) -> dict[str, Any]:
    """All rows of one trial. With a folder, its figures are drawn there."""
    rows: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    traces: dict[str, dict[str, Any]] = {}

    def cell(
        name: str, inference: str, solver: str, penalty: Any, w0: Any, before: float = 0.0, **options: Any
    ) -> None:
        """`before`: seconds that the start took."""
        row, w, result = train(trial, inference, solver, penalty, w0, watch=draw is not None, **options)
        row["seconds"] += before
        if name in rows:  # one of several strengths or μ: the first stands unless this is better on validation images
            row["tries"] = [*rows[name].pop("tries", [_short(rows[name])]), _short(row)]
            if row["validation"] >= rows[name]["validation"]:
                rows[name]["tries"] = row["tries"]
                return
        rows[name], kept[name] = row, w
        if draw is not None and w0 is start and "strength" not in name and "L2" not in name:
            traces.setdefault(inference, {})[name.split(", ", 1)[1].removesuffix(", from l. r.")] = result
        print(f"  {name:28} {100 * row['test']:.2f} %  {row['seconds']:.1f} s", flush=True)

    rows["logistic regression"], start = logistic_regression(trial, [L1(s) for s in (300.0, *STRENGTHS)])
    kept["logistic regression"] = start

    # The convex bound: strengths from the largest, each from the weights of the one before.
    for name, solver, penalties in (
        ("trw, owlqn", "owlqn", [L1(s) for s in STRENGTHS]),
        ("trw, L2, lbfgs", "lbfgs", [L2(s) for s in RIDGES]),
    ):
        w0 = start
        for penalty in penalties:
            cell(name, "trw", solver, penalty, w0)
            w0 = kept[name]
    strength = float(rows["trw, owlqn"]["penalty"][3:-1])
    rows["trw, owlqn"]["seconds"] = sum(row["seconds"] for row in rows["trw, owlqn"]["tries"])  # each from the last
    rows["trw weights, bp marginals"] = {**rows["trw, owlqn"], **trial.errors(kept["trw, owlqn"], "bp")}

    # Belief propagation and mean field have no convex objective: where they start and when they stop matters.
    for inference in ("bp", "mean-field"):
        bound, before = kept["trw, owlqn"], rows["trw, owlqn"]["seconds"]
        for solver in PROXIMAL:
            cell(f"{inference}, {solver}", inference, solver, L1(strength), bound, before, stop=True)
        for solver in (*PROXIMAL, "owlqn"):
            cell(f"{inference}, {solver}, from l. r.", inference, solver, L1(strength), start, stop=True)
    smooth = HuberL1(strength, SMOOTHING[-1])
    cell("bp, lbfgs on Huber, from l. r.", "bp", "lbfgs", smooth, start, stop=True)

    w0 = start
    for edge in EDGES:
        cell("pl, fista", "pl", "fista", Blockwise({"node": L1(30.0), "edge": L1(edge)}), w0)
        w0 = kept["pl, fista"]
    edge = float(rows["pl, fista"]["penalty"].split("edge L1(")[1][:-1])
    both = Blockwise({"node": L1(30.0), "edge": L1(edge)})
    cell("pl, ista", "pl", "ista", both, start)
    for mu in SMOOTHING:
        cell("pl, ogm", "pl", "ogm", both, start, mu=mu)
    huber = Blockwise({"node": HuberL1(30.0, SMOOTHING[-1]), "edge": HuberL1(edge, SMOOTHING[-1])})
    cell("pl, lbfgs on Huber", "pl", "lbfgs", huber, start)
    cell("pl, one strength, owlqn", "pl", "owlqn", L1(strength), start)
    cell("pl, L2, tron", "pl", "tron", L2(RIDGES[0]), start)
    if draw is not None:
        figures.draw(trial, traces, kept, draw)
    return rows


def _short(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in ("penalty", "mu", "validation", "test", "seconds") if key in row}


def report_tables(rows: dict[str, Any]) -> list[str]:
    trials = sorted(rows, key=int)
    plain = [100 * rows[seed]["logistic regression"]["test"] for seed in trials]
    lines = [
        f"Test error (%) and training time of {len(trials)} trials; all background: "
        f"{100 * np.mean([rows[seed]['logistic regression']['background'] for seed in trials]):.2f} %.",
        "",
        "| | test error (± s.d.) | less than logistic regression (± s.e.) | seconds (at most) | iterations | weights |",
        "|---|---|---|---|---|---|",
    ]
    for name in rows[trials[0]]:
        those = [rows[seed][name] for seed in trials]
        error = np.array([100 * row["test"] for row in those])
        gain = np.array(plain) - error
        seconds = [row["seconds"] for row in those]
        weights = iterations = ""
        if "unary" in those[0]:
            weights = f"{np.mean([r['unary'] for r in those]):.0f} + {np.mean([r['pairwise'] for r in those]):.0f}"
            iterations = f"{np.mean([r['kept'] for r in those]):.0f} of {np.mean([r['iterations'] for r in those]):.0f}"
        se = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
        lines.append(
            f"| {name} | {error.mean():.2f} (± {error.std():.2f}) | {gain.mean():+.2f} (± {se:.2f}) "
            f"| {np.mean(seconds):.1f} ({max(seconds):.1f}) | {iterations} | {weights} |"
        )
    nine = [f"{i}, {s}" for i in ("bp", "mean-field", "pl") for s in PROXIMAL]
    spent = sum(rows[seed][name]["seconds"] for seed in trials[:3] for name in nine)
    lines += [
        "",
        f"The nine cells {{ISTA, FISTA, OGM}} × {{bp, mean-field, pl}} of the first three trials: {spent:.0f} s.",
    ]
    return lines


def report(results: dict[str, Any]) -> str:
    lines = report_tables(results["tables"]) if results["tables"] else []
    if "peak_gb" in results:
        lines.append(f"Peak memory: {results['peak_gb']:.2f} GB.")
    for part in ("equivalence", "noise"):
        if part in results:
            lines += ["", *getattr(studies, f"report_{part}")(results[part])]
    return "\n".join(lines) + "\n"


def numbers(text: str) -> list[int]:
    """ "0-2,5" is 0, 1, 2, 5."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("--trials", default="0-9")
    parser.add_argument("--parts", default="tables,equivalence,noise")
    parser.add_argument("--output", type=Path, default=HERE)
    parser.add_argument("--cache", type=Path, default=HERE / "cache")
    options = parser.parse_args()
    pairs = pair_folders(options.images, options.masks)
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "results.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    results.setdefault("tables", {})
    parts, trials = options.parts.split(","), numbers(options.trials)

    def save() -> None:
        file.write_text(json.dumps(results, indent=1) + "\n")
        (options.output / "results.md").write_text(report(results))

    if "tables" in parts:
        for seed in trials:
            print(f"trial {seed}", flush=True)
            begin = time.perf_counter()
            trial = Trial(pairs, seed, options.cache)
            results["tables"][str(seed)] = tables(trial, options.output if seed == trials[0] else None)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            results["peak_gb"] = max(peak, results.get("peak_gb", 0.0))
            save()
            print(f"  {time.perf_counter() - begin:.0f} s", flush=True)
    if "equivalence" in parts:
        results["equivalence"] = studies.equivalence(Trial(pairs, trials[0], options.cache, parts=(5, 1, 1)))
        save()
    if "noise" in parts:
        results["noise"] = {}
        for seed in trials[:3]:
            pair = [Trial(pairs, seed, options.cache, noise, centred=True) for noise in (0, studies.REAL)]
            results["noise"][str(seed)] = studies.noise(*pair)
            save()
    print(report(results))


if __name__ == "__main__":
    main()
