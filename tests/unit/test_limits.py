"""Limits: their defaults, how the environment and Python raise them, and what the errors say."""

import numpy as np
import pytest

from crfkit import ChainCRF, GraphCRF, Template
from crfkit._threads import MAX_THREADS, count_threads
from crfkit.compat.crfpp import learn
from crfkit.compat.wapiti import command
from crfkit.errors import LimitError, ParameterError
from crfkit.files import limits


def test_an_error_says_how_to_raise_the_limit(monkeypatch):
    with pytest.raises(LimitError, match=r"needs 7.* CRFKIT_LIMITS=pixels=180000000$"):
        limits.check("pixels", 176_890_000, "the image needs 7")
    monkeypatch.setenv("CRFKIT_LIMITS", "pixels=180000000")
    limits.check("pixels", 176_890_000, "the image needs 7")


def test_memory_grows_with_the_file():
    limits.check_memory(1_000_000_000, "a table")
    with pytest.raises(LimitError, match="1 GB of memory"):
        limits.check_memory(1_000_000_001, "a table")
    limits.check_memory(1_000_000_064, "a table", file_size=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory=2GB", 2 * 10**9),
        ("pixels=3 memory = 2 GB", 2 * 10**9),
        ("memory=2e9, line=5", 2 * 10**9),
        (" memory=1.5k ", 1500),
    ],
)
def test_the_environment(monkeypatch, text, expected):
    monkeypatch.setenv("CRFKIT_LIMITS", text)
    assert limits.current().memory == expected
    with limits.raised(memory="7 TB"):
        assert limits.current().memory == 7 * 10**12
    assert limits.current().memory == expected


@pytest.mark.parametrize("text", ["memory", "memory=", "memory=-1", "memory=big", "mem=1", "memory=1e999", "memory=."])
def test_wrong_limits_are_named(monkeypatch, text):
    monkeypatch.setenv("CRFKIT_LIMITS", text)
    with pytest.raises(ParameterError, match="CRFKIT_LIMITS"):
        limits.current()


def test_threads_that_no_machine_has(tmp_path, capfd, monkeypatch):
    assert count_threads(MAX_THREADS) == MAX_THREADS
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    crf = ChainCRF().fit(X, y)
    crf.save(tmp_path / "m.crf")
    for call in (
        lambda: ChainCRF(n_threads=100_000).fit(X, y),
        lambda: ChainCRF.load(tmp_path / "m.crf", n_threads=100_000).predict(X),
        lambda: GraphCRF(n_threads=100_000).fit(np.array([[0.0], [1.0]]), np.array([[0, 1], [1, 0]])),
    ):
        with pytest.raises(ParameterError, match="n_threads is 100000; at most 1024 threads are supported"):
            call()
    (tmp_path / "t").write_text("U:%x[0,0]\nB\n")
    (tmp_path / "d").write_text("a A\nb B\n")
    template, data, model = (str(tmp_path / name) for name in ("t", "d", "m"))
    monkeypatch.setattr("sys.argv", ["crfkit-learn", "-p", "100000", template, data, model])
    with pytest.raises(SystemExit, match="255"):
        learn.main()
    assert command.main(["train", "-t", "100000", "-p", template, data, model]) != 0
    assert capfd.readouterr().err.count("at most 1024 threads are supported") == 2


def test_blocks_that_overlap_leave_in_any_order():
    """As those of two threads do."""
    first, second = limits.raised(memory=10), limits.raised(memory=20)
    with first:
        second.__enter__()
    assert limits.current().memory == 20
    second.__exit__(None, None, None)
    assert limits.current() == limits.Limits()


def test_templates_without_end():
    with pytest.raises(LimitError, match=r"the template has 10,001 macros, .*CRFKIT_LIMITS=macros=11000$"):
        Template("U:" + "%x[0,0]" * 10_001)
