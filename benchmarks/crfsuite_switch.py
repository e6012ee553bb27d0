"""One program before and after the change of a line: sklearn_crfsuite.CRF and crfkit.compat.sklearn_crfsuite.CRF.

    python benchmarks/crfsuite_switch.py [--sequences 2000] [--iterations 100] [--rounds 3] [--output …]

Both train on the same sentences with the parameters of sklearn-crfsuite's tutorial (lbfgs, c1 = c2 = 0.1) and tag the
test set; runs take turns. Writes seconds, F1, and the largest difference of weights and marginals.
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
from common import RESULTS, SHARED, Report, markdown, write_results

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


def table(r: Report) -> str:
    rows = [
        (f"`{what}`", f"{a / b:.1f} × faster", f"{a:.2f} s", f"{b:.2f} s")
        for what, row in r["seconds"].items()
        for a, b in [(row["sklearn-crfsuite"], row["crfkit"])]
    ]
    f1, n = r["f1"], r["weights"]
    rows += [("F1 of labels, weighted", "", f"{f1['sklearn-crfsuite']:.4f}", f"{f1['crfkit']:.4f}")]
    rows += [("weights", "", f"{n['sklearn-crfsuite']:,}", f"{n['crfkit']:,}")]
    apart = r["largest_difference"]
    return (
        markdown(("", "crfkit", "sklearn-crfsuite", "crfkit"), rows)
        + f"\nThe largest difference of weights is {apart['weights']:.1e}, of marginals {apart['marginals']:.1e}; "
        + f"the tags are {'identical' if r['same_tags'] else 'not all identical'}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "conll2000")
    parser.add_argument("--sequences", type=int, default=2000)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS / "crfsuite_switch")
    given = parser.parse_args()
    if not given.data.is_dir():
        print(f"skipped: the CoNLL-2000 data are not in {given.data}; see benchmarks/README.md")
        return
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
    found_seconds = {
        what: [statistics.median(seconds[what, name]) for name in ("before", "after")]
        for what in ("fit", "predict", "predict_single", "predict_marginals")
    }
    scores = [flat_f1_score(y_test, crf.predict(X_test), average="weighted", zero_division=0) for crf in found.values()]
    weights = [{**crf.state_features_, **crf.transition_features_} for crf in found.values()]
    largest = max(abs(weights[0].get(key, 0.0) - weights[1].get(key, 0.0)) for key in set(weights[0]) | set(weights[1]))
    same = all(list(a) == list(b) for a, b in zip(*(crf.predict(X_test) for crf in found.values()), strict=True))
    marginals = [crf.predict_marginals(X_test[:200]) for crf in found.values()]
    apart = max(
        np.abs(np.array(list(a.values())) - np.array([b[label] for label in a])).max()
        for rows in zip(*marginals, strict=True)
        for a, b in zip(*rows, strict=True)
    )
    results: Report = {
        "sequences": len(X),
        "test_sequences": len(X_test),
        "iterations": given.iterations,
        "seconds": {what: {"sklearn-crfsuite": a, "crfkit": b} for what, (a, b) in found_seconds.items()},
        "f1": {"sklearn-crfsuite": scores[0], "crfkit": scores[1]},
        "weights": {"sklearn-crfsuite": len(weights[0]), "crfkit": len(weights[1])},
        "largest_difference": {"weights": float(largest), "marginals": float(apart)},
        "same_tags": same,
    }
    write_results(given.output.with_suffix(".json"), results)
    text = table(results)
    given.output.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
