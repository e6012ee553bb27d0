"""How well edges and rankings of pairs agree with the edges that are there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from sklearn.metrics import average_precision_score

Pair = tuple[int, int]
Pairs = set[Pair]
Scores = dict[Pair, float]


def f1(found: Pairs, true: Pairs) -> float:
    return 2 * len(found & true) / max(1, len(found) + len(true))


def ranking(sizes: Scores, entries: Scores) -> Scores:
    """Return scores of pairs: the chosen ones first, by the size of their weights, the others by their entry.

    Entries are the strengths at which pairs enter a path. Both parts are scaled so that any chosen pair comes first.
    """
    most = max(entries.values(), default=0.0) or 1.0
    largest = max(map(abs, sizes.values()), default=0.0) or 1.0
    found = {pair: strength / most for pair, strength in entries.items() if strength > 0}
    return found | {pair: 1.0 + abs(size) / largest for pair, size in sizes.items()}


def top(scores: Scores, k: int) -> Pairs:
    """Return the k pairs with the largest scores, or all that have one."""
    return set(sorted(scores, key=lambda pair: (-scores[pair], pair))[:k])


def judged(found: Pairs, scores: Scores, true: Pairs, nodes: Iterable[int]) -> dict[str, Any]:
    """Return F1 by the rule, F1 of as many pairs as there are edges, average precision, and counts."""
    pairs = list(combinations(sorted(nodes), 2))
    return {
        "f1": f1(found, true),
        "f1_equal": f1(top(scores, len(true)), true),
        "ap": float(average_precision_score([pair in true for pair in pairs], [scores.get(p, 0.0) for p in pairs])),
        "edges": len(found),
        "hits": len(found & true),
        "true": len(true),
    }
