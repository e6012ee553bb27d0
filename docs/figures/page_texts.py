"""The measured figures of README and documentation as texts by name, from benchmarks/results.

write_figures.py puts them into the pages. A name is `topic.what`. Ratios are medians of rounds. A topic whose results
are missing has no texts.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import page_layers
import page_scale
from page_forms import between, megabytes, middle, seconds, short, table, times
from page_solvers import solvers

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
Texts = dict[str, str]
Load = Callable[[str], Any]


# --- topics, each from one file of results


def fit(load: Load) -> Texts:
    """The headline: `fit` on CoNLL-2000 to the default stop, next to CRFsuite."""
    speed = load("speed")
    found, evaluation, memory = speed["fit"], speed["evaluation"], speed["memory"]
    ours, single, theirs = found["crfkit"], found["crfkit_one_thread"], found["crfsuite"]
    n = found["threads"]
    rows = [
        (
            "training, including encoding",
            times(found["times_faster"]),
            *(seconds(middle(side, "seconds")) for side in (ours, theirs)),
        ),
        (
            "the same on one thread",
            times(found["times_faster_one_thread"]),
            *(seconds(middle(side, "seconds")) for side in (single, theirs)),
        ),
        (
            "one value and gradient",
            times(evaluation["times_faster"]),
            *(seconds(middle(evaluation[side])) for side in ("crfkit", "crfsuite")),
        ),
        ("evaluations until convergence", "", *(f"{middle(side, 'evaluations'):.0f}" for side in (ours, theirs))),
        ("objective reached", "", *(f"{middle(side, 'objective'):.2f}" for side in (ours, theirs))),
        ("F1 on the test set", "", *(f"{100 * middle(side, 'f1'):.2f} %" for side in (ours, theirs))),
        ("peak memory", "", *(megabytes(memory[side] / 1e6) for side in ("crfkit", "crfsuite"))),
    ]
    return {
        "fit.times": times(found["times_faster"]),
        "fit.times_one_thread": times(found["times_faster_one_thread"]),
        "fit.seconds": seconds(middle(ours, "seconds")),
        "fit.seconds_one_thread": seconds(middle(single, "seconds")),
        "fit.crfsuite_seconds": seconds(middle(theirs, "seconds")),
        "fit.threads": f"{n} thread{'' if n == 1 else 's'}",
        "fit.table": table(("", "faster", f"crfkit, {n} threads", "python-crfsuite, 1 thread"), rows),
    }


def l1(load: Load) -> Texts:
    found = load("speed")["l1"]
    ours = found["crfkit"]
    return {
        "l1.times": times(found["times_faster"]),
        "l1.seconds": seconds(middle(ours, "to_16834.2")),
        "l1.crfsuite_seconds": seconds(middle(found["crfsuite"], "seconds")),
        "l1.seconds_to_optimum": seconds(middle(ours, "to_16802.5")),
    }


def wapiti(load: Load) -> Texts:
    row = load("peers")["wapiti"]
    return {
        "wapiti.times": times(row["times_faster"]),
        "wapiti.seconds": seconds(row["crfkit_seconds"]),
        "wapiti.peer_seconds": seconds(row["peer_seconds"]),
    }


def wapiti_command(load: Load) -> Texts:
    found = load("wapiti_command")
    medians = found["medians"]

    def row(title: str, key: str, form: str = "{:.2f}", faster: bool = True) -> tuple[str, ...]:
        peer, ours = medians[key]["Wapiti"], medians[key]["crfkit-wapiti"]
        return title, times(peer / ours) if faster else "", form.format(peer), form.format(ours)

    rows = [
        row("training, CPU seconds", "train, cpu", "{:.1f}"),
        row("iterations until it stops", "train, iterations", "{:.0f}", False),
        row("objective where it stops", "train, objective", "{:.2f}", False),
        row("token error on 2,012 sentences", "test, token_error", "{:.2f} %", False),
        row("`label` of 2,012 sentences, CPU seconds with the start of Python", "label, cpu"),
        row("`label -s -p` of these", "label -s -p, cpu"),
        row("`label -s -n 5` of these", "label -s -n 5, cpu"),
        row("`label` of 8,936 sentences", "label of the training file, cpu"),
    ]
    return {
        "wapiti_command.task": f"{found['sentences']:,} sentences of CoNLL-2000, {found['patterns']} patterns",
        "wapiti_command.table": table(("", "faster", "Wapiti 1.5", "crfkit-wapiti"), rows),
    }


def crfpp(load: Load) -> Texts:
    found = load("crfpp_commands")
    titles = {
        "chunking": "CRF-L2, `-e 0.00001`: {lines} evaluations; CRF++ {lines of CRF++}",
        "cond": "the same with `B01:%x[0,1]`",
        "l1": "CRF-L1: {lines} evaluations to {objective:.2f}; CRF++ {lines of CRF++} to {objective of CRF++:.2f}",
        "mira": "MIRA: {lines} epochs; CRF++ {lines of CRF++}",
    }
    rows = []
    for name, title in titles.items():
        row = found[f"crfkit-learn {name}"]
        taken = seconds(row["seconds of CRF++"]), seconds(row["seconds"])
        rows.append((title.format_map(row), times(row["times faster"]), *taken))
    same = found["crfkit-learn chunking"]
    return {
        "crfpp.seconds": seconds(same["seconds"]),
        "crfpp.peer_seconds": seconds(same["seconds of CRF++"]),
        "crfpp.table": table(("CPU seconds of training", "faster", "CRF++, another machine", "crfkit"), rows),
    }


def switch(load: Load) -> Texts:
    found = load("crfsuite_switch")
    rows = [
        (f"`{what}`", times(a / b), seconds(a), seconds(b))
        for what, row in found["seconds"].items()
        for a, b in [(row["sklearn-crfsuite"], row["crfkit"])]
    ]
    rows.append(
        ("F1 of labels, weighted", "", *(f"{found['f1'][side]:.4f}" for side in ("sklearn-crfsuite", "crfkit")))
    )
    return {"switch.table": table(("", "faster", "sklearn-crfsuite", "crfkit"), rows)}


def packages(load: Load) -> Texts:
    taggers = load("packages")["taggers"]
    return {
        "packages.call": between((100 * row["call_ratio"] for row in taggers), lambda share: f"{share:.0f} %"),
        "packages.bulk": f"{between(row['bulk_speedup'] for row in taggers)} times",
    }


def active_learning(load: Load) -> Texts:
    found = load("active_learning")
    means = found["mean_tokens"]
    saved = {name: f"{100 * (1 - n / means['random']):.0f} %" for name, n in means.items()}
    rows = []
    for name, mean in means.items():
        runs = [row["tokens"] for row in found["rows"] if row["strategy"] == name]
        span = f"{min(runs):,} – {max(runs):,}"
        rows.append(
            ("random choice", f"{mean:,}", span, "") if name == "random" else (name, f"{mean:,}", span, saved[name])
        )
    return {
        "active_learning.table": table(("strategy", "tokens, mean", "range", "saved"), rows),
        "active_learning.change": saved["expected-change"],
        "active_learning.entropy": saved["entropy"],
    }


def out_of_core(load: Load) -> Texts:
    memory, disk = load("out_of_core")["rows"][-2:]
    return {
        "out_of_core.text": megabytes(memory["megabytes of text"]),
        "out_of_core.memory": megabytes(memory["peak megabytes"]),
        "out_of_core.disk": megabytes(disk["peak megabytes"]),
        "out_of_core.times": times(disk["seconds"] / memory["seconds"]),
        "out_of_core.f1": f"{memory['f1']} and {disk['f1']}",
    }


def text_features(load: Load) -> Texts:
    found = load("text_features")
    runs, files = found["speed"]["runs"], found["hashing"]

    def rate(name: str) -> str:
        return f"{between((run[name] for run in runs), lambda n: f'{round(n, -4):,}')} plain words per second"

    def file(name: str) -> str:
        return megabytes(files[name]["file_mb"])

    return {
        "text_features.warm": rate("warm"),
        "text_features.cold": rate("cold"),
        "hashing.names": file("names"),
        "hashing.20_bits": file("2^20 buckets"),
        "hashing.16_bits": file("2^16 buckets"),
    }


def decoding(load: Load) -> Texts:
    results = load("decoding")["results"]
    found = results.values()
    rows = [
        (title, *(f"{short(f['ratios'][key])} times" for f in found))
        for title, key in (
            ("ten best labellings, of the time of the best one", "nbest_10 / viterbi"),
            ("all spans with probabilities, of the time of marginals", "spans / marginals"),
            ("marginals by sklearn-crfsuite, of our time", "sklearn-crfsuite marginals / ours"),
        )
    ]
    ten = between(f["ratios"]["nbest_10 / viterbi"] for f in found)
    return {
        "decoding.nbest": f"{ten} times",
        "decoding.table": table(("", *(f"{name}, test set" for name in results)), rows),
    }


def segment(load: Load) -> Texts:
    rows = load("segment")["rows"]
    found = [f"{short(r['images_per_second'])} images per second in blocks of {r['block']}×{r['block']}" for r in rows]
    return {"segment.rate": " and ".join(found)}


def scale(load: Load) -> Texts:
    found = load("cluster")
    return {"scale.measured": page_scale.measured(found), "scale.predicted": page_scale.predicted(found)}


BENCH = {  # files of `make bench`, and the script that writes each
    "speed": "speed.py", "scaling": "scaling.py", "phases": "phases.py", "peers": "peers.py",
    "solvers": "solvers.py", "tagging": "tagging.py", "decoding": "decoding.py", "crfpp_commands": "crfpp_commands.py",
    "crfsuite_switch": "crfsuite_switch.py", "wapiti_command": "wapiti_command.py", "packages": "packages.py",
    "memory": "memory.py", "out_of_core": "out_of_core.py", "text_features": "text_features.py",
    "inference": "inference.py", "segment": "segment.py", "segment_features": "segment_features.py",
    "structure": "structure.py",
}  # fmt: skip


def machines(load: Load) -> Texts:
    """Which machine and commit each file of results is of."""
    rows = []
    for name, script in BENCH.items():
        try:
            found = load(name)
        except FileNotFoundError:
            continue
        known = found.get("machine", {})
        old = ", ".join(part for part in found.get("other_runs", {}) if "/" not in part)
        rows.append(
            (
                f"[{name}.json](results/{name}.json)",
                script,
                *(str(known.get(key, "–")) for key in ("processor", "kernels", "threads", "load", "commit")),
                old or "–",
            )
        )
    head = ("results", "script", "processor", "kernels", "threads", "load before", "commit", "parts of earlier runs")
    speed = load("speed")["machine"]
    return {
        "machines.table": table(head, rows),
        "machine.headline": f"{speed['processor']}, {speed['cores']} cores, {speed['kernels']} kernels",
    }


TOPICS = (
    fit, l1, wapiti, wapiti_command, crfpp, switch, packages, solvers, active_learning, out_of_core, text_features,
    decoding, segment, scale, machines, page_layers.layer, page_layers.networks,
)  # fmt: skip


def texts(results: Path = RESULTS) -> Texts:
    """Return all texts by name."""

    def load(name: str) -> Any:
        return json.loads((results / f"{name}.json").read_text(encoding="utf-8"))

    found: Texts = {}
    for topic in TOPICS:
        with contextlib.suppress(FileNotFoundError):  # write_figures.py names the figures that are missing
            found |= topic(load)
    return found
