"""The figures of solvers.py in the guide to solvers and on the page on fast training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from page_forms import between, seconds, table, times

GAPS = ("1 %", "0.1 %", "0.01 %", "0.001 %")
ONLINE = {
    "l2sgd": "`sgd`, l2sgd",
    "ap": "`averaged-perceptron`, ap",
    "pa": "`passive-aggressive`, pa",
    "arow": "`arow`, arow",
}


def solvers(load: Callable[[str], Any]) -> dict[str, str]:
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
    jax = ratios.get("product in JAX")  # which may not be installed
    texts["solvers.jax"] = "an unmeasured number" if jax is None else f"{jax:.0f}"
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
