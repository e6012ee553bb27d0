"""The base of estimators: scikit-learn's BaseEstimator, from the moment scikit-learn is loaded.

`import sklearn.base` takes more than a second, most of it SciPy's statistics; training, tagging and files need none of
it. So `Estimator` starts without BaseEstimator. It becomes a subclass of it as soon as anybody imports scikit-learn, or
when a method of it is first called (`get_params`, `repr`, …), whichever comes first. Code that has BaseEstimator in its
hands therefore always finds a full subclass: clone, grid searches, pipelines, metadata routing, isinstance.
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
        """Stands where BaseEstimator will stand: Python exchanges no base that is `object` itself."""


class Estimator(NestedParameters, _Start):  # type: ignore[misc]
    """A scikit-learn estimator whose scikit-learn part is loaded when it is needed."""


_HOME = "sklearn.base"
_LATER = ("get_params", "set_params", "__repr__", "_repr_mimebundle_")  # what people call before sklearn is loaded
_lock = RLock()


def _load_first(name: str) -> Any:
    def method(self: Estimator, *args: Any, **options: Any) -> Any:
        become_sklearn()
        return getattr(super(Estimator, self), name)(*args, **options)

    method.__name__ = name
    method.__qualname__ = f"Estimator.{name}"
    return method


def become_sklearn() -> None:
    """Load scikit-learn and make every estimator a subclass of its BaseEstimator."""
    _adopt(import_module(_HOME).BaseEstimator)


def _adopt(base: type) -> None:
    with _lock:
        if issubclass(Estimator, base):
            return
        for name in _LATER:
            delattr(Estimator, name)
        Estimator.__bases__ = (NestedParameters, base)
        for cls in _subclasses(Estimator):
            super(cls, cls).__init_subclass__()  # type: ignore[arg-type] # BaseEstimator makes the methods for metadata routing there


def _subclasses(cls: type) -> list[type]:
    """All subclasses, parents first."""
    found: list[type] = []
    children: list[type] = cls.__subclasses__()
    for child in children:
        found += [child, *_subclasses(child)]
    return found


class _Watcher:
    """Waits on `sys.meta_path` for the import of `sklearn.base`; finds nothing by itself."""

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
    """Lets the loader call `_adopt` after it has executed the module."""
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        execute(module)
        _adopt(module.BaseEstimator)

    loader.exec_module = exec_module


if not TYPE_CHECKING:
    for _name in _LATER:
        setattr(Estimator, _name, _load_first(_name))
    if _HOME in sys.modules and hasattr(sys.modules[_HOME], "BaseEstimator"):
        _adopt(sys.modules[_HOME].BaseEstimator)
    else:
        sys.meta_path.insert(0, _Watcher())


def not_fitted(estimator: Estimator) -> Exception:
    """Return scikit-learn's NotFittedError for an estimator."""
    from sklearn.exceptions import NotFittedError

    error: Exception = NotFittedError(
        f"This {type(estimator).__name__} instance is not fitted yet; call `fit`, or `load` a model, first."
    )
    return error
