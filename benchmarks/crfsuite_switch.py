"""One program before and after the change of a line: sklearn_crfsuite.CRF and crfkit.compat.sklearn_crfsuite.CRF.

    python benchmarks/crfsuite_switch.py [--data ../shared/data/conll2000] [--sequences 2000] [--iterations 100]

Both train on the same sentences with the parameters of sklearn-crfsuite's tutorial (lbfgs, c1 = c2 = 0.1) and tag the
test set; runs take turns. Prints a table: seconds, F1, and the largest difference of weights and marginals.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn_crfsuite as before

from crfkit.compat import sklearn_crfsuite as after
from crfkit.compat.sklearn_crfsuite.metrics import flat_f1_score


def items(path: Path, limit: int | None = None) -> tuple[list[Any], list[Any]]:
    """Features of words and their neighbours, as people write them for sklearn-crfsuite; and chunk labels."""
    X, y = [], []
    for block in path.read_text().split("\n\n")[:limit]:
        rows = [line.split() for line in block.splitlines() if line]
        if not rows:
            continue
        sequence = []
        for t, (word, pos, _) in enumerate(rows):
            item: dict[str, Any] = {"bias": 1.0, "lower": word.lower(), "suffix": word[-3:], "pos": pos}
            item |= {"upper": word.isupper(), "title": word.istitle(), "digit": word.isdigit()}
            for name, k in (("-1", t - 1), ("+1", t + 1)):
                if 0 <= k < len(rows):
                    item |= {f"{name}:lower": rows[k][0].lower(), f"{name}:pos": rows[k][1]}
            sequence.append(item)
        X.append(sequence)
        y.append([row[2] for row in rows])
    return X, y


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "../shared/data/conll2000")
    parser.add_argument("--sequences", type=int, default=2000)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    X, y = items(given.data / "train.txt", given.sequences)
    X_test, y_test = items(given.data / "test.txt")
    seconds: dict[tuple[str, str], list[float]] = {}
    found: dict[str, Any] = {}
    for name, module in (("before", before), ("after", after)):
        crf = module.CRF("lbfgs", c1=0.1, c2=0.1, max_iterations=given.iterations)
        seconds["fit", name], found[name] = [timed(lambda: crf.fit(X, y))[0]], crf  # noqa: B023 - called at once
    for _ in range(given.rounds):
        for name, crf in found.items():
            for what in ("predict", "predict_marginals"):
                seconds.setdefault((what, name), []).append(timed(lambda: getattr(crf, what)(X_test))[0])  # noqa: B023
            single = timed(lambda: [crf.predict_single(sequence) for sequence in X_test])[0]  # noqa: B023
            seconds.setdefault(("predict_single", name), []).append(single)
    print("| | sklearn-crfsuite | crfkit | times faster |\n|---|---|---|---|")
    for what in ("fit", "predict", "predict_single", "predict_marginals"):
        one, two = (statistics.median(seconds[what, name]) for name in ("before", "after"))
        print(f"| `{what}`, seconds | {one:.2f} | {two:.2f} | {one / two:.1f} |")
    scores = [flat_f1_score(y_test, crf.predict(X_test), average="weighted", zero_division=0) for crf in found.values()]
    print(f"| F1 of labels, weighted | {scores[0]:.6f} | {scores[1]:.6f} | |")
    weights = [{**crf.state_features_, **crf.transition_features_} for crf in found.values()]
    print(f"| weights | {len(weights[0])} | {len(weights[1])} | |\n")
    largest = max(abs(weights[0].get(key, 0.0) - weights[1].get(key, 0.0)) for key in set(weights[0]) | set(weights[1]))
    same = all(list(a) == list(b) for a, b in zip(*(crf.predict(X_test) for crf in found.values()), strict=True))
    marginals = [crf.predict_marginals(X_test[:200]) for crf in found.values()]
    apart = max(
        np.abs(np.array(list(a.values())) - np.array([b[label] for label in a])).max()
        for rows in zip(*marginals, strict=True)
        for a, b in zip(*rows, strict=True)
    )
    print(f"largest difference of weights {largest:.1e}, of marginals {apart:.1e}; tags identical: {same}")


if __name__ == "__main__":
    main()
