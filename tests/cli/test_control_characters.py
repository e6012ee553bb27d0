"""Names with control characters: the terminal does not obey them, and formats are not broken by them."""

import io
import json
import sys
from contextlib import suppress

import pytest

from crfkit import ChainCRF, Template
from crfkit.cli.main import main
from crfkit.cli.runtime.output import OnTerminal
from crfkit.compat.wapiti.command import main as wapiti
from crfkit.errors import DataError
from crfkit.wording import printable

CLEAR = "\x1b[2J"


@pytest.fixture
def model(tmp_path):
    def write(label):
        path = tmp_path / "m.crf"
        crf = ChainCRF(Template("U00:%x[0,0]\n")).fit([[["a"], ["b"]]], [[label, "O"]])
        crf.save(path)
        return path

    return write


def test_inspect_shows_escapes(call, model):
    done = call("inspect", model("B-" + CLEAR))
    assert done.code == 0
    assert "\x1b" not in done.out
    assert r"B-\x1b[2J" in done.out


def test_errors_show_escapes(call, tmp_path):
    done = call("inspect", tmp_path / f"{CLEAR}.crf")
    assert done.code == 2
    assert "\x1b" not in done.err
    assert r"\x1b[2J" in done.err


@pytest.mark.parametrize("options", [(), ("--nbest", 2)])
def test_a_label_that_ends_the_line_is_refused(call, model, tmp_path, options):
    text = tmp_path / "x.txt"
    text.write_text("a\nb\n")
    path = model("A\nB")
    done = call("tag", path, text, *options)
    assert done.code == 2
    assert "has a line end" in done.err
    assert "--json" in done.err
    done = call("tag", path, text, "--json")
    assert json.loads(done.out)["labels"] == ["A\nB", "O"]


def test_tagging_from_python_refuses_it_too(model, tmp_path):
    text = tmp_path / "x.txt"
    text.write_text("a\n")
    with pytest.raises(DataError, match="line end"):
        list(ChainCRF.load(model("A\rB")).model_.tag_columns(text))


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_results_on_a_terminal_show_escapes_and_files_keep_every_byte(model, tmp_path, monkeypatch, terminal):
    path, text = model("B-" + CLEAR), tmp_path / "x.txt"
    text.write_text("a\nb\n")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", (Terminal if terminal else io.TextIOWrapper)(shown, encoding="utf-8"))
    monkeypatch.setattr(sys, "argv", ["crfkit", "tag", str(path), str(text)])
    with suppress(SystemExit):
        main()
    sys.stdout.flush()
    assert shown.getvalue() == ("a\tB-" + (r"\x1b[2J" if terminal else CLEAR) + "\nb\tO\n\n").encode()


@pytest.mark.parametrize("text", ["plain\tनमस्ते 👩\u200d👧\r\n", "a\x07b\rc\x9b2J\u202ed\u2066e\x7f\n"])
def test_what_a_terminal_shows_is_what_messages_show(text):
    stream = io.BytesIO()
    assert OnTerminal(stream).write(text.encode()) == len(text.encode())
    assert stream.getvalue().decode().replace("\r\n", "\n") == printable(text.replace("\r\n", "\n"))


def test_errors_of_wapitis_command_show_escapes(tmp_path, capfd):
    assert wapiti(["label", "-m", str(tmp_path / CLEAR), str(tmp_path / "x")]) == 1
    assert r"\x1b[2J" in capfd.readouterr().err


def test_printable():
    assert printable("नमस्ते\tx\ny👩\u200d👧") == "नमस्ते\tx\ny👩\u200d👧"
    assert printable("a\u202eb\x9b\x07") == r"a\u202eb\x9b\x07"
    assert printable("B-\ud800") == r"B-\ud800"
