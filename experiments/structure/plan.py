"""The steps of this experiment."""

from __future__ import annotations

from pathlib import Path

from steps import Step

SEEDS = range(40, 45)


def steps(quick: bool, data: Path, output: Path) -> list[Step]:
    """Return the steps; `data` holds the folder density, with nltcs and plants."""
    to = ("--output", str(output))
    tables = ("--data", str(data / "density"))
    figures = Step("figures", ("figures.py", *to), 0.1)
    if quick:
        few = ("--seeds", "40-41", "--rows", "150,1000", "--families", "random,hubs,grid")
        return [
            Step("planted", ("run.py", "planted", *few, *to), 0.5),
            Step("independent", ("run.py", "independent", "--rows", "150,1000", "--tables", "5", *to), 0.1),
            Step("tuned", ("run.py", "tuned", "--seeds", "0", "--rows", "150", "--tables", "2", *to), 0.4),
            Step("conditional", ("run.py", "conditional", "--light", "--seeds", "40", *to), 0.8),
            Step("rules", ("run.py", "rules", "--seeds", "40", *to), 0.2),
            Step("ordinal", ("run.py", "ordinal", "--chains", "4", *to), 0.2),
            Step("density", ("run.py", "density", "--tables-of", "nltcs", *tables, *to), 0.2, ("density",)),
            figures,
        ]
    found = [Step(f"planted {seed}", ("run.py", "planted", "--seeds", str(seed), *to), 1.0) for seed in SEEDS]
    found += [Step("independent", ("run.py", "independent", "--tables", "100", *to), 1.5)]
    found += [
        Step(
            f"tuned {seed}",
            ("run.py", "tuned", "--seeds", str(seed), "--rows", "150,300,1000", "--tables", "20", *to),
            1.0,
        )
        for seed in range(10)
    ]
    found += [Step(f"conditional {seed}", ("run.py", "conditional", "--seeds", str(seed), *to), 3.0) for seed in SEEDS]
    return [
        *found,
        Step("rules", ("run.py", "rules", *to), 1.0),
        Step("ordinal", ("run.py", "ordinal", *to), 0.5),
        Step("density", ("run.py", "density", *tables, *to), 3.0, ("density",)),
        figures,
    ]
