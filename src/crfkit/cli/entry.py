"""The entry point of the commands: imports as little as possible before Ctrl-C is handled.

`crfkit tag` runs at once, all other commands run through typer.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module


def main() -> None:
    """Run `crfkit …`."""
    begin("crfkit")
    from crfkit.cli.quick import quick_command
    from crfkit.cli.runtime.running import run

    command = quick_command(sys.argv[1:])
    if command is not None:
        run(command)
    from crfkit.cli.main import main as run_all

    run_all()


def learn() -> None:
    """Run `crfkit-learn`."""
    begin("crfkit-learn")
    import_module("crfkit.compat.crfpp.learn").main()


def test() -> None:
    """Run `crfkit-test`."""
    begin("crfkit-test")
    import_module("crfkit.compat.crfpp.tag").main()


def wapiti() -> None:
    """Run `crfkit-wapiti`."""
    begin("crfkit-wapiti")
    import_module("crfkit.compat.wapiti.command").entry()


def begin(program: str) -> None:
    """Prepare this process for a command: until it runs, Ctrl-C ends the process with one line and exit code 130.

    Where the memory is limited, OpenBLAS gets one thread: if it cannot start others it sends the process a SIGINT.
    """

    def stop(*_: object) -> None:
        try:
            os.write(2, f"{program}: interrupted\n".encode())
        finally:
            os._exit(130)  # an exception would get lost, or become another one, inside of imports

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    while True:  # a closed standard stream leaves its number to the next file that is opened, such as a model
        handle = os.open(os.devnull, os.O_RDWR)
        if handle > 2:
            os.close(handle)
            break
    if os.name == "posix":
        import resource

        if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import crfkit.cli.runtime.signals as signals

    signals.own_process = True
