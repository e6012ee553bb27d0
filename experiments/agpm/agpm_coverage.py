"""Every table and figure of the paper, and what became of it."""

from __future__ import annotations

from typing import Any


def coverage(found: dict[str, Any]) -> list[dict[str, str]]:
    """Return a row for each table and figure; outcomes follow from the results."""
    table, figure1, figure2 = (found.get(name) for name in ("table", "figure1", "figure2"))
    return [
        {
            "item": "Table 1",
            "what": "time and test error, 100 samples, twelve settings",
            "outcome": outcome(table, 12),
            "why": why(table),
        },
        {
            "item": "Figure 1",
            "what": "time and test error, 500 samples, twelve settings",
            "outcome": outcome(figure1, 12),
            "why": why(figure1),
        },
        {
            "item": "Figure 2",
            "what": "time and test error, 1,000 samples, three settings",
            "outcome": outcome(figure2, 3),
            "why": why(figure2),
        },
        {
            "item": "Algorithm 1",
            "what": "the method",
            "outcome": "reproduced",
            "why": "a test compares every step with a plain transcription",
        },
    ]


def outcome(part: dict[str, Any] | None, settings: int) -> str:
    """A claim is reproduced if AGPM is first in every setting, in part if its mean is below that of both rivals."""
    if part is None or part["n_settings"] < settings:
        return "not reproduced"
    if not part["not_first_cpu"]:
        return "reproduced"
    means = part["mean"]
    first = all(means["AGPM"]["cpu"] < means[rival]["cpu"] for rival in ("M-[14]", "M-[23]"))
    return "partly reproduced" if first else "not reproduced"


def why(part: dict[str, Any] | None) -> str:
    if part is None:
        return "not measured in this run"
    equal = f"test errors of the methods agree within {part['gap']:.3f} on each draw"
    if not part["not_first_cpu"]:
        return f"AGPM takes the least CPU time in every setting; {equal}"
    lost, means = ", ".join(part["not_first_cpu"]), part["mean"]
    shown = ", ".join(f"{means[name]['cpu']:.2f} s ({name})" for name in ("AGPM", "M-[14]", "M-[23]"))
    return f"geometric means {shown}; AGPM does not take the least at {lost}; {equal}"
