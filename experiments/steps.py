"""A step of an experiment: one command of a few minutes, which `run_all.py` starts, times and remembers.

The plan of an experiment is `plan.py` in its folder, with `steps(quick, data, output)`. A step merges what it finds
into the results in `output`, so that steps can run in any number of sittings.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A command that adds to the results of an experiment.

    name:     unique within the experiment; the journal of finished steps keeps it
    command:  arguments of Python, the script first, relative to the folder of the experiment
    minutes:  expected time on one core, from which the remaining time is estimated
    data:     folders below the data folder that the step reads; it is left out where one is missing
    """

    name: str
    command: tuple[str, ...]
    minutes: float
    data: tuple[str, ...] = ()
