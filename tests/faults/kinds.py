"""What can go wrong around a command, and what must hold then. Each kind returns a line of figures."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
from workshop import Ended, Workshop, moments, no_traceback, require

from crfkit import ChainCRF

RESUMED = ["auto", "lbfgs", "owlqn", "sgd", "averaged-perceptron", "arow", "tron"]


def kills(shop: Workshop, n: int) -> str:
    """SIGKILL at random moments: the old or the new model is there, and the next run leaves no strays."""
    whole = shop.run(*shop.train, "-q")
    require(whole.code == 0, whole)
    left = Counter[str]()
    for at in moments(shop, n, whole.seconds):
        ended = shop.run(*shop.train, at=at)
        require(ended.code in (0, -signal.SIGKILL), ended)
        shop.check_model()
        shop.check_checkpoint()
        left["killed"] += ended.code != 0
        left["strays"] += bool(shop.strays())
    ended = shop.run(*shop.train, "-q")
    require(ended.code == 0, ended)
    require(not shop.strays(), shop.strays())
    shop.check_model()
    counts = f"{n} runs, {left['killed']} killed, {left['strays']} left a temporary file"
    return f"{counts}; 0 lost models, 0 strays at the end"


def kills_while_saving(shop: Workshop, n: int) -> str:
    """SIGKILL in a loop that does nothing but save: most of them hit a file that is being written."""
    program = (
        "import os, sys, numpy as np\n"
        "from crfkit import ChainCRF\n"
        "crf = ChainCRF.load('model.crf')\n"
        "os.write(1, b'.')\n"
        "while True: crf.save('model.crf')\n"
    )
    require(shop.run(*shop.train, "-q").code == 0, "training failed")
    most = 0
    for _ in range(n):
        process = subprocess.Popen([sys.executable, "-c", program], cwd=shop.folder, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(1)
        time.sleep(shop.random.uniform(0.0, 0.03))
        process.kill()
        process.communicate()
        shop.check_model()
        most = max(most, len(shop.strays()))
    require(most <= 1, f"{most} temporary files: killed runs do not tidy up after each other")
    ChainCRF.load(shop.model).save(shop.model)
    require(not shop.strays(), shop.strays())
    return f"{n} kills; 0 lost models, at most {most} temporary file at a time, 0 strays at the end"


def interrupts(shop: Workshop, n: int, which: signal.Signals = signal.SIGINT) -> str:
    """Ctrl-C at random moments: exit code 130, or 0 when it had finished; no traceback; no strays."""
    whole = shop.run(*shop.train, "-q")
    codes = Counter[int]()
    for k, at in enumerate(moments(shop, n, whole.seconds)):
        if k % 3 == 0:
            shop.forget()
            at *= 0.5  # of these, more during imports
        ended = shop.run(*shop.train, at=at, signal_=which)
        no_traceback(ended)
        # SIGTERM before the command runs ends the process as usual; a shell shows 143 for that, too
        require(ended.code in (0, 128 + which) or (which == signal.SIGTERM and ended.code == -which), ended)
        if ended.code == 0 or b"model written" in ended.out:
            require(shop.model.exists(), ended)
        shop.check_model(may_be_missing=True)
        shop.check_checkpoint()
        require(not shop.strays(), shop.strays())
        codes[ended.code] += 1
    require(codes.total() > codes[0] or n < 10, f"none of {n} signals had an effect: are they ignored?")
    return f"{n} signals, exit codes {dict(codes)}; 0 tracebacks, 0 lost models"


def terminations(shop: Workshop, n: int) -> str:
    """SIGTERM, likewise with exit code 143."""
    return interrupts(shop, n, signal.SIGTERM)


def full_disks(shop: Workshop, n: int) -> str:
    """No space for models, checkpoints and output: exit code 2, the old files stay."""
    require(shop.run(*shop.train, "-q").code == 0, "training failed")
    model, checkpoint = shop.model.read_bytes(), shop.checkpoint.read_bytes()
    failed = 0
    for _ in range(n):
        limit = {resource.RLIMIT_FSIZE: shop.random.randrange(100, 2 * len(model))}
        ended = shop.run(*shop.train, limits=limit)
        no_traceback(ended)
        require(ended.code in (0, 2), ended)
        require(ended.code == 0 or "cannot write" in ended.err, ended)
        shop.check_model()
        shop.check_checkpoint()
        require(not shop.strays(), shop.strays())
        failed += ended.code != 0
        shop.model.write_bytes(model)
        shop.checkpoint.write_bytes(checkpoint)
        _check_output(shop)
    for arguments in (["tag", "model.crf", "test.txt"], ["inspect", "model.crf"]):
        for environment in ({}, {"PYTHONUNBUFFERED": "1"}):
            with open("/dev/full", "wb") as full:
                process = shop.start(*arguments, stdout=full.fileno(), environment=environment)
                _, err = process.communicate(timeout=60)
            require(process.returncode == 2 and b"No space left" in err, (process.returncode, err))
    return f"{n} runs, {failed} of them failed with a sentence; 0 lost models, 0 silent halves"


def _check_output(shop: Workshop) -> None:
    """Tag into a file that may not grow: all of the output and exit code 0, or an error."""
    for environment in ({}, {"PYTHONUNBUFFERED": "1"}):
        limit = {resource.RLIMIT_FSIZE: shop.random.randrange(1, 40_000)}
        with open(shop.folder / "out.txt", "wb") as out:
            process = shop.start(
                "tag", "model.crf", "test.txt", stdout=out.fileno(), limits=limit, environment=environment
            )
            _, err = process.communicate(timeout=60)
        lines = (shop.folder / "out.txt").read_bytes().count(b"\n")
        whole = (shop.folder / "test.txt").read_bytes().count(b"\n")
        require(process.returncode == (0 if lines == whole else 2), (process.returncode, lines, whole, err))


def read_only_targets(shop: Workshop, n: int) -> str:
    """Folders that cannot be written to, links that lead nowhere, directories in the way: exit code 2 at once."""
    (shop.folder / "a").symlink_to("b")
    (shop.folder / "b").symlink_to("a")
    (shop.folder / "directory").mkdir(exist_ok=True)
    targets = ["missing/m.crf", "a", "directory", "/dev/null", "/proc/m.crf", "train.txt/m.crf"]
    for target in targets:
        train = [target if word == "model.crf" else word for word in shop.train]
        ended = shop.run(*train)
        no_traceback(ended)
        require(ended.code == 2 and ended.err.startswith("crfkit: error: cannot write"), ended)
        require("iteration" not in ended.err, ended)  # before training, not after it
        shop.run(*shop.train, "-q")
        ended = shop.run("tag", "model.crf", "test.txt", "-o", target)
        require(ended.code == (0 if target == "/dev/null" else 2), ended)
        no_traceback(ended)
    return f"{len(targets)} targets, refused before training"


def memory_limits(shop: Workshop, n: int) -> str:
    """A limit of the address space: exit code 0, or 2 and "out of memory"; never "interrupted"."""
    require(shop.run(*shop.train, "-q").code == 0, "training failed")
    codes = Counter[int]()
    for k in range(n):
        limit = {resource.RLIMIT_AS: int((120 + 380 * k / max(n - 1, 1)) * 1e6)}
        arguments = shop.train if k % 2 else ["tag", "model.crf", "test.txt"]
        ended = shop.run(*arguments, limits=limit)
        no_traceback(ended)
        require(ended.code == 0 or (ended.code == 2 and "memory" in ended.err), ended)
        shop.check_model()
        require(not shop.strays(), shop.strays())
        codes[ended.code] += 1
    require(codes[0], "nothing worked")
    return f"{n} limits, exit codes {dict(codes)}; 0 tracebacks"


def broken_pipes(shop: Workshop, n: int) -> str:
    """Readers that go away, and standard streams that are closed."""
    require(shop.run(*shop.train, "-q").code == 0, "training failed")
    many = ["test.txt"] * 30
    commands = [["tag", "model.crf", *many], ["convert-tags", "--from", "iob2", "--to", "bilou", "train.txt"]]
    for arguments in commands:
        for environment in ({}, {"PYTHONUNBUFFERED": "1"}):
            process = shop.start(*arguments, environment=environment)
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            err = process.stderr.read()
            require(process.wait(60) == 141 and err == b"", (arguments, process.returncode, err))
            process.stderr.close()
    for where in ("2>&-", "2>/dev/full", "2>&1 >/dev/null | true", "0<&- 2>&-"):
        shop.forget()
        launch = f"exec {sys.executable} -m crfkit {' '.join(shop.train)} {where}"
        subprocess.run(["sh", "-c", launch], cwd=shop.folder, stdout=subprocess.PIPE, check=False, timeout=60)
        for _ in range(600):  # a shell does not wait for the first part of a pipe
            if shop.model.exists():
                break
            time.sleep(0.1)
        shop.check_model()
        shop.check_checkpoint()
    for arguments in (["tag", "model.crf", "test.txt"], ["inspect", "model.crf"]):
        done = subprocess.run(
            ["sh", "-c", f"exec {sys.executable} -m crfkit {' '.join(arguments)} >&-"],
            cwd=shop.folder, stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip
        require(done.returncode == 2 and b"standard output is closed" in done.stderr, done)
    _check_slow_pipe(shop)
    return "4 readers that went away: 141; 4 kinds of broken stderr: model written; closed stdout: an error"


def _check_slow_pipe(shop: Workshop) -> None:
    """A pipe that somebody has made non-blocking, and whose reader is slow."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    process = shop.start("tag", "model.crf", *["test.txt"] * 30, stdout=theirs)
    os.close(theirs)
    time.sleep(0.5)
    with open(ours, "rb") as stream:
        got = stream.read()
    _, err = process.communicate(timeout=60)
    whole = 30 * (shop.folder / "test.txt").read_bytes().count(b"\n")
    require(process.returncode == 0 and got.count(b"\n") == whole, (process.returncode, got.count(b"\n"), whole, err))


def overwriting(shop: Workshop, n: int) -> str:
    """`cp new.crf live.crf` in a loop while another process loads and predicts: old, new or an error; no crash."""
    require(shop.run(*shop.train, "-q").code == 0, "training failed")
    shutil.copy(shop.model, shop.folder / "first.crf")
    require(shop.run(*shop.train, "-q", "--min-frequency", "2").code == 0, "training failed")
    shutil.copy(shop.model, shop.folder / "second.crf")
    program = (
        "import sys, time\n"
        "from crfkit import ChainCRF\n"
        "from crfkit.errors import CrfkitError\n"
        "good = bad = 0\n"
        f"end = time.monotonic() + {n / 20}\n"
        "while time.monotonic() < end:\n"
        "    try:\n"
        "        crf = ChainCRF.load('live.crf')\n"
        "        assert len(crf.predict([[('we', 'x'), ('saw', 'x')]])[0]) == 2\n"
        "        good += 1\n"
        "    except CrfkitError:\n"
        "        bad += 1\n"
        "print(good, bad)\n"
    )
    shutil.copy(shop.folder / "first.crf", shop.folder / "live.crf")
    stop, copies = threading.Event(), [0]

    def overwrite() -> None:
        while not stop.is_set():
            new = ("first.crf", "second.crf")[copies[0] % 2]
            with open(shop.folder / new, "rb") as source, open(shop.folder / "live.crf", "wb") as target:
                shutil.copyfileobj(source, target, 4096)
            copies[0] += 1
            time.sleep(0.003)

    thread = threading.Thread(target=overwrite)
    thread.start()
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=shop.folder, capture_output=True, check=False, timeout=120
        )
    finally:
        stop.set()
        thread.join()
    require(done.returncode == 0, done)
    good, bad = map(int, done.stdout.split())
    require(good > 0, "no load succeeded")
    return f"{copies[0]} overwritings, {good} loads succeeded, {bad} refused; 0 crashes"


def resumed(shop: Workshop, n: int) -> str:
    """Runs that are killed or interrupted and resumed end at the objective of a run that was not."""
    worst, cuts = 0.0, 0
    for solver in RESUMED[: max(2, n // 2)]:
        options = ["--solver", solver, "-q"] + (["--l1", "0.5"] if solver == "owlqn" else [])
        train = [*shop.train, *options]
        shop.forget()
        whole = shop.run(*train)
        require(whole.code == 0, whole)
        value, w = _outcome(shop)
        for which in (signal.SIGKILL, signal.SIGINT):
            shop.forget()
            cut: Ended | None = None
            for attempt in range(8):
                at = shop.random.uniform(0.4, 0.95) * whole.seconds
                cut = shop.run(*train, *_resume(shop), at=at, signal_=which)
                require(cut.code in (0, -which, 128 + which), cut)
                cuts += cut.code != 0
                if cut.code == 0 or attempt == 2:
                    break
            rest = shop.run(*train, *_resume(shop))
            require(rest.code == 0, rest)
            again, w_again = _outcome(shop)
            worst = max(worst, abs(again - value) / max(abs(value), 1e-300))
            require(worst <= 1e-9, f"{solver}: {again!r} after a cut, {value!r} without")
            require(w.shape == w_again.shape, "the weights are others")
    return f"{cuts} cuts; the objectives differ by at most {worst:.1e} (relative)"


def _resume(shop: Workshop) -> list[str]:
    return ["--resume", "run.ckpt"] if shop.checkpoint.exists() else []


def _outcome(shop: Workshop) -> tuple[float, np.ndarray]:
    model = ChainCRF.load(shop.model)
    return float(model.model_.training["value"]), model.coef_


KINDS = {
    "kills": kills,
    "kills while saving": kills_while_saving,
    "SIGINT": interrupts,
    "SIGTERM": terminations,
    "full disks": full_disks,
    "read-only targets": read_only_targets,
    "memory limits": memory_limits,
    "broken pipes": broken_pipes,
    "overwritten in place": overwriting,
    "resumed": resumed,
}
