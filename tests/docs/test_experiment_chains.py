"""The experiments on TRON and on chains: their plans, and their facts from results of a smaller run."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
NAMES = ("tron", "chains")


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


def module(name, file):
    spec = importlib.util.spec_from_file_location(f"{file}_of_{name}", EXPERIMENTS / name / f"{file}.py")
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def results(name):
    return json.loads((EXPERIMENTS / name / "results.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_steps_are_scripts_of_the_folder(name, quick, tmp_path):
    steps = module(name, "plan").steps(quick, Path("data"), tmp_path)
    assert len({step.name for step in steps}) == len(steps)
    for step in steps:
        assert (EXPERIMENTS / name / step.command[0]).is_file()
    assert "figures.py" in steps[-1].command


def test_the_quick_plans_take_three_minutes(tmp_path):
    steps = [step for name in NAMES for step in module(name, "plan").steps(True, Path("data"), tmp_path)]
    assert sum(step.minutes for step in steps) <= 3


def test_facts_of_one_task_and_strength(tmp_path):
    found = results("tron")["2000"]
    entry = found["tasks"]["chunking"]
    entry["strengths"] = {"1": entry["strengths"]["1"]}
    del entry["strengths"]["1"]["solvers"]["newton"]
    found["tasks"] = {"chunking": entry}
    (tmp_path / "results.json").write_text(json.dumps({"300": found}), encoding="utf-8")
    facts = module("tron", "facts").facts(tmp_path)
    assert len(facts["cells"]) == 1
    assert facts["newton"]["count"] == 0
    outcomes = {row["item"]: row["outcome"] for row in facts["coverage"]}
    assert outcomes["experiments"] == "partly reproduced"


def test_facts_without_the_logs_of_crfpp(tmp_path):
    found = results("chains")
    del found["crfpp"]
    found["methods"]["runs"] = {"BFGS, strong Wolfe": found["methods"]["runs"]["BFGS, strong Wolfe"]}
    (tmp_path / "results.json").write_text(json.dumps(found), encoding="utf-8")
    facts = module("chains", "facts").facts(tmp_path)
    assert facts["iis"] is None
    outcomes = {row["item"]: row["outcome"] for row in facts["coverage"]}
    assert outcomes["CRF++'s loop"] == "not possible"


def test_facts_of_nothing_but_theory(tmp_path):
    found = results("chains")
    (tmp_path / "results.json").write_text(
        json.dumps({"cpu seconds": 1.0, "theory": found["theory"]}), encoding="utf-8"
    )
    assert module("chains", "facts").facts(tmp_path)["theory"]["two_loops"] < 1e-10


def test_repeats_keep_the_least_seconds(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS / "tron"))
    merged = module("tron", "run").merged
    first = {"start seconds": 1.0, "trace": {"seconds": [1.0, 2.0, 5.0], "value": [9.0, 4.0, 1.0]}}
    second = {"start seconds": 2.0, "trace": {"seconds": [0.5, 3.0], "value": [9.0, 4.0]}}
    both = merged(merged(None, first), second)
    assert both["repeats"] == 2
    assert both["trace"] == {"seconds": [0.5, 2.0, 5.0], "value": [9.0, 4.0, 1.0]}
    with pytest.raises(SystemExit, match="different ways"):
        merged(both, {"start seconds": 0.0, "trace": {"seconds": [1.0], "value": [8.0]}})
    sys.modules.pop("problems", None)  # the other experiment has one as well
