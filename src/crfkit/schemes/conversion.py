"""Convert the labels of files between tagging schemes, sequence by sequence, and remember what broke the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crfkit.schemes import LabelFaultError, LabelPairs, convert_sequence, fault, respelled, scheme_name
from crfkit.schemes.grobid import from_grobid, is_grobid
from crfkit.wording import counted

Pair = tuple[str | None, str | None]


@dataclass
class Conversion:
    """Rewrites sequences of labels in the scheme `to`.

    With the name of a `source` scheme, labels that break its rules raise LabelFaultError; with `repair`, they are
    read as conlleval reads them. Without a scheme, any is read.
    """

    to: str
    source: str | None
    repair: bool
    name: str = ""  # of the current file
    pairs: LabelPairs = field(default_factory=LabelPairs)
    _first: dict[Pair, tuple[str, int, int]] = field(default_factory=dict)  # file and both lines of each pair
    _respelled: int = 0
    _grobid: bool = False

    def __post_init__(self) -> None:
        self._grobid = self.source == "grobid"
        if self.source is not None:
            self.source = "iob2" if self._grobid else scheme_name(self.source)

    def __call__(self, labels: list[str], lines: Sequence[int]) -> list[str]:
        """Return the labels of a sequence, whose lines are given for messages, in the other scheme."""
        if self.repair:
            self._respelled += sum(respelled(label) != label for label in labels)
            labels = [respelled(label) for label in labels]
        if is_grobid(labels) and self.source in (None, "iob2"):
            self._grobid = True
        if self._grobid:
            labels = from_grobid(labels)
        self.pairs.add(labels)
        for k, pair in enumerate(zip([None, *labels], [*labels, None], strict=True)):
            if pair not in self._first:
                self._first[pair] = self.name, lines[max(k - 1, 0)], lines[min(k, len(lines) - 1)]
        try:
            return convert_sequence(labels, self.to, None if self.repair else self.source)
        except LabelFaultError as error:
            if self.source is None or self.pairs.scheme in (None, self.source):
                raise
            raise LabelFaultError(f"{error}; {self.pairs.advice(self.source)}", error.position) from None

    def broken(self) -> str | None:
        """Return how many labels broke the rules and where the first one is; None if none did."""
        parts = []
        if self._respelled:
            parts.append(f"{counted(self._respelled, 'label')} got '-' after the tag")
        if (self.source is None and self.pairs.scheme is None) or self.repair:
            scheme = self.source or self.pairs.closest
            faults = {pair: found for pair in self.pairs.counts if scheme and (found := fault(scheme, *pair))}
            if scheme and faults:
                pair = next(pair for pair in self._first if pair in faults)  # in the order of the files
                name, *both = self._first[pair]
                n = sum(self.pairs.counts[pair] for pair in faults)
                parts.append(
                    f"{counted(n, 'place')} broke {scheme.upper()}; phrases there were read as conlleval reads them; "
                    f"the first is {name}:{both[faults[pair][0]]}: {faults[pair][1]}"
                )
        return "; ".join(parts) or None
