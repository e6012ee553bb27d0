"""CRFsuite's data files: a token per line, its label and its attributes between tabs, blank lines between sequences.

``B-NP<TAB>w=the<TAB>len:3`` is the label B-NP with the attributes ``w=the`` (value 1) and ``len`` (value 3). In names,
a colon is written ``\\:`` and a backslash ``\\\\``. A line ``@weight:0.5`` is the weight of the sequence around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from crfkit.errors import DataError
from crfkit.files.columns import CHUNK, NAME_THE_ENCODING, ColumnFile, ColumnSource
from crfkit.files.lines import whole_lines

Item = list[str] | dict[str, float]

_DECLARATION = "@weight"
_COLON, _BACKSLASH = "\0", "\1"  # stand for those that were escaped


@dataclass
class AttributeSequence:
    """The tokens of one sequence: for each its attributes and its label, and the weight of them all."""

    items: list[Item] = field(default_factory=list)  # lists of names or, where there are other values than 1, dicts
    labels: list[str] = field(default_factory=list)
    weight: float = 1.0
    line: int = 0  # of its first token


def read_crfsuite(
    path: str | Path | BinaryIO | ColumnFile, encoding: str = "utf-8"
) -> tuple[list[list[Item]], list[list[str]], list[float]]:
    """Return (items, labels, weight) of every sequence of a CRFsuite data file; ``ChainCRF().fit(X, y)`` takes them.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.crfsuite"
    >>> _ = path.write_text("@weight:2\\nDET\\tw=the\\nNOUN\\tw=cat\\tlen:3\\n\\nNOUN\\ttime=12\\\\:30\\n")
    >>> X, y, weights = read_crfsuite(path)
    >>> X
    [[['w=the'], {'w=cat': 1.0, 'len': 3.0}], [['time=12:30']]]
    >>> y, weights
    ([['DET', 'NOUN'], ['NOUN']], [2.0, 1.0])
    """
    file = path if isinstance(path, ColumnFile) else ColumnFile(path, encoding, "crfsuite")
    X: list[list[Item]] = []
    y: list[list[str]] = []
    weights: list[float] = []
    for block in crfsuite_blocks(file):
        for sequence in block:
            X.append(sequence.items)
            y.append(sequence.labels)
            weights.append(sequence.weight)
    return X, y, weights


def crfsuite_blocks(source: ColumnSource, chunk: int = CHUNK) -> Iterator[list[AttributeSequence]]:
    """Yield the sequences of a file as a stream: after each block of it, those that are complete."""
    file = ColumnFile.of(source)
    sequence, number = AttributeSequence(), 0
    for lines in _lines(file, chunk):
        done: list[AttributeSequence] = []
        for line in lines:
            number += 1
            if not line or line.isspace():
                if sequence.labels:
                    done.append(sequence)
                sequence = AttributeSequence()
                continue
            _add_line(sequence, line, file, number)
        if done:
            yield done
    if sequence.labels:
        yield [sequence]


def _lines(file: ColumnFile, chunk: int) -> Iterator[list[str]]:
    """Yield the lines of each block, without their ends."""
    before = 0
    for block in whole_lines(file.text_blocks(chunk)):
        lines = _decoded(block.removesuffix(b"\n"), file, before)
        before += len(lines)
        yield lines


def _decoded(data: bytes, file: ColumnFile, before: int) -> list[str]:
    if before == 0:
        data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start)
        place = error.start - (data.rfind(b"\n", 0, error.start) + 1)
        raise DataError(
            f"not UTF-8 at byte {place + 1} of the line (0x{data[error.start]:02X}); {NAME_THE_ENCODING}",
            file.name,
            before + line + 1,
        ) from None
    return text.replace("\r\n", "\n").removesuffix("\r").split("\n")


def _add_line(sequence: AttributeSequence, line: str, file: ColumnFile, number: int) -> None:
    """Add the token of a line, or the weight that it declares."""
    line = line.lstrip("\t")  # CRFsuite takes several tabs for one, and those at the ends for none
    escaped = "\\" in line
    if escaped:
        line = _hidden(line, file, number)
    if line[0] == "@":
        declaration, _, line = line.partition("\t")
        sequence.weight = _weight(declaration, file, number)
        line = line.lstrip("\t")
        if not line:
            return
    if ":" in line:
        label, *fields = line.split("\t")
        if ":" in label:
            raise DataError(
                f"the label '{_shown(label)}' has a value; write \\: for a colon in a label", file.name, number
            )
        label = _shown(label) if escaped else label
        sequence.items.append(_with_values(fields, escaped, file, number))
    else:
        label, *names = (_shown(line) if escaped else line).split("\t")
        sequence.items.append([name for name in names if name] if "" in names else names)
    sequence.line = sequence.line or number
    sequence.labels.append(label)


def _with_values(fields: list[str], escaped: bool, file: ColumnFile, number: int) -> Item:
    """Return the attributes of a token some of which have values."""
    values: dict[str, float] = {}
    n = 0
    try:
        for text in fields:
            if text:
                name, _, value = text.partition(":")
                if escaped:
                    name = name.replace(_COLON, ":").replace(_BACKSLASH, "\\")
                values[name] = values.get(name, 0.0) + (float(value) if value else 1.0)
                n += 1
    except ValueError:
        text = _shown(text)
        what = "two values" if text.count(":") > 1 else "a value that is not a number"
        raise DataError(
            f"the attribute '{text}' has {what}; write \\: for a colon in a name", file.name, number
        ) from None
    if "" in values:
        raise DataError("an attribute has no name before its colon; write \\: for a colon in a name", file.name, number)
    total = sum(values.values())
    if not math.isfinite(total):
        raise DataError("the value of an attribute is not finite", file.name, number)
    ones = n == total == len(values) and all(value == 1.0 for value in values.values())
    return list(values) if ones else values


def _weight(declaration: str, file: ColumnFile, number: int) -> float:
    name, _, value = declaration.partition(":")
    if name != _DECLARATION:
        raise DataError(
            f"unknown declaration '{_shown(name)}'; the only one is @weight, as in @weight:0.5, and labels cannot "
            "start with @",
            file.name,
            number,
        )
    try:
        weight = float(value)
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise DataError(f"the weight of a sequence must be a number >= 0, not '{value}'", file.name, number)
    return weight


def _hidden(line: str, file: ColumnFile, number: int) -> str:
    """Return the line with control characters instead of escaped ones, so that every colon begins a value."""
    if _COLON in line or _BACKSLASH in line:
        raise DataError("a control character (code 0 or 1) in the line", file.name, number)
    return line.replace("\\\\", _BACKSLASH).replace("\\:", _COLON)


def _shown(text: str) -> str:
    """Return hidden characters as what they stand for."""
    return text.replace(_COLON, ":").replace(_BACKSLASH, "\\")
