"""Tagging schemes, which mark phrases by labels: IOB1, IOB2, IOE1, IOE2, IOBES and BILOU; detection and conversion.

A label is "O", or a tag and a type ("B-NP"), or a tag alone ("B"). The tags of all schemes: B begins a phrase, I is
inside it, E or L ends it, S or U is all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from crfkit._values import Label
from crfkit.errors import DataError
from crfkit.names import unknown_name
from crfkit.schemes.grobid import from_grobid, is_grobid


class Phrase(NamedTuple):
    type: str
    begin: int
    end: int  # one past the last position


@dataclass(frozen=True)
class Scheme:
    """The rules of a scheme, which are about two neighbours.

    A tag in `after` needs a tag in `preceded_by`, of its own type, just before it. A tag in `before` needs a tag in
    `followed_by`, of its own type, just after it.
    """

    tags: str
    after: str = ""
    preceded_by: str = ""
    before: str = ""
    followed_by: str = ""


# Detection tries them in this order and takes the first that fits.
TAG_SCHEMES: Mapping[str, Scheme] = {
    "iob2": Scheme("BI", after="I", preceded_by="BI"),
    "iobes": Scheme("BIES", after="IE", preceded_by="BI", before="BI", followed_by="IE"),
    "bilou": Scheme("BILU", after="IL", preceded_by="BI", before="BI", followed_by="IL"),
    "iob1": Scheme("BI", after="B", preceded_by="BI"),
    "ioe2": Scheme("IE", before="I", followed_by="IE"),
    "ioe1": Scheme("IE", before="E", followed_by="IE"),
}
TAGS = "BIESLU"
ALIASES: Mapping[str, str] = {"bio": "iob2", "ioe": "ioe2", "bioes": "iobes", "biluo": "bilou"}


# --- labels


@lru_cache(maxsize=65536)
def split_label(label: str) -> tuple[str, str] | None:
    """Return (tag, type) of a label, or None if it does not mark phrases.

    >>> split_label("B-NP"), split_label("O"), split_label("NOUN"), split_label("B_NP")
    (('B', 'NP'), ('O', ''), None, None)
    """
    tag, dash, kind = label.partition("-")
    if len(tag) != 1 or tag not in f"O{TAGS}" or (dash and not kind):
        return None
    return tag, kind


def obstacle(labels: Iterable[Label]) -> str | None:
    """Return the reason why labels do not mark phrases, or None if they do.

    Labels mark phrases if each is O, or a tag (B, I, E, S, L or U) with a type after "-", or a tag alone. E, S, L and U
    alone are accepted only if B and one of E and L occur as well.
    """
    labels = list(labels)
    odd = [x for x in labels if not isinstance(x, str) or split_label(x) is None]
    if odd:
        if is_grobid(labels):
            return "these are GROBID's labels, which convert_tags(labels, 'iob2') and crfkit convert-tags read"
        if len(odd) == len(labels):
            misspelt = [x for x in odd if isinstance(x, str) and respelled(x) != x]
            if misspelt:
                x = min(misspelt)
                return f"phrases are written with '-', as in {respelled(x)!r}, not {x!r}"
            return "no label is written as B-…, I-… or O"
        return f"the label {min(odd, key=str)!r} is not written as B-…, I-… or O"
    bare = {x for x in labels if len(x) == 1} - {"B", "I", "O"}
    if bare and not ("B" in labels and bare & {"E", "L"}):
        return f"the label {min(bare)!r} has no type"
    return None


def respelled(label: str) -> str:
    """Return a label whose tag and type are joined by another sign than "-" with "-"; other labels unchanged.

    >>> respelled("B_ORG"), respelled("I/PER"), respelled("B-LOC")
    ('B-ORG', 'I-PER', 'B-LOC')
    """
    if len(label) > 2 and label[0] in TAGS and label[1] in "_/:":
        return f"{label[0]}-{label[2:]}"
    return label


def are_phrases(labels: Iterable[Label]) -> bool:
    """Return whether labels mark phrases, which can then be counted.

    >>> are_phrases(["B-NP", "I-NP", "O"]), are_phrases(["DET", "NOUN", "O"])
    (True, False)
    """
    return obstacle(labels) is None


def phrases(labels: Sequence[str]) -> Iterator[Phrase]:
    """Yield the phrases of a label sequence in any scheme, valid or not, by conlleval's rules.

    >>> [p.type for p in phrases(["B-NP", "I-NP", "B-NP", "O", "I-VP"])]
    ['NP', 'NP', 'VP']
    >>> [(p.begin, p.end) for p in phrases(["U-PER", "U-PER", "B-PER", "L-PER"])]
    [(0, 1), (1, 2), (2, 4)]
    """
    begin, tag, kind = None, "O", ""
    for t, label in enumerate([*labels, "O"]):
        parts = split_label(label) if isinstance(label, str) else None
        if parts is None:
            raise DataError(f"position {t}: the label {label!r} does not mark a phrase; expected B-…, I-… or O")
        next_tag, next_kind = parts
        if begin is not None and (next_tag in "OBSU" or tag in "ESLU" or kind != next_kind):
            yield Phrase(kind, begin, t)
            begin = None
        if begin is None and next_tag != "O":
            begin = t
        tag, kind = next_tag, next_kind


# --- detection


def fault(scheme: str, previous: str | None, following: str | None) -> tuple[int, str] | None:
    """Return (0 or 1 for the label at fault, message) if a scheme forbids two neighbours, otherwise None.

    A neighbour of None is the place before the first label or after the last.

    >>> fault("iob2", "O", "I-ORG")
    (1, 'I-ORG cannot begin a phrase in iob2')
    """
    rules = TAG_SCHEMES[scheme]
    (tag, kind), (next_tag, next_kind) = _parts(previous), _parts(following)
    same = kind == next_kind
    if tag in rules.before and not (next_tag in rules.followed_by and same):
        if scheme == "ioe1":
            return 0, f"{previous} ends a phrase that is not followed by another of its type; ioe1 writes I there"
        return 0, f"{previous} cannot end a phrase in {scheme}"
    if next_tag in rules.after and not (tag in rules.preceded_by and same):
        if scheme == "iob1":
            return 1, f"{following} begins a phrase that does not follow another of its type; iob1 writes I there"
        return 1, f"{following} cannot begin a phrase in {scheme}"
    for place, (label, own) in enumerate(((previous, tag), (following, next_tag))):
        if own not in rules.tags and own != "O":
            return place, f"{label} is not a label of {scheme}, whose tags are {', '.join(rules.tags)} and O"
    return None


def _parts(label: str | None) -> tuple[str, str]:
    return (split_label(label) if isinstance(label, str) else None) or ("O", "")


@dataclass
class LabelPairs:
    """Neighbouring labels and how often they occur; the scheme that they follow."""

    counts: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)

    @classmethod
    def of(cls, sequences: Iterable[Sequence[str]]) -> LabelPairs:
        pairs = cls()
        for labels in sequences:
            pairs.add(labels)
        return pairs

    def add(self, labels: Sequence[str]) -> None:
        self.counts.update(zip([None, *labels], [*labels, None], strict=True))

    @property
    def labels(self) -> set[str]:
        return {label for pair in self.counts for label in pair if label is not None}

    @property
    def tags(self) -> set[str]:
        return {_parts(label)[0] for label in self.labels} - {"O"}

    def faults(self, scheme: str) -> int:
        """Return the number of places that break a scheme."""
        return sum(count for pair, count in self.counts.items() if fault(scheme, *pair))

    @property
    def scheme(self) -> str | None:
        """Return the scheme that all sequences follow, or None if there is none or no phrase."""
        if not self.tags or not are_phrases(self.labels):
            return None
        return next((name for name in TAG_SCHEMES if not any(fault(name, *pair) for pair in self.counts)), None)

    @property
    def closest(self) -> str | None:
        """Return the scheme that the fewest places break, or None if there is no phrase."""
        if not self.tags or not are_phrases(self.labels):
            return None
        return min(TAG_SCHEMES, key=self.faults)

    def advice(self, scheme: str) -> str:
        """Return the scheme that labels seem to follow instead of `scheme`, or how many places break `scheme`."""
        found = self.scheme
        if found is not None and found != scheme:
            return f"these labels look like {found.upper()}"
        n = self.faults(scheme)
        return f"{n} {'places break' if n > 1 else 'place breaks'} {scheme}"


def detect_scheme(sequences: Iterable[Sequence[str]]) -> str | None:
    """Return the scheme that label sequences follow: "iob1", "iob2", "ioe1", "ioe2", "iobes" or "bilou".

    Returns None if they do not mark phrases, if there is no phrase, or if they break the rules of every scheme.

    >>> detect_scheme([["B-NP", "I-NP", "O", "B-NP"]])
    'iob2'
    >>> detect_scheme([["I-NP", "B-NP", "O"]])
    'iob1'
    >>> detect_scheme([["DET", "NOUN"]]) is None
    True
    """
    return LabelPairs.of(_check_rows(sequences)).scheme


# --- conversion


def convert_tags(sequences: Iterable[Sequence[str]], to: str, source: str = "auto") -> list[list[str]]:
    """Return label sequences rewritten in another scheme; the phrases stay the same.

    With source="auto" any scheme is read, and labels that break its rules are read as conlleval reads them (an I-X
    after O begins a phrase). With the name of a scheme, labels that break it raise :class:`~crfkit.errors.DataError`.
    GROBID's labels (I-<title>, <title>, <other>) are recognised, too; `source` calls them "grobid".

    >>> convert_tags([["B-PER", "I-PER", "O", "B-LOC"]], to="bilou")
    [['B-PER', 'L-PER', 'O', 'U-LOC']]
    """
    target, origin = scheme_name(to), None if source in ("auto", "grobid") else scheme_name(source)
    rows = _check_rows(sequences)
    if origin is None and (source == "grobid" or is_grobid({label for row in rows for label in row})):
        rows = [from_grobid(row) for row in rows]
    written: list[list[str]] = []
    try:
        for labels in rows:
            written.append(convert_sequence(labels, target, origin))  # noqa: PERF401 - its length tells the place
    except LabelFaultError as error:
        advice = f"; {LabelPairs.of(rows).advice(origin)}" if origin is not None else ""
        raise DataError(f"sequence {len(written)}, position {error.position}: {error}{advice}") from None
    return written


class Rewritten(NamedTuple):
    """Labels in the scheme of others, and the schemes from which and into which they were rewritten, if at all."""

    labels: list[list[str]]
    scheme: tuple[str, str] | None


def in_scheme_of(gold: Sequence[Sequence[Label]], labels: Sequence[Sequence[Label]]) -> Rewritten:
    """Return labels in the scheme of the gold labels, so that the same phrases have the same labels.

    They are rewritten only if they clearly follow another scheme: a tagger that breaks the rules here and there keeps
    its labels.

    >>> in_scheme_of([["B-PER", "I-PER", "O", "B-LOC"]], [["I-PER", "I-PER", "O", "I-LOC"]])
    Rewritten(labels=[['B-PER', 'I-PER', 'O', 'B-LOC']], scheme=('iob1', 'iob2'))
    """
    rows = [list(row) for row in labels]
    theirs, ours = LabelPairs.of(gold), LabelPairs.of(rows)
    target = theirs.closest
    origin = ours.closest
    if target is None or origin is None or origin == target:
        return Rewritten(rows, None)
    if ours.faults(target) <= FAULTS_OF_ANOTHER_SCHEME * ours.faults(origin):
        return Rewritten(rows, None)
    return Rewritten(convert_tags(rows, target), (origin, target))


FAULTS_OF_ANOTHER_SCHEME = 10  # how many times more labels must break the rules of the gold labels than their own


class LabelFaultError(DataError):
    """A label that breaks a scheme or that does not mark phrases."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def convert_sequence(labels: Sequence[str], to: str, source: str | None = None) -> list[str]:
    """Return one label sequence in another scheme; with `source`, check that it follows that one."""
    for t, label in enumerate(labels):
        if not isinstance(label, str) or split_label(label) is None:
            raise LabelFaultError(f"the label {label!r} does not mark a phrase; expected B-…, I-… or O", t)
    if source is not None:
        for t, pair in enumerate(zip([None, *labels], [*labels, None], strict=True)):
            if wrong := fault(source, *pair):
                raise LabelFaultError(wrong[1], t - 1 + wrong[0])
    out = list(labels)
    found = list(phrases(labels))
    for k, phrase in enumerate(found):
        before = k > 0 and _touch(found[k - 1], phrase)
        after = k + 1 < len(found) and _touch(phrase, found[k + 1])
        tags = _tags(to, phrase.end - phrase.begin, before, after)
        out[phrase.begin : phrase.end] = [f"{tag}-{phrase.type}" if phrase.type else tag for tag in tags]
    return out


def _touch(first: Phrase, second: Phrase) -> bool:
    return first.end == second.begin and first.type == second.type


def _tags(scheme: str, n: int, before: bool, after: bool) -> str:
    """Return the tags of a phrase of n positions; `before` and `after`: another of its type touches it there."""
    if scheme in ("iob1", "iob2"):
        return ("B" if before or scheme == "iob2" else "I") + "I" * (n - 1)
    if scheme in ("ioe1", "ioe2"):
        return "I" * (n - 1) + ("E" if after or scheme == "ioe2" else "I")
    last, single = "ES" if scheme == "iobes" else "LU"
    return single if n == 1 else "B" + "I" * (n - 2) + last


def scheme_name(name: str) -> str:
    """Return the name of a scheme in TAG_SCHEMES, from any spelling.

    >>> scheme_name("IOBES"), scheme_name("BIO")
    ('iobes', 'iob2')
    """
    lower = name.lower() if isinstance(name, str) else name
    lower = ALIASES.get(lower, lower)
    if lower not in TAG_SCHEMES:
        raise unknown_name("tagging scheme", name, sorted(TAG_SCHEMES))
    return lower


def _check_rows(sequences: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    if isinstance(sequences, (str, bytes)) or not isinstance(sequences, Iterable):
        raise DataError(f"expected a list of label sequences, not {type(sequences).__name__}")
    rows: list[Sequence[str]] = []
    for n, row in enumerate(sequences):
        if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
            raise DataError(
                f"expected a list of label sequences, but item {n} is {row!r}; put a single sequence into a list: "
                "[labels]"
            )
        rows.append(row.tolist() if hasattr(row, "tolist") else list(row))
    return rows
