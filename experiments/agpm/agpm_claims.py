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
        "none_ended": lambda: found["none_ended"],
        "lowest_at_the_cap": lambda: (
            found["gaps"]["1000"]["AGPM"] < min(found["gaps"]["1000"][rival] for rival in RIVALS)
        ),
        "ended_ahead": lambda: all(
            found[name]["ended"][rival]["ratio"] < 1 for name in ("figure1", "figure2") for rival in RIVALS
        ),
        "likelihood_below_one": lambda: all(
            below_one(found["likelihood_repeated"], "evaluations", rival) for rival in RIVALS
        ),
        "errors_level": lambda: (
            max(
                abs(found["figure2"]["mean"]["AGPM"]["error"] - found["figure2"]["mean"][rival]["error"])
                for rival in RIVALS
            )
            < 0.005
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

        made |= {
            "printed_is_slower": lambda: rows["AGPM as printed"]["ratio"]["low"] > 1,
            "searches_are_level": lambda: found["variants"]["search_share"] < 0.1,
            "huang_is_zhang_hager": lambda: found["variants"]["huang_same"],
            "search_matters_for_14": lambda: (
                rows["M-[14], dai-fletcher"]["evaluations"]
                < rows["M-[14]"]["evaluations"]
                < rows["M-[14], zhang-hager"]["evaluations"]
            ),
            "agpm_first_with_any_search": lambda: (
                rows["AGPM"]["evaluations"] < rows["M-[14], dai-fletcher"]["evaluations"]
            ),
            "small_kappa_costs": lambda: (
                rows["AGPM, κ = .3"]["ratio"]["low"] > 1 and abs(rows["AGPM, κ = .9"]["ratio"]["ratio"] - 1) < 0.1
            ),
            "phi_gains_nothing": lambda: rows["yu, zhang-hager"]["ratio"]["ratio"] < 1.02,
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
