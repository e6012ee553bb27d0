"""The measured figures of README and documentation as texts by name, from benchmarks/results; pages.py puts them in.

A name is `topic.what`. Ratios are medians of rounds. A topic whose results are missing has no texts.
"""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import page_scale

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
Texts = dict[str, str]
Load = Callable[[str], Any]
GAPS = ("1 %", "0.1 %", "0.01 %", "0.001 %")
ONLINE = {
    "l2sgd": "`sgd`, l2sgd",
    "ap": "`averaged-perceptron`, ap",
    "pa": "`passive-aggressive`, pa",
    "arow": "`arow`, arow",
}


# --- how figures are written


def short(number: float) -> str:
    """Return two digits or more: 4.5, 24, 307."""
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}"


def times(ratio: float) -> str:
    return f"{short(ratio)} times"


def seconds(number: float) -> str:
    """Return two digits or more with their unit: 41 ms, 0.62 s, 5.2 s, 307 s."""
    if number < 0.0995:
        return f"{short(1e3 * number)} ms"
    return f"{number:.2f} s" if number < 0.995 else f"{short(number)} s"


def megabytes(number: float) -> str:
    return f"{number:,.0f} MB"


def between(numbers: Iterable[float], form: Callable[[float], str] = short) -> str:
    """Return `least to most`, or one of them if they are written alike."""
    found = sorted(numbers)
    least, most = form(found[0]), form(found[-1])
    return least if least == most else f"{least} to {most}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def middle(rows: Iterable[Any], key: str | None = None) -> float:
    return statistics.median(row[key] if key else row for row in rows)


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


def solvers(load: Load) -> Texts:
    found = load("solvers")
    smooth, limit = found["smooth"], found["options"]["smooth"]["limit"]
    conll = smooth["CoNLL-2000"]["solvers"]
    tron = found["tron"]["solvers"]
    ratios = found["hessian"]["ratios"]
    to = {gap: row and row["seconds"] for gap, row in conll["tron"]["to"].items()}
    after = to["0.001 %"] - to["1 %"] if to["1 %"] and to["0.001 %"] else None
    product = ratios["product"]
    others = sorted(ratios[name] for name in ("product without cache", "product by finite differences"))
    stopped = tron["tron, preconditioned"]
    online = [
        (
            f"{title} ({found['crfsuite'][name]['crfsuite']['iterations']} epochs)",
            times(found["crfsuite"][name]["times faster"]),
            f"{100 * found['crfsuite'][name]['crfkit'][0]['f1']:.2f}",
            f"{100 * found['crfsuite'][name]['crfsuite']['f1']:.2f}",
        )
        for name, title in ONLINE.items()
    ]
    texts = {
        "solvers.limit": f"{limit:.0f} s",
        "solvers.default": margins(conll, ["auto", "lbfgs", "sgd"], "seconds until the objective is within"),
        "solvers.conll": margins(conll, None, f"CoNLL-2000 chunking, {smooth['CoNLL-2000']['weights']:,} weights"),
        "solvers.newton": "not reached" if after is None else seconds(after),
        "solvers.product": f"{product:.1f}",
        "solvers.other_products": between(others, lambda x: f"{x:.1f}"),
        "solvers.iis": times(conll["iis"]["value"] / smooth["CoNLL-2000"]["best"]),
        "solvers.gradient": ", ".join(
            f"{title} {seconds(tron[name]['seconds'])}"
            for name, title in (
                ("auto", "`auto`"),
                ("lbfgs", "`lbfgs`"),
                ("tron, warm start", "`tron` from a warm start"),
                ("tron", "from zero"),
            )
        ),
        "solvers.preconditioned": f"{seconds(stopped['seconds'])}"
        + (" and had not arrived" if stopped["status"] == "STOPPED_BY_CALLBACK" else ""),
        "solvers.epochs": table(("", "faster per epoch", "F1", "F1 of CRFsuite"), online),
        "solvers.l1_evaluations": f"{found['l1']['owlqn']['to']['16834.2']['evaluations']}",
        "solvers.l1_evaluations_to_optimum": f"{found['l1']['owlqn']['to']['16802.5']['evaluations']}",
    }
    if "product in JAX" in ratios:
        texts["solvers.jax"] = f"{ratios['product in JAX']:.0f}"
    if "Spanish NER" in smooth:
        spanish = smooth["Spanish NER"]
        title = f"Spanish named entities, {spanish['weights']:,} weights"
        texts["solvers.spanish"] = margins(spanish["solvers"], None, title)
    return texts


def margins(runs: Any, names: Sequence[str] | None, title: str) -> str:
    """Return the seconds to each margin, the fastest solver first; those that reach none share a row."""
    reached = {name: [run["to"].get(gap) and run["to"][gap]["seconds"] for gap in GAPS] for name, run in runs.items()}
    order = names or sorted(
        (name for name in reached if reached[name][0]), key=lambda name: [x or 1e9 for x in reached[name]]
    )
    rows = [
        (
            f"`{name}`" + (" (without L1)" if name == "owlqn" else " alone" if names and name != "auto" else ""),
            *("–" if x is None else f"{x:.1f}" for x in reached[name]),
        )
        for name in order
    ]
    if not names and (never := [f"`{name}`" for name in reached if not reached[name][0]]):
        rows.append((", ".join(never), *("–" for _ in GAPS)))
    return table((title, *GAPS), rows)


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
    found = load("decoding")["results"].values()
    return {"decoding.nbest": f"{between(f['ratios']['nbest_10 / viterbi'] for f in found)} times"}


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
    "inference": "inference.py", "segment": "segment.py", "structure": "structure.py",
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
    fit, l1, wapiti, wapiti_command, crfpp, switch, packages, solvers, out_of_core, text_features, decoding, segment,
    scale, machines,
)  # fmt: skip


def texts(results: Path = RESULTS) -> Texts:
    """Return all texts by name."""

    def load(name: str) -> Any:
        return json.loads((results / f"{name}.json").read_text(encoding="utf-8"))

    found: Texts = {}
    for topic in TOPICS:
        with contextlib.suppress(FileNotFoundError):  # pages.py names the figures that are missing
            found |= topic(load)
    return found
