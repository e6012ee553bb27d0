"""Standardised inputs: fields are trained on them, and weights are converted back to the scale of the inputs.

Every feature z = (x − m)/s of nodes, and of edges, has mean 0 and variance 1 over the training set. With the weight v
of z and c of the intercept, v·z + c = (v/s)·x + (c − Σ v·m/s): the trained model reads unscaled inputs. Sparse
features, and those of fields without an intercept, are divided by their root mean square and keep their zero. The
intercept of nodes is scaled up, which makes its penalty weak: the frequency of a label needs no shrinking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crfkit._types import Features, Floats
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField

INTERCEPT = 0.2  # the scale of the node intercept: a column of fives, so that a penalty hardly moves it


@dataclass(frozen=True, eq=False)
class Scales:
    """Hold the means and scales of the columns of a feature matrix; the mean of the intercept is 0."""

    mean: Floats
    scale: Floats
    intercept: bool  # whether the first column is a one

    @classmethod
    def of(cls, features: Features, intercept: bool, times: Floats) -> Scales:
        """Return the scales of a matrix whose rows count `times` each."""
        width = features.shape[1]
        mean, total = np.zeros(width), float(times.sum())
        if not total:
            return cls(mean, np.ones(width), intercept)
        dense = isinstance(features, np.ndarray)
        centred = dense and intercept
        if centred:
            mean = times @ features / total
            mean[0] = 0.0
            square = np.array([times @ np.square(features[:, k] - mean[k]) for k in range(width)]) / total
        else:
            square = times @ np.square(features) / total if dense else (features.power(2).T @ times) / total
        scale = np.sqrt(np.asarray(square, dtype=np.float64))
        constant = scale <= 1e-12 * np.maximum(1.0, np.abs(mean))
        scale[constant] = 1.0
        if intercept:
            scale[0] = 1.0
        return cls(mean, scale, intercept)

    @property
    def idle(self) -> bool:
        """Return whether there is nothing to scale, for example if there is only an intercept."""
        return not self.mean.any() and bool((self.scale == 1.0).all())

    def apply(self, features: Features) -> Features:
        """Return standardised features."""
        if self.idle:
            return features
        if isinstance(features, np.ndarray):
            return (features - self.mean) / self.scale
        from scipy.sparse import csr_array, diags_array

        return csr_array(features @ diags_array(1.0 / self.scale))

    def to_inputs(self, weights: Floats) -> Floats:
        """Return weights [..., F] of the inputs from those of standardised features."""
        out = weights / self.scale
        if self.intercept:
            out[..., 0] -= out @ self.mean
        return out

    def from_inputs(self, weights: Floats) -> Floats:
        """Return weights of standardised features from those of the inputs: the inverse of to_inputs."""
        out = weights * self.scale
        if self.intercept:
            out[..., 0] += self.scale[0] * (weights @ self.mean)
        return out


@dataclass(frozen=True, eq=False)
class FieldScales:
    """Hold the scales of nodes and of edges."""

    node: Scales
    edge: Scales

    @classmethod
    def of(cls, data: GraphData, intercept: bool) -> FieldScales:
        """Return the scales of a training set."""
        parts = (
            (data.node_features, data.node_rows, data.node_weights),
            (data.edge_features, data.edge_rows, data.edge_weights),
        )
        made = []
        for features, rows, weights in parts:
            count = features.shape[0]
            times = weights if rows is None else np.bincount(rows, weights=weights, minlength=count)
            # Without features the only column is the one that stands for the intercept.
            times = np.asarray(times, dtype=np.float64)
            made.append(Scales.of(features, intercept or _is_one(features), times))
        if intercept and data.node_features.shape[1] > 1:
            made[0].scale[0] = INTERCEPT
        return cls(*made)

    def apply(self, data: GraphData) -> GraphData:
        """Return the data with standardised features."""
        return replace(
            data,
            node_features=self.node.apply(data.node_features),
            edge_features=self.edge.apply(data.edge_features),
        )

    def to_inputs(self, field: GraphField, w: Floats) -> Floats:
        """Return the weights of the field of the data from those of standardised data."""
        nodes, edges = field.unpack(w)
        return field.pack(self.node.to_inputs(nodes), self.edge.to_inputs(edges))

    def from_inputs(self, field: GraphField, w: Floats) -> Floats:
        """Return the weights of the field of standardised data from those of the data."""
        nodes, edges = field.unpack(w)
        return field.pack(self.node.from_inputs(nodes), self.edge.from_inputs(edges))


def _is_one(features: Features) -> bool:
    return isinstance(features, np.ndarray) and features.shape[1] == 1 and bool((features == 1.0).all())
