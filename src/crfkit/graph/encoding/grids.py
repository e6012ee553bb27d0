"""Images as graphs: a node per pixel, edges between neighbours, edge features computed from both ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._checks import unmasked
from crfkit._types import Array, Entries, Floats, Ids, Label, Samples, Tabular
from crfkit.errors import CrfkitError, DataError, ModelFileError, ParameterError
from crfkit.files.modelfile import Contents
from crfkit.graph.data import GraphData
from crfkit.graph.encoding.graph_samples import GraphSample, joined_labels
from crfkit.graph.encoding.graphs import SampleEncoder
from crfkit.graph.encoding.grid_edges import EdgeFunction, call_edge_function
from crfkit.graph.encoding.states import Labels, learn_classes, to_states
from crfkit.graph.graph import Graph

AXES = {4: 2, 8: 2, 6: 3, 26: 3}  # neighbours → axes of a grid
EdgeFeatures = str | EdgeFunction | None


@lru_cache(maxsize=16)
def cached_grid(height: int, width: int, neighbours: int = 4) -> Graph:
    """Return the graph of a grid. It is cached: many images have one size, and engines prepare for a graph once."""
    return Graph.grid((height, width), neighbours)


@dataclass(frozen=True, eq=False, kw_only=True)
class GridEncoder(SampleEncoder):
    """Encode images (H, W, F), or volumes (D, H, W, F), with their label arrays, and turn states back into labels."""

    neighbours: int = 4
    edges: EdgeFeatures = "difference"  # "callable" stands for a function that a model file could not hold
    channels: tuple[int, ...] | None = None  # channels of the images that nodes have as features; None for all
    n_channels: int | None = None  # how many channels images have, if nodes do not have all of them

    kind = "grid"
    noun = "image"
    edge_form = "potts"

    @classmethod
    def learn_images(
        cls,
        X: Samples,
        Y: Samples,
        *,
        intercept: bool = True,
        neighbours: int = 4,
        edges: EdgeFeatures = "difference",
        channels: object = None,
    ) -> tuple[GridEncoder, Ids]:
        """Return the encoder for a training set, and the states [n] of its pixels."""
        check_options(neighbours, edges)
        images = read_images(X, neighbours)
        if not images:
            raise DataError("X has no images")
        check_shapes(Y, images, "Y")
        values, known = joined_labels(Y, None, [_count(image) for image in images], cls.noun)
        classes = learn_classes(values, known, "Y")
        width = images[0].shape[-1]
        zeros, step = np.zeros((1, width)), np.eye(AXES[neighbours])[-1:]
        edge_width = None if edges is None else _edge_values(edges, zeros, zeros, step).shape[1]
        made = cls(
            classes=classes,
            n_features=width,
            n_edge_features=edge_width,
            intercept=bool(intercept),
            neighbours=int(neighbours),
            edges=edges,
        )
        if channels is not None:
            chosen = check_channels(channels, width)
            made = replace(made, n_features=len(chosen), channels=chosen, n_channels=width)
        return made, to_states(values, known, classes, "Y")

    def listed(self, X: Samples, Y: Samples) -> tuple[Tabular, Tabular, bool]:
        """Return X and Y unchanged: images always come in a list."""
        return X, Y, False

    def training_data(self, X: Samples, states: Ids, weights: Samples, rows: str) -> GraphData:
        return self._data(self._samples(X), states, weights)

    def encode(self, X: Samples, observed: Samples = None) -> GraphData:
        return self._data(self._samples(X))

    def encode_labels(self, Y: Samples, data: GraphData, X: Samples) -> Ids:
        check_shapes(Y, X, "the label array")
        return super().encode_labels(Y, data, None)

    def labels(self, states: Ids, data: GraphData, X: Tabular) -> list[Labels]:
        """Return an array [..., H, W] of labels for each image, from states [..., n]."""
        parts = super().labels(states, data, X)
        return [p.reshape(*p.shape[:-1], *np.shape(image)[:-1]) for p, image in zip(parts, X, strict=True)]

    def by_node(self, values: Floats, data: GraphData, X: Tabular) -> list[Floats]:
        """Return an array [H, W, K] for each image, from values [n, K]."""
        parts = super().by_node(values, data, X)
        return [p.reshape(*np.shape(image)[:-1], p.shape[1]) for p, image in zip(parts, X, strict=True)]

    def parts(self) -> tuple[Entries, dict[str, Array]]:
        metadata, tensors = super().parts()
        edges = "callable" if callable(self.edges) else self.edges
        metadata = {**metadata, "neighbours": self.neighbours, "edge_features": edges}
        if self.channels is not None:
            metadata |= {"node_channels": list(self.channels), "n_channels": self.n_channels}
        return metadata, tensors

    def node_name(self, variable: int, feature: int) -> tuple[Label, ...]:
        """Return the name of a feature: x and the number of its channel in the image."""
        if self.channels is None or feature < self.intercept:
            return super().node_name(variable, feature)
        return (f"x{self.channels[feature - self.intercept]}",)

    @classmethod
    def from_parts(cls, contents: Contents) -> GridEncoder:
        neighbours = contents.entry("neighbours", int)
        edges = contents.entry("edge_features", str, type(None))
        if neighbours not in AXES or edges not in ("difference", "callable", None):
            raise ModelFileError(f"{neighbours} neighbours, edge features {edges!r}: this version has no such grid")
        made = cls(**cls._entries(contents), neighbours=neighbours, edges=edges)
        if "node_channels" not in contents.metadata:
            return made
        try:
            n_channels = contents.entry("n_channels", int)
            chosen = check_channels(contents.entry("node_channels", list), n_channels)
        except ParameterError as error:
            raise ModelFileError(f"inconsistent model: {error}") from None
        if len(chosen) != made.n_features:
            raise ModelFileError(f"inconsistent model: {len(chosen)} channels for {made.n_features} features of nodes")
        return replace(made, channels=chosen, n_channels=n_channels)

    def _samples(self, X: Samples) -> list[GraphSample]:
        if self.edges == "callable":
            raise missing_edge_function("GridCRF")
        samples = []
        for g, image in enumerate(read_images(X, self.neighbours)):
            if self.n_channels is not None and image.shape[-1] != self.n_channels:
                raise DataError(f"image {g} has {image.shape[-1]} features; expected {self.n_channels}")
            graph = Graph.grid(image.shape[:-1], self.neighbours)
            features = image.reshape(_count(image), image.shape[-1])
            i, j = graph.edges.T
            steps = _offsets(graph, image.shape[:-1])
            values = None if self.edges is None else _edge_values(self.edges, features[i], features[j], steps)
            of_nodes = features if self.channels is None else features[:, list(self.channels)]
            samples.append(GraphSample(of_nodes, graph, values))
        return samples


def check_options(neighbours: object, edges: object) -> None:
    """Raise ParameterError unless a grid can have these neighbours and edge features."""
    if isinstance(neighbours, bool) or neighbours not in AXES:
        raise ParameterError(f"neighbours must be 4 or 8 (images), 6 or 26 (volumes), not {neighbours!r}")
    if edges is not None and not callable(edges) and edges != "difference":
        raise ParameterError(f"edge_features must be 'difference', None or a function of both ends, not {edges!r}")


def check_channels(given: object, width: int) -> tuple[int, ...]:
    """Return the numbers of channels; raise unless they are distinct and images of `width` channels have them."""
    numbers = np.asarray(given)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise ParameterError(f"node_features must be None or numbers of features such as [0, 2], not {given!r}")
    if numbers.min() < 0 or numbers.max() >= width or len(set(numbers.tolist())) < len(numbers):
        raise ParameterError(f"node_features must be distinct numbers from 0 to {width - 1}, not {given!r}")
    return tuple(numbers.tolist())


def read_images(X: Samples, neighbours: int) -> list[Floats]:
    """Return the images as arrays of doubles; raise and name the image that is not one."""
    form = "(H, W, F)" if AXES[neighbours] == 2 else "(D, H, W, F)"
    if isinstance(X, np.ndarray) and (X.ndim == AXES[neighbours] + 2 or X.dtype == object):
        X = list(X)  # a stack of images of one size
    if not isinstance(X, (list, tuple)):
        shape = f" of shape {X.shape}" if isinstance(X, np.ndarray) else ""
        raise DataError(f"X must be a list of arrays {form}, not {type(X).__name__}{shape}; for one image give [image]")
    images = []
    for g, given in enumerate(X):
        given = unmasked(given, f"image {g}")
        try:
            image = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"image {g} is not an array of numbers") from None
        if image.ndim != AXES[neighbours] + 1:
            hint = "; add the axis of features: image[..., None]" if image.ndim == AXES[neighbours] else ""
            raise DataError(f"image {g} has shape {image.shape}; expected {form}{hint}")
        if 0 in image.shape[:-1]:
            raise DataError(f"image {g} has no pixels: its shape is {image.shape}")
        if not np.isfinite(image).all():
            where = tuple(np.argwhere(~np.isfinite(image))[0].tolist())
            raise DataError(f"image {g} is {image[where]} at {where}; fill missing values")
        images.append(image)
    return images


def check_shapes(Y: Tabular, images: Tabular, what: str) -> None:
    """Raise DataError unless Y has a label array for each image, of the same height and width."""
    if not isinstance(Y, (list, tuple, np.ndarray)):
        raise DataError(f"{what} must be a list of label arrays, one per image, not {type(Y).__name__}")
    if isinstance(Y, np.ndarray) and Y.dtype.kind != "O" and Y.ndim <= 2:
        raise DataError(f"{what} must be a list of label arrays, one per image, not one array of shape {Y.shape}")
    if len(Y) != len(images):
        raise DataError(f"{len(Y)} label arrays for {len(images)} images; expected one per image")
    for g, (labels, image) in enumerate(zip(Y, images, strict=True)):
        if np.shape(labels) != np.shape(image)[:-1]:
            raise DataError(f"image {g} has shape {np.shape(image)}, but its labels have shape {np.shape(labels)}")


def missing_edge_function(estimator: str) -> ParameterError:
    """Return the error for a model whose edge features are a function, which its file could not hold."""
    return ParameterError(
        "the edge features of this model are a function, which a file cannot hold; load the model with "
        f"{estimator}.load(path, edge_features=function)"
    )


def loaded_edge_function(given: Any, recorded: object, path: str | Path) -> EdgeFeatures:
    """Return the function given for the edge features of a model file; raise if the file records them itself."""
    if recorded != "callable" or not callable(given):
        raise ParameterError(f"{path} records its edge features: {recorded!r}; leave edge_features out")
    function: EdgeFeatures = given
    return function


def _count(image: Floats) -> int:
    return int(np.prod(image.shape[:-1]))


def _edge_values(edges: EdgeFeatures, first: Floats, second: Floats, offsets: Floats) -> Floats:
    """Return [E, g] from the features [E, F] of both ends and the steps between them; "difference" is |h_i − h_j|."""
    return call_edge_function(edges, first, second, offsets) if callable(edges) else np.abs(first - second)


def _offsets(graph: Graph, shape: tuple[int, ...]) -> Floats:
    """Return [E, axes]: the step from the first end of each edge to the second, in rows and columns (planes first)."""
    places = np.stack(np.unravel_index(np.arange(graph.n_nodes), shape), axis=1)
    i, j = graph.edges.T
    return np.asarray(places[j] - places[i], dtype=np.float64)


@contextmanager
def naming_images(names: Sequence[str] | None = None) -> Iterator[None]:
    """Let errors about a graph name the image; without names, they have "image" and the number.

    >>> from crfkit.errors import DataError, sample_error
    >>> with naming_images(["a.png", "b.png"]):
    ...     raise sample_error(DataError, 1, " has width 70")
    Traceback (most recent call last):
    ...
    crfkit.errors.DataError: b.png has width 70
    """
    try:
        yield
    except CrfkitError as error:
        k = error.sample
        if k is None:
            raise
        raise error.of_sample(names[k] if names is not None and k < len(names) else f"image {k}") from None
