"""Scores of predicted labels: phrases as in the CoNLL shared tasks, single labels, and accuracy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from crfkit._values import Label
from crfkit.errors import DataError
from crfkit.metrics.report import report
from crfkit.metrics.scorers import phrase_f1_scorer as phrase_f1_scorer
from crfkit.schemes import TAG_SCHEMES, LabelPairs, Phrase, obstacle, phrases, split_label


@dataclass
class Counts:
    """Correct, predicted and gold phrases of a type, or positions of a label."""

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

    def as_dict(self) -> dict[str, float]:
        row = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return row | {"correct": self.correct, "predicted": self.predicted, "gold": self.gold}


@dataclass
class Evaluation:
    """Counts over label sequences, which :meth:`add` adds one by one. `print` shows a table.

    Phrases (`overall`, `by_type`) are counted if all labels mark phrases ("B-NP", "I-NP", "O" and so on). Labels
    (`by_label`, `confusion`, `macro`) are always counted.
    """

    tokens: int = 0
    correct_tokens: int = 0
    sequences: int = 0
    correct_sequences: int = 0
    confusion: Counter[tuple[Label, Label]] = field(
        default_factory=Counter, repr=False
    )  # (gold, predicted) → positions
    _by_type: dict[str, Counts] = field(default_factory=dict, repr=False)
    _gold_pairs: LabelPairs = field(default_factory=LabelPairs, repr=False)
    _readable: bool = field(default=True, repr=False)  # whether all labels so far mark phrases

    def add(self, gold: Sequence[Label], predicted: Sequence[Label]) -> None:
        """Add one sequence."""
        gold, predicted = (_labels(row, what) for row, what in ((gold, "gold"), (predicted, "predicted")))
        if len(gold) != len(predicted):
            raise DataError(
                f"sequence {self.sequences} has {len(gold)} gold labels but {len(predicted)} predicted labels"
            )
        hits = sum(a == b for a, b in zip(gold, predicted, strict=True))
        self.tokens += len(gold)
        self.correct_tokens += hits
        self.sequences += 1
        self.correct_sequences += hits == len(gold)
        try:
            self.confusion.update(zip(gold, predicted, strict=True))
        except TypeError:
            odd = next(label for label in [*gold, *predicted] if getattr(label, "__hash__", None) is None)
            raise DataError(
                f"sequence {self.sequences - 1}: {odd!r} is a {type(odd).__name__}, not a label; expected lists of "
                "label sequences, whose items are labels"
            ) from None
        if self._readable and all(isinstance(x, str) and split_label(x) for x in {*gold, *predicted}):
            self._gold_pairs.add(gold)
            self._count(set(phrases(gold)), set(phrases(predicted)))
        else:
            self._readable = False

    def _count(self, true: set[Phrase], found: set[Phrase]) -> None:
        by_type = self._by_type
        for phrase in true | found:
            if phrase.type not in by_type:
                by_type[phrase.type] = Counts()
            counts = by_type[phrase.type]
            gold, predicted = phrase in true, phrase in found
            counts.gold += gold
            counts.predicted += predicted
            counts.correct += gold and predicted

    # --- positions

    @property
    def accuracy(self) -> float:
        return self.correct_tokens / self.tokens if self.tokens else 0.0

    @property
    def sequence_accuracy(self) -> float:
        return self.correct_sequences / self.sequences if self.sequences else 0.0

    @property
    def labels(self) -> list[Label]:
        """Return all gold and predicted labels, sorted."""
        labels = {label for pair in self.confusion for label in pair}
        try:
            return sorted(labels)
        except TypeError:
            return sorted(labels, key=lambda x: (type(x).__name__, str(x)))

    @property
    def by_label(self) -> dict[Label, Counts]:
        """Return the counts of each label over positions; `gold` is its support."""
        table = {label: Counts() for label in self.labels}
        for (gold, predicted), count in self.confusion.items():
            table[gold].gold += count
            table[predicted].predicted += count
            if gold == predicted:
                table[gold].correct += count
        return table

    @property
    def macro(self) -> dict[str, float]:
        """Return the means over labels of precision, recall and F1; all labels have equal weight."""
        rows = list(self.by_label.values())
        n = max(len(rows), 1)
        return {name: sum(getattr(row, name) for row in rows) / n for name in ("precision", "recall", "f1")}

    @property
    def mistakes(self) -> list[tuple[Label, Label, int]]:
        """Return (gold label, predicted label, positions) of confused labels, most frequent first."""
        pairs = [(a, b, n) for (a, b), n in self.confusion.items() if a != b]
        return sorted(pairs, key=lambda row: (-row[2], str(row[0]), str(row[1])))

    # --- phrases

    @property
    def has_phrases(self) -> bool:
        """Return whether phrases are counted."""
        return self._obstacle is None

    @property
    def _obstacle(self) -> str | None:
        return obstacle({label for pair in self.confusion for label in pair})

    @property
    def overall(self) -> Counts:
        """Return the counts of all phrases; raise DataError if the labels do not mark phrases."""
        total = Counts()
        for counts in self.by_type.values():
            for name in ("correct", "predicted", "gold"):
                setattr(total, name, getattr(total, name) + getattr(counts, name))
        return total

    @property
    def by_type(self) -> dict[str, Counts]:
        """Return the counts of phrases of each type; raise DataError if the labels do not mark phrases."""
        if (reason := self._obstacle) is not None:
            raise DataError(f"these labels do not mark phrases: {reason}; use accuracy, by_label or macro instead")
        return self._by_type

    @property
    def scheme(self) -> str | None:
        """Return the tagging scheme of the gold labels ("iob2", "bilou" …), or None if they follow none."""
        return self._gold_pairs.scheme if self.has_phrases else None

    @property
    def notes(self) -> list[str]:
        """Return remarks that a reader of these scores should know."""
        notes = []
        if (reason := self._obstacle) is not None:
            notes.append(f"phrases are not counted: {reason}")
        elif (scheme := self.scheme) is not None:
            foreign = {
                x for _, x in self.confusion if (split_label(x) or "O")[0] not in {*TAG_SCHEMES[scheme].tags, "O"}
            }
            if foreign:
                notes.append(
                    f"the predicted label {min(foreign)} does not belong to {scheme.upper()}; scores of phrases do not "
                    "depend on the scheme, but accuracy does"
                )
        elif self._gold_pairs.tags:
            notes.append(
                "the gold labels break the rules of every tagging scheme; phrases are read as conlleval reads them"
            )
        gold, predicted = ({pair[k] for pair in self.confusion} for k in (0, 1))
        if gold and not gold & predicted:
            notes.append("no predicted label is also a gold label; check which columns have the labels")
        return notes

    # --- for people and programs

    def __str__(self) -> str:
        return report(self)

    def as_dict(self) -> dict[str, object]:
        """Return everything as strings, numbers, lists and dicts, as `crfkit eval --json` prints it."""
        told: dict[str, object] = {
            "tokens": self.tokens,
            "accuracy": self.accuracy,
            "sequences": self.sequences,
            "sequence_accuracy": self.sequence_accuracy,
            "scheme": self.scheme,
            "notes": self.notes,
        }
        if self.has_phrases:
            told["overall"] = self.overall.as_dict()
            told["by_type"] = {kind: counts.as_dict() for kind, counts in sorted(self.by_type.items())}
        told["macro"] = self.macro
        told["by_label"] = {str(x): {**c.as_dict(), "support": c.gold} for x, c in self.by_label.items()}
        told["confusion"] = [{"gold": str(a), "predicted": str(b), "count": n} for a, b, n in self.mistakes]
        return told


def evaluate(gold: Iterable[Sequence[Label]], predicted: Iterable[Sequence[Label]]) -> Evaluation:
    """Score predicted label sequences.

    >>> result = evaluate([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
    >>> result.overall.f1, result.scheme
    (0.0, 'iob2')
    >>> print(evaluate([["DET", "NOUN", "VERB"]], [["DET", "NOUN", "NOUN"]]))
    3 tokens, accuracy 66.67%; 1 sequence, 0.00% without error
    phrases are not counted: no label is written as B-…, I-… or O
             precision   recall       F1  support  found  correct
    macro       50.00%   66.67%   55.56%
    DET        100.00%  100.00%  100.00%        1      1        1
    NOUN        50.00%  100.00%   66.67%        1      2        1
    VERB         0.00%    0.00%    0.00%        1      0        0
    <BLANKLINE>
    positions  gold → predicted
            1  VERB → NOUN
    """
    result = Evaluation()
    for what, given in (("gold", gold), ("predicted", predicted)):
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            raise DataError(f"the {what} labels must be a list of label sequences, not {type(given).__name__}")
    end: Label = object()
    n = [0, 0]
    for rows in zip_longest(gold, predicted, fillvalue=end):
        n = [n[k] + (rows[k] is not end) for k in (0, 1)]
        if n[0] == n[1]:
            result.add(*rows)
    if n[0] != n[1]:
        raise DataError(f"there are {n[0]} gold label sequences but {n[1]} predicted label sequences")
    return result


def _labels(row: object, what: str) -> list[Label]:
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
        raise DataError(
            f"expected sequences of {what} labels, but one of them is {row!r}; put a single sequence into a list: "
            "evaluate([gold], [predicted])"
        )
    return list(row.tolist() if hasattr(row, "tolist") else row)


__all__ = ["Counts", "Evaluation", "Phrase", "evaluate", "phrases"]
