"""A page with the members of every registry, as they describe themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

from crfkit.errors import CrfkitError
from crfkit.graph.inference.decoding import METHODS
from crfkit.graph.inference.engines import ENGINES, make_engine
from crfkit.losses import LOSSES
from crfkit.penalties import PENALTIES
from crfkit.protocols import Penalty
from crfkit.schemes import ALIASES, TAG_SCHEMES, convert_tags
from crfkit.solvers import SOLVERS
from crfkit.text.presets import PRESETS

HEAD = """# Registries

This page is written from the registries. [The guide to solvers](../guides/choose_a_solver.md) and
[that to graphs](../guides/graphs.md) say which to take.
"""


def summary(kind: Any) -> str:
    """The first sentence or line of a docstring."""
    text = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    text = re.split(r"(?<!al)(?<!e\.g)\. (?=[A-Z])", text)[0].rstrip(".:")
    return re.sub(r":class:`[\w.]*?(\w+)`", r"`\1`", text).replace("``", "`").replace("|", "\\|")


def table(*header: str, rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("| ---", "|---").replace("--- |", "---|") for cells in lines)


def names(found: Iterable[Any]) -> str:
    return ", ".join(sorted(f"`{name}`" for name in found))


def takes(solver: Any, penalty: Penalty) -> bool:
    """Whether the solver takes the kinds of the penalty's parts; penalties that need a loss for that are left out."""
    try:
        smooth, rest = penalty.split()
    except CrfkitError:
        return False
    return (smooth is None or solver.handles_smooth is None or bool(solver.handles_smooth & smooth.kinds)) and (
        rest is None or bool(solver.handles_nonsmooth & rest.kinds)
    )


def solvers() -> str:
    rows = []
    for name, solver in SOLVERS.items():
        taken = [kind for kind, of in PENALTIES.items() if takes(solver, of.examples(4)[0])]
        rows.append((f"`{name}`", summary(solver), names(map(str, solver.needs)), names(taken)))
    return table("solver", "what it does", "the loss needs", "penalties", rows=rows)


def penalties() -> str:
    rows = ((f"`{name}`", f"`{kind.__name__}`", summary(kind)) for name, kind in PENALTIES.items())
    return table("penalty", "class", "what it is", rows=rows)


def losses() -> str:
    rows = []
    for name in LOSSES:
        kind = LOSSES[name]
        rows.append((f"`{name}`", f"`{kind.__name__}`", summary(kind), names(map(str, kind.example().capabilities))))
    return table("loss", "class", "what it is", "what it can do", rows=rows)


def engines() -> str:
    rows = ((f"`{name}`", make_engine(name).bound, summary(type(make_engine(name)))) for name in ENGINES)
    return table("engine", "log Z", "what it does", rows=rows)


def decoders() -> str:
    rows = (
        (f"`{name}`", summary(method) or "reads the best labels off the marginals") for name, method in METHODS.items()
    )
    return table("decoder", "what it does", rows=rows)


def presets() -> str:
    rows = ((f"`{name}`", f"`{features!r}`") for name, features in PRESETS.items())
    return table("preset", "the same as", rows=rows)


def schemes() -> str:
    others = {scheme: [alias for alias, of in ALIASES.items() if of == scheme] for scheme in TAG_SCHEMES}
    rows = (
        (
            f"`{name}`",
            f"`{' '.join(scheme.tags)} O`",
            names(others[name]),
            ", ".join(f"`{tag}`" for tag in example(name)),
        )
        for name, scheme in TAG_SCHEMES.items()
    )
    return table("scheme", "tags", "also called", "a phrase of three, one of one, and one of two after it", rows=rows)


def example(scheme: str) -> list[str]:
    return convert_tags([["B-A", "I-A", "I-A", "O", "B-A", "B-A", "I-A"]], scheme, "iob2")[0]


def page() -> str:
    parts = (
        ("Solvers", solvers()),
        ("Penalties", penalties()),
        ("Losses", losses()),
        ("Engines of inference on graphs", engines()),
        ("Decoders of graphs", decoders()),
        ("Presets of text features", presets()),
        ("Tagging schemes", schemes()),
    )
    return HEAD + "".join(f"\n## {title}\n\n{text}\n" for title, text in parts)
