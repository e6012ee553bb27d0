"""Recognise files that look like column files but have other contents, so that nobody trains on the wrong column."""

from __future__ import annotations

from collections.abc import Collection

ATTRIBUTE_FILE = (
    "this looks like a file of CRFsuite attributes (the label first, then attributes, between tabs), but a column file "
    "has the label last; learn from attributes without a template, as in crfkit train FILE --format crfsuite -m MODEL "
    "or, in Python, ChainCRF().fit_file(path, format='crfsuite')"
)
MAX_LABELS = 100  # different labels are always accepted
_LINES = 1000


def describe_attribute_file(start: bytes) -> str | None:
    """Return a message if a file with this beginning has CRFsuite attributes instead of columns, otherwise None.

    Its signs: tabs between cells; most cells but the first are name=value or name:value, the last one too, or lines
    have different numbers of cells; and the first cell has fewer different values than another, as labels have.

    >>> describe_attribute_file(b"B-NP\\tw=the\\tpos=DT\\nI-NP\\tw=cat\\tpos=NN\\n\\nB-NP\\tw=it\\tpos=PRP\\n")[:15]
    'this looks like'
    >>> describe_attribute_file(b"the\\tpos=DT\\tB-NP\\ncat\\tpos=NN\\tI-NP\\n")
    """
    lines = start.split(b"\n")[:_LINES]
    if len(lines) > 1:
        lines = lines[:-1]  # the last may be cut
    rows = [line.rstrip(b"\r\t").split(b"\t") for line in lines if line.strip()]
    if len(rows) < 2 or min(map(len, rows)) < 2:
        return None
    first = {row[0] for row in rows}
    most = max(len({row[k] for row in rows if k < len(row)}) for k in range(1, max(map(len, rows))))
    if len(first) >= most or b" " in b"".join(first):
        return None
    rest = [cell for row in rows for cell in row[1:]]
    share = sum(_is_attribute(cell) for cell in rest) / len(rest)
    final = sum(_is_attribute(row[-1]) for row in rows) / len(rows)
    ragged = len({len(row) for row in rows}) > 1
    if (share >= 0.75 and final >= 0.5) or (ragged and (share >= 0.5 or len(first) <= max(2, len(rows) // 10))):
        return ATTRIBUTE_FILE
    return None


def _is_attribute(cell: bytes) -> bool:
    return cell.find(b"=", 1) > 0 or cell.find(b":", 1) > 0


def check_label_count(labels: Collection[str], positions: int) -> None:
    """Raise DataError if there are too many labels for the last column to be the label.

    More than 100 different ones, of which the average one occurs less than twice: nothing could be learned.
    """
    from crfkit.errors import DataError

    if len(labels) > MAX_LABELS and 2 * len(labels) > positions:
        some = ", ".join(repr(label) for label in list(labels)[:3])
        raise DataError(
            f"the last column has {len(labels)} different values ({some} …) in {positions} lines, too many to be "
            "labels; make the label the last column"
        )
