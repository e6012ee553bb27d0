"""The experiment of Grafting-Light: pages of incomplete results, steps that can be resumed."""

import importlib
import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2] / "experiments"
FOLDER = HERE / "grafting_light"


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.syspath_prepend(str(FOLDER))
    known = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - known:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def test_pages_of_no_results_and_of_a_part(modules, tmp_path):
    pages = modules("pages")
    empty = pages.render(FOLDER, tmp_path, lenient=True)["README.md"]
    assert "not measured in this run" in empty
    results = json.loads((FOLDER / "results.json").read_text("utf-8"))
    part = {"synthetic": [r for r in results["synthetic"] if r["seed"] == 0 and r["M"] in (0, 10, 50)]}
    (tmp_path / "results.json").write_text(json.dumps(part), "utf-8")
    facts = pages.facts_of(FOLDER, tmp_path)
    assert facts["synthetic"]["units"] == [10, 50]
    assert "ratio_falls" not in facts["claims"]
    assert [row["item"] for row in facts["coverage"]] == ["Algorithm 1", *(f"Figure {k}" for k in range(1, 6))]
    assert "Grafting" in pages.render(FOLDER, tmp_path, lenient=True)["README.md"]


def test_steps_have_names_of_their_own_and_write_to_the_output(modules):
    plan = modules("plan")
    for quick in (True, False):
        steps = plan.steps(quick, Path("data"), Path("out"))
        assert len({step.name for step in steps}) == len(steps)
        assert steps[-1].command[1] == "figures"
        for step in steps:
            assert step.command[0] == "run.py"
            assert step.command[step.command.index("--output") + 1] == "out"
            assert ("--data" in step.command) == bool(step.data)
    assert sum(step.minutes for step in plan.steps(True, Path("data"), Path("out"))) <= 4


def test_a_stopped_run_is_repeated_with_a_larger_limit_only(modules, tmp_path):
    store = modules("store")
    path, keys = tmp_path / "results.json", ("method", "M")
    store.merge(path, "np", keys, {"method": "grafting", "M": 5, "status": "STOPPED_BY_CALLBACK", "limit": 60.0})
    store.merge(path, "np", keys, {"method": "grafting", "M": 10, "status": "CONVERGED", "limit": 60.0})
    stopped, ended = (store.found(path, "np", keys, ("grafting", unit)) for unit in (5, 10))
    assert store.settled(stopped, 60.0)
    assert not store.settled(stopped, 120.0)
    assert not store.settled(stopped, None)
    assert store.settled(ended, 120.0)
    assert not store.settled(None, 60.0)
    store.merge(path, "np", keys, {"method": "grafting", "M": 5, "status": "CONVERGED", "limit": 120.0})
    assert len(store.read(path)["np"]) == 2
