"""A base class that becomes a subclass of scikit-learn's BaseEstimator once scikit-learn is loaded.

`import sklearn.base` takes more than a second, most of it SciPy's statistics; training, tagging and files need none of
it. So `LazyBaseEstimator` starts without BaseEstimator. It becomes a subclass of BaseEstimator when anybody imports
scikit-learn, or when one of its methods is first called (`get_params`, `repr`, …), whichever comes first. Code that has
imported BaseEstimator therefore always finds a full subclass: clone, grid searches, pipelines, metadata routing and
isinstance work.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from crfkit.parameters import NestedParameters

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator as _Start
else:

    class _Start:
        """Hold the place of BaseEstimator: Python cannot exchange a base that is `object` itself."""


class LazyBaseEstimator(NestedParameters, _Start):  # type: ignore[misc]
    """Load the scikit-learn part of an estimator when it is first needed."""


_HOME = "sklearn.base"
_LATER = ("get_params", "set_params", "__repr__", "_repr_mimebundle_")  # methods that people call before that
_lock = RLock()


def _load_first(name: str) -> Any:
    def method(self: LazyBaseEstimator, *args: Any, **options: Any) -> Any:
        become_sklearn()
        return getattr(super(LazyBaseEstimator, self), name)(*args, **options)

    method.__name__ = name
    method.__qualname__ = f"LazyBaseEstimator.{name}"
    return method


def become_sklearn() -> None:
    """Load scikit-learn and make every estimator a subclass of its BaseEstimator."""
    _adopt(import_module(_HOME).BaseEstimator)


def _adopt(base: type) -> None:
    with _lock:
        if issubclass(LazyBaseEstimator, base):
            return
        for name in _LATER:
            delattr(LazyBaseEstimator, name)
        LazyBaseEstimator.__bases__ = (NestedParameters, base)
        for cls in _subclasses(LazyBaseEstimator):
            super(cls, cls).__init_subclass__()  # type: ignore[arg-type] # makes the methods for metadata routing


def _subclasses(cls: type) -> list[type]:
    """Return all subclasses, parents first."""
    found: list[type] = []
    children: list[type] = cls.__subclasses__()
    for child in children:
        found += [child, *_subclasses(child)]
    return found


class _Watcher:
    """Wait on `sys.meta_path` for the import of `sklearn.base`; find nothing by itself."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name != _HOME:
            return None
        sys.meta_path.remove(self)
        spec: ModuleSpec | None = None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
        if spec is not None and spec.loader is not None:
            _call_after(spec.loader)
        return spec


def _call_after(loader: Any) -> None:
    """Make the loader call `_adopt` after it has executed the module."""
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        execute(module)
        _adopt(module.BaseEstimator)

    loader.exec_module = exec_module


if not TYPE_CHECKING:
    for _name in _LATER:
        setattr(LazyBaseEstimator, _name, _load_first(_name))
    if _HOME in sys.modules and hasattr(sys.modules[_HOME], "BaseEstimator"):
        _adopt(sys.modules[_HOME].BaseEstimator)
    else:
        sys.meta_path.insert(0, _Watcher())
