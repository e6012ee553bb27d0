"""Options by name, as scikit-learn's searches set them: `penalty__strength`, `solver__memory`.

Penalties, solvers and stopping rules are values that do not change: `set_params` returns another one. Estimators
(:class:`NestedParameters`) put it in the place of the old one.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

from crfkit._values import Entries
from crfkit.errors import ParameterError

Value = TypeVar("Value", bound="Parameters")
Holder = TypeVar("Holder", bound="NestedParameters")


class Parameters:
    """Base of frozen dataclasses whose fields are options.

    >>> from crfkit import L2
    >>> L2(0.5).get_params()
    {'strength': 0.5}
    >>> L2(0.5).set_params(strength=2.0)
    L2(strength=2.0)
    """

    __slots__ = ()

    def get_params(self, deep: bool = True) -> Entries:
        """Return the options by name; with `deep`, also the options of options, as ``name__option``."""
        found = {item.name: getattr(self, item.name) for item in fields(self) if item.init}  # type: ignore[arg-type]
        for name, value in list(found.items()) if deep else ():
            if isinstance(value, Parameters):
                found |= {f"{name}__{inner}": option for inner, option in value.get_params().items()}
        return found

    def set_params(self: Value, **params: object) -> Value:
        """Return the same with other options; this one does not change."""
        mine = self.get_params(deep=False)
        changed = replaced(type(self).__name__, mine, params)
        return replace(self, **{name: value for name, value in changed.items() if value is not mine[name]})  # type: ignore[type-var]

    def __sklearn_clone__(self: Value) -> Value:
        return self


class NestedParameters:
    """Lets estimators set options of their penalty and solver: goes before scikit-learn's BaseEstimator."""

    def set_params(self: Holder, **params: object) -> Holder:
        """Set options of the estimator and, as ``penalty__strength``, of penalties, solvers and stopping rules."""
        mine = self.get_params(deep=False)  # type: ignore[attr-defined]
        for name, value in replaced(type(self).__name__, mine, params).items():
            if value is not mine[name]:
                setattr(self, name, value)
        return self


def replaced(owner: str, options: dict[str, object], params: dict[str, object]) -> Entries:
    """Return `options` with `params` in place; options of their values are written ``name__option``."""
    changed = dict(options)
    inner: dict[str, Entries] = {}
    for key, value in params.items():
        name, _, rest = key.partition("__")
        if name not in options:
            raise ParameterError(f"Invalid parameter {name!r} for {owner}: there are {', '.join(sorted(options))}")
        if rest:
            inner.setdefault(name, {})[rest] = value
        else:
            changed[name] = value
    for name, settings in inner.items():
        value = changed[name]
        if not hasattr(value, "set_params"):
            what = ", ".join(f"{name}__{key}" for key in settings)
            advice = {
                "penalty": "give a penalty, e.g. penalty=L2()",
                "solver": "give an instance, e.g. solver=LBFGS()",
            }.get(name, "give an object that has options")
            raise ParameterError(f"{what} cannot be set: the {name} of {owner} is {value!r}, without options; {advice}")
        changed[name] = value.set_params(**settings)
    return changed
