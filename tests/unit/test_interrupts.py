"""Ctrl-C waits where a block must not be cut off, and is delivered at its end."""

import os
import threading

import numpy as np
import pytest
from recipes.toy_loss import ToyLoss

from crfkit import interrupts
from crfkit.files import modelfile
from crfkit.files.atomic import check_writable, replacing
from crfkit.interrupts import arrive, deferred, keep_result, welcome
from crfkit.penalties import L2
from crfkit.result import Status
from crfkit.solvers import LBFGS


@pytest.fixture(autouse=True)
def clean():
    keep_result(False)
    yield
    assert interrupts._state.deferred == 0
    keep_result(False)


def test_a_signal_interrupts_at_once():
    with pytest.raises(KeyboardInterrupt):
        arrive()
    with deferred():  # and only once
        pass


def test_a_deferred_signal_comes_at_the_end_of_the_outermost_block():
    done = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with deferred():
            with deferred():
                arrive()
                done.append("inner")
            done.append("outer")
        done.append("after")
    assert done == ["inner", "outer"]


def test_an_error_of_the_block_goes_first():
    with pytest.raises(OSError, match="disk full"), deferred():  # noqa: PT012
        arrive()
        raise OSError("disk full")
    with pytest.raises(KeyboardInterrupt), deferred():
        pass


def test_a_kept_result_is_only_interrupted_where_that_is_welcome():
    keep_result()
    arrive()
    done = []
    with pytest.raises(KeyboardInterrupt), welcome():
        done.append("a loop that must not begin")
    with welcome():
        with deferred():
            done.append("a checkpoint")
        with pytest.raises(KeyboardInterrupt), deferred():  # noqa: PT012
            arrive()
            done.append("another one")
        arrive()  # the first one has ended the loop: the second waits
        done.append("the end of the loop")
    assert done == ["a checkpoint", "another one", "the end of the loop"]


def test_welcome_alone_changes_nothing():
    with pytest.raises(KeyboardInterrupt), welcome():
        arrive()
    with pytest.raises(KeyboardInterrupt):
        arrive()


def test_other_threads_do_not_count():
    inside, leave = threading.Event(), threading.Event()

    def write():
        with deferred(), welcome():
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=write)
    other.start()
    assert inside.wait(10)
    with pytest.raises(KeyboardInterrupt):
        arrive()
    leave.set()
    other.join()


# --- the places


def test_the_loop_of_solvers_ends_with_the_weights_so_far():
    def interrupt(iteration):
        keep_result()
        if iteration.row.iteration == 2:
            arrive()

    loss = ToyLoss.example()
    result = LBFGS(max_iterations=50).minimize(loss, L2(0.1), np.zeros(loss.size), [interrupt])
    assert result.status is Status.INTERRUPTED
    assert result.iterations == 2


def test_a_model_file_is_written_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(modelfile, "_text_checksum", lambda text, real=modelfile._text_checksum: arrive() or real(text))
    with pytest.raises(KeyboardInterrupt):
        modelfile.write(tmp_path / "m.crf", "test", {}, {})
    monkeypatch.undo()
    assert modelfile.read(tmp_path / "m.crf").kind == "test"


@pytest.mark.parametrize("write", [check_writable, lambda path: replacing(path).__enter__()])
def test_no_temporary_file_stays(tmp_path, monkeypatch, write):
    monkeypatch.setattr(os, "urandom", lambda n, real=os.urandom: arrive() or real(n))
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "m.crf")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
