"""Inputs of structure learning, standardised for training; the weights go back to the scale that was given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfkit._types import Floats, Record
from crfkit.graph.fields.field import GraphField


@dataclass(frozen=True, eq=False)
class InputScales:
    """Means and standard deviations of the features of rows and of variables in training.

    The weights of edges are shown at the means and per standard deviation, so they do not depend on where the scale of
    an input begins or on its unit.
    """

    shared: Floats
    own: Floats
    shared_means: Floats | None = None  # older model files have none
    own_means: Floats | None = None

    def plain(self) -> dict[str, list[float]]:
        """Return the scales as stored in the model file."""
        entries = {
            "shared": self.shared,
            "own": self.own,
            "shared_means": self.shared_means,
            "own_means": self.own_means,
        }
        return {name: values.tolist() for name, values in entries.items() if values is not None}

    @classmethod
    def read(cls, stored: Record) -> InputScales:
        """Return those that a model file holds."""
        scales = (np.asarray(stored[name], dtype=float) for name in ("shared", "own"))
        means = (
            None if stored.get(name) is None else np.asarray(stored[name], dtype=float)
            for name in ("shared_means", "own_means")
        )
        return cls(*scales, *means)

    def of_edges(self, width: int) -> Floats:
        """Return the standard deviation of each of the `width` features of an edge, 1 for the intercept."""
        found = np.concatenate([[1.0], self.shared, self.own, self.own])
        return found if len(found) == width else np.ones(width)

    def means_of_edges(self, width: int) -> Floats:
        """Return the mean of each of the `width` features of an edge: 1 for the intercept, 0 where it is not known."""
        none = np.concatenate([[1.0], np.zeros(width - 1)])
        if self.shared_means is None or self.own_means is None:
            return none
        found = np.concatenate([[1.0], self.shared_means, self.own_means, self.own_means])
        return found if len(found) == width else none


@dataclass(frozen=True, eq=False)
class InputScaling:
    """Means and standard deviations of the features of rows, and of those of variables (over all variables).

    All weights of an edge share one penalty, which is fair only to features of one scale.

    >>> scaling = InputScaling.of(np.array([[1.0], [3.0]]), None)
    >>> scaling.apply(np.array([[1.0], [3.0]]), None)[0].tolist()
    [[-1.0], [1.0]]
    """

    means: Floats  # [F]
    scales: Floats  # [F] 1 for constant features
    own_means: Floats  # [d]
    own_scales: Floats  # [d]

    @classmethod
    def of(cls, shared: Floats | None, own: Floats | None) -> InputScaling:
        """Return the scaling of features [rows, F] without an intercept, and of features of variables [rows, p, d]."""
        rows = np.zeros((1, 0)) if shared is None else shared
        return cls(*_moments(rows), *_moments(np.zeros((1, 0)) if own is None else own.reshape(-1, own.shape[2])))

    def apply(self, shared: Floats | None, own: Floats | None) -> tuple[Floats | None, Floats | None]:
        """Return the features, standardised."""
        return (
            None if shared is None else (shared - self.means) / self.scales,
            None if own is None else (own - self.own_means) / self.own_scales,
        )

    def original(self, w: Floats, field: GraphField, edge_inputs: bool) -> Floats:
        """Return the weights of the same field for the features as they were given."""
        nodes, edges = field.unpack(w)
        _rescale(nodes, self.means, self.scales, [(self.own_means, self.own_scales)])
        if edge_inputs:
            _rescale(edges, self.means, self.scales, [(self.own_means, self.own_scales)] * 2)
        return field.pack(nodes, edges)

    @property
    def input_scales(self) -> InputScales:
        """Return what the model file keeps of the inputs, so that edges and inputs can be compared."""
        return InputScales(self.scales, self.own_scales, self.means, self.own_means)


def _moments(values: Floats) -> tuple[Floats, Floats]:
    scales = values.std(axis=0)
    return values.mean(axis=0), np.where(scales > 1e-12 * (1.0 + np.abs(values).max(axis=0, initial=0.0)), scales, 1.0)


def _rescale(weights: Floats, means: Floats, scales: Floats, own: list[tuple[Floats, Floats]]) -> None:
    """Rescale weights [..., 1 + F + d …] in place; the first is the intercept."""
    every = [(means, scales), *own]
    m, s = (np.concatenate([part[k] for part in every]) for k in (0, 1))
    weights[..., 1:] /= s
    weights[..., 0] -= weights[..., 1:] @ m
