"""How many labels `suggest` needs to reach 95 % of the F1 of the whole training set, next to random choice.

    python benchmarks/active_learning.py [--data FOLDER] [--seeds 5]

The pool is the whole training set of CoNLL-2000. Each run begins with 50 random sentences; every round adds a quarter
more, chosen by the model of the round before, and trains again from its weights. Scores are F1 of phrases on the test
set. The figure is the number of tokens that were labelled when F1 reached the aim, between two rounds by linear
interpolation. How the strategies count the length of a sentence was chosen with 5,000 sentences of the training set as
the pool, 1,936 others to score, and seeds 100 and 101.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import write_results

from crfkit import ChainCRF, Template, evaluate, read_columns
from crfkit.explain import suggest

HERE = Path(__file__).resolve().parent
STRATEGIES = ("random", "entropy", "margin", "expected-change")
FIRST, GROWTH, AIM = 50, 0.25, 0.95


def run(strategy: str, seed: int, template: Template, pool: Any, test: Any, aim: float) -> dict[str, Any]:
    """Label more and more until the aim is reached."""
    X, y = pool
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(X))[:FIRST].tolist()
    left = sorted(set(range(len(X))) - set(chosen))
    crf = ChainCRF(template, tolerance=1e-3, warm_start=True)
    curve: list[tuple[int, float]] = []
    while True:
        crf.fit([X[i] for i in chosen], [y[i] for i in chosen])
        f1 = evaluate(test[1], crf.predict(test[0])).overall.f1
        curve.append((sum(len(y[i]) for i in chosen), round(f1, 5)))
        if f1 >= aim or not left:
            break
        n = min(int(GROWTH * len(chosen)), len(left))
        if strategy == "random":
            picked = rng.choice(len(left), n, replace=False).tolist()
        else:
            picked = [found.sequence for found in suggest(crf, [X[i] for i in left], n, strategy)]
        chosen += [left[k] for k in picked]
        left = sorted(set(left) - set(chosen))
    (a, low), (b, high) = curve[-2], curve[-1]
    needed = a + (b - a) * (aim - low) / (high - low)
    return {"strategy": strategy, "seed": seed, "tokens": round(needed), "curve": curve}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "active_learning.json")
    options = parser.parse_args()
    folder = options.data / "conll2000"
    if not folder.is_dir():
        print(f"there is no {folder}: skipped")
        return
    template = Template.read(folder / "chunking.template")
    pool, test = read_columns(folder / "train.txt"), read_columns(folder / "test.txt")
    crf = ChainCRF(template, tolerance=1e-3).fit(*pool)
    full = evaluate(test[1], crf.predict(test[0])).overall.f1
    rows: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        for strategy in STRATEGIES:
            begin = time.process_time()
            rows.append(run(strategy, seed, template, pool, test, AIM * full))
            rows[-1]["processor_seconds"] = round(time.process_time() - begin, 1)
            print(strategy, seed, rows[-1]["tokens"], rows[-1]["processor_seconds"], flush=True)
            means = {
                name: round(float(np.mean([row["tokens"] for row in rows if row["strategy"] == name])))
                for name in STRATEGIES
                if any(row["strategy"] == name for row in rows)
            }
            report = {
                "full_f1": round(full, 5),
                "aim_f1": round(AIM * full, 5),
                "pool_tokens": sum(map(len, pool[1])),
                "mean_tokens": means,
                "rows": rows,
            }
            write_results(options.output, report)


if __name__ == "__main__":
    main()
