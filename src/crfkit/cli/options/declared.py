"""Commands whose options are the fields of a dataclass, so that their parts hand over one value.

A field is an option that several commands share, ``encoding: shared.Encoding = "utf-8"``, or one of this command alone,
``folds: int = own_option(INPUT, "--folds", default=5, metavar="N", help="Number of folds.")``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields
from functools import wraps
from typing import Annotated, Any, TypeVar, get_type_hints

from crfkit.cli.runtime.help import flag, option

Options = TypeVar("Options")


def own_option(panel: str, *names: str, help: str, default: Any = None, **more: Any) -> Any:
    """Return a field that is an option of one command."""
    return field(default=default, metadata={"option": option(panel, *names, help=help, **more)})


def own_flag(panel: str, *names: str, help: str, default: bool | None = False) -> Any:
    """Return a field that is on or off."""
    return field(default=default, metadata={"option": flag(panel, *names, help=help)})


def takes(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Give a command the options of a dataclass; it is called with an instance.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Numbers:
    ...     folds: int = own_option("Input", "--folds", default=5, help="Number of folds.")
    >>> @takes(Numbers)
    ... def show(given: Numbers) -> None:
    ...     print(given.folds)
    >>> show(folds=3), list(inspect.signature(show).parameters)
    3
    (None, ['folds'])
    """

    def decorate(command: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(command, ("__module__", "__name__", "__qualname__", "__doc__"))
        def call(**given: object) -> None:
            command(kind(**given))

        call.__annotations__ = types = get_type_hints(kind, include_extras=True)
        parameters = [_parameter(item, types[item.name]) for item in fields(kind)]  # type: ignore[arg-type]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    return decorate


def _parameter(item: Field[object], annotation: object) -> inspect.Parameter:
    """Return the parameter that tells typer of a field."""
    if "option" in item.metadata:
        annotation = Annotated[annotation, item.metadata["option"]]
    default = inspect.Parameter.empty if item.default is MISSING else item.default
    return inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
