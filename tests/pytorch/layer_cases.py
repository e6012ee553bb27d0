"""Layers and batches that tests share, and their twin that enumerates all taggings."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import torch
from torch import Tensor

from crfkit.torch import CRF, native

COMPILED_CORE = native.available()


def use_plain(monkeypatch) -> None:
    """Switch the compiled core off."""
    monkeypatch.setattr(native, "available", lambda: False)


def random_layer(n_tags: int, dtype=torch.float64, scale: float = 1.0, **options) -> CRF:
    layer = CRF(n_tags, batch_first=True, **options).to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape))
    return layer


def mask_of(lengths: list[int], time: int) -> Tensor:
    return torch.arange(time) < torch.tensor(lengths)[:, None]


@dataclass
class Enumerated:
    """All taggings of one sequence that the layer allows, with their scores: autograd goes through."""

    paths: list[tuple[int, ...]] = field(default_factory=list)
    scores: list[Tensor] = field(default_factory=list)

    @property
    def log_z(self) -> Tensor:
        return torch.logsumexp(torch.stack(self.scores), 0)

    @property
    def chances(self) -> Tensor:
        return torch.softmax(torch.stack(self.scores), 0)

    def sorted(self) -> list[tuple[list[int], float]]:
        scores = [score.item() for score in self.scores]
        order = sorted(range(len(scores)), key=lambda k: -scores[k])
        return [(list(self.paths[k]), scores[k]) for k in order]

    def probability(self, holds) -> Tensor:
        """Return the probability of the taggings for which `holds`."""
        return sum((p for path, p in zip(self.paths, self.chances, strict=True) if holds(path)), torch.zeros(()))


def enumerated(layer: CRF, u: Tensor) -> Enumerated:
    """Return the taggings of a sequence with emissions u [T, L]."""
    found = Enumerated()
    start, P, end = layer.start_transitions, layer.transitions, layer.end_transitions
    for path in itertools.product(range(layer.num_tags), repeat=len(u)):
        if len(path) and (layer._forbidden_start[path[0]] or layer._forbidden_end[path[-1]]):
            continue
        if any(layer._forbidden[i, j] for i, j in itertools.pairwise(path)):
            continue
        score = torch.zeros((), dtype=u.dtype)
        if path:
            score = start[path[0]] + end[path[-1]] + sum(u[t, y] for t, y in enumerate(path))
        for i, j in itertools.pairwise(path):
            score = score + P[i, j]
        found.paths.append(path)
        found.scores.append(score)
    return found


LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
# the options of a layer, and how many tags it has
LAYERS = {
    "free": (3, {}),
    "one tag": (1, {}),
    "matrices": (3, {"allowed": [[1, 1, 0], [0, 1, 1], [1, 1, 1]], "allowed_end": [0, 1, 1]}),
    "scheme": (5, {"labels": LABELS, "scheme": "iob2"}),
}
LENGTHS = [4, 1, 0, 3, 2]
TIME = 4
