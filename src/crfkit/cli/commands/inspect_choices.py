"""The line of `crfkit inspect` about solver, inference and decoding, and what "auto" chose in training."""

from __future__ import annotations

from collections.abc import Mapping

from crfkit._values import Record


def describe_choices(training: Record, inference: object = None, decode: object = None) -> list[str]:
    """Return a line with the options and what "auto" was, or none for models whose file does not record them.

    >>> describe_choices({"solver": "auto", "auto": {"solver": "owlqn", "decode": "tree"}}, "junction", "auto")
    ['solver: auto (owlqn), inference: junction, decoding: auto (tree)']
    >>> describe_choices({"solver": "lbfgs"}), describe_choices({})
    (['solver: lbfgs'], [])
    """
    chosen = training.get("auto")
    chosen = chosen if isinstance(chosen, Mapping) else {}
    solver = "auto" if "solver" in chosen else training.get("solver")  # "auto" is stored as the solver that it was
    options = {"solver": ("solver", solver), "inference": ("inference", inference), "decode": ("decoding", decode)}
    said = []
    for name, (title, value) in options.items():
        if value is not None:
            named = value if isinstance(value, str) else getattr(value, "name", value)
            said.append(f"{title}: {named}" + (f" ({chosen[name]})" if named == "auto" and name in chosen else ""))
    if "penalty" in chosen:
        said.append(f"penalty: {chosen['penalty']}")
    if training.get("precision", "double") != "double":
        said.append(f"precision: {training['precision']}")
    return [", ".join(said)] if said else []
