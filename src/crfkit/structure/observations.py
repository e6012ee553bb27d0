"""A table of discrete variables, as the indicator matrices that structure learning multiplies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from crfkit._checks import unmasked, weights_of, whole_numbers
from crfkit._types import Array, Features, Flags, Floats, Ids, Samples, Sparse
from crfkit.errors import DataError, ParameterError


@dataclass(frozen=True, eq=False)
class Observations:
    """Rows of states of p variables, with features or without.

    Make it with :meth:`of`, which keeps equal rows once where there are no features. Binary variables may be coded as
    ±1 (`ising`: one column of ``indicators`` each), others have a column for each of their states. States that are
    steps of a scale (`ordinal`) have one column of scores, equally spaced from −1 to 1; where `scored` says which
    variables have scores, the others have a column for each state. In the form `reference` the last state of a variable
    and the last pair of states of an edge have no weights. With features of variables, `own`, a node i has the features
    [x, f_i], an edge [x, f_i, f_j].

    >>> table = Observations.of([[0, 1], [0, 1], [1, 2]], [2, 3])
    >>> table.weights.tolist(), table.indicators.tolist()
    ([2.0, 1.0], [[1.0, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0]])
    """

    states: Ids  # [m, p]
    n_states: Ids  # [p]
    inputs: Floats | None  # [m, F]
    weights: Floats  # [m]
    ising: bool = False
    edge_inputs: bool = True  # whether edges see the features; otherwise they have the first, the intercept
    own: Floats | None = None  # [m, p, d]
    ordinal: bool = False
    reference: bool = False
    scored: Flags | None = None  # [p] which variables have scores in the ordinal form; None for all

    @classmethod
    def of(
        cls,
        states: ArrayLike,
        n_states: ArrayLike,
        features: Features = None,
        weights: ArrayLike | None = None,
        ising: bool = False,
        edge_inputs: bool = True,
        own: Samples = None,
        ordinal: bool = False,
        reference: bool = False,
        scored: Flags | None = None,
    ) -> Observations:
        """Return observations from states [rows, p], features [rows, F] that begin with ones, and own [rows, p, d]."""
        y = whole_numbers(states, "states")
        if y.ndim != 2:
            raise DataError(f"states must be a table [rows, variables]; got shape {y.shape}")
        K = np.broadcast_to(np.asarray(n_states, dtype=np.int32), (y.shape[1],))
        if (bad := np.argwhere((y < 0) | (y >= K))).size:
            row, i = bad[0].tolist()
            raise DataError(f"row {row} has state {y[row, i]} of variable {i}; its states are 0 … {K[i] - 1}")
        if ising and (K != 2).any():
            raise ParameterError(f"the Ising form is for two states; variable {int((K != 2).argmax())} has {K.max()}")
        w = np.ones(len(y)) if weights is None else weights_of(weights, "row", len(y))
        if features is None:
            y, which = np.unique(y, axis=0, return_inverse=True)
            w = np.bincount(which.ravel(), weights=w, minlength=len(y)).astype(np.float64)
        else:
            features = np.asarray(unmasked(features, "features"), dtype=np.float64)
            if features.ndim != 2 or len(features) != len(y):
                raise DataError(f"features of shape {features.shape} for {len(y)} rows of states")
        if own is not None:
            own = np.ascontiguousarray(unmasked(own, "features of variables"), dtype=np.float64)
            if features is None or own.ndim != 3 or own.shape[:2] != y.shape:
                raise DataError(
                    f"features of variables of shape {own.shape} for states of shape {y.shape}; expected [rows, "
                    "variables, features], besides features of rows (at least a column of ones)"
                )
        return cls(
            states=y,
            n_states=K,
            inputs=features,
            weights=w,
            ising=ising,
            edge_inputs=edge_inputs,
            own=own,
            ordinal=ordinal,
            reference=reference,
            scored=scored,
        )

    def take(self, rows: ArrayLike) -> Observations:
        """Return the table of some rows of `states`."""
        ids = np.asarray(rows)
        inputs = None if self.inputs is None else self.inputs[ids]
        own = None if self.own is None else self.own[ids]
        return replace(self, states=self.states[ids], inputs=inputs, weights=self.weights[ids], own=own)

    def reweighted(self, weights: Floats) -> Observations:
        """Return the same rows with other weights; rows of weight 0 are omitted."""
        kept = np.flatnonzero(weights)
        return replace(self.take(kept), weights=weights[kept])

    @property
    def single(self) -> bool:
        """Return whether every edge has one weight per feature, not a table of them."""
        return self.ising or (self.ordinal and (self.scored is None or bool(self.scored.all())))

    @cached_property
    def has_scores(self) -> Flags:
        """Return [p]: which variables have one column in ``indicators``, of signs or scores."""
        if self.ordinal and self.scored is not None:
            return self.scored
        return np.full(self.n_variables, self.ising or self.ordinal)

    @cached_property
    def factors(self) -> Ids:
        """Return [p]: the number of columns that each variable has in ``indicators``."""
        return np.where(self.has_scores, 1, self.n_states).astype(np.int32)

    @cached_property
    def full(self) -> Observations:
        """Return the same table with a weight for every state and every pair of states."""
        return replace(self, reference=False)

    @cached_property
    def weighted_pairs(self) -> Floats:
        """Return [ΣK, ΣK]: 0 for pairs of last states, which have no weight in the reference form, otherwise 1."""
        mask = np.ones((int(self.n_states.sum()),) * 2)
        last = self.state_starts + self.n_states - 1
        mask[np.ix_(last, last)] = 0.0
        return mask

    @property
    def n_variables(self) -> int:
        return len(self.n_states)

    @property
    def has_inputs(self) -> bool:
        return self.inputs is not None

    @cached_property
    def features(self) -> Floats:
        """Return [m, F]; [1, 1], a one for all rows, where there are no inputs."""
        return np.ones((1, 1)) if self.inputs is None else self.inputs

    @cached_property
    def total(self) -> float:
        """Return the sum of the weights of rows."""
        return float(self.weights.sum())

    @property
    def widths(self) -> tuple[int, int]:
        """Return the numbers of (features of a node, features of an edge)."""
        F, d = self.features.shape[1], self.n_own
        return F + d, F + 2 * d if self.edge_inputs else 1

    @property
    def n_own(self) -> int:
        """Return the number of features that each variable has of its own."""
        return 0 if self.own is None else self.own.shape[2]

    @property
    def edge_parts(self) -> tuple[int, int]:
        """Return the numbers of (shared features of an edge, features that it has from each end)."""
        return (self.features.shape[1], self.n_own) if self.edge_inputs else (1, 0)

    @cached_property
    def own_columns(self) -> Floats:
        """Return [d, m, S] features of variables, for every column of ``indicators``."""
        if self.own is None:
            return np.zeros((0, len(self.states), 1))
        return np.repeat(np.ascontiguousarray(np.moveaxis(self.own, 2, 0)), self.factors, axis=2)

    @cached_property
    def node_columns(self) -> Floats:
        """Return [d, m, logits] features of variables, for every state, or variable in the Ising form."""
        if not self.ordinal or self.own is None:
            return self.own_columns
        return np.repeat(np.moveaxis(self.own, 2, 0), self.n_states, axis=2)

    @cached_property
    def starts(self) -> Ids:
        """Return an array [p]: the first column of each variable in ``indicators``."""
        return np.concatenate([[0], np.cumsum(self.factors)[:-1]]).astype(np.int32)

    @cached_property
    def state_starts(self) -> Ids:
        """Return an array [p]: the first column of each variable in ``one_hot``."""
        return np.concatenate([[0], np.cumsum(self.n_states)[:-1]]).astype(np.int32)

    @cached_property
    def one_hot(self) -> Floats:
        """Return an array [m, ΣK]."""
        m = len(self.states)
        out = np.zeros((m, int(self.n_states.sum())))
        out[np.arange(m)[:, None], self.state_starts + self.states] = 1.0
        return out

    @cached_property
    def scores(self) -> Floats:
        """Return an array [ΣK]: of the columns of ``one_hot``: equally spaced from −1 to 1 for each variable."""
        return np.concatenate([np.linspace(-1.0, 1.0, k) for k in self.n_states.tolist()])

    @cached_property
    def score_map(self) -> Sparse:
        """Return [S, ΣK], sparse: what each column of ``indicators`` is for each state, in the ordinal form."""
        from scipy.sparse import csr_matrix

        rows: list[int] = []
        values: list[float] = []
        for first, factors, K in zip(self.starts.tolist(), self.factors.tolist(), self.n_states.tolist(), strict=True):
            rows += [first] * K if factors == 1 else range(first, first + K)
            values += np.linspace(-1.0, 1.0, K).tolist() if factors == 1 else [1.0] * K
        columns = np.arange(len(rows))
        return csr_matrix((values, (rows, columns)), shape=(int(self.factors.sum()), len(rows)))

    def mean_scores(self, of_states: Floats) -> Floats:
        """Return [m, S] Σ_k values [m, ΣK] · factor of k, of each column of ``indicators``."""
        if not self.single:
            return np.asarray((self.score_map @ of_states.T).T)
        found: Floats = np.add.reduceat(of_states * self.scores, self.state_starts, axis=1)
        return found

    @cached_property
    def indicators(self) -> Floats:
        """Return the factors of couplings [m, S]: ±1 in the Ising form, scores if ordinal, otherwise ``one_hot``."""
        if self.ordinal:
            if not self.single:
                return np.asarray((self.score_map @ self.one_hot.T).T)
            found: Floats = self.scores[self.state_starts + self.states]
            return found
        return 2.0 * self.states.astype(np.float64) - 1.0 if self.ising else self.one_hot

    @cached_property
    def indicator_rows(self) -> Floats:
        """Return [S, m] ``indicators``, a variable's numbers side by side."""
        return np.ascontiguousarray(self.indicators.T)

    @cached_property
    def pair_counts(self) -> Floats:
        """Return Σ_rows weight · edge feature · (indicator of a state) · (indicator of another), [F, ΣK, ΣK]."""
        return self.pair_products(self.one_hot)

    def pair_products(self, Q: Floats) -> Floats:
        """Return [F, S, S] Σ_rows weight · feature · Q_a · Q_b, of edge features and columns a < b of Q [m, S].

        Columns are as in ``one_hot`` or ``indicators``.
        """
        c = self.weights[:, None]
        shared, own = self.edge_parts
        out = [Q.T @ (Q * (c * self.features[:, f : f + 1])) for f in range(shared)]
        first = []
        for f in range(own):
            values: Floats = self.own[:, :, f]  # type: ignore[index]
            of_states = Q.shape[1] == self.n_states.sum()
            values = np.repeat(values, self.n_states if of_states else self.factors, axis=1)
            first.append((Q * (c * values)).T @ Q)
        return np.stack([*out, *first, *(G.T for G in first)])

    def pair_features(self, i: int, others: Array | list[int]) -> Floats:
        """Return an array [m, others, F]: the features of the edges between i and variables above it."""
        shared, own = self.edge_parts
        x = np.broadcast_to(self.features[:, None, :shared], (len(self.states), len(others), shared))
        if not own or self.own is None:
            return x
        return np.concatenate([x, np.broadcast_to(self.own[:, i : i + 1], (*x.shape[:2], own)), self.own[:, others]], 2)

    @cached_property
    def spin_products(self) -> Floats:
        """Return [F, p, p] Σ_rows weight · feature · s_i·s_j of variables as ±1 or scores, of edge features."""
        return self.pair_products(self.indicators)

    def positions(self, pairs: Ids) -> tuple[Ids, Ids]:
        """Return (rows, columns) of the couplings of pairs [E, 2] in a matrix [S, S]; factors in row-major order."""
        if self.single:
            return pairs[:, 0], pairs[:, 1]
        first, second = self.factors[pairs[:, 0]], self.factors[pairs[:, 1]]
        sizes = first * second
        edge = np.repeat(np.arange(len(pairs)), sizes)
        place = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        a, b = place // second[edge], place % second[edge]
        return self.starts[pairs[edge, 0]] + a, self.starts[pairs[edge, 1]] + b
