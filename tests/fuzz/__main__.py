"""`make fuzz`: run the fuzzer from the command line; exits with 1 if it finds something."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

from fuzz.campaign import Campaign, Options
from fuzz.targets import find_targets
from fuzz.worker import run_case


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--cases", type=int, default=10**9, help="maximum number of cases of each target")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases")
    parser.add_argument("--targets", default="", help="beginnings of names of targets, separated by commas")
    parser.add_argument("--memory", type=float, default=2.0, help="GB that a process may have")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds that a case may take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of processes")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="where findings are kept")
    parser.add_argument("--case", default="", help="run the case TARGET:NUMBER in this process")
    given = parser.parse_args()
    if given.case:
        return again(given.case, given.seed)
    targets = find_targets(given.targets)
    if not targets:
        parser.error(f"no target begins with {given.targets!r}")
    campaign = Campaign(
        Options(
            given.seconds, given.cases, given.seed, given.jobs, int(given.memory * 1e9), given.timeout, given.folder
        )
    )
    start = time.monotonic()
    campaign.run(targets)
    cases = sum(count.total() for count in campaign.counts.values())
    print(campaign.summary())
    print(f"{cases} cases in {time.monotonic() - start:.0f} s, seed {given.seed}: {len(campaign.findings)} findings")
    return 1 if campaign.findings else 0


def again(case: str, seed: int) -> int:
    """Run one case here, so that a debugger can be attached and the traceback is whole."""
    name, _, number = case.rpartition(":")
    (target,) = [target for target in find_targets() if target.name == name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        valid = target.seed()
    with tempfile.TemporaryDirectory() as folder:
        run_case(target, valid, seed, int(number), Path(folder))
    print("fine")
    return 0


if __name__ == "__main__":
    sys.exit(main())
