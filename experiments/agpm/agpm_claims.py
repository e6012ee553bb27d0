"""The sentences of the page as conditions on what was measured. A condition on what is missing is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RIVALS = ("M-[14]", "M-[23]")


def below_one(part: dict[str, Any], measure: str, rival: str) -> bool:
    """Whether the whole interval of a ratio is below 1."""
    return bool(part["ratios"][rival][measure]["high"] < 1)


def claims(found: dict[str, Any]) -> dict[str, bool]:
    """Return name → whether it holds."""
    made: dict[str, Callable[[], Any]] = {
        "fewest_evaluations": lambda: all(below_one(found["table"], "evaluations", rival) for rival in RIVALS),
        "least_time": lambda: all(below_one(found["table"], "cpu", rival) for rival in RIVALS),
        "whole_table": lambda: found["table"]["n_settings"] == 12 and found["table"]["fewest_draws"] >= 5,
        "three_repeats": lambda: found["table"]["repeats"] >= 3,
        "all_ended": lambda: not any(found["table"]["capped"].values()),
        "errors_agree": lambda: found["table"]["gap"] < 0.005 and found["likelihood"]["gap"] < 0.005,
        "errors_agree_figures": lambda: max(found["figure1"]["gap"], found["figure2"]["gap"]) < 0.03,
        "not_everywhere": lambda: bool(found["table"]["not_first_evaluations"]),
        "slow_at_15_5": lambda: found["table"]["by_name"]["15/5"]["spg_first_always"],
        "only_few_features": lambda: all(name.endswith("/5") for name in found["table"]["not_first_evaluations"]),
        "paper_always_first": lambda: found["paper"]["always_first"],
        "figures_ahead": lambda: all(
            found[name]["ratios"][rival]["evaluations"]["ratio"] < 1
            for name in ("figure1", "figure2")
            for rival in RIVALS
        ),
        "figures_not_everywhere": lambda: bool(found["figure1"]["not_first_evaluations"]),
        "same_order": lambda: (
            found["likelihood"]["mean"]["AGPM"]["evaluations"]
            < found["likelihood"]["mean"]["M-[14]"]["evaluations"]
            < found["likelihood"]["mean"]["M-[23]"]["evaluations"]
        ),
        "whole_likelihood": lambda: found["likelihood"]["n_settings"] == 12,
        "halves_are_faster": lambda: found["engines"]["15"]["halves"] < 0.1 * found["engines"]["15"]["junction"],
        "grows_with_pairs": lambda: (
            abs(found["objective"]["growth"]["paper"]["15"] / found["objective"]["pairs"] - 1) < 0.25
        ),
        "junction_grows_more": lambda: (
            found["objective"]["once"]["junction"] > 10 * found["objective"]["growth"]["paper"]["15"]
        ),
        "between": lambda: (
            found["objective"]["growth"]["table"]["15"]
            < found["objective"]["growth"]["paper"]["15"]
            < found["objective"]["growth"]["likelihood"]["15"]
        ),
        "nothing_selected": lambda: found["table"]["least_kept"] > 0.9,
        "faster_than_the_paper": lambda: found["speed"]["times"] > 10,
    }
    if "variants" in found:
        rows = found["variants"]["rows"]

        def near(name: str, share: float) -> Callable[[], bool]:
            return lambda: abs(rows[name]["ratio"]["ratio"] - 1) < share

        made |= {
            "printed_is_slower": lambda: rows["AGPM as printed"]["ratio"]["low"] > 1,
            "printed_is_like_14": lambda: (
                abs(rows["AGPM as printed"]["evaluations"] / rows["M-[14], zhang-hager"]["evaluations"] - 1) < 0.15
            ),
            "huang_is_level": near("AGPM, huang", 0.05),
            "dai_fletcher_is_level": near("AGPM, dai-fletcher", 0.1),
            "gll_is_level": near("AGPM, gll", 0.1),
            "eta_is_level": near("AGPM, η = .95", 0.1),
            "kappa_9_is_level": near("AGPM, κ = .9", 0.1),
            "kappa_3_is_slower": lambda: rows["AGPM, κ = .3"]["ratio"]["low"] > 1,
            "yu_is_level": near("yu, zhang-hager", 0.1),
        }
    if "rules" in found:
        named = found["rules"]["by_name"]
        made |= {
            "pqn_evaluates_less": lambda: named["pqn"]["evaluations"] < named["agpm, zhang-hager"]["evaluations"],
            "pqn_takes_longer": lambda: named["pqn"]["cpu"] > named["agpm, zhang-hager"]["cpu"],
            "others_need_more": lambda: (
                min(named["fista"]["evaluations"], named["admm"]["evaluations"])
                > named["agpm, zhang-hager"]["evaluations"]
            ),
            "chaotic": lambda: found["rules"]["chaos"] > 0.02,
        }
    held = {name: holds(condition) for name, condition in made.items()}
    return {name: value for name, value in held.items() if value is not None}


def holds(condition: Callable[[], Any]) -> bool | None:
    """Return None where something was not measured, or one draw gives no interval."""
    try:
        return bool(condition())
    except (KeyError, TypeError):
        return None
