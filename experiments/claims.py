"""What a template of a page may say: filters for numbers, claims, and a lint for sentences that nothing checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jinja2

NOT_SO = " **(not so in this run)**"
NOT_MEASURED = " **(not measured in this run)**"

# What may hold digits in a template: tags, code, links, names of methods, norms, papers' own numbering.
TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
TARGET = re.compile(r"\]\([^)]*\)")
NAMES = re.compile(
    r"\b(?:Tables?|Figures?|figures?|eqs?\.|Section|Theorem|Algorithm) \(?\d+\)?(?:(?: and |, | to )\(?\d+\)?)*"
    r"|\bL[12]\b|L1-|M-\[\d+\]|\[\d+\]|CoNLL-\d+|\((?:19|20)\d\d\)|\b(?:19|20)\d\d\b|-L1\b|CRF-L1|BB[12]|BS[1-4]|F1|C1\b"
    r"|λ[₀-₉]|κ[₀-₉]|^\d+\. ",
    re.MULTILINE,
)
ALWAYS = (
    "all every each both none never always no any only same equal level first last fastest fewest least most best worst"
)
THAN = (
    "faster slower fewer more less better worse larger smaller higher lower longer shorter ahead behind twice half "
    "times holds hold held agree agrees differs differ confirmed lose loses win wins exceed exceeds"
)
COMPARES = re.compile(rf"\b(?:{'|'.join((ALWAYS + ' ' + THAN).split())})\b", re.IGNORECASE)


class ClaimError(Exception):
    """A sentence of a page that its results do not support."""


class Missing(jinja2.ChainableUndefined):
    """A value that a smaller run does not have: what is computed with it is missing too."""

    def _missing(self, *_: Any, **__: Any) -> Missing:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _missing  # type: ignore
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __neg__ = __call__ = _missing  # type: ignore

    def __hash__(self) -> int:
        return id(self)


def environment(lenient: bool = False) -> jinja2.Environment:
    """Return the environment of templates; a lenient one marks claims that do not hold instead of raising."""
    made = jinja2.Environment(
        undefined=Missing if lenient else jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )

    def claim(condition: Any, *, note: str = "") -> str:
        if isinstance(condition, jinja2.Undefined) and lenient:
            return NOT_MEASURED
        if isinstance(condition, jinja2.Undefined):
            raise ClaimError(f"the results have no {condition._undefined_name}")
        if bool(condition):
            return ""
        if lenient:
            return NOT_SO
        raise ClaimError(f"a claim does not hold{': ' + note if note else ''}")

    made.globals |= {"claim": claim, "given": str}
    made.filters |= {name: _shown(show) for name, show in FILTERS.items()}
    return made


def _shown(show: Any) -> Any:
    """Return a filter that shows a missing value of a lenient page as a dash."""

    def of(value: Any, *options: Any) -> str:
        return "–" if value is None or isinstance(value, jinja2.Undefined) else show(value, *options)

    return of


def _fixed(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) != 0 else text.lstrip("-")


FILTERS: dict[str, Callable[..., str]] = {
    "n": lambda value, digits=0: _fixed(value, digits),  # 1,234 or, with digits, 1,234.5
    "pct": lambda value, digits=1: _fixed(100 * value, digits),  # 0.1234 as 12.3, without the sign
    "signed": lambda value, digits=2: ("+" if value > 0 else "") + _fixed(value, digits),
    "g": lambda value, digits=3: f"{value:.{digits}g}".replace("-", "−"),
    "e": lambda value, digits=1: f"{value:.{digits}e}".replace("-", "−"),
    "words": lambda items: ", ".join(map(str, items)),
}


def lint(text: str) -> list[str]:
    """Return complaints about a template: numbers and comparisons that nothing checks."""
    complaints = []
    bare = CODE.sub(_blank, text)
    for k, line in enumerate(NAMES.sub(_blank, TARGET.sub(_blank, TAG.sub(_blank, bare))).splitlines(), 1):
        if found := re.search(r"\d", line):
            complaints.append(f"line {k}: a number that is not from the results: {line.strip()[:100]!r} ({found[0]})")
    place = 1
    for paragraph in re.split(r"(\n(?=\s*\n|\s*[-*|#] ))", text):
        plain = TARGET.sub(" ", CODE.sub(" ", TAG.sub(" ", paragraph)))
        word = COMPARES.search(plain)
        if word and "{{" not in paragraph and not plain.lstrip().startswith("#"):
            complaints.append(f"line {place}: {word[0]!r} without a claim: {' '.join(plain.split())[:100]!r}")
        place += paragraph.count("\n")
    return complaints


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])
