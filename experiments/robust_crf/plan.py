"""The steps of this experiment, for run_all.py."""

from __future__ import annotations

from pathlib import Path

from steps import Step

FOLDER = "weizmann_horse"
TRIALS = (0, 1, 2)
NOISE_TRIALS = range(100, 110)


def steps(quick: bool, data: Path, output: Path) -> list[Step]:
    """Return the steps; quick: the structure with one trial, fewer settings and one trial of noise."""
    folders = (str(data / FOLDER / "gray"), str(data / FOLDER / "figure_ground"))

    def step(name: str, minutes: float, *options: str) -> Step:
        short = ("--short",) if quick else ()
        command = ("run.py", *folders, "--output", str(output), *short, *options)
        return Step(name, command, minutes, (FOLDER,))

    found = [step("features", 0.3 if quick else 1, "--parts", "features")]
    found += [
        step(f"paper, trial {trial}, {cell}", 0.5 if quick else 6, *_of("paper", trial), "--cells", cell)
        for trial in (TRIALS[:1] if quick else TRIALS)
        for cell in ("pl", "mean-field", "bp")
    ]
    found += [
        step(f"practice, trial {k}", 0.5 if quick else 3, *_of("practice", k)) for k in TRIALS[: 1 if quick else 3]
    ]
    found.append(step("equivalence", 0.2 if quick else 2, "--parts", "equivalence"))
    for trial in NOISE_TRIALS[:1] if quick else NOISE_TRIALS:
        some = ("--parts", "noise", "--noise-trials", str(trial))
        found += [step(f"noise, trial {trial}", 0.3 if quick else 1, *some)]
    return [*found, step("figures", 0.1, "--parts", "figures")]


def _of(part: str, trial: int) -> tuple[str, ...]:
    return "--parts", part, "--trials", str(trial)
