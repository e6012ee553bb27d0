"""The page of all measurements, written from the files in benchmarks/results."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable
from typing import Any

from links import REPOSITORY, experiment_pages, rewrite
from members import table

RESULTS = REPOSITORY / "benchmarks" / "results"
HEAD = """# Performance

Every figure on this page is read from a file in
[benchmarks/results](https://github.com/crfkit/crfkit/tree/main/benchmarks/results) when the site is built. The scripts
that measure are in [benchmarks](https://github.com/crfkit/crfkit/tree/main/benchmarks);
[the method](method.md) says how, and on which data. The machine has two cores;
[a page of its own](phases.md) says which share of its bandwidth and arithmetic each phase of training reaches.

"""


PHASES = """# Which share of the machine training reaches

How far is each phase of training from the limits of the machine? `benchmarks/phases.py` measures those limits, times
every phase on CoNLL-2000, and counts the bytes and operations of the plain formula: {tokens} tokens, {labels} labels,
{attributes} attributes in them, {pairs} pairs of such an attribute and a label that it has a weight for, {weights}
weights ({all_weights} with all pairs). The machine: {machine}.

{table}

*Memory* is the speed at which vectors that no cache holds can be read and written. *Of the bandwidth* compares the
bytes of a phase with it, and *of the peak* its operations with fused multiply-adds in double precision. How to read
them:

- A share of the bandwidth near 1 or above means that the caches do the work, or that kernels do less than the plain
  formula: attributes that always occur together are one row (see
  [How training is fast](../explanation/fast_training.md)).
- Recursions work in registers and in the nearest cache, so that their limit is arithmetic. Rows are padded to the width
  of a vector, and rows of few labels do not fill the units.
- Scores and gradients read weights at random places, where latency counts as much as bandwidth. They are what is left
  of an evaluation without the recursions, which are timed on the same sequences without attributes.
- Encoding compares and hashes strings; neither share says much about it.
"""


def load(name: str) -> Any:
    """Return the results of a benchmark."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def measured(name: str) -> bool:
    """Return whether a benchmark has been run."""
    return (RESULTS / f"{name}.md").is_file()


def written(name: str, level: int = 0) -> str:
    """Return the tables that a benchmark has written itself, with its headings `level` steps lower."""
    if not measured(name):
        return f"`python benchmarks/{name}.py` has not been run."
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    text = re.sub(r"^# .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^##", "#" * (2 + level), text, flags=re.MULTILINE).strip()


SOLVERS = {
    "hessian": "Products with the Hessian",
    "smooth": "Solvers for L2",
    "tron": "TRON and L-BFGS to a small gradient",
    "crfsuite": "CRFsuite's algorithms",
    "l1": "L1",
}


def solvers() -> str:
    text = written("solvers", 1)
    for short, title in SOLVERS.items():
        text = text.replace(f"### {short}\n", f"### {title}\n")
    return text


def peers() -> str:
    rows = (
        (
            f"{row['peer']} ({row['unit']})",
            f"{row['peer_seconds']:.1f}",
            f"{row['crfkit_seconds']:.1f}",
            f"{row['times_faster']:.1f} ×",
            f"{row['peer_objective']:.2f}",
            f"{row['crfkit_objective']:.2f}",
        )
        for row in load("peers")["rows"].values()
    )
    return table("peer", "its time", "crfkit's", "faster", "its objective", "crfkit's", rows=rows)


def peer_packages() -> str:
    rows = []
    for row in load("peers").get("packages", {}).values():
        train, tagging = row["times_faster_training"], row["times_faster_tagging"]
        rows.append(
            (
                f"{row['package']} {row['version']}",
                "does not train" if train is None else f"{row['peer']['train']:.1f} s, {train:.1f} × crfkit's",
                f"{row['peer']['tokens_per_second']:,.0f}, {tagging:.1f} × fewer than crfkit",
                f"{row['peer']['f1']:.2%}, crfkit {row['crfkit']['f1']:.2%}",
            )
        )
    head = ("package", "training on CoNLL-2000", "tokens tagged per second, one thread", "F1")
    if not rows:
        return "`python benchmarks/peers.py` has not been run for other Python packages."
    return (
        "Python packages, from the same lists of attributes (scikit-learn's logistic regression labels every token on "
        "its own):\n\n" + table(*head, rows=rows)
    )


def phases() -> str:
    if not measured("phases"):
        return PHASES[: PHASES.index("\n\n")] + f"\n\n{written('phases')}\n"
    found = load("phases")
    counts = found["counts"]
    return PHASES.format(
        **{name: f"{count:,}" for name, count in counts.items()},
        machine=f"{found['machine']['processor']}, {found['machine']['kernels']} kernels",
        table=written("phases"),
    )


def decoding() -> str:
    rows = []
    for corpus, found in load("decoding")["results"].items():
        ratios, seconds = found["ratios"], found["cpu_seconds"]
        rows.append(
            (
                f"{corpus}, {found['tokens']:,} tokens, {found['labels']} labels",
                f"{found['tokens'] / seconds['predict']:,.0f}",
                f"{ratios['nbest_10 / viterbi']:.1f} ×",
                f"{ratios['spans / marginals']:.1f} ×",
                f"{ratios['sklearn-crfsuite marginals / ours']:.1f} × faster",
            )
        )
    return table(
        "test set, one thread",
        "tokens per second of `predict`",
        "ten best labellings, of Viterbi's time",
        "phrases with probabilities, of the marginals' time",
        "marginals, against sklearn-crfsuite",
        rows=rows,
    )


def text_features() -> str:
    found = load("text_features")
    rows = []
    for part in ("spanish", "chunking"):
        for name, figures in found[part].items():
            cpu = figures.get("fit_cpu_seconds", "")
            rows.append(
                (f"{'Spanish names' if part == 'spanish' else 'chunks'}: {name}", f"{figures['test_f1']}", f"{cpu}")
            )
    speed = found["speed"]["tokens_per_second_best_of_3"]
    return (
        table("features", "F1 on the test set", "CPU seconds of training", rows=rows)
        + f"\n\nPlain words are tagged at {speed['cold']:,} tokens per second on one thread, "
        + f"and at {speed['warm']:,} when the words have been seen before."
    )


def weak_labels() -> str:
    by_kind: dict[str, list[float]] = {}
    for row in load("weak_labels"):
        name = row["labels"] if "class" not in row["labels"] else None
        if name and "f1" in row:
            by_kind.setdefault(name, []).append(row["f1"])
    rows = ((name, f"{statistics.mean(f1):.2f}", f"{len(f1)}") for name, f1 in by_kind.items())
    return table("labels of CoNLL-2000", "F1 on the test set, mean", "runs", rows=rows)


def label_errors() -> str:
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in load("label_errors")["rows"]:
        groups.setdefault((row["set"], row["kind"]), []).append(row)
    rows = []
    for (corpus, kind), found in groups.items():
        means = [
            statistics.mean(row[method][figure] for row in found)
            for method in ("find_label_errors", "1 - marginal")
            for figure in ("average_precision", "share_in_first_5_percent")
        ]
        rows.append(
            (
                f"{corpus}, {kind}, {100 * found[0]['spoilt']:.1f} % of the tokens",
                f"{means[0]:.3f}, {100 * means[1]:.0f} %",
                f"{means[2]:.3f}, {100 * means[3]:.0f} %",
            )
        )
    head = ("spoilt labels", "`find_label_errors`: average precision, found in the first 5 %", "1 − marginal")
    return table(*head, rows=rows)


def active_learning() -> str:
    found = load("active_learning")
    tokens = found["mean_tokens"]
    rows = ((name, f"{n:,}", f"{100 * (1 - n / tokens['random']):.0f} %") for name, n in tokens.items())
    text = table("strategy", "tokens to label, mean of five runs", "saved", rows=rows)
    return (
        text
        + f"\n\nThe aim is an F1 of {100 * found['aim_f1']:.1f}, 95 % of what all {found['pool_tokens']:,} tokens give."
    )


def calibration() -> str:
    found = load("calibration")
    rows = (
        (name, f"{found[f'{name}, before']['ece']:.4f}", f"{found[f'{name}, after']['ece']:.4f}")
        for name in ("spans", "tokens")
    )
    head = ("Spanish names, test set", "expected calibration error before", "after `calibrate`")
    return table(*head, rows=rows)


def packages() -> str:
    found = load("packages")["packages"]
    rows = (
        (name, f"{f['equal']:,} of {f['inputs']:,}", f"{f['seconds_crfsuite'] / f['seconds_crfkit']:.1f} × faster")
        for name, f in found.items()
    )
    return table("package, unchanged", "equal results", "with crfkit", rows=rows)


def out_of_core() -> str:
    rows = (
        (
            row["from"],
            f"{row['megabytes of text']} MB",
            f"{row['peak megabytes']} MB",
            f"{row['seconds']} s",
            f"{row['f1']}",
        )
        for row in load("out_of_core")
    )
    return table("training from", "text", "peak memory", "time", "F1", rows=rows)


def structure() -> str:
    rows = (
        (
            name.replace("x", " columns, ") + " rows",
            f"{f['wall']:.1f} s",
            f"{f['true']}",
            f"{f['edges']}",
            f"{f['right']}",
        )
        for name, f in load("structure").items()
    )
    return table("generated table", "time", "true edges", "found", "right", rows=rows)


def page() -> str:
    """Return the page."""
    return (
        HEAD
        + "\n\n".join(
            (
                "## Chains: training and tagging",
                "![Training time at the same objective](../images/front/speed.png)",
                peers(),
                peer_packages(),
                "Targets, next to python-crfsuite in one run:",
                written("speed"),
                "## Chains: how time grows",
                "![Time against size](pictures/scaling.png)" if measured("scaling") else "",
                written("scaling"),
                "## Chains: other tools in their place",
                "One program before and after the change of its import (sklearn-crfsuite's tutorial):",
                written("crfsuite_switch"),
                "Packages that use CRFsuite, unchanged, with crfkit in its place:",
                packages(),
                "## Chains: decoding and probabilities",
                decoding(),
                calibration(),
                "## Chains: features, memory, labels",
                text_features(),
                out_of_core(),
                "What `crfkit train --dry-run` announces:",
                written("memory"),
                weak_labels(),
                label_errors(),
                active_learning(),
                "## Solvers",
                "![Distance to the best objective against time and work](pictures/solvers.png)",
                solvers(),
                "## Graphs and grids",
                written("inference"),
                "Several labels at once, against one logistic regression per label:",
                written("multilabel"),
                "## Images",
                written("segment"),
                "## Structure",
                structure(),
            )
        )
        + "\n\n```{toctree}\n:hidden:\nmethod\nphases\n```\n"
    )


def pages() -> Iterable[tuple[str, str]]:
    """Yield the page of measurements, that of the phases of training, and that of the method."""
    yield "performance/index.md", page()
    yield "performance/phases.md", phases()
    method = (REPOSITORY / "benchmarks" / "README.md").read_text(encoding="utf-8")
    yield "performance/method.md", rewrite(method, REPOSITORY / "benchmarks", experiment_pages("performance/method"))
