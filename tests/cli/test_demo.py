"""`crfkit demo`: the tour as a person sees it, its figures, and what it leaves behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crfkit.cli.demo.command import next_commands, program
from crfkit.cli.demo.screen import Screen

MODELS = {"model.crf", "segmenter.crf", "structure.crf", "report.html"}


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """(the folder in which it ran, its output): a process, with 80 columns and no terminal."""
    folder = tmp_path_factory.mktemp("tour")
    done = subprocess.run(
        [sys.executable, "-m", "crfkit", "demo"], cwd=folder, capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return folder, done.stdout.decode()


def test_screens_are_short_and_narrow(tour):
    _, shown = tour
    assert "\x1b" not in shown, "no colours without a terminal"
    assert [line for line in shown.splitlines() if len(line) > 79 and " -m crfkit " not in line] == []
    screens = re.split(r"\n(?=[1-5]  [A-Z])", shown)
    assert len(screens) == 6
    assert max(len(screen.splitlines()) for screen in screens[:5]) <= 24


def test_the_tour_shows_what_the_commands_print(tour, call):
    folder, shown = tour
    spans = call("tag", folder / "crfkit-demo/model.crf", folder / "crfkit-demo/news.txt", "--text", "--spans").out
    told = {line.split("\t")[5]: line.split("\t") for line in spans.splitlines()}
    for text in ("Orion Airlines", "Nairobi", "Tanaka"):
        kind, p = told[text][3], float(told[text][4])
        assert re.search(rf"{text} \[{kind} ({p:.0%}|>99%)\]", shown)
    scores = call("eval", folder / "crfkit-demo/model.crf", folder / "crfkit-demo/test.txt").out
    f1 = float(re.search(r"^overall +\S+ +\S+ +([\d.]+)%", scores, re.MULTILINE)[1])
    assert 90 < f1 < 99
    shown_f1 = float(re.search(r"all names +\S+ +\S+ +([\d.]+)%", shown)[1])
    assert shown_f1 == pytest.approx(f1, abs=0.051)


def test_report_is_the_one_that_is_named(tour):
    folder, shown = tour
    path = folder / re.search(r"\S+report\.html", shown)[0]
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert {file.name for file in (folder / "crfkit-demo").iterdir()} >= MODELS


def test_the_three_commands_work_when_pasted(tour):
    folder, shown = tour
    after = shown.partition("Three things to try next")[2]
    commands = [line.strip() for line in after.splitlines() if "crfkit-demo/" in line]
    assert len(commands) == 3
    for command in commands:
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout != b"") == (0, True), (command, done.stderr)


def test_figures_without_pillow(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    outcome = call("demo", "--sentences", 60, "--output", "kept", "--seed", 3, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    figures = json.loads(outcome.out)
    assert figures["images"] is False
    assert not Path("kept/images").exists()
    assert Path(figures["report"]).is_file()
    assert figures["tagger"]["converged"]
    assert figures["segmentation"]["converged"]
    assert figures["segmentation"]["error"] < 0.6 * figures["segmentation"]["error_of_blocks_alone"]
    assert figures["structure"]["touching"] > 4 * figures["structure"]["touching_by_chance"]
    assert 0.5 < figures["scores"]["overall"]["f1"] < 1
    for one in figures["why"]["positions"]:
        assert sum(row[3] for row in one["contributions"]) == pytest.approx(one["difference"])
    assert len(figures["next"]) == 3
    names = {path.name for path in Path("kept").iterdir()}
    assert names >= MODELS


def test_segmenter_reads_the_image_files(tour, call):
    pytest.importorskip("PIL")
    folder = tour[0] / "crfkit-demo"
    told = call("segment", "eval", folder / "segmenter.crf", folder / "images", folder / "masks", "--json")
    assert json.loads(told.out)["error"] < 0.08


def test_interrupted(start, call):
    process = start("demo", "--output", "kept")
    for line in process.stdout:
        if b"Find names" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"kept" in err
    assert b"Traceback" not in err
    assert call("demo", "--output", "kept", "--data-only").code == 0, "and it may run again"


def test_commands_quote_folders(monkeypatch, tmp_path):
    for _, command in next_commands(Path("my demo")):
        assert "'my demo/" in command
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program().endswith("-m crfkit")
    (tmp_path / "crfkit").write_text("")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "crfkit")])
    assert program() == str(tmp_path / "crfkit")


def test_flow_breaks_lines_between_pieces(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "45")
    pieces = [(f"word{k} ", {}) for k in range(30)]
    Screen().flow(pieces)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 45
    assert shown.split() == [text.strip() for text, _ in pieces]
    Screen(silent=True).flow(pieces)
    assert capsys.readouterr().out == ""
