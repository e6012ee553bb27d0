"""The weights of a model by name, and the text that `crfsuite dump` prints of a model."""

from __future__ import annotations

import re

_SECTION = re.compile(r"(FILEHEADER|LABELS|ATTRIBUTES|TRANSITIONS|STATE_FEATURES) = {")
_ENTRY = re.compile(r"(\w+): (.*)")
_WEIGHT = re.compile(r"\(\d+\) (.+) --> (.+): ([+-]?\d+\.\d+)$")


class ParsedDump:
    """The contents of a model: the result of :meth:`Tagger.info`.

    `transitions` has the weight of each (from label, to label), `state_features` the weight of each (attribute, label);
    `header` has the entries of the file's header, `labels` and `attributes` the number of each name, all as text.
    """

    def __init__(self) -> None:
        self.header: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.transitions: dict[tuple[object, object], float] = {}
        self.state_features: dict[tuple[str, object], float] = {}


class CRFsuiteDumpParser:
    """Parse the text of a dump, line by line.

    >>> parser = CRFsuiteDumpParser()
    >>> for line in ["LABELS = {\\n", "      0: dry\\n", "}\\n"]:
    ...     parser.feed(line)
    >>> parser.result.labels
    {'dry': '0'}
    """

    def __init__(self) -> None:
        self.state: str | None = None
        self.result = ParsedDump()

    def feed(self, line: str) -> None:
        line = line.lstrip().rstrip("\r\n")  # names may end in blanks
        if found := _SECTION.match(line):
            self.state = found[1]
        elif line == "}":
            self.state = None
        elif line and self.state in ("TRANSITIONS", "STATE_FEATURES"):
            self._weight(line)
        elif line and self.state and (found := _ENTRY.match(line)):
            if self.state == "FILEHEADER":
                self.result.header[found[1]] = found[2]
            else:
                (self.result.labels if self.state == "LABELS" else self.result.attributes)[found[2]] = found[1]

    def _weight(self, line: str) -> None:
        found = _WEIGHT.match(line)
        if not found:
            return
        key, weight = (found[1], found[2]), float(found[3])
        # names may hold " --> ": take the split at which both sides are known
        sources = self.result.labels if self.state == "TRANSITIONS" else self.result.attributes
        at = -1
        text = f"{found[1]} --> {found[2]}"
        while (key[0] not in sources or key[1] not in self.result.labels) and (at := text.find(" --> ", at + 1)) >= 0:
            key = (text[:at], text[at + 5 :])
        (self.result.transitions if self.state == "TRANSITIONS" else self.result.state_features)[key] = weight
