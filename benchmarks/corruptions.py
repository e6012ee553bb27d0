"""Ways to spoil labels: random labels, phrases that get a similar type, phrases whose boundaries move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from crfkit.schemes import Phrase, phrases

Labels = list[list[str]]


def uniform(y: Labels, share: float, rng: np.random.Generator) -> Labels:
    """Return the labels with a share of them replaced by another label, all others being equally likely."""
    names = sorted({label for row in y for label in row})
    places = [(n, t) for n, row in enumerate(y) for t in range(len(row))]
    spoilt = [list(row) for row in y]
    for k in rng.choice(len(places), round(share * len(places)), replace=False).tolist():
        n, t = places[k]
        others = [name for name in names if name != y[n][t]]
        spoilt[n][t] = others[rng.integers(len(others))]
    return spoilt


def similar_types(gold: Labels, predicted: Labels) -> dict[str, str]:
    """Return for each type of phrase the one that a model most often gives to the same positions instead."""
    counts: Counter[tuple[str, str]] = Counter()
    for a, b in zip(gold, predicted, strict=True):
        found = {(p.begin, p.end): p.type for p in phrases(b)}
        counts.update((p.type, found[p.begin, p.end]) for p in phrases(a) if (p.begin, p.end) in found)
    best: dict[str, str] = {}
    for (kind, other), _ in counts.most_common():
        if kind != other:
            best.setdefault(kind, other)
    return best


def confused(y: Labels, share: float, rng: np.random.Generator, similar: Mapping[str, str]) -> Labels:
    """Return the labels with whole phrases moved to the similar type until a share of the labels has changed."""

    def change(row: list[str], found: list[Phrase], k: int) -> list[Phrase]:
        return [p._replace(type=similar[p.type]) if j == k and p.type in similar else p for j, p in enumerate(found)]

    return _change_phrases(y, share, rng, change)


def shifted(y: Labels, share: float, rng: np.random.Generator) -> Labels:
    """Return the labels with phrases one position longer or shorter, until a share of the labels has changed.

    A phrase that grows takes the position from its neighbour.
    """

    def change(row: list[str], found: list[Phrase], k: int) -> list[Phrase]:
        begin, end = found[k].begin, found[k].end
        if rng.random() < 0.5:
            begin += 1 if rng.random() < 0.5 else -1
        else:
            end += 1 if rng.random() < 0.5 else -1
        if begin < 0 or end > len(row) or begin == end:
            return found
        moved = []
        for j, p in enumerate(found):
            if j < k:
                p = p._replace(end=min(p.end, begin))
            elif j > k:
                p = p._replace(begin=max(p.begin, end))
            else:
                p = p._replace(begin=begin, end=end)
            if p.begin < p.end:
                moved.append(p)
        return moved

    return _change_phrases(y, share, rng, change)


def _change_phrases(
    y: Labels, share: float, rng: np.random.Generator, change: Callable[[list[str], list[Phrase], int], list[Phrase]]
) -> Labels:
    """Change phrases in random order, each at most once; the labels are in IOB2."""
    spoilt = [list(row) for row in y]
    wanted = round(share * sum(map(len, y)))
    places = [(n, k) for n, row in enumerate(y) for k in range(len(list(phrases(row))))]
    done = 0
    for place in rng.permutation(len(places)).tolist():
        if done >= wanted:
            break
        n, k = places[place]
        found = list(phrases(spoilt[n]))
        if k >= len(found):
            continue
        before = sum(a != b for a, b in zip(y[n], spoilt[n], strict=True))
        spoilt[n] = written(change(spoilt[n], found, k), len(y[n]))
        done += sum(a != b for a, b in zip(y[n], spoilt[n], strict=True)) - before
    return spoilt


def written(found: Sequence[Phrase], length: int) -> list[str]:
    """Return phrases as labels in IOB2."""
    row = ["O"] * length
    for p in found:
        row[p.begin : p.end] = [f"{'B' if t == p.begin else 'I'}-{p.type}" for t in range(p.begin, p.end)]
    return row
