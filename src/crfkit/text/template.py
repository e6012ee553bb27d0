"""Feature templates: CRF++ templates and Wapiti patterns."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from crfkit import _core
from crfkit._checks import check_encoding
from crfkit.errors import DataError, ParameterError, TemplateError, TemplateWarning
from crfkit.files import limits
from crfkit.files.columns import read_small
from crfkit.names import unknown_name
from crfkit.warn import warn_caller
from crfkit.wording import shortened

SYNTAXES = ("crf++", "wapiti")
NAME_THE_ENCODING = "name its encoding, as in --encoding euc-jp or, in Python, Template.read(path, encoding='euc-jp')"


@dataclass(frozen=True)
class Template:
    """A CRF++ template, or patterns of Wapiti.

    In CRF++'s syntax, lines that start with U give every label a weight, lines that start with B every pair of
    successive labels; ``%x[row,column]`` is replaced by the cell `row` lines away. A bare ``B`` is the plain transition
    between labels. Lines that start with # are comments, also where blanks stand before it.

    >>> Template("U00:%x[-1,0]/%x[0,0]\\nB").expand([["a"], ["b"]])
    [(['U00:_B-1/a'], []), (['U00:a/b'], [])]

    In Wapiti's syntax, lines start with u, b or ``*``, which is both. ``%x`` gives a cell, ``%t`` tests it with a
    regular expression, and ``%m`` gives the part of it that matches; ``%X``, ``%T`` and ``%M`` fold case. ``@1`` is the
    first row and ``@-1`` the last. What follows a # is a comment. As in Wapiti, expressions see bytes.

    >>> Template('*:%X[0,0]\\nu:%m[0,0,".?.?$"]/%t[@-1,0,"^\\\\u"]\\nb').expand([["The"], ["end"]])
    [(['*:the', 'u:he/false'], ['*:the']), (['*:end', 'u:nd/false'], ['*:end'])]

    Parameters
    ----------
    text : the lines
    path : name of the file, for messages
    syntax : "crf++", "wapiti" or "auto", which is Wapiti's if all lines start with u or b in lower case, or one starts
        with * or has a command that CRF++ lacks
    """

    text: str
    path: str | None = None
    syntax: str = "auto"

    def __post_init__(self) -> None:
        macros = len(re.findall(r"%[xtm]\[", self.text, re.IGNORECASE))
        limits.check("macros", macros, f"{self.path or 'the template'} has {macros:,} macros")
        if self.syntax == "auto":
            object.__setattr__(self, "syntax", detect_syntax(self.text))
        elif self.syntax not in SYNTAXES:
            raise unknown_name("template syntax", self.syntax, ("auto", *SYNTAXES))
        if self.syntax == "crf++":
            self._drop_repeated_transitions()
        try:
            self.text.encode("utf-8")
            self._summary()
        except UnicodeEncodeError:
            raise TemplateError(
                "the template has a character that is not valid Unicode (a lone surrogate)", self.path
            ) from None
        except _core.LineError as error:
            line, message = error.args
            raise TemplateError(shortened(message), self.path or "template", line) from None

    def _summary(self) -> tuple[list[str], list[str], str | None, int]:
        return _core.template_summary(self.text, self.syntax)

    def _drop_repeated_transitions(self) -> None:
        """Keep the first of several bare B lines, and warn: CRF++ adds the same weight for each of them."""
        lines = self.text.split("\n")
        bare = [k for k, line in enumerate(lines) if line.rstrip(" \t\r") == "B"]
        if len(bare) < 2:
            return
        for k in bare[1:]:
            lines[k] = "#"  # later lines keep their numbers
        object.__setattr__(self, "text", "\n".join(lines))
        warn_caller(
            f"{self.path or 'template'}:{bare[1] + 1}: a bare 'B' repeats line {bare[0] + 1}; it is used once, whereas "
            "CRF++ would count every transition weight again. Remove one of them",
            TemplateWarning,
        )

    @classmethod
    def read(
        cls,
        path: str | Path,
        syntax: str = "auto",
        encoding: str = "utf-8",
        prefer_utf8: bool = False,
        advice: str = NAME_THE_ENCODING,
    ) -> Template:
        """Read a template file; with `prefer_utf8`, as UTF-8 unless its bytes are not.

        `advice` is what errors say about a file in another encoding.
        """
        check_encoding(encoding)
        try:
            data = read_small(path, "the template")
            encoding = "utf-8" if prefer_utf8 and _decodes(data) else encoding
            text = data.decode("utf-8-sig" if _is_utf8(encoding) else encoding)
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        except DataError as error:
            raise TemplateError(str(error)) from error
        except UnicodeDecodeError as error:
            shown = "UTF-8" if _is_utf8(encoding) else encoding
            place = f"byte {error.start + 1} (0x{error.object[error.start]:02X})"
            raise TemplateError(f"the template is not {shown} at {place}; {advice}", path) from None
        return cls(text, str(path), syntax)

    @classmethod
    def make(cls, source: Template | str | Path) -> Template:
        """Return a template from a Template, a path, or the text itself (if it has a newline or a macro)."""
        if isinstance(source, Template):
            return source
        if not isinstance(source, (str, Path)):
            raise ParameterError(f"a template must be a path, a text or a Template, not {source!r}")
        if isinstance(source, str) and ("\n" in source or _MACRO.search(source)):
            return cls(source)
        return cls.read(source)

    @property
    def unigrams(self) -> list[str]:
        return self._summary()[0]

    @property
    def bigrams(self) -> list[str]:
        """Return the lines of label pairs, other than `transition_line`."""
        return self._summary()[1]

    @property
    def transitions(self) -> bool:
        """Return whether there is a line with B alone, for transitions."""
        return self.transition_line is not None

    @property
    def transition_line(self) -> str | None:
        """Return the line that stands for the transitions: a bare B, or Wapiti's first b line without a command."""
        return self._summary()[2]

    @property
    def n_columns(self) -> int:
        """Return the number of columns that the macros need."""
        return self._summary()[3]

    def clashes(self) -> list[tuple[int, str, int, str]]:
        """Return the lines that repeat the identifier (``U01:``) of an earlier line, as (number, line, number, line).

        They share their attributes and weights wherever their macros give the same text. Lines without an identifier
        (``U%x[0,0]``) do so on purpose: that is CRF++'s way to write a bag of words.

        >>> Template("U01:%x[0,0]\\nU01:%x[0,1]\\nB").clashes()
        [(2, 'U01:%x[0,1]', 1, 'U01:%x[0,0]')]
        """
        found: list[tuple[int, str, int, str]] = []
        seen: dict[str, tuple[int, str]] = {}
        for number, line in self.lines():
            prefix = line.partition("%")[0] if self.syntax == "wapiti" else line.partition("%x[")[0]
            if line[:1] not in ("U", "B", "u", "b", "*") or not prefix[1:].strip(":"):
                continue
            if prefix in seen:
                found.append((number, line, *seen[prefix]))
            else:
                seen[prefix] = (number, line)
        return found

    def lines(self) -> list[tuple[int, str]]:
        """Return the lines with their numbers, without comments, trailing blanks and blank lines."""
        lines: Iterable[tuple[int, str]] = enumerate(self.text.removeprefix("\ufeff").split("\n"), start=1)
        if self.syntax == "wapiti":  # as Wapiti writes them to its models
            lines = ((number, line.partition("#")[0].rstrip(" \t\v\f\r")) for number, line in lines)
            return [(number, line[0].lower() + line[1:]) for number, line in lines if line]
        lines = ((number, line.rstrip(" \t\r")) for number, line in lines)
        return [(number, line) for number, line in lines if line and not line.lstrip(" \t").startswith("#")]

    def warn_of_clashes(self) -> None:
        """Warn of lines that repeat an identifier (see `clashes`)."""
        for number, line, earlier, other in self.clashes():
            what = "is a duplicate of" if line == other else "has the identifier of"
            warn_caller(
                f"{self.path or 'template'}:{number}: '{line}' {what} line {earlier}, '{other}'. They share weights "
                "where they give the same text. Give each line its own identifier, or none (U%x[…]) if they "
                "should share weights",
                TemplateWarning,
            )

    def expand(self, rows: list[list[str]]) -> list[tuple[list[str], list[str]]]:
        """Return (unigram attributes, bigram attributes) of each position."""
        try:
            return _core.expand_template(self.text, rows, self.syntax)
        except ValueError as error:
            raise DataError(str(error)) from None


_MACRO = re.compile(r"%[xXtTmM]\[")
_WAPITI_ONLY = re.compile(r"%[XtTmM]\[|%x\[@")


def detect_syntax(text: str) -> str:
    """Return the syntax of a template: "wapiti" if it cannot be CRF++'s, otherwise "crf++".

    >>> detect_syntax("u:%x[0,0]\\nb"), detect_syntax("U00:%x[0,0]\\nB"), detect_syntax('U:%t[0,0,"^.$"]')
    ('wapiti', 'crf++', 'wapiti')
    """
    lines = [
        line for line in text.removeprefix("\ufeff").split("\n") if line.strip() and not line.lstrip().startswith("#")
    ]
    if any(_WAPITI_ONLY.search(line.partition("#")[0]) for line in lines):
        return "wapiti"
    starts = {line[0] for line in lines}
    return "wapiti" if "*" in starts or (starts and starts <= set("ub")) else "crf++"


def _decodes(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
