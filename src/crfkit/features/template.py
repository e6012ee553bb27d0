"""CRF++ feature templates."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

from crfkit import _core
from crfkit.errors import ParameterError, TemplateError, TemplateWarning


@dataclass(frozen=True)
class Template:
    """A CRF++ template.

    Lines that start with U give every label a weight, lines that start with B every pair of successive labels;
    ``%x[row,column]`` is replaced by the cell `row` lines away. A bare ``B`` is the plain transition between labels.
    Lines that start with # are comments, also where blanks stand before it.

    >>> Template("U00:%x[-1,0]/%x[0,0]\\nB").expand([["a"], ["b"]])
    [(['U00:_B-1/a'], []), (['U00:a/b'], [])]
    """

    text: str
    path: str | None = None

    def __post_init__(self) -> None:
        try:
            self.text.encode("utf-8")
            _core.template_summary(self.text)
        except UnicodeEncodeError:
            raise TemplateError("a character that is not valid Unicode (a lone surrogate)", self.path) from None
        except _core.LineError as error:
            line, message = error.args
            raise TemplateError(message, self.path or "template", line) from None

    @classmethod
    def read(cls, path: str | Path) -> Template:
        """Reads a template file."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise TemplateError(f"cannot read the template: {error.strerror}", path) from error
        except UnicodeDecodeError as error:
            raise TemplateError(f"the template is not UTF-8 (byte {error.start})", path) from None
        return cls(text, str(path))

    @classmethod
    def make(cls, source: Template | str | Path) -> Template:
        """From a Template, a path, or (where there is a newline or a macro) the text itself."""
        if isinstance(source, Template):
            return source
        if not isinstance(source, (str, Path)):
            raise ParameterError(f"a template must be a path, a text or a Template, not {source!r}")
        if isinstance(source, str) and ("\n" in source or "%x[" in source):
            return cls(source)
        return cls.read(source)

    @property
    def unigrams(self) -> list[str]:
        return _core.template_summary(self.text)[0]

    @property
    def bigrams(self) -> list[str]:
        """B lines other than a bare B."""
        return _core.template_summary(self.text)[1]

    @property
    def transitions(self) -> bool:
        """Whether there is a bare B."""
        return _core.template_summary(self.text)[2]

    @property
    def n_columns(self) -> int:
        """How many columns the macros need."""
        return _core.template_summary(self.text)[3]

    def clashes(self) -> list[tuple[int, str, int, str]]:
        """Return the lines whose identifier (``U01:``) an earlier line has, too: (number, line, earlier number, line).

        They share their attributes and weights wherever their macros give the same text. Lines without an identifier
        (``U%x[0,0]``) do so on purpose: that is CRF++'s way to write a bag of words.

        >>> Template("U01:%x[0,0]\\nU01:%x[0,1]\\nB").clashes()
        [(2, 'U01:%x[0,1]', 1, 'U01:%x[0,0]')]
        """
        found: list[tuple[int, str, int, str]] = []
        seen: dict[str, tuple[int, str]] = {}
        for number, raw in enumerate(self.text.removeprefix("\ufeff").split("\n"), start=1):
            line = raw.rstrip(" \t\r")
            prefix = line.partition("%x[")[0]
            if line[:1] not in ("U", "B") or not prefix[1:].strip(":"):
                continue
            if prefix in seen:
                found.append((number, line, *seen[prefix]))
            else:
                seen[prefix] = (number, line)
        return found

    def warn_of_clashes(self) -> None:
        """Warn of lines with one identifier (see `clashes`)."""
        for number, line, earlier, other in self.clashes():
            what = "the same as" if line == other else "of the same identifier as"
            warnings.warn(
                f"{self.path or 'template'}:{number}: '{line}' is {what} line {earlier}, '{other}': they share their "
                "weights where they give the same text; give each line an identifier of its own, or none (U%x[…]) if "
                "they should share",
                TemplateWarning,
                stacklevel=3,
            )

    def expand(self, rows: list[list[str]]) -> list[tuple[list[str], list[str]]]:
        """Per position, its unigram and its bigram attributes."""
        return _core.expand_template(self.text, rows)
