"""Put crfkit in the place of pycrfsuite and sklearn_crfsuite for the running program.

Packages that use these modules then run on crfkit without being changed, and pickles of ``sklearn_crfsuite.CRF`` become
crfkit's with their model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from crfkit.warn import warn_caller

MODULES = ("pycrfsuite", "sklearn_crfsuite")


class _Finder(MetaPathFinder, Loader):
    """Give out crfkit's modules under the other names, when they are imported and not before."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in MODULES or find_spec(f"crfkit.compat.{fullname}") is None:
            return None
        package = "." not in fullname
        return ModuleSpec(fullname, self, is_package=package)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(f"crfkit.compat.{spec.name}")
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # it has been executed; the import system has given it the spec of the other name
        other = module.__spec__
        if other is not None:
            module.__spec__ = self._specs.pop(other.name, other)


_finder = _Finder()
_replaced: dict[str, ModuleType] | None = None  # what stood in sys.modules before; None while nothing is installed


def install() -> None:
    """Let ``import pycrfsuite`` and ``import sklearn_crfsuite`` give crfkit's modules from now on.

    Call it before anything imports them: modules imported before keep using CRFsuite, with a warning.

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
    _replaced = _loaded()
    early = [name for name in MODULES if name in _replaced]
    for name in _replaced:
        del sys.modules[name]
    sys.meta_path.insert(0, _finder)
    if early:
        one = len(early) == 1
        warn_caller(
            f"{' and '.join(early)} {'was' if one else 'were'} imported before crfkit.compat.install(): code that "
            f"already holds {'it' if one else 'them'} keeps using CRFsuite; call install() first",
            UserWarning,
        )


def uninstall() -> None:
    """Take crfkit's modules away again and put back those that stood there before."""
    global _replaced
    if _replaced is None:
        return
    sys.meta_path.remove(_finder)
    for name in _loaded():
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


def _loaded() -> dict[str, ModuleType]:
    """Return what stands in sys.modules under the names of the two packages."""
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in MODULES}
