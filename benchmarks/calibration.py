"""Whether probabilities can be trusted: calibration on Spanish named entities.

    python benchmarks/calibration.py [--data ../shared/data] [--out benchmarks/results/calibration.json] [--models DIR]

The model is trained on esp.train and calibrated on esp.testa; all figures are of esp.testb, which neither has seen:
expected calibration error of spans and tokens before and after, precision and recall of spans above the thresholds for
wished precisions, and how often sets of labellings hold the true one, against the coverage that they state. Coverage
is promised for sequences that are like those of the calibration. The model is better on esp.testb than on esp.testa; so
coverage is also measured on random halves of both files together, calibrated on the other half.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import write_results
from decoding import NER, attributes, encoding_of, prepared

from crfkit import Template
from crfkit.chain.model.model import ChainModel
from crfkit.chain.model.reliability import labelled_block, reliability_of
from crfkit.errors import DataWarning
from crfkit.schemes import phrases

PRECISIONS = (0.8, 0.9, 0.95)
COVERAGES = (0.7, 0.8, 0.9)
LISTED = 10_000


def scores(spans: list[list[Any]], gold: list[list[str]]) -> dict[str, float]:
    """Precision and recall of spans, pooled and by type."""
    true = [{(p.begin, p.end, p.type) for p in phrases(row)} for row in gold]
    found = [{tuple(s[:3]) for s in row} for row in spans]
    hits = sum(len(a & b) for a, b in zip(found, true, strict=True))
    result = {"precision": hits / max(1, sum(map(len, found))), "recall": hits / sum(map(len, true))}
    for kind in sorted({x[2] for row in true for x in row}):
        named = [{x for x in row if x[2] == kind} for row in found]
        right = sum(len(a & b) for a, b in zip(named, true, strict=True))
        result[f"precision of {kind}"] = right / max(1, sum(map(len, named)))
    return result


def sets(model: ChainModel, X: list[Any], y: list[list[str]]) -> dict[str, Any]:
    results = {}
    for coverage in COVERAGES:
        found = model.predict_sets(X, coverage, LISTED)
        held = [any(x.labels == gold for x in row.labellings) for row, gold in zip(found, y, strict=True)]
        sizes = np.array([len(row.labellings) for row in found])
        results[str(coverage)] = {
            "held": float(np.mean(held)),
            "median_size": float(np.median(sizes)),
            "mean_size": float(sizes.mean()),
            "empty": float((sizes == 0).mean()),
            "incomplete": float(np.mean([not row.complete for row in found])),
        }
    return results


def halves(model: ChainModel, X: list[Any], y: list[list[str]], splits: int = 20) -> dict[str, Any]:
    """Coverage on one half of the sentences after calibration on the other, for several random halves."""
    held: dict[float, list[float]] = {coverage: [] for coverage in COVERAGES}
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(X)).tolist()
        one, other = order[: len(X) // 2], order[len(X) // 2 :]
        calibrated = model.calibrate([X[i] for i in one], [y[i] for i in one], coverage=COVERAGES)
        assert calibrated.calibration is not None
        log_p = calibrated.sequence_probability([X[i] for i in other], [y[i] for i in other], log=True)
        for coverage, least in calibrated.calibration.conformal.items():
            held[coverage].append(float((log_p >= least).mean()))
    return {
        str(coverage): {"mean": float(np.mean(found)), "standard_deviation": float(np.std(found)), "splits": splits}
        for coverage, found in held.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parent
    parser.add_argument("--data", type=Path, default=root.parent.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, default=root / "results" / "calibration.json")
    parser.add_argument("--models", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        models = options.models or Path(temporary)
        models.mkdir(parents=True, exist_ok=True)
        model, X, y = prepared("Spanish NER", options.data, models)
        dev = options.data / "conll2002_spanish" / "esp.testa"
        X_dev, y_dev = attributes(dev, Template(NER), encoding_of(dev))
        test = [labelled_block(model, X, y)]
        calibrated = model.calibrate(X_dev, y_dev, coverage=COVERAGES)
        assert calibrated.calibration is not None
        results: dict[str, Any] = {"temperature": calibrated.calibration.temperature}
        for kind in ("spans", "tokens"):
            for name, x in (("before", model), ("after", calibrated)):
                found = reliability_of(x, test, kind)  # type: ignore[arg-type]
                results[f"{kind}, {name}"] = {"ece": found.ece, "log_loss": found.log_loss, "n": found.total}
        for precision in PRECISIONS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                limited = calibrated.calibrate(X_dev, y_dev, precision=precision, objective="none")
            assert limited.calibration is not None
            kept = scores(limited.predict_spans(X, min_probability="calibrated"), y)
            results[f"thresholds for precision {precision}"] = {**limited.calibration.thresholds, **kept}
        results["without thresholds"] = scores(calibrated.predict_spans(X), y)
        results["right"] = float(np.mean([a == b for a, b in zip(calibrated.predict(X), y, strict=True)]))
        results["sets, esp.testa to esp.testb"] = sets(calibrated, X, y)
        results["sets, random halves"] = halves(model, X + X_dev, y + y_dev)
    write_results(options.out, results)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
