"""A trained segmenter: features of blocks, their scales and a field on the grid of blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._types import Array, Entries, Floats, Ids, Record
from crfkit.errors import CrfkitError, ModelFileError
from crfkit.files import limits, modelfile
from crfkit.files.masks import MaskRules
from crfkit.graph.encoding.grids import GridEncoder, cached_grid
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.decoding import decode
from crfkit.graph.inference.marginals import Marginals
from crfkit.graph.model import GraphModel
from crfkit.images.blocks import UPSAMPLING, full_size, interpolate
from crfkit.images.custom import CustomFeatures, Function, handed_in
from crfkit.images.features import Image, ImageFeatures
from crfkit.images.model.inference import quick_marginals

KIND = "segmenter"
LARGEST_BLOCK = 1 << 12  # side of a block, or of a cell of SIFT, in pixels
PER_PIXEL = 100  # bytes of memory to compute features
_STRIP = 1 << 11  # blocks whose features are subtracted at a time


@dataclass(frozen=True, eq=False)
class Segmentation:
    """Hold what a model finds in one image."""

    mask: Array  # [H, W] labels
    probabilities: Floats | None  # [H, W, K], in the order of the classes


@dataclass(frozen=True, eq=False)
class SegmenterModel:
    """Segment images. It has all that prediction needs, and nothing of scikit-learn."""

    features: ImageFeatures
    mean: Floats  # [F] of the features of the training set
    scale: Floats  # [F] their standard deviations; 1 where constant
    field: GraphModel  # of standardised features and their differences; edge weights count from equal features
    masks: MaskRules = dataclasses.field(default_factory=MaskRules)
    upsampling: str = "bilinear"  # of probabilities, from blocks to pixels; or "nearest"
    edge_mean: Floats | None = None  # [F] of the differences |h_i − h_j| in training, where they were centred

    @property
    def multiclass(self) -> bool:
        return self.masks.multiclass

    @property
    def classes(self) -> Array:
        encoder = self.field.encoder
        assert isinstance(encoder, GridEncoder)
        return encoder.classes

    @property
    def n_threads(self) -> int | None:
        return self.field.n_threads

    # --- prediction

    def potentials(self, values: Image) -> Potentials:
        """Return the field of one image, from the raw features [h, w, F] of its blocks.

        It equals ``field.potentials`` of standardised features, but |h_i − h_j| is never kept for all edges, because
        standardisation moves into the weights, ``θᵀ(h − mean)/scale = (θ/scale)ᵀh − const``.
        """
        h, w, _ = values.shape
        graph = cached_grid(h, w)
        field = self.field.field
        nodes, edges = field.unpack(self.field.w)  # [1, B, 1 + F]
        weights = nodes[0, :, 1:] / self.scale
        unary = values.reshape(h * w, -1) @ weights.T.astype(np.float32) + (nodes[0, :, 0] - weights @ self.mean)
        if field.node_form == "ising":
            unary = unary @ field.node_basis
        slopes = (edges[0, :, 1:] / self.scale).T.astype(np.float32)  # [F, B]
        across = np.zeros((h, w, slopes.shape[1]))  # the edge from each block to the right
        below = np.zeros((h, w, slopes.shape[1]))
        step = max(1, _STRIP // w)
        for r in range(0, h, step):
            strip = values[r : r + step + 1]
            across[r : r + step, :-1] = np.abs(strip[:step, 1:] - strip[:step, :-1]) @ slopes
            below[r : r + len(strip) - 1] = np.abs(strip[1:] - strip[:-1]) @ slopes
        i, j = graph.edges.T
        same_row = (i // w == j // w)[:, None]
        coefficients = np.where(same_row, across.reshape(h * w, -1)[i], below.reshape(h * w, -1)[i]) + edges[0, :, 0]
        potentials = Potentials(graph, np.ascontiguousarray(unary, dtype=np.float64), coefficients, field.edge_basis)
        potentials.check()
        return potentials

    def segment(self, image: Image, probabilities: bool = True, cache: str | Path | None = None) -> Segmentation:
        """Return the mask and, if requested, the probabilities of one image, at its size.

        With `decode="marginal"` the mask is the most probable label of each pixel, from probabilities that were
        upsampled. Other decoders label whole blocks.
        """
        return self.segment_features(self.features.compute_cached(image, cache), image.shape, probabilities)

    def segment_features(self, values: Image, shape: tuple[int, ...], probabilities: bool = True) -> Segmentation:
        """Segment an image of this shape, as `segment` does, from the raw features [h, w, F] of its blocks."""
        potentials = self.potentials(values)
        blocks = values.shape[:2]
        by_marginal = self.field.decode == "marginal"
        maps = None
        if probabilities or by_marginal:
            marginals = self.marginals(potentials).nodes.reshape(*blocks, -1)
            drawn = interpolate if self.upsampling == "bilinear" else full_size
            maps = drawn(marginals, shape, self.features)
        if by_marginal:
            assert maps is not None
            mask = self.classes[maps.argmax(axis=-1)]
        else:
            mask = full_size(self.classes[self._decode(potentials).reshape(blocks)], shape, self.features)
        return Segmentation(mask, maps if probabilities else None)

    def _decode(self, potentials: Potentials) -> Ids:
        return decode(potentials, self.field.decode, self.n_threads).labels

    def marginals(self, potentials: Potentials) -> Marginals:
        """Return the marginals by the engine of the model; iterative engines that were named stop early."""
        return quick_marginals(self.field, potentials)

    # --- what was learned

    def weights(self) -> tuple[Floats, Floats]:
        """Return node weights [B, 1 + F] and edge weights [B, 1 + F]; the first of a row is the intercept."""
        nodes, edges = self.field.field.unpack(self.field.w)
        return nodes[0], edges[0]

    def selected(self) -> dict[str, tuple[str, ...]]:
        """Return the names of features whose weights are not zero, of nodes ("unary") and edges ("pairwise")."""
        names = self.features.names
        chosen = [np.flatnonzero((w[:, 1:] != 0).any(axis=0)).tolist() for w in self.weights()]
        return {part: tuple(names[k] for k in ids) for part, ids in zip(("unary", "pairwise"), chosen, strict=True)}

    def options(self) -> Entries:
        """Return the options of training that the model records, by their names in :class:`crfkit.ImageSegmenter`."""
        blocks = self.features
        return {
            "block_size": blocks.block_size,
            "features": (*blocks.kinds, *(part.function for part in blocks.custom if part.function is not None)),
            "colour": blocks.colour,
            "position": blocks.position,
            "size": blocks.size,
            "sift_cell": blocks.sift_cell,
            "multiclass": self.multiclass,
            "ignore": self.masks.ignore or None,
            "mask_colours": self.masks.colour_map,
            "upsample": self.upsampling,
            "inference": self.field.inference,
            "node_form": self.field.field.node_form,
            "edge_form": self.field.field.edge_form,
            "decode": self.field.decode,
        }

    # --- the file

    def parts(self) -> tuple[Entries, dict[str, Array]]:
        """Return the metadata and the tensors of the model file."""
        metadata, tensors = self.field.parts()
        blocks = self.features.options()
        if self.features.custom:
            blocks["functions"] = [[part.name, part.names] for part in self.features.custom]
        metadata = {
            **metadata,
            "image_features": blocks,
            "multiclass": self.multiclass,
            "masks": self.masks.entry(),
            "upsampling": self.upsampling,
        }
        tensors = {**tensors, "feature_mean": self.mean, "feature_scale": self.scale}
        return metadata, tensors if self.edge_mean is None else {**tensors, "edge_mean": self.edge_mean}

    @classmethod
    def from_parts(cls, contents: modelfile.Contents, n_threads: int | None = None) -> SegmenterModel:
        """Build a model from a file, without its feature functions; raise ModelFileError if its parts do not fit."""
        if contents.kind != KIND:
            raise ModelFileError(f"this is a model of kind '{contents.kind}'; expected '{KIND}'")
        field = GraphModel.from_parts(replace(contents, kind="graph"), n_threads)
        features = _read_features(contents.entry("image_features", dict))
        width = len(features.names)
        encoder = field.encoder
        if (
            not isinstance(encoder, GridEncoder)
            or (encoder.neighbours, encoder.edges, encoder.intercept) != (4, "difference", True)
            or (encoder.n_features, encoder.n_edge_features) != (width, width)
        ):
            raise ModelFileError(f"inconsistent model: its field does not fit blocks of {width} features")
        if encoder.classes.dtype.kind not in "iu":
            raise ModelFileError("inconsistent model: its classes are not integers")
        mean, scale = (contents.tensor(f"feature_{name}", np.float64) for name in ("mean", "scale"))
        if len(mean) != width or len(scale) != width:
            raise ModelFileError(f"inconsistent model: {len(mean)} means and {len(scale)} scales of {width} features")
        if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise ModelFileError("a mean or a scale of the features is not a finite number, or not positive")
        edge_mean = contents.tensor("edge_mean", np.float64, optional=True)
        if edge_mean is not None and (len(edge_mean) != width or not np.isfinite(edge_mean).all()):
            raise ModelFileError(f"inconsistent model: the means of differences are not {width} finite numbers")
        upsampling = contents.metadata.get("upsampling", "nearest")  # files that do not say are older than the choice
        if upsampling not in UPSAMPLING:
            raise ModelFileError(f"the metadata entry 'upsampling' is {upsampling!r}")
        try:
            masks = MaskRules.from_entry(contents.entry("multiclass", bool), contents.metadata.get("masks"))
        except (CrfkitError, TypeError, ValueError, KeyError) as error:
            raise ModelFileError(f"inconsistent model: the metadata entry 'masks' is unusable: {error}") from None
        return cls(features, mean, scale, field, masks, upsampling, edge_mean)

    def save(self, path: str | Path) -> None:
        """Write a model file."""
        modelfile.write(path, KIND, *self.parts())

    @classmethod
    def load(
        cls, path: str | Path, n_threads: int | None = None, features: Mapping[str, Function] | None = None
    ) -> SegmenterModel:
        """Open a model file; `features` are the functions that it was trained with, by name."""

        def ready(contents: modelfile.Contents, n_threads: int | None) -> SegmenterModel:
            model = cls.from_parts(contents, n_threads)
            return replace(model, features=replace(model.features, custom=handed_in(model.features.custom, features)))

        return modelfile.load(path, ready, n_threads)

    @classmethod
    def load_weights(cls, path: str | Path) -> SegmenterModel:
        """Open a model file to look at its weights; unlike prediction, this needs no functions of features."""
        return modelfile.load(path, cls.from_parts, None)


def _read_features(entry: Record) -> ImageFeatures:
    known = {item.name for item in dataclasses.fields(ImageFeatures)} - {"custom"}
    entry = dict(entry)
    functions = entry.pop("functions", [])
    if not known - {"sift_cell"} <= set(entry) <= known or not isinstance(entry["kinds"], list):
        raise ModelFileError(f"the metadata entry 'image_features' is {entry!r}")
    size = entry["size"]
    if size is not None and not isinstance(size, list):
        raise ModelFileError(f"the metadata entry 'image_features' has the size {size!r}")
    entry |= {"kinds": tuple(entry["kinds"]), "size": None if size is None else tuple(size)}
    try:
        features = ImageFeatures(**entry, custom=tuple(_read_function(function) for function in functions))
    except (CrfkitError, TypeError) as error:
        raise ModelFileError(f"inconsistent model: {error}") from None
    if max(features.block_size, features.sift_cell) > LARGEST_BLOCK:
        raise ModelFileError(f"the model has blocks or cells of SIFT of more than {LARGEST_BLOCK} pixels a side")
    if features.size is not None:
        (height, width), (rows, columns) = features.size, features.blocks(features.size)
        needed = PER_PIXEL * height * width + 8 * rows * columns * len(features.names)
        limits.check_memory(needed, f"features of images that are resized to {height} × {width} pixels")
    return features


def _read_function(entry: Any) -> CustomFeatures:
    match entry:
        case [str(name), [_, *_] as names] if all(isinstance(of, str) for of in names):
            return CustomFeatures(name, tuple(names))
    raise ModelFileError(f"the metadata entry 'image_features' has the function {entry!r}")


def learn_scales(values: list[Image]) -> tuple[Floats, Floats]:
    """Return the mean [F] and the standard deviation [F] over all blocks of all images; 1 instead of 0."""
    n = sum(v.shape[0] * v.shape[1] for v in values)
    mean = sum(v.sum(axis=(0, 1), dtype=np.float64) for v in values) / n
    square = sum(((v - mean) ** 2).sum(axis=(0, 1)) for v in values) / n
    scale = np.sqrt(square)
    constant = scale <= 1e-7 * np.maximum(1, np.abs(mean))
    return np.asarray(mean), np.where(constant, 1.0, scale)
