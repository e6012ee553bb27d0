"""Write docs/reference/members.md: the members of every registry, as they describe themselves.

`make docs` runs this; with --print the page goes to the terminal.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crfkit.errors import CrfkitError
from crfkit.inference.engines import ENGINES, make_engine
from crfkit.losses import LOSSES
from crfkit.penalties import PENALTIES
from crfkit.protocols import Penalty
from crfkit.solvers import SOLVERS

PAGE = Path(__file__).with_name("reference") / "members.md"
HEAD = """# Solvers, penalties, losses and engines

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
        rest is None or bool(solver.handles_rest & rest.kinds)
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


def page() -> str:
    parts = (("Solvers", solvers()), ("Penalties", penalties()), ("Losses", losses()), ("Engines", engines()))
    return HEAD + "".join(f"\n## {title}\n\n{text}\n" for title, text in parts)


if __name__ == "__main__":
    if "--print" in sys.argv[1:]:
        print(page(), end="")
    else:
        PAGE.write_text(page(), encoding="utf-8")
