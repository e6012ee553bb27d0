"""Run the experiments of all papers and write their pages.

    python experiments/run_all.py --quick        # fewer seeds and settings: at most 20 minutes on two cores
    python experiments/run_all.py --full         # everything, for hours; the same command continues
    python experiments/run_all.py --full --list  # the steps, their expected minutes, and which of them are done

Results and pages go to build/experiments/quick or build/experiments/full, a folder per experiment, and the logs of the
steps to `logs` there. `--full --update` writes to the experiments' own folders instead, whose pages are committed.
Each step is a process of its own with one thread; steps of different experiments run side by side (`--jobs`). A step
whose data are missing is left out and named at the end; pages then say what was not measured.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402
from claims import NOT_SO  # noqa: E402
from loading import load  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: E402
from runner import Journal, Queue, Runner, clock  # noqa: E402

DATA = Path(os.environ.get("CRFKIT_SHARED", HERE.parents[1] / "shared")) / "data"


def queues(options: argparse.Namespace, journal: Journal) -> list[Queue]:
    made = []
    for plan in sorted(HERE.glob("*/plan.py")):
        name = plan.parent.name
        if options.only and name not in options.only.split(","):
            continue
        output = plan.parent if options.update else options.output / name
        steps = load(plan.parent, "plan").steps(options.quick, options.data, output)
        done = [step for step in steps if journal.has(name, step)]
        rest = [step for step in steps if step not in done]
        missing = [step for step in rest if not all((options.data / part).exists() for part in step.data)]
        made.append(Queue(name, output, [step for step in rest if step not in missing], done, missing))
    return made


def show(runner: Runner, total: float, console: Console) -> None:
    """Run all steps with a bar, or with a line per step where the output is not a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, TextColumn("{task.fields[left]}"), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("experiments", total=max(total, 1e-9), left="")
        for line in runner.run():
            left = clock(runner.remaining())
            now = ", ".join(f"{run.queue.name}/{run.step.name}" for run in runner.running)
            waiting = sum(queue.minutes for queue in runner.queues) + sum(run.step.minutes for run in runner.running)
            bar.update(task, completed=total - waiting, left=f"{left} left  {now}")
            if line:
                console.print(line if console.is_terminal else f"{line} ({left} left)", highlight=False)


def write_pages(made: list[Queue], update: bool, output: Path) -> list[str]:
    """Write the page of each experiment, and the index of all, from the results that there are; return what failed."""
    failed = []
    for queue in made:
        folder = HERE / queue.name
        try:
            written = pages.render(folder, queue.output, lenient=not update)
        except Exception as error:  # one experiment without results must not cost the pages of the others
            print(f"{queue.name}: no page: {error}")
            failed.append(f"page of {queue.name}")
            continue
        queue.output.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            (queue.output / name).write_text(text, encoding="utf-8")
            print(f"{queue.output / name}: {text.count(NOT_SO)} claims do not hold in this run")
    if update:
        output = HERE
    (output / "README.md").write_text(pages.index(output), encoding="utf-8")
    print(output / "README.md")
    return failed


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--quick", action="store_true", help="fewer seeds and settings, at most 20 minutes on two cores")
    size.add_argument("--full", action="store_true", help="all seeds and settings, for hours")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--only", default="", help="experiments, separated by commas; all by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="steps at a time; default: one per core")
    parser.add_argument("--output", type=Path, help="folder for results, pages, logs and the journal of finished steps")
    parser.add_argument("--update", action="store_true", help="write results and pages to the experiments' own folders")
    parser.add_argument("--restart", action="store_true", help="forget which steps are done")
    parser.add_argument("--list", action="store_true", help="show the steps and run nothing")
    options = parser.parse_args()
    if options.update and options.quick:
        parser.error("--update needs --full: committed pages are of complete results")
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, not {options.jobs}")
    unknown = set(filter(None, options.only.split(","))) - {plan.parent.name for plan in HERE.glob("*/plan.py")}
    if unknown:
        parser.error(f"unknown experiments: {', '.join(sorted(unknown))}")
    size_name = "quick" if options.quick else "full"
    options.output = (options.output or HERE.parent / "build" / "experiments" / size_name).resolve()
    options.data = options.data.resolve()
    return options


def main() -> None:
    options = parse()
    console = Console(soft_wrap=True)
    file = "journal-update.json" if options.update else "journal.json"
    journal = Journal.read(options.output / file, options.restart)
    made = queues(options, journal)
    if options.list:
        for queue in made:
            for state, those in (("done", queue.done), ("", queue.waiting), ("no data", queue.missing)):
                for step in those:
                    name = f"{queue.name}/{step.name}"
                    console.print(f"{name:48} {step.minutes:6.1f} min  {state}", highlight=False)
        return
    total = sum(queue.minutes for queue in made)
    steps, done = sum(len(queue.waiting) for queue in made), sum(len(queue.done) for queue in made)
    console.print(f"{steps} steps to run, about {clock(60 * total / options.jobs)}; {done} are done", highlight=False)
    begin = time.monotonic()
    for sent in (signal.SIGINT, signal.SIGTERM):  # also where a shell has started this with SIGINT ignored
        signal.signal(sent, interrupt)
    runner = Runner(made, journal, options.jobs, options.output / "logs")
    try:
        show(runner, total, console)
    except KeyboardInterrupt:
        console.print("interrupted: finished steps are kept; the same command continues")
        sys.exit(130)
    console.print(f"all steps ended after {clock(time.monotonic() - begin)}", highlight=False)
    failed = [*runner.failed, *write_pages(made, options.update, options.output)]
    for queue in made:
        for step in queue.missing:
            console.print(f"{queue.name}/{step.name}: left out, needs {', '.join(step.data)} in {options.data}")
    if failed:
        console.print(f"failed: {', '.join(failed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
