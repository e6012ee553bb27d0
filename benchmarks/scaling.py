"""How training grows: curves over tokens, labels, attributes per token, threads and order, each with its exponent.

    python benchmarks/scaling.py [--curves tokens,labels,…] [--resume] [--quick] [--output results/scaling]

tokens       of generated text: `fit_file` with a fixed number of iterations from 10⁵ to 10⁷, and to the default stop
             up to 3·10⁶
labels       5 to 300
attributes   19 to 99 per token
threads      1 and 2
order        1 and 2, each with 5 to 40 labels

Every point has a process of its own, whose peak memory is measured too. Points that an earlier run has measured are
kept with --resume. Writes JSON, a Markdown table and a plot. The exponent is the slope of log time over log size: 1 is
linear. The generated text is described in generated_text.py; files are kept in build/benchmarks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from common import RESULTS, SCRATCH, Report, Store, child, exponent, markdown, median_seconds, say, seconds
from generated_text import Text

FIXED = {"epochs": 3, "iterations": 20}
TOKENS = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000]
SMALL = [20_000, 40_000, 80_000]
CURVES: dict[str, dict[str, list[Report]]] = {
    "tokens": {
        "fit, fixed number of passes": [{"tokens": n, "fit": "fixed"} for n in TOKENS],
        "fit to the default stop": [{"tokens": n, "fit": "default"} for n in TOKENS[:-1]],
    },
    "labels": {"evaluation": [{"tokens": 50_000, "labels": n} for n in (5, 10, 20, 50, 100, 200, 300)]},
    "attributes": {"evaluation": [{"tokens": 200_000, "extra": n} for n in (0, 10, 20, 40, 80)]},
    "threads": {"evaluation": [{"tokens": 1_000_000, "threads": n} for n in (1, 2)]},
    "order": {
        f"evaluation, order {order}": [
            {"tokens": 50_000, "labels": n, "order": order, "size": "labels"} for n in (5, 10, 20, 40)
        ]
        for order in (1, 2)
    },
}
SIZES = {"tokens": "tokens", "labels": "labels", "attributes": "attributes_per_token", "threads": "threads"}
TIMES = ("fit_seconds", "evaluation_seconds")  # the first that a point has is drawn


def quick(point: Report) -> Report:
    """Return a point that takes seconds instead of minutes."""
    if "fit" in point:
        return {**point, "tokens": SMALL[min(TOKENS.index(point["tokens"]), 2)]}
    return {**point, "tokens": 5_000, "labels": min(point.get("labels", 22), 50)}


def written(point: Report) -> tuple[Path, str]:
    """Return the file of a point, made unless it is there, and the template."""
    text = Text(n_labels=point.get("labels", 22), extra=point.get("extra", 0))
    name = "-".join(str(point.get(key, "")) for key in ("tokens", "labels", "extra"))
    return text.write(SCRATCH / f"generated-{name}.txt", point["tokens"]), text.template


# --- a point, in a process of its own


def measure(point: Report) -> Report:
    """Return seconds of encoding, planning, evaluation and an epoch, or of a whole fit."""
    from crfkit import ChainCRF, Template
    from crfkit.solvers import Auto, PeriodDecrease

    path, rules = written(point)
    template = Template(rules)
    if "fit" not in point:
        return one_pass(point, path, template)
    options: Report = {}
    if point["fit"] == "fixed":
        # a solver that is given as an object keeps its own limits
        options = {"solver": Auto(PeriodDecrease(0.0), sum(FIXED.values()), epochs=FIXED["epochs"])}
    crf = ChainCRF(template, **options)
    taken = seconds(lambda: crf.fit_file(path))
    result = crf.result_
    return {
        "fit_seconds": taken,
        "solver_seconds": result.seconds,
        "iterations": result.iterations,
        "evaluations": result.evaluations,
        "objective": result.value,
        "weights": len(crf.coef_),
        "bytes": path.stat().st_size,
    }


def one_pass(point: Report, path: Path, template: Any) -> Report:
    import numpy as np

    from crfkit.chain.encoding.sequences import learn_file
    from crfkit.chain.fields.field import ChainField
    from crfkit.losses import ChainLikelihood

    begin = time.perf_counter()
    corpus = learn_file(path, template, 1)
    encoding = time.perf_counter() - begin
    data = corpus.data
    n_labels, n_attributes = len(corpus.classes), len(corpus.vocabulary.attributes)
    begin = time.perf_counter()
    field = ChainField.from_data(
        data, n_labels, n_attributes, all_states=False, all_transitions=False, order=point.get("order", 1)
    )
    loss = ChainLikelihood(data, field, n_threads=point.get("threads", 2))
    planning = time.perf_counter() - begin
    w = np.random.default_rng(0).normal(scale=0.1, size=loss.size)

    def evaluate() -> None:
        _ = loss.at(w).value

    evaluate()
    evaluation = median_seconds(evaluate, 5)
    report = {
        "tokens": data.n_positions,
        "labels": n_labels,
        "attributes_per_token": len(data.attributes) / data.n_positions,
        "weights": loss.size,
        "encode_seconds": encoding,
        "plan_seconds": planning,
        "evaluation_seconds": evaluation,
    }
    if point.get("order", 1) == 1:
        online = loss.online()
        online.start(np.zeros(loss.size))
        order, steps = np.arange(len(data)), np.full(len(data), 0.01)
        report["epoch_seconds"] = statistics.median(
            seconds(lambda: online.sgd(order, steps, l2=1.0, averaged=False)) for _ in range(3)
        )
    return report


# --- curves


def in_a_child(point: Report) -> Report:
    written(point)
    return {**point, **child(__file__, "--child", json.dumps(point))}


def run_curve(curve: str, store: Store, small: bool = False) -> Report:
    """Measure the points of a curve that are missing, and return its lines with their exponents."""
    lines: Report = {}
    for line, points in CURVES[curve].items():
        rows = []
        for wanted in points[: 3 if small and curve == "tokens" else None]:
            point = quick(wanted) if small else wanted
            rows.append(store.part(f"{curve}/{line}/{json.dumps(point)}", partial(in_a_child, point)))
        axis = points[0].get("size", SIZES.get(curve))
        sizes = [row[axis] for row in rows]
        times = [next(row[key] for key in TIMES if key in row) for row in rows]
        lines[line] = {"axis": axis, "sizes": sizes, "seconds": times, "peak_bytes": [r["peak_bytes"] for r in rows]}
        lines[line]["exponent"] = exponent(sizes, times)
        say(f"{curve}: {line}: exponent {lines[line]['exponent']:.3f}")
    curves = store.results["curves"] if store.has("curves") else {}
    store.put("curves", {**curves, curve: lines})
    return lines


def table(curves: Report) -> str:
    rows = [
        (
            curve,
            line,
            f"{f['axis'].replace('_', ' ')} {f['sizes'][0]:,.0f} to {f['sizes'][-1]:,.0f}",
            f"{f['seconds'][0]:.3g} to {f['seconds'][-1]:.3g} s",
            f"{f['peak_bytes'][-1] / 1e6:,.0f} MB",
            f"{f['exponent']:.2f}",
        )
        for curve, lines in curves.items()
        for line, f in lines.items()
    ]
    return markdown(("curve", "what is timed", "from, to", "time", "peak memory at the end", "exponent"), rows)


def plot(curves: Report, path: Path) -> None:
    import matplotlib.pyplot as plt

    shown = [name for name in CURVES if name in curves and name != "threads"]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.6 * len(shown), 3.4), layout="constrained", squeeze=False)
    for ax, name in zip(axes[0], shown, strict=True):
        for line, f in curves[name].items():
            ax.loglog(f["sizes"], f["seconds"], "o-", label=f"{line}: size^{f['exponent']:.2f}", markersize=4)
        ax.set_xlabel(next(iter(curves[name].values()))["axis"].replace("_", " "))
        ax.set_title(name, loc="left", fontweight="bold")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7, frameon=False)
    axes[0][0].set_ylabel("seconds")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", default=",".join(CURVES))
    parser.add_argument("--resume", action="store_true", help="keep the points of an earlier run")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the command")
    parser.add_argument("--output", type=Path, default=RESULTS / "scaling")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(json.loads(options.child))))
        return
    if options.quick:
        options.output = SCRATCH / "scaling_quick"
    store = Store(options.output.with_suffix(".json"), options.resume)
    for curve in options.curves.split(","):
        run_curve(curve, store, options.quick)
    text = table(store.results["curves"])
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    plot(store.results["curves"], options.output.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
