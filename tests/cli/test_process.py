"""Signals, pipes, terminals and full disks: what only shows in a process of its own."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from crfkit import ChainCRF
from crfkit.cli.runtime import progress
from crfkit.synthetic import entity_corpus, write_columns

PATIENCE = 30  # seconds


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()


# --- Ctrl-C


def test_interrupted_training_keeps_the_model_so_far(start, snapshot):
    write_columns("big.txt", entity_corpus(4000, 3))
    options = "-t template -m model.crf --log big.jsonl --tolerance 0 --max-iterations 1000000"
    process = start("train", "big.txt", *options.split())
    for line in process.stderr:
        if re.match(rb"iteration +3 ", line):
            break
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert code == 130
    assert "interrupted" in out
    assert "model written to model.crf" in out
    assert "Traceback" not in err
    log = [json.loads(line) for line in Path("big.jsonl").read_text().splitlines()]
    assert f"= {log[-1]['value']:.6f} after {log[-1]['iteration']} iterations" in out
    model = ChainCRF.load("model.crf")
    assert f"{len(model.coef_)} weights" in out
    assert model.coef_.any()
    assert not [name for name in snapshot() if name.startswith(".")]
    shown = finish(start("inspect", "model.crf", "--top", "1"))
    assert "interrupted" in shown[1].lower()
    assert finish(start("tag", "model.crf", "test.txt"))[0] == 0


def test_interrupted_before_training(start, snapshot):
    """While the file is read there is no model yet; the one that was there stays."""
    before = snapshot()
    os.mkfifo("slow")
    process = start("train", "slow", "-t", "template", "-m", "model.crf")
    with open("slow", "wb") as stream:
        stream.write(b"a x O\n\n" * 30_000)  # more than a pipe holds: on return, the file is being read
        process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, out) == (130, "")
    assert err == "crfkit: interrupted\n"
    os.unlink("slow")
    assert snapshot() == before


def test_interrupted_before_the_first_step(call, monkeypatch):
    """A model of zeros is no model so far: it does not replace a trained one."""

    def interrupt(iteration):
        raise KeyboardInterrupt

    before = Path("model.crf").read_bytes()
    monkeypatch.setattr(progress, "plain_lines", interrupt)
    outcome = call("train", "train.txt", "-t", "template", "-m", "model.crf")
    assert outcome.code == 130
    assert "interrupted" in outcome.out + outcome.err
    assert Path("model.crf").read_bytes() == before


def test_interrupted_tagging(start, workspace):
    process = start("tag", "model.crf")
    process.stdin.write(b"we\tx\nsaw\tx\n\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"we\tx\t")  # without the end of the input: it is streamed
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, err) == (130, "crfkit: interrupted\n")


def test_interrupted_tagging_keeps_the_output_file(start, snapshot):
    Path("o.txt").write_text("precious")
    before = snapshot()
    process = start("tag", "model.crf", "-o", "o.txt")
    process.stdin.write(b"we\tx\n\n" * 200_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 130
    assert snapshot() == before


# --- pipes and disks


def test_reader_goes_away(start):
    """`crfkit tag … | head -n 1`."""
    process = start("tag", "model.crf", *["train.txt"] * 40)
    assert process.stdout.readline().count(b"\t") == 3
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(PATIENCE) != 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments",
    ["tag model.crf test.txt", "eval model.crf test.txt", "inspect model.crf", "train train.txt -t template -q -m m"],
)
def test_no_space_for_the_output(start, arguments):
    with open("/dev/full", "wb") as full:
        process = start(*arguments.split(), stdout=full)
        err = process.stderr.read().decode()
    assert process.wait(PATIENCE) not in (0, 130)
    assert re.fullmatch(r"crfkit: error: .*No space left.*\n", err)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_no_space_for_the_log(fails):
    assert "No space left" in fails(
        "train", "train.txt", "-t", "template", "-m", "model.crf", "-q", "--log", "/dev/full"
    )


# --- terminals


def on_a_terminal(*args: str) -> tuple[int, str]:
    """(exit code, all that was shown)."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(
        [sys.executable, "-m", "crfkit", *args], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    shown, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            block = os.read(ours, 1 << 16)
        except OSError:  # Linux says that the other end is closed
            break
        if not block:
            break
        shown += block
    timer.cancel()
    os.close(ours)
    return process.wait(PATIENCE), shown.decode().replace("\r\n", "\n")


def test_progress_bar(workspace):
    code, shown = on_a_terminal("train", "train.txt", "-t", "template", "-m", "m.crf", "-i", "500")
    assert code == 0
    assert "━" in shown
    assert re.search(r"iteration \d+ of at most 500", shown)
    assert "‖gradient‖" not in shown  # the plain lines are for files and pipes
    assert shown.endswith("model written to m.crf\n")
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")  # the cursor is back


def test_no_progress_bar_when_quiet(workspace):
    code, shown = on_a_terminal("train", "train.txt", "-t", "template", "-m", "m.crf", "--quiet")
    assert code == 0
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 4


def test_error_on_a_terminal(workspace):
    Path("ragged").write_bytes(b"a b O\nc X\n")
    code, shown = on_a_terminal("train", "ragged", "-t", "template", "-m", "m.crf")
    assert code == 2
    assert "crfkit: error: ragged:2: 2 columns, but" in shown.splitlines()[-1]
    assert shown.rfind("\x1b[?25h") >= shown.rfind("\x1b[?25l")
