"""Small grids that tests share, and their twin that scores one labelling at a time."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crfkit.torch import GridCRF

STEPS = {4: [(0, 1), (1, 0)], 8: [(0, 1), (1, 0), (1, 1), (1, -1)]}
# the options of a layer
LAYERS = {
    "full": {"neighbours": 4},
    "potts": {"neighbours": 8, "form": "potts"},
    "contrast": {"neighbours": 8, "contrast": True},
    "potts with contrast": {"neighbours": 4, "form": "potts", "contrast": True},
}


def random_grid_layer(n_labels: int, dtype=torch.float64, scale: float = 1.0, **options) -> GridCRF:
    layer = GridCRF(n_labels, **options).to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape))
    return layer


@dataclass
class Pixels:
    """One image as a dictionary of pixels, and an edge at a time."""

    layer: GridCRF
    u: Tensor  # [L, H, W]
    image: Tensor | None  # [C, H, W]
    places: list[tuple[int, int]]

    @classmethod
    def of(cls, layer: GridCRF, u: Tensor, image: Tensor | None, inside: Tensor) -> Pixels:
        return cls(layer, u, image, [tuple(place) for place in inside.nonzero().tolist()])

    def _table(self, parameter: Tensor, d: int, k: int, m: int) -> Tensor:
        if self.layer.form == "potts":
            return parameter[d] * float(k == m)
        return parameter[d, k, m]

    def edges(self):
        """Yield (direction, pixel, the pixel after it)."""
        for y, x in self.places:
            for d, (dy, dx) in enumerate(STEPS[self.layer.neighbours]):
                if (y + dy, x + dx) in self.places:
                    yield d, (y, x), (y + dy, x + dx)

    def alike(self, a, b) -> Tensor:
        squares = (self.image[:, a[0], a[1]] - self.image[:, b[0], b[1]]).square().mean()
        return torch.exp(-self.layer.log_precision.exp() * squares)

    def pair(self, d: int, a, b, k: int, m: int) -> Tensor:
        found = self._table(self.layer.compatibility, d, k, m)
        if self.layer.contrast:
            found = found + self.alike(a, b) * self._table(self.layer.contrast_compatibility, d, k, m)
        return found

    def score(self, labels: dict) -> Tensor:
        total = sum((self.u[labels[y, x], y, x] for y, x in self.places), self.u.new_zeros(()))
        return total + sum((self.pair(d, a, b, labels[a], labels[b]) for d, a, b in self.edges()), total * 0)

    def log_conditionals(self, labels: dict) -> dict:
        """Return log p(label | all other labels) of each pixel, from scores of whole labellings."""
        found = {}
        for place in self.places:
            every = [self.score({**labels, place: k}) for k in range(self.layer.num_labels)]
            found[place] = torch.log_softmax(torch.stack(every), 0)[labels[place]]
        return found

    def log_z(self) -> Tensor:
        every = itertools.product(range(self.layer.num_labels), repeat=len(self.places))
        scores = [self.score(dict(zip(self.places, labels, strict=True))) for labels in every]
        return torch.logsumexp(torch.stack(scores), 0)

    def mean_field(self, sweeps: int, damping: float) -> dict:
        """Return the marginals of each pixel, one pixel at a time."""
        q = {place: torch.softmax(self.u[:, place[0], place[1]], 0) for place in self.places}
        edges, labels = list(self.edges()), range(self.layer.num_labels)
        for _ in range(sweeps):
            new = {}
            for place in self.places:
                c = self.u[:, place[0], place[1]]
                for d, a, b in edges:
                    if a == place:
                        c = c + torch.stack([sum(self.pair(d, a, b, k, m) * q[b][m] for m in labels) for k in labels])
                    if b == place:
                        c = c + torch.stack([sum(self.pair(d, a, b, m, k) * q[a][m] for m in labels) for k in labels])
                new[place] = damping * q[place] + (1 - damping) * torch.softmax(c, 0)
            q = new
        return q


def native_case(layer: GridCRF, u: Tensor, labels: Tensor, image: Tensor | None):
    """Return (data, field, weights) of the compiled core for one image of a layer of form "full".

    The features of a pixel are its scores, with weights that leave them as they are; a type of edges per direction.
    """
    from crfkit import Graph, GraphData
    from crfkit.graph.fields.field import GraphField

    L, H, W = u.shape
    D = len(STEPS[layer.neighbours])
    graph = Graph.grid((H, W), layer.neighbours)
    y, x = np.divmod(graph.edges, W)
    steps = np.stack([np.diff(y)[:, 0], np.diff(x)[:, 0]], 1).tolist()
    types = np.array([STEPS[layer.neighbours].index(tuple(step)) for step in steps], dtype=np.int32)
    edges = np.ones((graph.n_edges, 1))
    tables = [layer.compatibility.detach()]
    if layer.contrast:
        pixels = Pixels(layer, u, image, [])
        alike = [pixels.alike((a // W, a % W), (b // W, b % W)).item() for a, b in graph.edges.tolist()]
        edges = np.stack([edges[:, 0], alike], 1)
        tables.append(layer.contrast_compatibility.detach())
    data = GraphData(
        graph,
        u.detach().flatten(1).T.double().numpy().copy(),
        edges,
        node_types=np.zeros(H * W, np.int32),
        edge_types=types,
        labels=labels.flatten().numpy(),
    )
    field = GraphField(np.array([L]), L, edges.shape[1], D)
    weights = torch.stack([table.reshape(D, L * L) for table in tables], 2).double().numpy()
    return data, field, field.pack(np.eye(L)[None], weights)
