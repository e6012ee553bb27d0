"""How files are written and read: whole or not at all, with the right permissions, and independent of what follows."""

import multiprocessing
import os
import stat
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from crfkit.errors import DataError, ModelFileError
from crfkit.files import atomic as files
from crfkit.files import modelfile, temporary

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and locks of POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.crf"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def stray(path, digits="0123abcd"):
    """A temporary file as a killed process leaves it."""
    made = path.parent / f".{path.name}.{digits}{temporary.SUFFIX}"
    made.write_bytes(b"half")
    return made


# --- permissions


@posix
@pytest.mark.parametrize("bits", [0o600, 0o640, 0o644, 0o666])
def test_a_file_that_is_replaced_keeps_its_permissions(path, bits):
    path.write_bytes(b"old")
    path.chmod(bits)
    files.write(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", bits)


@posix
def test_new_files_have_the_permissions_that_the_umask_leaves(path):
    before = os.umask(0o027)
    try:
        files.write(path, b"new")
    finally:
        os.umask(before)
    assert mode(path) == 0o640


@posix
def test_the_umask_is_never_touched(path, monkeypatch):
    """Another thread that makes a file at that moment would make it with the wrong permissions."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was changed"))
    files.write(path, b"new")
    modelfile.write(path, "test", {}, {"w": np.zeros(3)})


@posix
def test_secrets_are_not_readable_while_they_are_written(path):
    path.write_bytes(b"old")
    path.chmod(0o600)
    with files.replacing(path) as stream:
        stream.write(b"secret")
        stream.flush()
        assert all(mode(p) == 0o600 for p in path.parent.iterdir())


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everything")
def test_write_protected_files_are_not_replaced(path):
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(ModelFileError, match=r"cannot write .*write-protected"):
        files.write(path, b"new")
    assert path.read_bytes() == b"old"


# --- what killed processes leave


@posix
def test_strays_are_removed_by_the_next_writer(path):
    stray(path)
    others = {stray(path.parent / "model.crf2"), path.parent / ".model.crf.0123abcd.tmp", path.parent / "0123abcd"}
    for other in others:
        other.write_bytes(b"")
    files.write(path, b"new")
    assert set(path.parent.iterdir()) == {path, *others}
    stray(path)
    files.check_writable(path)
    assert set(path.parent.iterdir()) == {path, *others}


@posix
def test_the_file_of_a_live_writer_is_no_stray(path):
    with files.replacing(path) as stream:
        stream.write(b"first")
        temporary.remove_strays(path)
        files.write(path, b"second")
        assert len(list(path.parent.iterdir())) == 2
    assert path.read_bytes() == b"first"
    assert list(path.parent.iterdir()) == [path]


def _write_many(path, n):
    for k in range(n):
        files.write(path, bytes([k]) * 5000)


@posix
def test_writers_in_several_processes_and_threads_do_not_disturb_each_other(path):
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    others = [context.Process(target=_write_many, args=(path, 60)) for _ in range(2)]
    others += [threading.Thread(target=_write_many, args=(path, 60)) for _ in range(2)]
    for other in others[:2]:
        other.start()
    for other in others[2:]:
        other.start()
    for other in others:
        other.join()
    assert [other.exitcode for other in others[:2]] == [0, 0]
    contents = path.read_bytes()
    assert contents == contents[:1] * 5000
    assert list(path.parent.iterdir()) == [path]


def test_long_names(tmp_path):
    path = tmp_path / ("é" * 120 + "m" * 12)  # 252 bytes
    stray_name = temporary._stem(path.name) + "0123abcd" + temporary.SUFFIX
    (tmp_path / stray_name).write_bytes(b"")
    files.write(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


# --- what cannot be written


def test_errors_keep_the_old_file(path):
    path.write_bytes(b"old")

    def failing():
        with files.replacing(path) as stream:
            stream.write(b"new")
            raise FileNotFoundError(2, "No such file or directory", "input")

    with pytest.raises(FileNotFoundError):  # an error of the block is its own
        failing()
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_loops_of_links_are_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for act in (lambda p: files.write(p, b""), files.check_writable):
        with pytest.raises(ModelFileError, match=r"cannot write .*symbolic links"):
            act(tmp_path / "a")
    with pytest.raises(DataError, match="symbolic links"):
        files.write(tmp_path / "a", b"", DataError)
    with pytest.raises(ModelFileError, match="cannot read"):
        files.read(tmp_path / "a")
    assert (tmp_path / "a").is_symlink()


def test_links_stay_links(tmp_path, path):
    path.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(path)
    files.write(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


# --- reading


@posix
def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    begin = time.monotonic()
    for bad in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "missing"):
        with pytest.raises(ModelFileError, match="cannot read"):
            files.read(bad)
        with pytest.raises(ModelFileError, match="cannot read"):
            modelfile.read(bad)
    assert time.monotonic() - begin < 1


@posix
def test_files_with_holes(path):
    """A terabyte that takes no place on the disk, and a few megabytes: neither is a model."""
    for size in (1 << 40, 1 << 24):
        with open(path, "wb") as stream:
            stream.truncate(size)
        begin = time.monotonic()
        with pytest.raises(ModelFileError):
            modelfile.read(path)
        assert time.monotonic() - begin < 1


def test_a_loaded_model_does_not_depend_on_its_file(path):
    w = np.arange(100_000.0)
    modelfile.write(path, "test", {}, {"w": w})
    read = modelfile.read(path)
    with open(path, "r+b") as stream:
        stream.write(bytes(1000))
        stream.truncate(500)  # a mapping would end the process with SIGBUS
    assert (read.tensors["w"] == w).all()
    assert not read.tensors["w"].flags.writeable


def test_a_model_that_is_being_overwritten_is_the_old_one_the_new_one_or_an_error(path, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WAIT", 0.006)
    blobs = []
    for k in range(2):
        modelfile.write(tmp_path / "new", "test", {}, {"w": np.full(200_000 + 1000 * k, float(k))})
        blobs.append((tmp_path / "new").read_bytes())
    path.write_bytes(blobs[0])
    stop = threading.Event()

    def overwrite():
        k = 0
        while not stop.is_set():
            k = 1 - k
            path.write_bytes(blobs[k])
            time.sleep(0.002)

    thread = threading.Thread(target=overwrite)
    thread.start()
    seen, refused = set(), 0
    end = time.monotonic() + 0.6
    try:
        while time.monotonic() < end:
            try:
                w = modelfile.read(path).tensors["w"]
            except ModelFileError:
                refused += 1
                continue
            assert len(w) == 200_000 + 1000 * int(w[0])
            assert (w == w[0]).all()
            seen.add(float(w[0]))
    finally:
        stop.set()
        thread.join()
    assert seen == {0.0, 1.0}


def test_a_file_that_looks_old_and_is_being_overwritten_is_read_again(tmp_path, monkeypatch):
    """`cp new.crf live.crf`: the first read sees the beginning of the new file."""
    monkeypatch.setattr(files, "WAIT", 0.0)
    path = tmp_path / "live"
    path.write_bytes(b"old")
    os.utime(path, (1, 1))

    def load():
        if path.read_bytes() == b"old":
            path.write_bytes(b"ne")
            raise ModelFileError("too short")
        if path.read_bytes() == b"ne":
            path.write_bytes(b"new")
            raise ModelFileError("too short")
        return path.read_bytes()

    assert files.patiently(path, load) == b"new"


def test_a_file_that_never_settles_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "busy"
    path.write_bytes(b"x" * 100)
    contents = files._contents

    def read_while_it_grows(stream, size):
        found = contents(stream, size)
        path.write_bytes(b"x" * (size + 1))
        return found

    monkeypatch.setattr(files, "_contents", read_while_it_grows)
    with pytest.raises(ModelFileError, match="it changes while it is read"):
        files.read(path)


def test_a_thread_that_cannot_start_is_not_needed(tmp_path, monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    path = tmp_path / "large"
    path.write_bytes(bytes(range(200)) * 10)
    monkeypatch.setattr(files, "PARALLEL", 100)
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", refuse)
    assert files.read(path).tobytes() == path.read_bytes()
