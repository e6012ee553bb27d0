"""Names of losses, solvers, engines and other members of a registry: short forms, and the error for unknown names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from crfkit.errors import ParameterError

T = TypeVar("T")

SHORT_FORMS = {"pl": "pseudo-likelihood"}  # accepted wherever the full name is


def full_name(given: T) -> T | str:
    """Return the full name of a short form; return everything else unchanged.

    >>> full_name("pl"), full_name("likelihood"), full_name(None)
    ('pseudo-likelihood', 'likelihood', None)
    """
    return SHORT_FORMS.get(given, given) if isinstance(given, str) else given


def check_name(what: str, given: object, names: Iterable[str]) -> str:
    """Return the full name of a member of a registry, or raise ParameterError with the nearest name and all names.

    >>> check_name("loss", "pl", ["likelihood", "pseudo-likelihood"])
    'pseudo-likelihood'
    >>> check_name("solver", "lbgfs", ["lbfgs", "owlqn"])
    Traceback (most recent call last):
    crfkit.errors.ParameterError: unknown solver 'lbgfs' (did you mean 'lbfgs'?); expected one of lbfgs, owlqn
    """
    known = tuple(names)
    name = full_name(given)
    if not isinstance(name, str) or name not in known:
        raise unknown_name(what, given, known)
    return name


def unknown_name(what: str, given: object, names: Iterable[str], nearest: str | None = None) -> ParameterError:
    """Return the error for an unknown name, with the nearest name and the list of names.

    `nearest` is the name to suggest; by default the one that is spelt most alike.
    """
    from difflib import get_close_matches

    known = tuple(names)
    by_lower = {name.lower(): name for name in known}
    if nearest is None and isinstance(given, str) and (alike := get_close_matches(given.lower(), by_lower, 1)):
        nearest = by_lower[alike[0]]
    hint = f" (did you mean {nearest!r}?)" if nearest else ""
    return ParameterError(f"unknown {what} {given!r}{hint}; expected one of {', '.join(known)}")
