"""The pages of the experiments say what their results say, and the machinery that makes sure of it notices changes."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
sys.path.insert(0, str(EXPERIMENTS))

import pages  # noqa: E402
from claims import ClaimError, environment, lint  # noqa: E402
from loading import load  # noqa: E402

FOLDERS = pages.experiments()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_pages_are_what_the_results_say(folder: Path) -> None:
    assert pages.check(folder) == []


def test_every_experiment_has_a_template() -> None:
    assert {readme.parent for readme in EXPERIMENTS.glob("*/README.md")} == set(FOLDERS)


def test_index() -> None:
    assert pages.check_index() == []


# Tables, figures and algorithms with a number; items of the notes on chains have none.
PAPERS = {
    "agpm": ["Algorithm 1", "Table 1", "Figure 1", "Figure 2"],
    "grafting_light": ["Algorithm 1", *(f"Figure {k}" for k in range(1, 6))],
    "robust_crf": ["Algorithm 1", "Algorithm 2", "Table I", "Table II", *(f"Figure {k}" for k in range(1, 13))],
    "tron": ["Table 2.1", *(f"Algorithm {k}" for k in range(1, 8))],
    "chains": [],
}


def spelled_out(item: str) -> set[str]:
    """ "Figures 3 to 5" are Figure 3, Figure 4 and Figure 5; "Figures 1, 2" are two."""
    match = re.match(r"(Table|Figure|Algorithm)s? (.+)", item)
    if match is None:
        return {item}
    kind, numbers = match.groups()
    between = re.match(r"(\d+)(?: to |–|-)(\d+)", numbers)
    if between:
        return {f"{kind} {k}" for k in range(int(between[1]), int(between[2]) + 1)}
    return {f"{kind} {number}" for number in re.findall(r"\b(?:\d+(?:\.\d+)?|[IVX]+)\b", numbers)}


@pytest.mark.parametrize("name", PAPERS)
def test_nothing_of_a_paper_is_missing(name: str) -> None:
    rows = load(EXPERIMENTS / name, "facts").facts(EXPERIMENTS / name)["coverage"]
    assert rows
    assert set(PAPERS[name]) <= set().union(*(spelled_out(row["item"]) for row in rows))
    assert all(row["outcome"] in pages.OUTCOMES and row["what"] for row in rows)
    assert all(row["why"] for row in rows if row["outcome"] != "reproduced")


# --- an altered number is noticed

# Names of numbers that the pages rest on; any of them may be altered.
SHOWN = {
    "agpm": ("evaluations", "error", "AGPM", "M-[14]"),
    "chains": ("difference", "iterations", "CRF++", "value"),
    "grafting_light": ("mean", "f1", "gap", "held_out"),
    "robust_crf": ("validation", "search_cpu_seconds"),
    "segmenter": ("bilinear", "nearest"),
    "structure": ("f1",),
    "tron": ("best", "product", "weights"),
}
EACH = 2  # numbers of each name
TRACE = 30  # a longer list is a trace, which is drawn


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all numbers in a JSON value."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list) and len(value) <= TRACE:
        for k, part in enumerate(value):
            yield from leaves(part, (*path, k))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def named(path: tuple[Any, ...]) -> str:
    """Return the last word of a path that is not a number: seeds and draws are keys, too."""
    return next((key for key in reversed(path) if isinstance(key, str) and not key.isdigit()), "")


@pytest.mark.parametrize(("name", "number"), [(name, number) for name, shown in SHOWN.items() for number in shown])
def test_an_altered_number_is_noticed(name: str, number: str, tmp_path: Path) -> None:
    folder = EXPERIMENTS / name
    found = []
    for file in sorted(folder.glob("*.json")):
        shutil.copyfile(file, tmp_path / file.name)
        found += [(file, path) for path in leaves(json.loads(file.read_text("utf-8"))) if named(path) == number]
    assert found, f"the results of {name} have no {number}"
    for file, path in random.Random(0).sample(found, min(EACH, len(found))):
        original = file.read_text("utf-8")
        results = json.loads(original)
        place = results
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = 1.3 * place[path[-1]] + 1
        (tmp_path / file.name).write_text(json.dumps(results), "utf-8")
        try:
            complaints = pages.check(folder, tmp_path)
        except Exception as error:  # facts that refuse such a number have noticed it
            complaints = [repr(error)]
        assert complaints, f"{file.name}: {path} was altered and {name} did not notice"
        (tmp_path / file.name).write_text(original, "utf-8")


def test_numbers_of_every_experiment_are_altered() -> None:
    assert set(SHOWN) == {folder.name for folder in FOLDERS if any(folder.glob("*.json"))}


# --- templates


def rendered(template: str, lenient: bool = False, **values: Any) -> str:
    return environment(lenient).from_string(template).render(values)


def test_claims() -> None:
    assert rendered("A is faster{{ claim(a < b) }}.", a=1, b=2) == "A is faster."
    with pytest.raises(ClaimError, match="does not hold"):
        rendered("A is faster{{ claim(a < b) }}.", a=2, b=1)
    with pytest.raises(ClaimError, match="no b"):
        rendered("A is first{{ claim(a.b) }}.", a={})
    assert "not so in this run" in rendered("A is faster{{ claim(a < b) }}.", lenient=True, a=2, b=1)
    assert "not measured" in rendered("A is faster{{ claim(a.x < b.x / 2) }}.", lenient=True, a={"x": 1}, b={})


def test_numbers_of_pages() -> None:
    assert rendered("{{ a | n }} {{ b | pct }} {{ c | n(2) }} {{ d | n(1) }}", a=1234.4, b=0.1234, c=-1.5, d=-0.04) == (
        "1,234 12.3 −1.50 0.0"
    )
    assert rendered("{{ a.b | n }}", lenient=True, a={}) == "–"


@pytest.mark.parametrize(
    ("text", "complains"),
    [
        ("It takes 12 seconds.", True),
        ("It takes {{ seconds | n }} seconds.", False),
        ("It is faster.", True),
        ("It is faster{{ claim(a < b) }}.", False),
        ("- One is faster{{ claim(a) }}.\n- So is the other, and first.", True),
        ("Figure 2 and Table 1 of M-[14], L1, `x = 3`, [text](file2.md).", False),
        ("T = {{ given('400') }}.", False),
    ],
)
def test_lint(text: str, complains: bool) -> None:
    assert bool(lint(text)) == complains


# --- run_all.py on an experiment that takes seconds


PLAN = """
from steps import Step

def steps(quick, data, output):
    names = ("one", "two") if quick else ("one", "two", "three")
    made = [Step(name, ("run.py", str(output), name), 0.01) for name in names]
    return [*made, Step("letters", ("run.py", str(output), "letters"), 0.01, data=("letters",))]
"""
RUN = """
import json, pathlib, sys, time
output, name = pathlib.Path(sys.argv[1]), sys.argv[2]
if name == "two" and (output / "slow").exists():
    (output / "slow").unlink()
    time.sleep(60)
file = output / "results.json"
results = json.loads(file.read_text()) if file.exists() else {}
results[name] = results.get(name, 0) + 1
file.write_text(json.dumps(results))
"""
FACTS = """
import json

def facts(folder):
    return json.loads((folder / "results.json").read_text())
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Return a copy of the scripts with one small experiment."""
    for script in EXPERIMENTS.glob("*.py"):
        shutil.copyfile(script, tmp_path / script.name)
    (tmp_path / "toy").mkdir()
    for name, text in (("plan.py", PLAN), ("run.py", RUN), ("facts.py", FACTS)):
        (tmp_path / "toy" / name).write_text(text)
    (tmp_path / "toy" / "README.md.j2").write_text("# Toy\n\nAll ran once{{ claim(one == 1 and three == 1) }}.\n")
    (tmp_path / "output" / "toy").mkdir(parents=True)
    return tmp_path


def arguments(toy: Path, *more: str) -> list[str]:
    return [sys.executable, str(toy / "run_all.py"), "--data", str(toy), "--output", str(toy / "output"), *more]


def test_run_all_writes_pages(toy: Path) -> None:
    done = subprocess.run(arguments(toy, "--full"), capture_output=True, text=True, check=True)
    assert (toy / "output" / "toy" / "README.md").read_text() == "# Toy\n\nAll ran once.\n"
    assert "[Toy](toy/README.md)" in (toy / "output" / "README.md").read_text()
    assert "letters: left out" in done.stdout
    assert "left)" in done.stdout


def test_quick_pages_say_what_was_not_measured(toy: Path) -> None:
    subprocess.run(arguments(toy, "--quick"), capture_output=True, check=True)
    assert "not measured in this run" in (toy / "output" / "toy" / "README.md").read_text()


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_run_all_continues_after_an_interruption(toy: Path, sent: signal.Signals) -> None:
    (toy / "output" / "toy" / "slow").touch()
    process = subprocess.Popen(arguments(toy, "--full"), stdout=subprocess.PIPE, text=True)
    journal = toy / "output" / "journal.json"
    for _ in range(300):
        if journal.exists() and not (toy / "output" / "toy" / "slow").exists():
            break
        time.sleep(0.1)
    process.send_signal(sent)
    told, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command continues" in told
    subprocess.run(arguments(toy, "--full"), capture_output=True, check=True)
    assert json.loads((toy / "output" / "toy" / "results.json").read_text()) == {"one": 1, "two": 1, "three": 1}


def test_a_failed_step_is_told(toy: Path) -> None:
    (toy / "toy" / "run.py").write_text("raise SystemExit(3)\n")
    done = subprocess.run(arguments(toy, "--full"), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "toy/one: failed with exit code 3, 2 later steps left out" in done.stdout
