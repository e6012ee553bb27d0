"""Scores of predicted labels: phrases as the CoNLL shared tasks count them, and accuracy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Phrase:
    type: str
    begin: int
    end: int  # one past the last position


def _split(label: str) -> tuple[str, str]:
    """("B", "NP") of "B-NP"; ("O", "") of "O"."""
    tag, _, kind = label.partition("-")
    return tag, kind


def phrases(labels: Sequence[str]) -> Iterator[Phrase]:
    """The phrases of a label sequence in any of the IOB, IOE and IOBES schemes, by conlleval's rules.

    >>> [p.type for p in phrases(["B-NP", "I-NP", "B-NP", "O", "I-VP"])]
    ['NP', 'NP', 'VP']
    """
    begin, tag, kind = None, "O", ""
    for t, label in enumerate([*labels, "O"]):
        next_tag, next_kind = _split(label)
        changed = kind != next_kind
        if begin is not None and (next_tag in "OBS." or tag in "ES[]" or next_tag in "[]" or changed):
            yield Phrase(kind, begin, t)
            begin = None
        if begin is None and next_tag not in "O.":
            begin = t
        tag, kind = next_tag, next_kind


@dataclass
class PhraseCounts:
    """Correct, predicted and gold phrases."""

    correct: int = 0
    predicted: int = 0
    gold: int = 0

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        total = self.predicted + self.gold
        return 2 * self.correct / total if total else 0.0


@dataclass
class Evaluation:
    """Counts over label sequences; `add` as many as there are."""

    tokens: int = 0
    correct_tokens: int = 0
    sequences: int = 0
    correct_sequences: int = 0
    overall: PhraseCounts = field(default_factory=PhraseCounts)
    by_type: dict[str, PhraseCounts] = field(default_factory=dict)

    def add(self, gold: Sequence[str], predicted: Sequence[str]) -> None:
        if len(gold) != len(predicted):
            raise ValueError(f"{len(gold)} gold labels but {len(predicted)} predicted ones")
        hits = sum(a == b for a, b in zip(gold, predicted, strict=True))
        self.tokens += len(gold)
        self.correct_tokens += hits
        self.sequences += 1
        self.correct_sequences += hits == len(gold)
        true, found = set(phrases(gold)), set(phrases(predicted))
        for name, group in (("gold", true), ("predicted", found), ("correct", true & found)):
            for kind, count in Counter(phrase.type for phrase in group).items():
                counts = self.by_type.setdefault(kind, PhraseCounts())
                setattr(counts, name, getattr(counts, name) + count)
                setattr(self.overall, name, getattr(self.overall, name) + count)

    @property
    def accuracy(self) -> float:
        return self.correct_tokens / self.tokens if self.tokens else 0.0

    @property
    def sequence_accuracy(self) -> float:
        return self.correct_sequences / self.sequences if self.sequences else 0.0

    def as_dict(self) -> dict[str, object]:
        def row(counts: PhraseCounts) -> dict[str, float]:
            return {
                "precision": counts.precision,
                "recall": counts.recall,
                "f1": counts.f1,
                "correct": counts.correct,
                "predicted": counts.predicted,
                "gold": counts.gold,
            }

        return {
            "tokens": self.tokens,
            "accuracy": self.accuracy,
            "sequences": self.sequences,
            "sequence_accuracy": self.sequence_accuracy,
            "overall": row(self.overall),
            "by_type": {kind: row(counts) for kind, counts in sorted(self.by_type.items())},
        }


def evaluate(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> Evaluation:
    """Scores predicted label sequences.

    >>> evaluate([["B-NP", "O"]], [["B-NP", "O"]]).overall.f1
    1.0
    """
    result = Evaluation()
    for a, b in zip(gold, predicted, strict=True):
        result.add(a, b)
    return result
