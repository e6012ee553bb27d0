"""A trained refiner: a field on the pixels, blocks or superpixels of an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._types import Array, Entries, Floats
from crfkit.errors import ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.graph.encoding.calibrated import CalibratedEncoder
from crfkit.graph.encoding.graph_samples import GraphSample
from crfkit.graph.encoding.grid_edges import CONTRAST_NAMES, call_edge_function, contrast_features
from crfkit.graph.encoding.grids import loaded_edge_function, missing_edge_function
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.decoding import decode
from crfkit.graph.model import GraphModel
from crfkit.images.features import Image, lab
from crfkit.images.model.inference import quick_marginals
from crfkit.images.regions import Regions
from crfkit.labels import label_array

KIND = "refiner"
BLOCK_LIMITS = 1 << 12, 1_000_000  # side of a block in pixels, superpixels of an image


@dataclass(frozen=True)
class NodeOptions:
    """Say what the nodes and edges of an image are."""

    block_size: int = 1
    superpixels: int | None = None
    neighbours: int = 4
    edges: Any = "contrast"  # or None, a function, "callable" (one that a file could not hold)

    def regions(self, image: Image) -> Regions:
        if self.superpixels is not None:
            return Regions.superpixels(image, self.superpixels)
        return Regions.blocks(image.shape, self.block_size, self.neighbours)

    def sample(self, regions: Regions, probabilities: Floats, image: Image) -> GraphSample:
        """Return the log-probabilities of the regions and the features of their edges."""
        return GraphSample(regions.mean(np.log(probabilities)), regions.graph, self.edge_values(regions, image))

    def edge_values(self, regions: Regions, image: Image) -> Floats | None:
        if self.edges is None:
            return None
        if self.edges == "callable":
            raise missing_edge_function("Refiner")
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
    """Return [H, W, 3], the colours in CIE L*a*b* divided by 100; L* and zeros for a grey image."""
    rgb = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
    return lab(rgb).astype(np.float64)


@dataclass(frozen=True, eq=False)
class RefinerModel:
    """Refine probability maps. It has all that prediction needs, and nothing of scikit-learn."""

    nodes: NodeOptions
    field: GraphModel
    classes: Array  # [K] the label of each column of the probabilities
    detail: float = 1.0  # how much of the differences within a region is kept

    def refine(self, probabilities: Floats, image: Image, want_mask: bool = True) -> tuple[Array, Floats]:
        """Return the mask [H, W] and the refined probabilities [H, W, K] of one image.

        The scores of a pixel are log p of its region, interpolated between the centres of blocks, plus a share
        (`detail`) of how its own scores differ from those of the region; with a node per pixel they do not differ.
        """
        regions, potentials, mean, difference = self.scores(probabilities, image)
        p = normalised(mean + self.detail * difference)
        if not want_mask or self.field.decode == "marginal":
            return np.asarray(self.classes[p.argmax(axis=-1)]), p
        states = decode(potentials, self.field.decode, self.field.n_threads).labels
        return np.asarray(self.classes[states[regions.ids]]), p

    def scores(self, probabilities: Floats, image: Image) -> tuple[Regions, Potentials, Floats, Floats]:
        """Return the regions, their field, log p [H, W, K] of a pixel's region, and its scores less the region's."""
        regions = self.nodes.regions(image)
        data = self.field.encoder.encode([self.nodes.sample(regions, probabilities, image)])
        potentials = self.field.field.potentials(data, self.field.w)
        potentials.check()
        marginals = quick_marginals(self.field, potentials).nodes
        own = self.scale * np.log(probabilities) + self.bias
        mean = regions.spread(np.log(np.maximum(marginals, 1e-300)))
        return regions, potentials, mean, own - regions.spread(potentials.unary)

    # --- what was learned

    @property
    def scale(self) -> float:
        """Return β, by which the given log-probabilities are multiplied."""
        return float(self.field.w[0])

    @property
    def temperature(self) -> float:
        """Return 1/β. Above 1, the given probabilities were overconfident; it is infinite if they are of no use."""
        return 1 / self.scale if self.scale > 0 else float("inf")

    @property
    def bias(self) -> Floats:
        """Return [K], what is added to the score of each class."""
        return np.asarray(self.field.w[1 : 1 + len(self.classes)])

    def edge_weights(self) -> Mapping[str, Floats]:
        """Return name of an edge feature → weights, as many as the edge form has tables (one for Potts)."""
        _, edges = self.field.field.unpack(self.field.w)
        width = self.nodes.edge_width if self.nodes.edges != "callable" else edges.shape[2] - 1
        names = CONTRAST_NAMES if self.nodes.edges == "contrast" else [f"e{k}" for k in range(width or 0)]
        return dict(zip(["intercept", *names], edges[0].T, strict=True))

    def options(self) -> Entries:
        """Return the options of training that the model records, by their names in :class:`crfkit.Refiner`."""
        return {
            "neighbours": self.nodes.neighbours,
            "block_size": self.nodes.block_size,
            "superpixels": self.nodes.superpixels,
            "edge_features": self.nodes.edges,
            "edge_form": self.field.field.edge_form,
            "classes": self.classes.tolist(),
            "inference": self.field.inference,
            "decode": self.field.decode,
        }

    # --- the file

    def parts(self) -> tuple[Entries, dict[str, Array]]:
        """Return the metadata and the tensors of the model file."""
        metadata, tensors = self.field.parts()
        nodes = {**self.nodes.__dict__, "edges": "callable" if callable(self.nodes.edges) else self.nodes.edges}
        return {**metadata, "nodes": nodes, "column_labels": self.classes.tolist(), "detail": self.detail}, tensors

    def save(self, path: str | Path) -> None:
        """Write a model file."""
        modelfile.write(path, KIND, *self.parts())

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None, edge_features: object = None) -> RefinerModel:
        """Open a model file. `edge_features` is the function that the model was trained with, if it was one."""
        model = modelfile.load(path, cls.from_parts, n_threads)
        if edge_features is None:
            return model
        edges = loaded_edge_function(edge_features, model.nodes.edges, path)
        return replace(model, nodes=replace(model.nodes, edges=edges))

    @classmethod
    def from_parts(cls, contents: modelfile.Contents, n_threads: int | None = None) -> RefinerModel:
        """Build a model from the contents of a file; raise ModelFileError if its parts do not fit together."""
        if contents.kind != KIND:
            raise ModelFileError(f"this is a model of kind '{contents.kind}'; expected '{KIND}'")
        field = GraphModel.from_parts(replace(contents, kind="graph"), n_threads)
        entry = contents.entry("nodes", dict)
        labels = contents.entry("column_labels", list)
        if not all(type(label) in (str, int, float, bool) for label in labels):
            raise ModelFileError(f"the metadata entry 'column_labels' is {labels!r:.200}")
        classes = label_array(labels)
        try:
            nodes = NodeOptions(**entry)
        except TypeError:
            raise ModelFileError(f"the metadata entry 'nodes' is {entry!r}") from None
        if not isinstance(field.encoder, CalibratedEncoder) or classes.shape != (len(field.encoder.classes),):
            raise ModelFileError("inconsistent model: its field does not fit the probabilities of its classes")
        whole = [nodes.block_size, 1 if nodes.superpixels is None else nodes.superpixels]
        if (
            nodes.edges not in ("contrast", "callable", None)
            or nodes.neighbours not in (4, 8)
            or not all(type(n) is int and 1 <= n <= most for n, most in zip(whole, BLOCK_LIMITS, strict=True))
        ):
            raise ModelFileError(f"the metadata entry 'nodes' is {entry!r:.200}")
        if nodes.edges != "callable" and nodes.edge_width != field.encoder.n_edge_features:
            raise ModelFileError("inconsistent model: its edges have another number of features")
        return cls(nodes, field, classes, float(contents.entry("detail", int, float)))


def normalised(scores: Floats) -> Floats:
    """Return the probabilities of scores along the last axis."""
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))
