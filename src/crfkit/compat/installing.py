"""Put crfkit in the place of pycrfsuite and sklearn_crfsuite for the running program.

Packages that use these modules then run on crfkit without being changed, and pickles of ``sklearn_crfsuite.CRF`` become
crfkit's with their model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from crfkit.warn import warn_caller

MODULES = {
    "pycrfsuite": ("_pycrfsuite", "_logparser", "_dumpparser"),
    "sklearn_crfsuite": ("estimator", "metrics", "utils", "scorers", "trainer", "compat", "_fileresource"),
}

_replaced: dict[str, ModuleType] | None = None  # what stood in sys.modules before; None while nothing is installed


def install() -> None:
    """Let ``import pycrfsuite`` and ``import sklearn_crfsuite`` give crfkit's modules from now on.

    Call it before anything imports them: what was imported before goes on with CRFsuite, and there is a warning.

    >>> from crfkit.compat import install, uninstall
    >>> install()
    >>> from sklearn_crfsuite import CRF
    >>> CRF.__module__
    'crfkit.compat.sklearn_crfsuite.estimator'
    >>> uninstall()
    """
    global _replaced
    if _replaced is not None:
        return
    ours = _modules()
    _replaced = {name: module for name, module in sys.modules.items() if name.split(".")[0] in MODULES}
    early = sorted(name for name in _replaced if name in MODULES)
    for name in _replaced:
        del sys.modules[name]
    sys.modules.update(ours)
    if early:
        one = len(early) == 1
        warn_caller(
            f"{' and '.join(early)} {'was' if one else 'were'} imported before crfkit.compat.install(): code that "
            f"already holds {'it' if one else 'them'} goes on with CRFsuite; call install() first",
            UserWarning,
        )


def uninstall() -> None:
    """Take crfkit's modules away again and put back those that stood there before."""
    global _replaced
    if _replaced is None:
        return
    for name, module in _modules().items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    sys.modules.update(_replaced)
    _replaced = None


@contextmanager
def installed() -> Iterator[None]:
    """Install crfkit's modules for the length of a block.

    >>> with installed():
    ...     import pycrfsuite
    >>> pycrfsuite.__name__
    'crfkit.compat.pycrfsuite'
    """
    before = _replaced is not None
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()


def _modules() -> dict[str, ModuleType]:
    """Return crfkit's modules by the names that they stand in for."""
    found = {}
    for package, parts in MODULES.items():
        for name in (package, *(f"{package}.{part}" for part in parts)):
            found[name] = import_module(f"crfkit.compat.{name}")
    return found
