"""Everything that the pages say about the results: functions of the JSON files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chain_facts
import claims
import letter_facts
from results_file import read

NAMES = {
    "all-features": "all features, L2",
    "full-opt-l1": "Full-Opt-L1",
    "sgd-l1": "SGD-L1",
    "grafting-light": "Grafting-Light",
    "grafting": "Grafting",
    "grafting-origin": "Grafting from the origin",
    "gauss-seidel": "Gauss-Seidel",
}
FILES = ("results", "np_strength", "results_letters")
PAPER_UNITS = [1, *range(10, 111, 10)]


def facts(folder: Path) -> dict[str, Any]:
    """Return the values for the templates."""
    results, strengths, letters = (
        read(folder / f"{name}.json") for name in ("results", "np_strength", "results_letters")
    )
    found: dict[str, Any] = {"names": NAMES, "minutes": _minutes(results, strengths, letters)}
    found["synthetic"] = chain_facts.synthetic(results.get("synthetic", []))
    found["sgd"] = chain_facts.sgd(results.get("synthetic", []), results.get("sgd", []))
    found["np"] = chain_facts.noun_phrases(results.get("np", []))
    found["strength"] = chain_facts.strengths(strengths)
    found["owlqn"] = chain_facts.owlqn(results.get("owlqn", []))
    found |= {"figure_4": {}, "figure_5": {}, "pl": {}, "beyond": {}, "paths": {}} | letter_facts.letters(letters)
    targets = read(folder / "letters_images.json").get("training images", {})
    found["training_blur"] = {letter: _blur(image) for letter, image in targets.items()}
    return found | {"coverage": coverage(found), "claims": claims.claims(found)}


def _blur(image: str) -> float:
    """Return the mean of 4·p·(1 − p) over the pixels of an image in hexadecimal digits."""
    return sum(4 * p / 255 * (1 - p / 255) for p in bytes.fromhex(image)) / (len(image) // 2)


def _minutes(results: dict[str, Any], strengths: dict[str, Any], letters: dict[str, Any]) -> dict[str, float]:
    """Return CPU minutes of the runs in the results by part, without reading the data."""
    parts = {
        "synthetic": results.get("synthetic", []),
        "np": results.get("np", []),
        "sgd": results.get("sgd", []),
        "owlqn": results.get("owlqn", []),
        "strength": strengths.get("folds", []),
        "letters": [*letters.get("runs", []), *(row for rows in letters.get("paths", {}).values() for row in rows)],
    }
    minutes = {
        name: sum(row.get("all_cpu_seconds", row.get("cpu_seconds", 0.0)) for row in rows) / 60
        for name, rows in parts.items()
    }
    return minutes | {"all": sum(minutes.values())}


def coverage(found: dict[str, Any]) -> list[dict[str, str]]:
    """Return the algorithm and every figure of the paper (it has no tables) with what became of it."""
    synthetic, phrases, four, five = found["synthetic"], found["np"], found["figure_4"], found["figure_5"]
    whole = synthetic["units"] == PAPER_UNITS and len(synthetic["seeds"]) >= 3
    stopped = [f"{NAMES[row['method']]} at M = {row['M']}" for row in synthetic["seidel_stopped"]]
    second = f"{len(synthetic['units'])} select units, {len(synthetic['seeds'])} draws of the data"
    second += f"; stopped at a limit: {', '.join(stopped)}" if stopped else ""
    rivals = phrases.get("rivals", [])
    third = "the paper's predicates and order; λ by cross-validation"
    if phrases.get("rivals_stopped"):
        names = ", ".join(f"{NAMES[row['method']]} at M = {row['M']}" for row in phrases["rivals_stopped"])
        third += f"; stopped at a limit, with the gap stated: {names}"
    if phrases.get("missing"):
        third += f"; not run yet: {', '.join(phrases['missing'])}"
    return [
        _item("Algorithm 1", "Grafting-Light", "reproduced", "`grafting-light`; the direction corrected, see errata"),
        _item("Figure 1", "an illustration of the two algorithms in two dimensions", "not reproduced", "no data in it"),
        _item(
            "Figure 2", "synthetic chains, six criteria against M", _outcome(whole, bool(synthetic["units"])), second
        ),
        _item(
            "Figure 3",
            "noun phrases, six criteria against M",
            _outcome(bool(rivals) and not phrases["missing"] and not phrases["rivals_stopped"], bool(phrases)),
            third,
        ),
        _item(
            "Figure 4",
            "letters of “acm sig”: times, gradients, likelihoods, average images",
            _outcome(len(four.get("rows", [])) == 6, bool(four.get("rows"))),
            "the paper does not state λ; here the other half of the images chooses it",
        ),
        _item(
            "Figure 5",
            "letter a, four criteria against M",
            _outcome(len(five.get("units", [])) >= 5, bool(five)),
            "at the λ of Figure 4",
        ),
    ]


def _outcome(whole: bool, some: bool) -> str:
    return "reproduced" if whole else "partly reproduced" if some else "not reproduced"


def _item(item: str, what: str, outcome: str, why: str) -> dict[str, str]:
    return {"item": item, "what": what, "outcome": outcome, "why": why}
