"""Count which labels are confused, and which kinds of mistakes are made with phrases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from crfkit._types import Frame, Ints, Label
from crfkit.errors import DataError
from crfkit.extras import load
from crfkit.metrics import evaluate
from crfkit.schemes import Phrase, obstacle, phrases

KINDS = ("boundary", "type", "both", "missed", "invented")


@dataclass(frozen=True, eq=False)
class Confusions:
    """Counts of labels predicted where others were right: `counts` [gold, predicted], in order of `labels`."""

    labels: list[Label]
    counts: Ints

    @property
    def pairs(self) -> list[tuple[Label, Label, int]]:
        """Return (gold, predicted, positions) of the labels that were confused, most frequent first."""
        found = [
            (self.labels[i], self.labels[j], int(self.counts[i, j]))
            for i, j in np.argwhere(self.counts).tolist()
            if i != j
        ]
        return sorted(found, key=lambda row: (-row[2], str(row[0]), str(row[1])))

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame: a row for each gold label, a column for each predicted one."""
        pd = load("pandas", "to_frame needs")
        index = pd.Index(self.labels, name="gold")
        return pd.DataFrame(self.counts, index=index, columns=pd.Index(self.labels, name="predicted"))

    def to_html(self) -> str:
        """Return a table in HTML, without styles of its own; all texts are escaped."""
        names = [escape(str(label)) for label in self.labels]
        head = "".join(f"<th scope='col'>{name}</th>" for name in names)
        rows = "".join(
            f"<tr><th scope='row'>{name}</th>{''.join(f'<td>{n}</td>' for n in row)}</tr>"
            for name, row in zip(names, self.counts.tolist(), strict=True)
        )
        return f"<table class='crfkit-confusions'><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        wrong = self.pairs
        right = int(np.trace(self.counts))
        lines = [f"{right} of {int(self.counts.sum())} positions are right"]
        if wrong:
            lines += ["positions  gold → predicted", *(f"{n:9d}  {a} → {b}" for a, b, n in wrong[:20])]
        if len(wrong) > 20:
            lines.append(f"{'':9}  and {len(wrong) - 20} other pairs")
        return "\n".join(lines)


def confusions(y_true: Iterable[Sequence[Label]], y_pred: Iterable[Sequence[Label]]) -> Confusions:
    """Count which labels were predicted where others are right.

    >>> print(confusions([["DET", "NOUN", "VERB"]], [["DET", "NOUN", "NOUN"]]))
    2 of 3 positions are right
    positions  gold → predicted
            1  VERB → NOUN
    """
    found = evaluate(y_true, y_pred)
    labels = found.labels
    place = {label: k for k, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for (gold, predicted), n in found.confusion.items():
        counts[place[gold], place[predicted]] = n
    return Confusions(labels, counts)


class Mistake(NamedTuple):
    """A gold phrase that was not found exactly, a predicted phrase that is wrong, or the two that belong together.

    kind : "boundary" (right type, other ends), "type" (right ends, other type), "both" (they overlap, but type and ends
    are wrong),
        "missed" (nothing was found there), "invented" (nothing is there)
    """

    sequence: int
    kind: str
    gold: Phrase | None
    predicted: Phrase | None


@dataclass(frozen=True)
class Mistakes(Sequence[Mistake]):
    """All mistakes with phrases. `print` shows how many there are of each kind, by type of phrase."""

    items: tuple[Mistake, ...]
    correct: int

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, k: Any) -> Any:
        return self.items[k]

    def __iter__(self) -> Iterator[Mistake]:
        return iter(self.items)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of mistakes of each kind."""
        found = Counter(item.kind for item in self.items)
        return {kind: found[kind] for kind in KINDS}

    @property
    def by_type(self) -> dict[str, dict[str, int]]:
        """Return the number of mistakes of each kind by type of phrase (the gold phrase's, if there is one)."""
        found: Counter[tuple[str, str]] = Counter()
        for item in self.items:
            phrase = item.gold or item.predicted
            assert phrase is not None
            found[phrase.type, item.kind] += 1
        return {name: {kind: found[name, kind] for kind in KINDS} for name in sorted({name for name, _ in found})}

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame with a row for each mistake."""
        empty = Phrase("", -1, -1)
        return load("pandas", "to_frame needs").DataFrame(
            [
                {
                    "sequence": item.sequence,
                    "kind": item.kind,
                    **{f"gold_{name}": x for name, x in (item.gold or empty)._asdict().items()},
                    **{f"predicted_{name}": x for name, x in (item.predicted or empty)._asdict().items()},
                }
                for item in self.items
            ]
        )

    def __str__(self) -> str:
        rows = [("all", self.counts), *self.by_type.items()]
        width = max(len(name) for name, _ in rows)
        lines = [f"{self.correct} phrases are right, {len(self)} mistakes"]
        lines.append(f"{'':{width}}  " + "  ".join(f"{kind:>8}" for kind in KINDS))
        lines += [f"{name:{width}}  " + "  ".join(f"{row[kind]:8d}" for kind in KINDS) for name, row in rows]
        return "\n".join(lines)


def mistakes(y_true: Iterable[Sequence[str]], y_pred: Iterable[Sequence[str]]) -> Mistakes:
    """Find the mistakes with phrases and sort them by kind. The labels must mark phrases, in any scheme.

    A wrong gold phrase and a wrong predicted phrase that overlap are one mistake; each belongs to at most one, the one
    with the same ends if there is one, then the one of the same type that shares most positions.

    >>> print(mistakes([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-ORG"]]))
    0 phrases are right, 2 mistakes
         boundary      type      both    missed  invented
    all         1         1         0         0         0
    LOC         0         1         0         0         0
    PER         1         0         0         0         0
    """
    gold, predicted = [list(row) for row in y_true], [list(row) for row in y_pred]
    if len(gold) != len(predicted):
        raise DataError(f"there are {len(gold)} gold label sequences but {len(predicted)} predicted label sequences")
    why = obstacle({label for row in [*gold, *predicted] for label in row})
    if why is not None:
        raise DataError(f"these labels do not mark phrases: {why}; use confusions instead")
    items: list[Mistake] = []
    correct = 0
    for n, (a, b) in enumerate(zip(gold, predicted, strict=True)):
        if len(a) != len(b):
            raise DataError(f"sequence {n} has {len(a)} gold labels but {len(b)} predicted labels")
        true, found = set(phrases(a)), set(phrases(b))
        correct += len(true & found)
        items += _of_one(n, true - found, found - true)
    return Mistakes(tuple(items), correct)


def _of_one(n: int, true: set[Phrase], found: set[Phrase]) -> list[Mistake]:
    """Return the mistakes of one sequence, given what is wrong in it, in the order of positions."""
    pairs = [(p, q) for p in true for q in found if p.begin < q.end and q.begin < p.end]
    pairs.sort(key=lambda pair: (*_fit(*pair), pair))
    items, used = [], set()
    for p, q in pairs:
        if (p, 0) in used or (q, 1) in used:
            continue
        used |= {(p, 0), (q, 1)}
        same_ends = (p.begin, p.end) == (q.begin, q.end)
        items.append(Mistake(n, "type" if same_ends else "boundary" if p.type == q.type else "both", p, q))
    items += [Mistake(n, "missed", p, None) for p in true if (p, 0) not in used]
    items += [Mistake(n, "invented", None, q) for q in found if (q, 1) not in used]

    def place(item: Mistake) -> tuple[int, int]:
        phrase = item.gold or item.predicted
        assert phrase is not None
        return phrase.begin, KINDS.index(item.kind)

    return sorted(items, key=place)


def _fit(p: Phrase, q: Phrase) -> tuple[bool, bool, int]:
    """Return what orders pairs of phrases that may be one mistake, the best first."""
    shared = min(p.end, q.end) - max(p.begin, q.begin)
    return (p.begin, p.end) != (q.begin, q.end), p.type != q.type, -shared
