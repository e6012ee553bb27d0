"""Run a command: show errors, warnings and interruptions as lines on stderr and as exit codes."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from crfkit.cli.runtime import signals, streams
from crfkit.cli.runtime.naming import on_command_line
from crfkit.errors import CrfkitError, ParameterError
from crfkit.wording import printable


def run(
    command: Callable[[], object],
    usage_error: type[Exception] | tuple[()] = (),
    program: str = "crfkit",
    failure: int = 2,
) -> NoReturn:
    """Run a command. Errors are one line on stderr and exit code `failure`.

    Ctrl-C is exit code 130, SIGTERM 143, and a reader of the output that has ended 141.
    """
    with _named(program, failure), streams.dependable():
        _run(command, usage_error)


def _run(command: Callable[[], object], usage_error: type[Exception] | tuple[()]) -> NoReturn:
    code: object = None
    try:
        with signals.Interrupts() as interrupts, _plain_warnings():
            code = command()
            sys.stdout.flush()
    except usage_error as error:
        message = error.format_message()  # type: ignore[attr-defined]
        if type(error).__name__ == "NoArgsIsHelpError":
            print(message)
            sys.exit(2)
        _fail(f"{message} (crfkit --help, crfkit COMMAND --help)")
    except CrfkitError as error:
        _fail(_told(error))
    except MemoryError:
        _fail(OUT_OF_MEMORY)
    except KeyboardInterrupt:
        code = 130
    except (BrokenPipeError, streams.NoReaderError):
        discard_output()
        sys.exit(BROKEN_PIPE)
    except ImportError as error:
        if interrupts.first is not None:  # which some native modules report in this way
            code = 130
        elif _lacks_memory(error):
            _fail(OUT_OF_MEMORY)
        else:
            raise
    except OSError as error:
        discard_output()
        _fail(described(error))
    if code == 130 or interrupts.first is not None:
        code = interrupts.code
        print(f"{_program[0]}: {interrupts.word}", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def prepare_memory() -> None:
    """Let OpenBLAS take its buffer now if memory is limited: later it would end the process if there is none."""
    if os.name != "posix":
        return
    import resource

    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import numpy as np

    np.empty(BLAS_BUFFER, dtype=np.uint8)  # raises MemoryError, OpenBLAS does not
    np.ones((64, 64)) @ np.ones((64, 64))


def _lacks_memory(error: ImportError) -> bool:
    """Return whether a library could not be loaded because there was no memory for it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or "failed to map segment" in str(cause) or "allocate memory" in str(cause):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def described(error: OSError) -> str:
    """Return the error of a file as a sentence.

    >>> described(FileNotFoundError(2, "No such file or directory", "train.txt"))
    'train.txt: No such file or directory'
    >>> described(OSError(28, "No space left on device"))
    'cannot write the output: No space left on device'
    """
    text = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {text}"
    return f"cannot write the output: {text}" if error.errno in _DISK else text


BLAS_BUFFER = 160_000_000  # bytes, and a little for everything else
BROKEN_PIPE = 141  # 128 + SIGPIPE: what a shell shows for programs that end when nobody reads their output
OUT_OF_MEMORY = (
    "out of memory; use fewer attributes (train: raise --min-frequency) or fewer rows, edges and features (graph)"
)
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO)

_program = ("crfkit", 2)  # the name in messages, the exit code of errors


@contextlib.contextmanager
def _named(program: str, failure: int) -> Any:
    global _program
    before, _program = _program, (program, failure)
    try:
        yield
    finally:
        _program = before


@contextlib.contextmanager
def _plain_warnings() -> Any:
    """Show warnings as one line each, without the line of source code that raised them."""

    def show(message: Warning | str, *place: object, **more: object) -> None:
        print(f"{_program[0]}: warning: {printable(str(message))}", file=sys.stderr, flush=True)

    before = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def _told(error: CrfkitError) -> str:
    """Return the message of an error, which names an option as `crfkit` writes it."""
    option = error.option if isinstance(error, ParameterError) and _program[0] == "crfkit" else None
    return str(error) if option is None else f"{on_command_line(option)}{error.problem}"


def _fail(message: str) -> NoReturn:
    name, code = _program
    print(f"{name}: error: {printable(message)}", file=sys.stderr)
    sys.exit(code)


def discard_output() -> None:
    """Redirect standard output to nowhere, so that the flush at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
