"""The version of crfkit, its kernels, its build and the packages around it, for bug reports."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from crfkit import __version__, _core
from crfkit._threads import count_threads
from crfkit.extras import PACKAGES

EXTRAS = {extra for _, extra in PACKAGES.values()}  # for users; there are others for developers


def show_versions() -> None:
    """Print the version of crfkit, of its kernels and build, of Python and of all packages that crfkit can use.

    Paste the output into a bug report. The same is in ``crfkit --version``, without the packages.

    >>> import crfkit
    >>> crfkit.show_versions()  # doctest: +ELLIPSIS
    crfkit ...
    kernels: ...
    threads: ...
    build: ...
    Python: ...
    <BLANKLINE>
    dependencies
    ...

    """
    print("\n".join(version_lines()))
    for title, packages in packages_by_extra().items():
        print(f"\n{title}")
        for name in packages:
            print(f"  {name}: {_installed(name)}")


def version_lines() -> list[str]:
    """Return the lines of ``crfkit --version``.

    Raise ParameterError if the environment variable CRFKIT_KERNELS names kernels that this machine does not run.
    """
    build_type, compiler, stable_abi = _core.build()
    python = "3.12 and later" if stable_abi else ".".join(platform.python_version_tuple()[:2])
    return [
        f"crfkit {__version__}",
        f"kernels: {_kernels()}",
        f"threads: {count_threads(None)}",
        f"build: {build_type}, {compiler}, for Python {python}",
        f"Python: {platform.python_version()}, {platform.system()} {platform.machine()}",
    ]


def packages_by_extra() -> dict[str, list[str]]:
    """Return the packages that crfkit depends on, and those of each of its extras for users.

    >>> packages_by_extra()["plots"]
    ['matplotlib']
    """
    found: dict[str, list[str]] = {"dependencies": []}
    for requirement in _requirements():
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        if name is not None and (extra is None or extra[1] in EXTRAS):
            found.setdefault(extra[1] if extra else "dependencies", []).append(name[0])
    return found


def _requirements() -> Iterator[str]:
    try:
        yield from requires("crfkit") or ()
    except PackageNotFoundError:  # the folder src is on the path, but nothing was installed
        return


def _kernels() -> str:
    others = [name for name in _core.available_kernels() if name != _core.default_kernels()]
    how = "set by CRFKIT_KERNELS; " if os.environ.get("CRFKIT_KERNELS", "auto") not in ("", "auto") else ""
    return f"{_core.default_kernels()} ({how}also available: {', '.join(others) or 'none'})"


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
