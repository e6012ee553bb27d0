"""Standard streams that are closed, broken, full, unbuffered or non-blocking, and signals that have to wait."""

import io
import os
import signal
import sys

import pytest

from crfkit.cli.runtime import signals, streams
from crfkit.cli.runtime.running import run
from crfkit.errors import DataError


def test_a_closed_stderr_does_not_end_training(call, workspace, monkeypatch):
    (workspace / "model.crf").unlink()
    monkeypatch.setattr(sys, "stderr", None)
    assert call("train", "train.txt", "-t", "template", "-m", "model.crf").code == 0
    assert (workspace / "model.crf").exists()


@pytest.mark.parametrize("arguments", ["inspect model.crf", "tag model.crf test.txt", "eval model.crf test.txt"])
def test_a_closed_stdout_is_an_error(call, monkeypatch, arguments):
    monkeypatch.setattr(sys, "stdout", None)
    outcome = call(*arguments.split())
    assert outcome.code == 2
    assert "standard output is closed" in outcome.err


def test_links_in_a_circle(fails, workspace):
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")
    assert "symbolic links" in fails("train", "train.txt", "-t", "template", "-m", "a")
    assert "symbolic links" in fails("tag", "model.crf", "test.txt", "-o", "a")


def written(monkeypatch, kind, handle, unbuffered):
    """A stream as `dependable` makes it of one that Python has opened."""
    raw = io.FileIO(handle, "wb", closefd=False)
    given = io.TextIOWrapper(raw if unbuffered else io.BufferedWriter(raw), write_through=unbuffered)
    monkeypatch.setattr(sys, f"__{kind}__", given)
    monkeypatch.setattr(sys, kind, given)
    return given


@pytest.mark.parametrize("unbuffered", [False, True])
def test_short_writes_are_completed(tmp_path, monkeypatch, unbuffered):
    with open(tmp_path / "out", "wb") as out:
        written(monkeypatch, "stdout", out.fileno(), unbuffered)
        monkeypatch.setattr(streams._Patient, "write", lambda self, data: io.FileIO.write(self, bytes(data)[:10]))
        with streams.dependable():
            print("x" * 100_000, flush=True)
            sys.stdout.buffer.write(b"y" * 1000)
            sys.stdout.flush()
    assert (tmp_path / "out").read_bytes() == b"x" * 100_000 + b"\n" + b"y" * 1000


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_stderr_takes_everything(monkeypatch):
    with open("/dev/full", "wb") as full:
        written(monkeypatch, "stderr", full.fileno(), False)
        with streams.dependable():
            print("lost", file=sys.stderr, flush=True)


def test_a_closed_output_has_no_buffer():
    with pytest.raises(DataError, match="closed"):
        streams.ClosedOutput().buffer  # noqa: B018


# --- signals


def ended(command):
    with pytest.raises(SystemExit) as done:
        run(command)
    return done.value.code


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_signals_end_a_command(capsys, name, code):
    before = signal.getsignal(getattr(signal, name))
    assert ended(lambda: signal.raise_signal(getattr(signal, name))) == code
    assert capsys.readouterr().err == f"crfkit: {signals.WORDS[name]}\n"
    assert signal.getsignal(getattr(signal, name)) == before


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_signals_wait_until_native_modules_are_loaded(monkeypatch):
    loaded = []

    def load(name):
        loaded.append(name)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(signals, "import_module", load)

    def command():
        signals.load_native()
        pytest.fail("the signal was lost")

    assert ended(command) == 130
    assert loaded == ["numpy", "crfkit._core"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_that_becomes_an_import_error():
    """As in C code of NumPy, which replaces the exception."""

    def command():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("Importing the numpy C-extensions failed") from None

    assert ended(command) == 130


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_signals_wait_until_the_result_is_written():
    steps = []

    def command():
        signals.result_is_kept()
        signal.raise_signal(signal.SIGINT)
        steps.append("written")

    assert ended(command) == 130
    assert steps == ["written"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_signals_are_not_lost_in_destructors():
    class Pressed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def command():
        Pressed()
        signal.sigtimedwait([], 5)
        pytest.fail("the signal was lost")

    assert ended(command) == 130
