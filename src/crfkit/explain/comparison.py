"""Test whether one tagger is better than another: paired bootstrap and approximate randomisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from crfkit._checks import check_count
from crfkit._types import Entries, Floats, Label
from crfkit.errors import DataError, ParameterError
from crfkit.schemes import are_phrases, in_scheme_of, phrases

Rows = list[list[Label]]
MAX_NUMBERS_AT_ONCE = 5_000_000  # numbers that are drawn at once


class Interval(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """A score of two taggers, with confidence intervals from resampled sentences.

    `p_bootstrap` is the chance of a difference at least as large if the true one is 0, from the bootstrap distribution
    moved to 0; `p_randomisation` the probability of one at least as large if the outputs of the two were swapped at
    random.
    """

    score: str
    a: float
    b: float
    a_interval: Interval
    b_interval: Interval
    difference: float  # b − a
    interval: Interval  # of the difference
    p_bootstrap: float
    p_randomisation: float

    @property
    def significant(self) -> bool:
        """Return whether the confidence interval of the difference excludes 0."""
        return self.interval.low > 0 or self.interval.high < 0


@dataclass(frozen=True)
class Comparison:
    """The differences of two taggers on a test set; `print` shows them."""

    differences: dict[str, Difference]  # by score: "F1 of phrases", "accuracy"
    sequences: int
    differing: list[int]  # sequences that the two label differently
    better: list[int]  # of these, where b has more right labels
    worse: list[int]  # of these, where a has more right labels
    confidence: float
    samples: int
    notes: tuple[str, ...] = ()  # what was done to the labels before they were counted

    def as_dict(self) -> Entries:
        """Return everything as strings, numbers, lists and dicts."""
        return asdict(self)

    def __str__(self) -> str:
        percent = f"{self.confidence * 100:g} %"
        lines = [
            *self.notes,
            f"{self.sequences} sequences, {len(self.differing)} labelled differently: "
            f"B has more right labels in {len(self.better)}, A in {len(self.worse)}",
        ]
        for d in self.differences.values():
            verdict = "B is better" if d.difference > 0 else "A is better"
            lines += [
                f"{d.score}",
                f"  A           {_percent(d.a, d.a_interval)}",
                f"  B           {_percent(d.b, d.b_interval)}",
                f"  difference  {d.difference * 100:+7.2f}   {percent} interval "
                f"{d.interval.low * 100:+.2f} … {d.interval.high * 100:+.2f}",
                f"  p = {d.p_bootstrap:.4f} (paired bootstrap), {d.p_randomisation:.4f} (approximate randomisation): "
                + (f"{verdict}" if d.significant else "no significant difference"),
            ]
        return "\n".join(lines)


def _percent(value: float, interval: Interval) -> str:
    return f"{value * 100:7.2f}   ({interval.low * 100:.2f} … {interval.high * 100:.2f})"


def compare(
    y_true: Iterable[Sequence[Label]],
    a: Iterable[Sequence[Label]],
    b: Iterable[Sequence[Label]],
    samples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare the labels that two taggers gave to the same sequences.

    Sequences are resampled with replacement, the same for both (a paired bootstrap). Scores are accuracy and, if the
    labels mark phrases, F1 of phrases. Labels in another tagging scheme than the gold ones are converted to it first,
    and `notes` mentions it.

    >>> gold = 20 * [["B-PER", "O"], ["O", "B-LOC"]]
    >>> found = compare(gold, 40 * [["B-PER", "O"]], gold, samples=200)
    >>> found.differences["F1 of phrases"].difference, found.differences["accuracy"].significant
    (0.5, True)
    """
    check_sampling(samples, confidence)
    gold, first, second = ([list(row) for row in rows] for rows in (y_true, a, b))
    for name, rows in (("A", first), ("B", second)):
        if list(map(len, rows)) != list(map(len, gold)):
            raise DataError(f"the labels of {name} do not fit the gold labels: sequences or their lengths differ")
    if not gold:
        raise DataError("there are no sequences to compare")
    first, second, notes = in_one_scheme(gold, first, second)
    counts = [sentence_counts(gold, rows) for rows in (first, second)]
    differing = [n for n, rows in enumerate(zip(first, second, strict=True)) if rows[0] != rows[1]]
    right = [c["right"] for c in counts]
    scores = scores_of({label for rows in (gold, first, second) for row in rows for label in row})
    tables = [np.stack(list(c.values()), axis=1) for c in counts]
    names = list(counts[0])
    drawn = list(_resampled(len(gold), samples, tables, np.random.default_rng(seed)))
    swapped = list(_swapped(samples, tables, np.random.default_rng(seed + 1)))
    found = {}
    for title, score in scores.items():

        def values(table: Floats, score: Callable[[dict[str, Floats]], Floats] = score) -> Floats:
            return score(dict(zip(names, table.T, strict=True)))

        of_a, of_b = (float(values(table.sum(axis=0)[None])[0]) for table in tables)
        sample_a, sample_b = (np.concatenate([values(pair[k]) for pair in drawn]) for k in (0, 1))
        null = np.concatenate([values(pair[1]) - values(pair[0]) for pair in swapped])
        difference, spread = of_b - of_a, sample_b - sample_a
        found[title] = Difference(
            score=title,
            a=of_a,
            b=of_b,
            a_interval=interval(sample_a, confidence),
            b_interval=interval(sample_b, confidence),
            difference=difference,
            interval=interval(spread, confidence),
            p_bootstrap=_chance(spread - difference, difference),
            p_randomisation=_chance(null, difference),
        )
    return Comparison(
        differences=found,
        sequences=len(gold),
        differing=differing,
        better=[n for n in differing if right[1][n] > right[0][n]],
        worse=[n for n in differing if right[1][n] < right[0][n]],
        confidence=confidence,
        samples=samples,
        notes=notes,
    )


def in_one_scheme(gold: Rows, first: Rows, second: Rows) -> tuple[Rows, Rows, tuple[str, ...]]:
    """Return the labels of both taggers in the scheme of the gold ones, with a note for each that was converted."""
    notes = []
    rewritten = [in_scheme_of(gold, rows) for rows in (first, second)]
    for name, found in zip("AB", rewritten, strict=True):
        if found.scheme is not None:
            origin, target = map(str.upper, found.scheme)
            notes.append(
                f"the labels of {name} are {origin}; they were converted to {target}, the scheme of the gold labels"
            )
    return rewritten[0].labels, rewritten[1].labels, tuple(notes)


def check_sampling(samples: int, confidence: float) -> None:
    check_count(samples=samples)
    if not 0.0 < confidence < 1.0:
        raise ParameterError(f"confidence must be between 0 and 1, not {confidence!r}")


def sentence_counts(gold: Sequence[Sequence[Label]], predicted: Sequence[Sequence[Label]]) -> dict[str, Floats]:
    """Return the counts that scores are computed from, for each sequence: right labels, labels, and phrases."""
    rows = list(zip(gold, predicted, strict=True))
    counts = {
        "right": np.array([sum(x == y for x, y in zip(g, p, strict=True)) for g, p in rows], dtype=np.float64),
        "labels": np.array([len(g) for g, _ in rows], dtype=np.float64),
    }
    if are_phrases({label for pair in rows for row in pair for label in row}):
        sets = [(set(phrases(g)), set(phrases(p))) for g, p in rows]
        counts["correct"] = np.array([len(g & p) for g, p in sets], dtype=np.float64)
        counts["predicted"] = np.array([len(p) for _, p in sets], dtype=np.float64)
        counts["gold"] = np.array([len(g) for g, _ in sets], dtype=np.float64)
    else:
        counts |= {name: np.zeros(len(rows)) for name in ("correct", "predicted", "gold")}
    return counts


def scores_of(labels: Iterable[Label]) -> dict[str, Callable[[dict[str, Floats]], Floats]]:
    """Return the scores that make sense for labels, as functions of counts."""

    def f1(c: dict[str, Floats]) -> Floats:
        return _ratio(2 * c["correct"], c["predicted"] + c["gold"])

    def accuracy(c: dict[str, Floats]) -> Floats:
        return _ratio(c["right"], c["labels"])

    return {"F1 of phrases": f1, "accuracy": accuracy} if are_phrases(labels) else {"accuracy": accuracy}


def bootstrap(counts: dict[str, Floats], samples: int, seed: int = 0) -> dict[str, Floats]:
    """Return the sums of counts over resampled sequences, [samples] each."""
    table = np.stack(list(counts.values()), axis=1)
    rng = np.random.default_rng(seed)
    sums = np.concatenate([pair[0] for pair in _resampled(len(table), samples, [table], rng)])
    return dict(zip(counts, sums.T, strict=True))


def interval(values: Floats, confidence: float) -> Interval:
    """Return the quantiles (1 − confidence)/2 and (1 + confidence)/2."""
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def _resampled(n: int, samples: int, tables: Sequence[Floats], rng: np.random.Generator) -> Iterator[list[Floats]]:
    """Yield the sums of each table over sequences drawn with replacement, the same ones for all tables."""
    for size in _chunks(samples, n):
        drawn = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        yield [times @ table for table in tables]


def _swapped(samples: int, tables: Sequence[Floats], rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """Yield the sums of two tables whose rows are swapped at random."""
    first, second = tables
    some = np.flatnonzero((first != second).any(axis=1))  # swapping equal rows changes nothing
    base, change = first.sum(axis=0), (second - first)[some]
    total = base + second.sum(axis=0)
    for size in _chunks(samples, len(some)):
        swap = rng.random((size, len(some))) < 0.5
        sums = base + swap.astype(np.float64) @ change
        yield sums, total - sums


def _chunks(samples: int, n: int) -> Iterator[int]:
    """Yield how many samples of n numbers are drawn at a time, so that memory stays bounded."""
    most = max(1, MAX_NUMBERS_AT_ONCE // max(n, 1))
    for begin in range(0, samples, most):
        yield min(most, samples - begin)


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros_like(a, dtype=np.float64), where=b > 0)


def _chance(null: Floats, difference: float) -> float:
    """Return the share of values that are at least as far from 0 as the difference, itself counted once."""
    return float((1 + np.sum(np.abs(null) >= abs(difference) - 1e-12)) / (1 + len(null)))
