"""The exact probability that a span is among the phrases of a labelling, as conlleval reads phrases.

A phrase continues from one position to the next if both labels have its type, the first does not end a phrase (E, S, L,
U) and the second does not begin one (B, S, U). With C(i, j) = 1 if it continues from label i to label j, the span s … e
of a type is in y if y_s has that type, C(y_{s−1}, y_s) = 0, C(y_{t−1}, y_t) = 1 for s < t < e, and C(y_{e−1}, y_e) = 0.
In a chain of order 1, with node marginals p and edge marginals q,

    v_s(j) = Σ_i q_s(i, j) (1 − C(i, j)),    v_t(j) = Σ_i v_{t−1}(i) q_t(i, j) C(i, j) / p_{t−1}(i),
    p(span) = Σ_j v_{e−1}(j) Σ_k q_e(j, k) (1 − C(j, k)) / p_{e−1}(j),

where all labels are of the span's type. In a chain of order 2 the same holds for pairs of labels. All spans of a
sequence come out of one forward–backward pass, in the compiled core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Floats, Ids, Sequences
from crfkit.errors import DataError, ParameterError
from crfkit.schemes import obstacle, split_label

if TYPE_CHECKING:
    from crfkit.chain.data import SequenceData
    from crfkit.chain.model.model import ChainModel


class Span(NamedTuple):
    """A phrase: positions start … end − 1, its type, and the probability that it is in the labelling exactly so."""

    start: int
    end: int
    type: str
    probability: float


Thresholds = float | Mapping[str, float] | None


def predict_spans(model: ChainModel, X: Sequences, min_probability: Thresholds | str = None) -> list[list[Span]]:
    """Return the phrases of the best labelling of each sequence with their probabilities."""
    runs = runs_of(model)
    least = thresholds(model, runs, min_probability)
    return spans_of(model, model.encode(X), runs, least)


def spans_of(
    model: ChainModel, data: SequenceData, runs: Runs | None = None, least: Floats | None = None
) -> list[list[Span]]:
    """Return the phrases of encoded sequences; with `least` (per type), only those of at least this probability."""
    runs = runs or runs_of(model)
    inference, kinds = model.inference, runs.kinds
    log_z, counts, begins, ends, types, chances = inference.decoder.best_spans(
        data.native, inference.threads, runs.goes_on.astype(np.uint8).ravel(), runs.type_ids
    )
    inference.check_possible(log_z, data)
    if least is not None:
        kept = chances >= least[types]
        of = np.repeat(np.arange(len(counts)), counts)[kept]
        counts = np.bincount(of, minlength=len(counts))
        begins, ends, types, chances = begins[kept], ends[kept], types[kept], chances[kept]
    named = (kinds[k] for k in types.tolist())
    found = map(Span, begins.tolist(), ends.tolist(), named, chances.tolist())
    return [list(islice(found, count)) for count in counts.tolist()]


def span_probabilities(model: ChainModel, data: SequenceData, spans: Sequence[tuple[int, int, int, str]]) -> Floats:
    """Return the probabilities of spans (sequence, start, end, type), whether the best labelling has them or not."""
    if not spans:
        return np.zeros(0)
    runs = Runs(model.class_list)
    ids = {kind: k for k, kind in enumerate(runs.kinds)}
    lengths = data.lengths.tolist()
    for n, start, end, kind in spans:
        if kind not in ids:
            raise DataError(f"the model has no phrases of type {kind!r}; its types are {', '.join(map(repr, ids))}")
        if not 0 <= n < len(lengths) or not 0 <= start < end <= lengths[n]:
            raise DataError(f"the span {start} … {end} is not in sequence {n}, or is empty; ends are exclusive")
    number, begins, ends = (np.array([span[k] for span in spans], dtype=np.int64) for k in range(3))
    kinds = np.array([ids[kind] for *_, kind in spans], dtype=np.int32)
    order = np.argsort(number, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(data)))]).astype(np.int64)
    inference = model.inference
    log_z, chances = inference.decoder.span_probabilities(
        data.native,
        inference.threads,
        runs.goes_on.astype(np.uint8).ravel(),
        runs.type_ids,
        offsets,
        begins[order],
        ends[order],
        kinds[order],
    )
    inference.check_possible(log_z, data)
    found = np.empty(len(spans))
    found[order] = chances
    return found


def runs_of(model: ChainModel) -> Runs:
    """Return how the labels of a model mark phrases; raise ParameterError if they do not."""
    why = obstacle(model.class_list)
    if why is not None:
        raise ParameterError(f"the labels of this model do not mark phrases: {why}")
    return Runs(model.class_list)


def thresholds(model: ChainModel, runs: Runs, given: Thresholds | str) -> Floats | None:
    """Return the least probability of each type: one number for all, or by type (0 for types that are not named).

    "calibrated" stands for the thresholds that `calibrate` found; types that no threshold brings to the required
    precision are omitted.
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given != "calibrated":
            raise ParameterError(f"min_probability must be a number, numbers by type or 'calibrated', not {given!r}")
        if model.calibration is None or not model.calibration.thresholds:
            raise ParameterError("the model has no calibrated thresholds; call calibrate with labelled data first")
        found = {kind: np.inf if x is None else x for kind, x in model.calibration.thresholds.items()}
        return np.array([found.get(kind, 0.0) for kind in runs.kinds])
    if isinstance(given, Mapping):
        unknown = [kind for kind in given if kind not in runs.kinds]
        if unknown:
            raise ParameterError(
                f"min_probability names the type {unknown[0]!r}; the types of the model are "
                f"{', '.join(map(repr, runs.kinds))}"
            )
        return np.array([check_probability("min_probability", given.get(kind, 0.0)) for kind in runs.kinds])
    return np.full(len(runs.kinds), check_probability("min_probability", given))


def check_probability(name: str, value: object) -> float:
    """Return a probability as a float; raise ParameterError unless it is between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)) or not 0 <= value <= 1:
        raise ParameterError(f"{name} must be a probability between 0 and 1, not {value!r}")
    return float(value)


@dataclass(frozen=True, eq=False)
class Runs:
    """Rules by which phrases continue from label to label."""

    labels: Sequence[str]

    @cached_property
    def parts(self) -> list[tuple[str, str]]:
        return [split_label(label) or ("O", "") for label in self.labels]

    @cached_property
    def goes_on(self) -> NDArray[np.bool_]:
        """C(i, j)."""
        return np.array(
            [
                [a not in "OESLU" and b not in "OBSU" and kind == other for b, other in self.parts]
                for a, kind in self.parts
            ]
        )

    @cached_property
    def kinds(self) -> list[str]:
        """The types, sorted."""
        return sorted({kind for tag, kind in self.parts if tag != "O"})

    @cached_property
    def type_ids(self) -> Ids:
        """The place of each label's type in `kinds`, −1 for labels outside phrases."""
        return np.array([self.kinds.index(kind) if tag != "O" else -1 for tag, kind in self.parts], dtype=np.int32)
