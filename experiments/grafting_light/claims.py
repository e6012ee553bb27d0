"""The conditions of the sentences in the pages; one that the results do not have the numbers for is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MISSING = (KeyError, TypeError, IndexError, ValueError, ZeroDivisionError)


def claims(found: dict[str, Any]) -> dict[str, bool]:
    """Return whether each sentence holds."""
    s, sgd, phrases, strength, owlqn = (found[key] for key in ("synthetic", "sgd", "np", "strength", "owlqn"))
    four, five, pl, beyond, paths = (found[key] for key in ("figure_4", "figure_5", "pl", "beyond", "paths"))
    conditions: dict[str, Callable[[], Any]] = {
        "fewer_gradients": lambda: (
            s["units"] and s["fewer_gradients"] == s["units"] and four["fewer_gradients"] == four["letters"]
        ),
        "faster_at_small_units": lambda: {1, 10} <= set(s["less_time"]) and len(s["less_time"]) < len(s["units"]),
        "letters_faster": lambda: len(four["less_time"]) > len(four["letters"]) / 2,
        "robust": lambda: s["light_range"][1] < s["greedy_range"][0],
        "full_not_fastest": lambda: len(s["faster_than_full"]) > len(s["units"]) / 2,
        "same_optimum": lambda: s["largest_gap"] < 1e-5 and s["same_error"] and s["same_inputs"],
        "ratio_falls": lambda: s["gradient_ratio"][1] > s["gradient_ratio"][10] > s["gradient_ratio"][110],
        "more_selected": lambda: s["units"] and s["more_selected"] == s["units"],
        "stopped_underfits": lambda: all(
            row["error"] > s["optimum"][0]["error"] and row["nonzero_inputs"] < s["optimum"][0]["nonzero_inputs"]
            for row in _some([row for row in s["seidel_stopped"] if row["gap"] > 1e-3])
        ),
        "sgd_cumulative_fewer": lambda: _not(sgd["more"]["cumulative"]),
        "sgd_naive_more": lambda: _known(sgd["more"]["naive"]),
        "sgd_clipping_more": lambda: _known(sgd["more"]["clipping"]),
        "full_slowest": lambda: (
            four["faster_than_full"] == four["letters"] and four["light_seconds"][1] < four["full_seconds"][0]
        ),
        "full_same_letters": lambda: four["largest_gap"] < 1e-3 and four["blurred"] == [],
        "full_gap_small": lambda: four["largest_gap"] < 1e-3,
        "full_fewest": lambda: len(four["full_fewest"]) >= len(four["letters"]) / 2,
        "same_edges": lambda: four["rows"] and four["same_edges"] == four["letters"],
        "samples_harder": lambda: four["bp_distance"][1] < four["samples_light"][1],
        "pl_better": lambda: pl["rows"] and pl["better"] == pl["letters"],
        "units_gradients": lambda: five["fewer_gradients"] == five["units"],
        "units_time": lambda: len(five["less_time"]) > len(five["units"]) / 2,
        "units_fall": lambda: five["greedy_falls"],
        "units_same": lambda: five["largest_gap"] < 1e-4,
        "still_improving": lambda: paths["bp"] and paths["improving_bp"] == paths["bp"],
        "no_optimum": lambda: _known(beyond["no_optimum"]),
        "full_denser": lambda: _known(beyond["full_denser"]),
        "full_farther": lambda: _known(beyond["full_farther"]),
        "full_not_blurrier": lambda: _some(beyond["rows"]) and not beyond["full_blurrier"],
        "full_nll_larger": lambda: all(row["full"]["nll"] > row["light"]["nll"] for row in _some(beyond["rows"])),
        "full_sharper": lambda: all(
            max(row["full"][key] for key in ("bp_blur", "samples_blur")) < found["training_blur"][row["letter"]]
            for row in _some(beyond["rows"])
        ),
        "f1_lost": lambda: 0 < phrases["lost"] < 1,
        "np_light": lambda: phrases["light_gap"] < 1e-3 and phrases["f1_spread"] < 0.3,
        "np_rivals": lambda: phrases["rival_gap"][0] > phrases["light_gap"],
        "np_equal_time": lambda: all(
            row["light"]["gap"] < row["best_rival"]["gap"] for row in _some(phrases["equal_time"])
        ),
        "np_memory": lambda: phrases["peaks"]["grafting-light"] < phrases["peaks"]["full-opt-l1"],
        "np_strength": lambda: phrases["strength"] == strength["best"],
        "strength_clear": lambda: strength["next_best"] > 2,
        "printed_stalls": lambda: min(owlqn["printed_gap"]) > 0.005,
        "original_goes_on": lambda: max(owlqn["original_gap"]) < 1e-3,
        "original_slower": lambda: owlqn["ratio"] > 1.5,
        "original_level": lambda: owlqn["synthetic_ratio"] <= 1,
    }
    held = {name: _held(condition) for name, condition in conditions.items()}
    return {name: value for name, value in held.items() if value is not None}


def _held(condition: Callable[[], Any]) -> bool | None:
    """Return whether a condition holds; None if its numbers were not measured."""
    try:
        return bool(condition())
    except MISSING:
        return None


def _known(value: bool | None) -> bool:
    if value is None:
        raise KeyError("not measured")
    return value


def _some(rows: list[Any]) -> list[Any]:
    if not rows:
        raise KeyError("not measured")
    return rows


def _not(value: bool | None) -> bool:
    return not _known(value)
