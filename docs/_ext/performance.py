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
[benchmarks/results](https://github.com/crfkit/crfkit/tree/main/benchmarks/results) when the site is built.
[The method](method.md) says how and on which data each file is measured, and on which machine and commit.
[A page of its own](phases.md) says which share of the machine's bandwidth and arithmetic each phase of training
reaches.

"""


PHASES = """# Which share of the machine training reaches

How far is each phase of training from the limits of the machine? `benchmarks/phases.py` measures those limits, times
every phase on CoNLL-2000, and counts the bytes and operations of the plain formula: {tokens} tokens, {labels} labels,
{attributes} attributes in them, {pairs} pairs of such an attribute and a label that it has a weight for, {weights}
weights ({all_weights} with all pairs). The machine: {machine}.

{table}

*Long vectors* are vectors that no cache holds; *of the memory* compares the bytes of a phase with the speed at which
those can be read and written. *Of the peak* compares its operations with the additions and multiplications that
machine_peak.cpp does in registers, with the kernels in use, in the precision of the phase and on as many threads. How
to read them:

- A multiple of the memory's speed near 1 or above means that the caches do the work, or that kernels do less than the
  plain formula: attributes that always occur together are one row (see
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
    fit, wapiti = load("speed")["fit"], load("peers")["wapiti"]
    theirs = fit["crfsuite"]

    def row(name: str, faster: float, peer: float, ours: float, values: tuple[float, float]) -> tuple[str, ...]:
        return name, f"{faster:.1f} ×", f"{peer:.1f} s", f"{ours:.1f} s", *(f"{value:.2f}" for value in values)

    rows = []
    for title, ours, key in (
        (f"CRFsuite, 1 thread; crfkit, {fit['threads']} threads", fit["crfkit"], "times_faster"),
        ("CRFsuite, 1 thread; crfkit, 1 thread", fit["crfkit_one_thread"], "times_faster_one_thread"),
    ):
        seconds = (statistics.median(run["seconds"] for run in side) for side in (theirs, ours))
        values = (theirs[0]["objective"], ours[0]["objective"])
        rows.append(row(title, fit[key], *seconds, values))
    rows.append(
        row(
            "Wapiti and crfkit, 2 threads each, all pairs",
            wapiti["times_faster"],
            wapiti["peer_seconds"],
            wapiti["crfkit_seconds"],
            (wapiti["peer_objective"], wapiti["crfkit_objective"]),
        )
    )
    head = ("training on CoNLL-2000", "faster", "its time", "crfkit's", "its objective", "crfkit's")
    return table(*head, rows=rows)


def peer_packages() -> str:
    rows = []
    for row in (row for row in load("peers").values() if "package" in row):
        train, tagging = row["times_faster_training"], row["times_faster_tagging"]
        rows.append(
            (
                f"{row['package']} {row['version']}",
                "does not train" if train is None else f"{train:.1f} × crfkit's time, {row['peer']['train']:.1f} s",
                f"{tagging:.1f} × fewer than crfkit, {row['peer']['tokens_per_second']:,.0f}",
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
    rows = [
        (f"{'Spanish names' if part == 'spanish' else 'chunks'}: {name}", f"{figures['test_f1']}")
        for part in ("spanish", "chunking")
        for name, figures in found[part].items()
    ]
    speed = found["speed"]["tokens_per_second_best_of_3"]
    return (
        table("features", "F1 on the test set", rows=rows)
        + f"\n\nPlain words are tagged at {speed['cold']:,} tokens per second on one thread, "
        + f"and at {speed['warm']:,} when the words have been seen before."
    )


def weak_labels() -> str:
    by_kind: dict[str, list[float]] = {}
    for row in load("weak_labels")["rows"]:
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
        for row in load("out_of_core")["rows"]
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
        if name != "machine"
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
                "Several labels at once, against logistic regressions and a classifier chain:",
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
