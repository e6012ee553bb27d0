"""ARFF files, as Weka and Mulan write them: attributes with their types, then rows, dense or sparse."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from crfkit.errors import DataError, LimitError
from crfkit.files import limits

NUMERIC = ("numeric", "real", "integer")
BOOLEANS = {"true": "1", "1": "1", "false": "0", "0": "0"}
_WORD = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|[^\s{{]+)\s*(\{{.*\}}|\S+.*)$", re.IGNORECASE)
_QUOTED = re.compile(rf"\s*({_WORD})\s*(,|$)")
_PLAIN = re.compile(r"([^,'\"]*)(,|$)")
_ENTRY = re.compile(rf"\s*(\d+)\s+({_WORD}|[^,\s'\"]+)\s*(,|$)")


@dataclass(frozen=True)
class _Attribute:
    name: str
    values: list[str] | None = None  # the values of a nominal attribute
    text: bool = False
    boolean: bool = False  # true and false, or 1 and 0; read as 1 and 0

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.values or ())

    @property
    def zero(self) -> str:
        """Return the value of a cell that a sparse row leaves out."""
        return "0" if self.values is None else self.values[0]


def read_arff(text: str, path: str | Path) -> tuple[list[str], list[list[str]], list[int]]:
    """Return (names, cells by row, line of each row)."""
    attributes: list[_Attribute] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    in_data = False
    for number, raw in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        line = raw.strip()
        if not line or line.startswith("%"):
            continue
        try:
            if in_data:
                sparse = line.startswith("{")
                if sparse:
                    needed = 8 * len(attributes) * (len(rows) + 1)
                    limits.check_memory(needed, f"{path}: the table of its sparse rows", len(text))
                cells = _sparse(line, attributes) if sparse else _dense(line, attributes)
                rows.append([_checked(cell, a) for cell, a in zip(cells, attributes, strict=True)])
                lines.append(number)
            elif (word := line.split(None, 1)[0].lower()) == "@attribute":
                attributes.append(_attribute(line))
            elif word == "@data":
                in_data = True
            elif word != "@relation":
                raise ValueError(f"expected @attribute or @data, not {line[:40]!r}")
        except LimitError:
            raise
        except ValueError as error:
            raise DataError(str(error), path, number) from None
    if not in_data or not attributes:
        raise DataError(f"the ARFF file has no {'@attribute' if in_data else '@data'} line", path)
    return [attribute.name for attribute in attributes], rows, lines


def _attribute(line: str) -> _Attribute:
    match = _ATTRIBUTE.match(line)
    if not match:
        raise ValueError(f"cannot read the attribute {line[:60]!r}; expected @attribute name type")
    name, kind = _unquote(match[1]), match[2].strip()
    if kind.startswith("{"):
        values = _split(kind[1:-1])
        if not values or "" in values:
            raise ValueError(f"the nominal attribute {name!r} has an empty value")
        return _Attribute(name, values)
    word = kind.split()[0].lower()
    if word in ("boolean", "bool"):
        return _Attribute(name, boolean=True)
    if word not in (*NUMERIC, "string", "date"):
        raise ValueError(
            f"the attribute {name!r} has the type {kind!r}; expected numeric, nominal, boolean, string or date"
        )
    return _Attribute(name, None, word not in NUMERIC)


def _dense(line: str, attributes: list[_Attribute]) -> list[str]:
    cells = _split(line if "," in line else line.replace("\t", ","))
    if len(cells) != len(attributes):
        raise ValueError(f"the row has {len(cells)} cells; expected {len(attributes)}, one per attribute")
    return cells


def _sparse(line: str, attributes: list[_Attribute]) -> list[str]:
    """Return the cells of a sparse row {index value, …}; indices start at 0."""
    if not line.endswith("}") or (line.count("}") > 1 and not re.search(_WORD, line)):
        raise ValueError("a sparse row must end with } and cannot have a weight")
    cells = [attribute.zero for attribute in attributes]
    seen: set[int] = set()
    body, position = line[1:-1].strip(), 0
    while position < len(body):
        match = _ENTRY.match(body, position)
        if not match:
            raise ValueError(f"cannot read the sparse row at {body[position : position + 20]!r}; expected index value")
        i = int(match[1])
        if i >= len(attributes) or i in seen:
            raise ValueError(
                f"index {i} "
                f"{'occurs twice' if i in seen else f'is out of range; there are {len(attributes)} attributes'}"
            )
        seen.add(i)
        cells[i] = _unquote(match[2])
        position = match.end()
    return cells


def _checked(cell: str, attribute: _Attribute) -> str:
    if cell == "?" or attribute.text:
        return cell
    if attribute.boolean:
        if cell.lower() not in BOOLEANS:
            raise ValueError(f"{attribute.name!r} is {cell!r}; expected true, false, 1 or 0")
        return BOOLEANS[cell.lower()]
    if attribute.values is not None:
        if cell not in attribute.known:
            raise ValueError(f"{attribute.name!r} is {cell!r}; expected one of {', '.join(attribute.values[:8])}")
        return cell
    try:
        float(cell)
    except ValueError:
        raise ValueError(f"{attribute.name!r} is {cell!r}; expected a number") from None
    return cell


def _split(text: str) -> list[str]:
    """Return the cells between commas, without quotes."""
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    cells, position = [], 0
    while True:
        match = _QUOTED.match(text, position) or _PLAIN.match(text, position)
        if not match:
            raise ValueError(f"cannot read {text[position : position + 20]!r}: a quote is not closed or out of place")
        cells.append(_unquote(match[1].strip()))
        if not match[2]:
            return cells
        position = match.end()


def _unquote(word: str) -> str:
    if len(word) > 1 and word[0] in "'\"" and word[-1] == word[0]:
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word
