"""Parse the values of options that several commands have. Nothing here loads typer: `crfkit tag` starts quickly."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.files.columns import ColumnFile
    from crfkit.penalties import L2
    from crfkit.protocols import Penalty
    from crfkit.solvers import StoppingRule
    from crfkit.text.template import Template

STDIN = Path("-")


def make_penalty(l1: float | None, l2: float | L2 | None) -> Penalty | None:
    """Return the penalty with these strengths; None, the solver's default, if neither is given."""
    from crfkit import penalties

    if isinstance(l2, (int, float)):
        l2 = penalties.L2(l2)
    if l1 is None:
        return l2
    sparse = penalties.L1(l1)
    if l2 is None:
        return sparse
    return penalties.ElasticNet(l1, l2.strength) if sparse.strength else l2


def successive_changes(eta: float, with_tolerance: bool = False) -> StoppingRule:
    """Return CRF++'s stopping rule.

    >>> successive_changes(1e-4)
    SuccessiveChanges(eta=0.0001, times=3)
    """
    from crfkit.solvers import SuccessiveChanges

    if with_tolerance:
        raise ParameterError("--eta and --tolerance are two rules for when to stop; give one of them")
    if not eta > 0:
        raise ParameterError(f"--eta must be > 0, not {eta:g}")
    return SuccessiveChanges(eta, 3)


def scaled_penalty(
    l1: float | None = None,
    c1: float | None = None,
    rho1: float | None = None,
    l2: float | None = None,
    C: float | None = None,
    c2: float | None = None,
    rho2: float | None = None,
) -> Penalty | None:
    """Return the penalty from strengths on the scales of crfkit, CRFsuite (c1, c2), Wapiti (rho1, rho2) or CRF++ (C).

    >>> scaled_penalty(c1=0.1, c2=0.5)
    ElasticNet(l1=0.1, l2=1.0)
    """
    from crfkit.penalties import L1, L2

    sparse = {"--l1": l1, "--c1": c1, "--rho1": rho1}
    smooth = {"--l2": l2, "--C": C, "--c2": c2, "--rho2": rho2}
    for family in (sparse, smooth):
        given = [name for name, value in family.items() if value is not None]
        if len(given) > 1:
            raise ParameterError(f"{' and '.join(given)} are the same penalty on different scales; give one of them")
    first = l1
    if c1 is not None:
        first = L1.from_crfsuite(c1).strength
    elif rho1 is not None:
        first = L1.from_wapiti(rho1).strength
    second: float | L2 | None = l2
    if C is not None:
        second = L2.from_crfpp(C)
    elif c2 is not None:
        second = L2.from_crfsuite(c2)
    elif rho2 is not None:
        second = L2.from_wapiti(rho2)
    return make_penalty(first, second)


def check_distinct(paths: dict[str, Path | None]) -> None:
    """Raise ParameterError if two arguments are the same file."""
    seen: dict[str, str] = {}
    for name, path in paths.items():
        if path is None or path == STDIN:
            continue
        other = seen.setdefault(os.path.realpath(path), name)  # never raises, unlike resolve for a loop of links
        if other != name:
            raise ParameterError(f"{other} and {name} are the same file, {path}; give different files")


def check_writable(*paths: Path | None) -> None:
    """Raise DataError if a file that was requested cannot be written."""
    from crfkit.files import modelfile

    for path in paths:
        if path is not None:
            modelfile.check_writable(path)


def read_template(path: Path, encoding: str, syntax: str = "auto") -> Template:
    """Return a template that is UTF-8 or, if it is not, of the encoding of the input files."""
    from crfkit.text.template import Template

    return Template.read(path, syntax, encoding, prefer_utf8=True)


def column_files(
    paths: Sequence[Path], encoding: str = "utf-8", format: str = "auto", label_column: str | int | None = None
) -> list[ColumnFile]:
    """Return the column files of these paths. - is standard input, which can be read only once."""
    from crfkit.cli.runtime.output import open_input
    from crfkit.files import columns

    if sum(path == STDIN for path in paths) > 1:
        raise ParameterError("standard input (-) can be read only once")
    sources = [open_input(path) for path in paths]
    return columns.column_files(sources, encoding, format, label_column)
