"""The steps of the experiments of Xue & Zhang (2016)."""

from __future__ import annotations

from pathlib import Path

from steps import Step


def steps(quick: bool, data: Path, output: Path) -> list[Step]:
    """Return the steps; no data are needed. The quick ones take about two CPU minutes."""
    del data

    def step(name: str, minutes: float, *options: str) -> Step:
        return Step(name, ("run.py", *options, "--output", str(output)), minutes)

    if quick:
        return [
            step("table", 0.3, "--parts", "table", "--nodes", "5,10", "--draws", "2", "--repeats", "1"),
            step("likelihood", 0.2, "--parts", "likelihood", "--nodes", "5", "--draws", "1", "--repeats", "1"),
            step("engines", 0.1, "--parts", "engines", "--nodes", "5,10"),
            step(
                "figure1",
                0.2,
                "--parts",
                "figure1",
                "--nodes",
                "5",
                "--features",
                "15,20",
                "--draws",
                "1",
                "--repeats",
                "1",
            ),
            step("figure2", 0.2, "--parts", "figure2", "--features", "20", "--draws", "1", "--repeats", "1"),
            step("variants", 0.2, "--parts", "variants", "--nodes", "5", "--features", "10,20", "--draws", "1"),
            step("rules", 0.4, "--parts", "rules", "--draws", "1"),
            step("figures", 0.1, "--parts", "figures"),
        ]
    found = [step("table", 4, "--parts", "table"), step("engines", 0.2, "--parts", "engines")]
    for draws in range(1, 6):
        some = ("--draws", str(draws))
        found += [
            step(f"figure1-{draws}", 5, "--parts", "figure1", *some),
            step(f"figure2-{draws}", 4, "--parts", "figure2", *some),
            step(f"likelihood-{draws}", 2, "--parts", "likelihood", "--nodes", "5,10", *some),
        ]
    found += [step("variants", 6, "--parts", "variants"), step("rules", 2, "--parts", "rules")]
    found += [step("traces", 1.5, "--parts", "traces")]
    for draws in range(1, 6):
        options = ("--parts", "likelihood", "--nodes", "15", "--draws", str(draws), "--repeats", "1")
        found.append(step(f"likelihood-15-{draws}", 5, *options))
    return [*found, step("figures", 0.1, "--parts", "figures")]
