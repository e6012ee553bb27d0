"""GraphCRF with its defaults, its other losses, independent logistic regressions and a classifier chain, on tables.

    python benchmarks/multilabel.py [--output benchmarks/results/multilabel.json] [--sets scene,yeast] [--quick]

For 6 to 30 labels: exact log-likelihood per row, subset accuracy and Hamming loss on the test part, seconds of training
and of prediction. Inputs are standardised. Every model chooses its L2 strength on the training part: GraphCRF on
held-out rows, as it does by default, logistic regressions by three-fold cross-validation for each label. The defaults
of GraphCRF were chosen on the training part of scene and on tables of other seeds (`--tune`).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import SHARED, Report, say, write_results
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.linear_model import LogisticRegressionCV

from crfkit import GraphCRF

REPORTED, TUNED = 2024, 7  # seeds of generated tables: those of the results, those for choosing defaults
EXACT_LABELS = 26  # up to which the exact likelihood of a field is computed for every loss
JUDGED = 50  # rows that are judged where there are more labels
STRENGTHS = 1 / np.array([300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3])  # of logistic regressions
SLOW_LABELS = 14  # up to which the composite likelihood is trained


class Table(NamedTuple):
    X: Any
    Y: Any
    X_new: Any
    Y_new: Any


def scene(seed: int) -> Table | None:
    folder = SHARED / "data" / "scene"
    if not folder.exists():
        return None
    names = ("train_X", "train_Y", "test_X", "test_Y")
    a, b, c, d = (np.loadtxt(folder / f"scene_{name}.csv.gz", delimiter=",") for name in names)
    if seed == REPORTED:
        return Table(a, b.astype(int), c, d.astype(int))
    order = np.random.default_rng(seed).permutation(len(a))  # the file is sorted by label
    return split(a[order], b[order].astype(int), 700)


def digits(seed: int) -> Table:
    """Which of six sets a digit is in: half of the rows for choosing, the others for the results."""
    table = load_digits()
    order = np.random.default_rng(31).permutation(len(table.target))
    order = order[800:] if seed == REPORTED else order[:800]
    X, y = table.data[order], table.target[order]
    members = ([1, 4, 7], [0, 6, 8, 9], [2, 3, 5], [4, 6, 8], [3, 8, 9], [0, 1, 2])
    return split(X, np.stack([np.isin(y, some) for some in members], axis=1).astype(int), 500)


def topics(labels: int) -> Callable[[int], Table]:
    """Return a maker of bags of words whose topics are the labels, as scikit-learn generates them."""

    def make(seed: int) -> Table:
        X, Y = make_multilabel_classification(1500, 3 * labels, n_classes=labels, n_labels=3, random_state=seed)
        return split(X, Y, 750)

    return make


def factors(labels: int, rows: int, inputs: int, strength: float = 2.0) -> Callable[[int], Table]:
    """Return a maker of labels that share hidden factors, as the functions of genes do, besides what inputs say."""

    def make(seed: int) -> Table:
        rng = np.random.default_rng(seed)
        X, hidden = rng.normal(size=(rows, inputs)), rng.normal(size=(rows, 3))
        scores = X @ rng.normal(size=(inputs, labels)) / np.sqrt(inputs)
        scores += strength * hidden @ rng.normal(size=(3, labels)) + rng.normal(size=labels) - 0.5
        return split(X, (scores + rng.logistic(size=scores.shape) > 0).astype(int), rows // 2)

    return make


def split(X: Any, Y: Any, rows: int) -> Table:
    return Table(X[:rows], Y[:rows], X[rows:], Y[rows:])


SETS: dict[str, Callable[[int], Table | None]] = {
    "scene": scene,
    "digits": digits,
    "topics 10": topics(10),
    "yeast-like 14": factors(14, 3000, 100),
    "topics 20": topics(20),
    "factors 20": factors(20, 1500, 40),
    "factors 30": factors(30, 1500, 40, 1.0),
    "topics 30": topics(30),
}


# --- the models: (log-likelihood per row, predicted labels, seconds of training, of prediction)

Found = tuple[float, Any, float, float]


def field(table: Table, **options: Any) -> Found:
    begin = time.perf_counter()
    crf = GraphCRF(**options).fit(table.X, table.Y)
    middle = time.perf_counter()
    predicted = crf.predict(table.X_new)
    end = time.perf_counter()
    some = slice(0, None if table.Y.shape[1] <= EXACT_LABELS else JUDGED)
    crf.set_params(inference="halves")  # exact, whatever the default is
    value = float(crf.log_likelihood(table.X_new[some], table.Y_new[some]).mean())
    return value, predicted, middle - begin, end - middle


def chain(table: Table, linked: bool) -> Found:
    """Train a logistic regression for each label, from the inputs and, if linked, the labels before it."""
    begin = time.perf_counter()
    models = []
    for i, column in enumerate(table.Y.T):
        inputs = np.hstack([table.X, table.Y[:, :i]]) if linked else table.X
        chosen = LogisticRegressionCV(Cs=STRENGTHS, cv=3, scoring="neg_log_loss", max_iter=5000)
        models.append(chosen.fit(inputs, column))
    middle = time.perf_counter()
    predicted = np.zeros_like(table.Y_new)
    value = np.zeros(len(table.X_new))
    for i, model in enumerate(models):
        seen = np.hstack([table.X_new, predicted[:, :i]]) if linked else table.X_new
        predicted[:, i] = model.predict(seen)
    end = time.perf_counter()
    for i, model in enumerate(models):
        seen = np.hstack([table.X_new, table.Y_new[:, :i]]) if linked else table.X_new
        scores = model.decision_function(seen)
        value -= np.logaddexp(0, np.where(table.Y_new[:, i] == 1, -scores, scores))
    if table.Y.shape[1] > EXACT_LABELS:
        value = value[:JUDGED]
    return float(value.mean()), predicted, middle - begin, end - middle


def models(labels: int) -> dict[str, Callable[[Table], Found]]:
    found: dict[str, Callable[[Table], Found]] = {
        "GraphCRF()": lambda table: field(table),
        "independent logistic regressions": lambda table: chain(table, linked=False),
        "classifier chain": lambda table: chain(table, linked=True),
        "loss pseudo-likelihood": lambda table: field(table, loss="pseudo-likelihood"),
    }
    if labels <= SLOW_LABELS:
        found["loss composite"] = lambda table: field(table, loss="composite")
        found["likelihood by trw"] = lambda table: field(table, loss="likelihood", inference="trw")
    return found


def standardised(table: Table) -> Table:
    mean, scale = table.X.mean(axis=0), table.X.std(axis=0)
    scale[scale == 0] = 1.0
    return Table((table.X - mean) / scale, table.Y, (table.X_new - mean) / scale, table.Y_new)


def measure(table: Table, only: str | None) -> Report:
    rows: Report = {}
    for name, model in models(table.Y.shape[1]).items():
        if only and only not in name:
            continue
        value, predicted, training, prediction = model(table)
        wrong = predicted != table.Y_new
        rows[name] = {
            "log_likelihood": value,
            "subset_accuracy": float(1 - wrong.any(axis=1).mean()),
            "hamming": float(wrong.mean()),
            "seconds": round(training, 2),
            "prediction_seconds": round(prediction, 2),
        }
        say(f"  {name}: {rows[name]}")
    return rows


def report(found: Report) -> str:
    """Return the results as a table in Markdown."""
    lines = [
        "| table | labels | model | log-likelihood per row | subset accuracy | Hamming loss | training | prediction |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, entry in found.items():
        for model, row in entry["models"].items():
            lines.append(
                f"| {name} | {entry['labels']} | {model} | {row['log_likelihood']:.3f} | "
                f"{row['subset_accuracy']:.3f} | {row['hamming']:.4f} | {row['seconds']:.1f} s | "
                f"{row['prediction_seconds']:.1f} s |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--only", help="models whose name contains this")
    parser.add_argument("--tune", action="store_true", help="the tables for choosing defaults")
    parser.add_argument("--quick", action="store_true", help="the first two tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: Report = {}
    for name in options.sets.split(",")[: 2 if options.quick else None]:
        table = SETS[name](TUNED if options.tune else REPORTED)
        if table is None:
            say(f"{name}: no data")
            continue
        say(f"{name}: {table.Y.shape[1]} labels, {len(table.X)} + {len(table.X_new)} rows")
        found[name] = {"labels": table.Y.shape[1], "models": measure(standardised(table), options.only)}
    if options.output:
        write_results(options.output, {"tables": found})
        options.output.with_suffix(".md").write_text(report(found), encoding="utf-8")


if __name__ == "__main__":
    main()
