"""Labels that are probably misspelt: rare ones that nearly are another label, or that break a tagging scheme."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from crfkit._types import Array, Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.errors import CrfkitError, DataWarning
from crfkit.files.columns import ColumnFile, rows_of
from crfkit.schemes import respelled, split_label
from crfkit.warn import warn_caller

MAX_TYPO_COUNT = 2  # a label that occurs more often is meant
LESS_LIKELY = 5  # how many times more often the other label must occur
FAR_LESS_LIKELY = 50  # the same, where two types that are meant often look as similar
MIN_TAGGED = 10  # so many positions with tags say that labels mark phrases
MAX_SHOWN = 5  # warnings name no more labels than this


class Suspect(NamedTuple):
    """A label that is probably a mistake, why, and the label that was probably meant."""

    label: str
    times: int
    reason: str  # how it breaks the scheme of the others; "" if it is only near another label
    meant: str | None


def warn_of_typos(classes: Array, data: SequenceData, files: Sequence[ColumnFile] = ()) -> None:
    """Warn about each label that is probably misspelt; `files` are those that the data were read from."""
    if data.labels is None or len(classes) < 3 or not all(isinstance(name, str) for name in classes.tolist()):
        return
    counts = np.bincount(data.labels, minlength=len(classes))
    if counts.min() > MAX_TYPO_COUNT:
        return
    names = classes.tolist()
    found = suspects(names, counts, data.labels, data.starts)
    if not found:
        return
    for suspect in found[:MAX_SHOWN]:
        place = _place(suspect.label, names.index(suspect.label), data, files)
        often = "once" if suspect.times == 1 else f"{suspect.times} times"
        more = f"; did you mean {suspect.meant!r}?" if suspect.meant else f", and {suspect.reason}"
        warn_caller(f"the label {suspect.label!r} occurs {often} ({place}){more}", DataWarning)
    if len(found) > MAX_SHOWN:
        warn_caller(f"{len(found) - MAX_SHOWN} more labels look misspelt", DataWarning)


def _place(label: str, number: int, data: SequenceData, files: Sequence[ColumnFile]) -> str:
    """Return where a label first occurs: the line of its file if that can be read again."""
    for file in files:
        if hasattr(file.source, "read"):
            break
        with suppress(CrfkitError, OSError):
            for line, cells in rows_of(file):
                if cells and cells[-1] == label:
                    return f"{file.name}:{line}"
    assert data.labels is not None
    first = int(np.argmax(data.labels == number))
    sequence = int(np.searchsorted(data.starts, first, side="right")) - 1
    return f"sequence {sequence}, position {first - int(data.starts[sequence])}"


def suspects(names: Sequence[str], counts: Ints, labels: Ids, starts: Ints) -> list[Suspect]:
    """Return the labels that are probably misspelt, given how often each occurs and the labels of all positions.

    >>> ids = np.array([0, 3, 4] * 20 + [1, 0, 2], dtype=np.int32)
    >>> found = suspects(["B-ORG", "B_ORG", "I-OGR", "I-ORG", "O"], np.bincount(ids), ids, np.array([0, 63]))
    >>> [(suspect.label, suspect.meant) for suspect in found]
    [('B_ORG', 'B-ORG'), ('I-OGR', 'I-ORG')]
    """
    how_often = dict(zip(names, counts.tolist(), strict=True))
    rare = [name for name in names if how_often[name] <= MAX_TYPO_COUNT]
    tagged = {name: parts for name in names if (parts := split_label(name)) is not None and parts[1]}
    marked = sum(how_often[name] for name in tagged)
    odd = [name for name in names if split_label(name) is None]
    phrases = len(tagged) > 1 and marked >= MIN_TAGGED and set(odd) <= set(rare)
    if not phrases:
        tagged = {}
    kinds: Counter[str] = Counter()
    for name, (_, kind) in tagged.items():
        kinds[kind] += how_often[name]
    found = []
    for name in rare:
        count = how_often[name]
        if name in tagged:
            tag, kind = tagged[name]
            if kinds[kind] > 2 * MAX_TYPO_COUNT:
                continue
            meant = _near(kind, {k: n for k, n in kinds.items() if n >= LESS_LIKELY * kinds[kind]}, kinds[kind], True)
            reason = ""
            alone = tag in "IEL" and _has_no_beginning(tagged, kind)
            if alone and _phrases_begin(names, tagged, kind, labels, starts):
                reason = f"no label begins a phrase of {kind}"
                meant = meant or _nearest(kind, [k for k in kinds if kinds[k] >= LESS_LIKELY * count], 1)
            if meant is not None or reason:
                found.append(Suspect(name, count, reason, None if meant is None else f"{tag}-{meant}"))
            continue
        others = {other: n for other, n in how_often.items() if n >= LESS_LIKELY * count}
        meant = _near(name, others, count, False)
        if phrases and name in odd:
            if meant is None and split_label(respelled(name)) is not None and respelled(name)[2:] in kinds:
                meant = respelled(name)
            meant = meant or _nearest(name, list(others), 2)
            found.append(Suspect(name, count, "it is not written as B-…, I-… or O, as the others are", meant))
        elif meant is not None:
            found.append(Suspect(name, count, "", meant))
    return found


def _has_no_beginning(tagged: dict[str, tuple[str, str]], kind: str) -> bool:
    """Return whether only this type has no label that begins a phrase, of two types or more."""
    begun = {k for tag, k in tagged.values() if tag in "BSU"}
    return kind not in begun and bool(begun) and all(k in begun for _, k in tagged.values() if k != kind)


def _phrases_begin(
    names: Sequence[str], tagged: dict[str, tuple[str, str]], kind: str, labels: Ids, starts: Ints
) -> bool:
    """Return whether all other phrases begin with a B label, as in IOB2 but not in IOB1."""
    inside = np.array([name in tagged and tagged[name][0] == "I" and tagged[name][1] != kind for name in names])
    outside = np.array([name not in tagged for name in names])
    before_outside = np.ones(len(labels), dtype=bool)
    before_outside[1:] = outside[labels[:-1]]
    before_outside[starts[:-1][starts[:-1] < len(labels)]] = True
    return not (inside[labels] & before_outside).any()


# --- how near texts are


def _near(text: str, others: dict[str, int], count: int, types: bool) -> str | None:
    """Return another text that is surely meant: another case or separator, or two letters changed places.

    Of types of phrases, also one with one letter more, less or changed, if it is far more frequent. Labels such as
    parts of speech (NN, NNS, NNP) are that near without being mistakes.
    """
    key = _key(text)
    letters = sum(c.isalpha() for c in text)
    same = [other for other in others if other != text and letters > 1 and _key(other) == key]
    if not same and letters > (2 if types else 3):  # VSM and VMS are two kinds of Spanish verbs
        same = [other for other in others if _is_swapped(text, other)]
    if not same and types and letters > 3:
        far = [k for k, n in others.items() if n >= FAR_LESS_LIKELY * count and len(k) > 3]
        same = [other for other in far if _differ_by_a_letter(text, other)]
    return max(same, key=others.__getitem__, default=None)


def _key(text: str) -> str:
    return re.sub(r"(?<=\w)[-/:.|\s]+(?=\w)", "_", text.strip("\ufeff\u200b\u00a0")).casefold()


def _is_swapped(one: str, two: str) -> bool:
    """Return whether two neighbouring letters have changed places."""
    if len(one) != len(two) or one == two:
        return False
    differ = [k for k in range(len(one)) if one[k] != two[k]]
    if len(differ) != 2 or differ[1] != differ[0] + 1:
        return False
    a, b = differ
    return one[a] == two[b] and one[b] == two[a] and (one[a] + one[b]).isalpha()


def _differ_by_a_letter(one: str, two: str) -> bool:
    """Return whether one letter, and no digit or other sign, was added, dropped or changed."""
    if len(one) > len(two):
        one, two = two, one
    if len(two) - len(one) > 1:
        return False
    k = next((k for k in range(len(one)) if one[k] != two[k]), len(one))
    if len(one) == len(two):
        return k < len(one) and (one[k] + two[k]).isalpha() and one[k + 1 :] == two[k + 1 :]
    return two[k].isalpha() and one[k:] == two[k + 1 :]


def _nearest(text: str, others: Sequence[str], most: int) -> str | None:
    """Return the text that is the fewest edits away, at most `most` and fewer than half its letters."""
    best = min(((_distance(text, other), other) for other in others if other != text), default=(most + 1, ""))
    return best[1] if best[0] <= most and 2 * best[0] < len(text) else None


def _distance(one: str, two: str) -> int:
    """Return the edit distance of two texts, in which two swapped letters count as one edit."""
    rows = [list(range(len(two) + 1))]
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(two, start=1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
