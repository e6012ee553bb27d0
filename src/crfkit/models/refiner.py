"""A trained refiner: a field on the pixels, blocks or superpixels of an image; saved and loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit import modelfile
from crfkit._types import Floats, Ids
from crfkit.encoders.calibrated import CalibratedEncoder
from crfkit.encoders.graphs import GraphSample
from crfkit.encoders.regions import Regions
from crfkit.errors import ModelFileError, ParameterError
from crfkit.features.image import Image, lab
from crfkit.features.image_edges import CONTRAST_NAMES, call_edge_function, contrast_features
from crfkit.fields.potentials import Potentials
from crfkit.inference.decoding import decode
from crfkit.inference.marginals import Marginals
from crfkit.models.graph import GraphModel, cheap_engine, ready_engine
from crfkit.models.segmenter import with_options

KIND = "refiner"
QUICK = {"tolerance": 1e-3, "max_iterations": 50}  # of iterative engines named without options, at prediction
DETAILS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # shares that are tried


@dataclass(frozen=True)
class NodeOptions:
    """What the nodes and edges of an image are."""

    block_size: int = 1
    superpixels: int | None = None
    neighbours: int = 4
    edges: Any = "contrast"  # or None, a function, "callable" (one that a file could not hold)

    def regions(self, image: Image) -> Regions:
        if self.superpixels is not None:
            return Regions.superpixels(image, self.superpixels)
        return Regions.blocks(image.shape, self.block_size, self.neighbours)

    def sample(self, regions: Regions, probabilities: Floats, image: Image) -> GraphSample:
        """Log-probabilities of the regions and features of their edges."""
        return GraphSample(regions.mean(np.log(probabilities)), regions.graph, self.edge_values(regions, image))

    def edge_values(self, regions: Regions, image: Image) -> Floats | None:
        if self.edges is None:
            return None
        if self.edges == "callable":
            raise ParameterError(
                "the model's edge features were a function: Refiner.load(path, edge_features=function)"
            )
        colours = regions.mean(channels(image))
        i, j = regions.graph.edges.T
        ends = colours[i], colours[j], regions.offsets()
        return contrast_features(*ends) if self.edges == "contrast" else call_edge_function(self.edges, *ends)

    @property
    def edge_width(self) -> int | None:
        if self.edges is None:
            return None
        if self.edges == "contrast":
            return len(CONTRAST_NAMES)
        zeros = np.zeros((1, 3))
        try:
            return int(call_edge_function(self.edges, zeros, zeros, np.array([[0.0, 1.0]])).shape[1])
        except (IndexError, ValueError) as error:
            raise ParameterError(f"edge_features cannot be called with the colours of one edge: {error}") from None


def channels(image: Image) -> Floats:
    """[H, W, 3] CIE L*a*b*, divided by 100; of a grey image L* and zeros."""
    rgb = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
    return lab(rgb).astype(np.float64)


@dataclass(frozen=True, eq=False)
class RefinerModel:
    """What prediction needs, and nothing of scikit-learn."""

    nodes: NodeOptions
    field: GraphModel
    classes: NDArray[Any]  # [K] the label of each column of the probabilities
    detail: float = 1.0  # how much of the differences within a region is kept

    def refine(self, probabilities: Floats, image: Image, want_mask: bool = True) -> tuple[NDArray[Any], Floats]:
        """(mask [H, W], refined probabilities [H, W, K]) of one image.

        The scores of a pixel are log p of its region, interpolated between the centres of blocks, and a share
        (`detail`) of how its own scores differ from those of the region; with a node per pixel they do not.
        """
        regions, potentials, mean, difference = self.scores(probabilities, image)
        p = normalised(mean + self.detail * difference)
        if not want_mask or self.field.decode == "marginal":
            return np.asarray(self.classes[p.argmax(axis=-1)]), p
        states = decode(potentials, self.field.decode, self.field.n_threads).labels
        return np.asarray(self.classes[states[regions.ids]]), p

    def scores(self, probabilities: Floats, image: Image) -> tuple[Regions, Potentials, Floats, Floats]:
        """(regions, their field, log p of a pixel's region [H, W, K], its own scores less those of its region)."""
        regions = self.nodes.regions(image)
        data = self.field.encoder.encode([self.nodes.sample(regions, probabilities, image)])
        potentials = self.field.field.potentials(data, self.field.w)
        potentials.check()
        marginals = self._marginals(potentials).nodes
        own = self.scale * np.log(probabilities) + self.bias
        mean = regions.spread(np.log(np.maximum(marginals, 1e-300)))
        return regions, potentials, mean, own - regions.spread(potentials.unary)

    def _marginals(self, potentials: Potentials) -> Marginals:
        graph, K = potentials.graph, len(self.classes)
        inference = cheap_engine(self.field.inference, self.field.encoder, graph, K)
        engine = ready_engine(inference, graph, K, self.field.n_threads, self.field.seed)
        return (with_options(engine, **QUICK) if isinstance(inference, str) else engine).run(potentials)

    # --- what was learned

    @property
    def scale(self) -> float:
        """β, which the log-probabilities given are multiplied by."""
        return float(self.field.w[0])

    @property
    def temperature(self) -> float:
        """1/β; above 1: the probabilities given were overconfident. Infinite where they are of no use."""
        return 1 / self.scale if self.scale > 0 else float("inf")

    @property
    def bias(self) -> Floats:
        """[K] what is added to the score of each class."""
        return np.asarray(self.field.w[1 : 1 + len(self.classes)])

    def edge_weights(self) -> Mapping[str, Floats]:
        """Name of an edge feature → weights along the tables of the edge form (one for Potts)."""
        _, edges = self.field.field.unpack(self.field.w)
        width = self.nodes.edge_width if self.nodes.edges != "callable" else edges.shape[2] - 1
        names = CONTRAST_NAMES if self.nodes.edges == "contrast" else [f"e{k}" for k in range(width or 0)]
        return dict(zip(["intercept", *names], edges[0].T, strict=True))

    # --- the file

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata, tensors = self.field.parts()
        nodes = {**self.nodes.__dict__, "edges": "callable" if callable(self.nodes.edges) else self.nodes.edges}
        return {**metadata, "nodes": nodes, "column_labels": self.classes.tolist(), "detail": self.detail}, tensors

    def save(self, path: str | Path) -> None:
        modelfile.write(path, KIND, *self.parts())

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None) -> RefinerModel:
        return modelfile.load(path, cls.from_parts, n_threads)

    @classmethod
    def from_parts(cls, contents: modelfile.Contents, n_threads: int | None = None) -> RefinerModel:
        """Puts a model together again, checking that its parts belong together."""
        if contents.kind != KIND:
            raise ModelFileError(f"this is a model of kind '{contents.kind}'; expected '{KIND}'")
        field = GraphModel.from_parts(replace(contents, kind="graph"), n_threads)
        entry = contents.entry("nodes", dict)
        classes = np.array(contents.entry("column_labels", list))
        try:
            nodes = NodeOptions(**entry)
        except TypeError:
            raise ModelFileError(f"the metadata entry 'nodes' is {entry!r}") from None
        if not isinstance(field.encoder, CalibratedEncoder) or classes.shape != (len(field.encoder.classes),):
            raise ModelFileError("inconsistent model: its field is not one on probabilities of its classes")
        whole = [nodes.block_size, nodes.neighbours, 1 if nodes.superpixels is None else nodes.superpixels]
        if nodes.edges not in ("contrast", "callable", None) or not all(type(n) is int and n >= 1 for n in whole):
            raise ModelFileError(f"the metadata entry 'nodes' is {entry!r}")
        if nodes.edges != "callable" and nodes.edge_width != field.encoder.n_edge_features:
            raise ModelFileError("inconsistent model: its edges have another number of features")
        return cls(nodes, field, classes, float(contents.entry("detail", int, float)))


def normalised(scores: Floats) -> Floats:
    """Probabilities along the last axis."""
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def choose_detail(model: RefinerModel, pairs: Sequence[tuple[Floats, Image]], truths: Sequence[Ids]) -> float:
    """How much of the differences within regions to keep: the share under which the known pixels are most likely.

    `truths` are the classes [H, W] of the pixels of each image, −1 where unknown.
    """
    losses = np.zeros(len(DETAILS))
    for (probabilities, image), states in zip(pairs, truths, strict=True):
        _, _, mean, difference = model.scores(probabilities, image)
        known = states >= 0
        right = states[known][:, None]
        for k, detail in enumerate(DETAILS):
            p = np.take_along_axis(normalised(mean[known] + detail * difference[known]), right, axis=1)
            losses[k] -= np.log(np.maximum(p, 1e-300)).sum()
    return DETAILS[int(losses.argmin())]
