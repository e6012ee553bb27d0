"""Calibration on labelled data that training has not seen: temperature, thresholds of types, conformal sets.

Scores are linear in the weights, so a chain at temperature T is the chain with weights w / T: a calibrated model
is a plain model. Best labels do not depend on T. It minimises one of three losses:

    sequences   Σ log Z(w / T) − score(y; w) / T, the likelihood of whole labellings; convex in 1 / T
    spans       the log-loss of "this predicted phrase is right"
    tokens      the log-loss of "this predicted label is right"

Conformal sets: with scores s_n = −log p(y_n | x_n) of N sequences, the set of all labellings with −log p ≤ the
⌈(N + 1)·coverage⌉-th smallest s_n holds the true labelling of a new sequence with at least that probability, if the new
sequence is like those (Vovk, Gammerman & Shafer 2005). With p ≥ τ it has at most 1/τ members.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from crfkit._checks import check_count
from crfkit._types import Entries, Flags, Floats, Label, Record, Sequences
from crfkit.chain.model.decoding import Labelling, log_probabilities, nbest_of
from crfkit.chain.model.reliability import Block, labelled_block, log_loss, predicted_spans, predicted_tokens
from crfkit.chain.model.spans import check_probability
from crfkit.errors import DataError, DataWarning, ModelFileError, ParameterError
from crfkit.schemes import are_phrases
from crfkit.warn import warn_caller

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

Objective = Literal["auto", "sequences", "spans", "tokens", "none"]
OBJECTIVES = ("auto", "sequences", "spans", "tokens", "none")
TEMPERATURES = (0.05, 20.0)


@dataclass(frozen=True)
class TypeThreshold:
    """The least probability at which phrases of a type reach the required precision, and what it kept of the data.

    `threshold` is None if no threshold reaches it; precision is then the best that at least `min_spans` phrases have.
    """

    threshold: float | None
    precision: float
    kept: int  # phrases at or above the threshold
    spans: int  # all that were predicted


@dataclass(frozen=True)
class Calibration:
    """The result of a calibration, which a model file keeps."""

    temperature: float = 1.0
    objective: str = "none"
    sequences: int = 0
    precision: float | None = None
    types: Mapping[str, TypeThreshold] = field(default_factory=dict)
    conformal: Mapping[float, float] = field(default_factory=dict)  # coverage → least log p of a member

    @property
    def thresholds(self) -> dict[str, float | None]:
        """The least probability of each type; None where the required precision is out of reach."""
        return {kind: found.threshold for kind, found in self.types.items()}

    def as_dict(self) -> Entries:
        """Return plain values, as model files have them."""
        found = dataclasses.asdict(self)
        found["types"] = {kind: dataclasses.asdict(entry) for kind, entry in self.types.items()}
        found["conformal"] = {str(coverage): value for coverage, value in self.conformal.items()}
        return found

    @classmethod
    def from_dict(cls, values: Record | None) -> Calibration | None:
        """Return the calibration of a model file, or None if it has none."""
        if values is None:
            return None
        try:
            types = {str(kind): TypeThreshold(**entry) for kind, entry in values["types"].items()}
            conformal = {float(coverage): x for coverage, x in values["conformal"].items()}
            found = cls(**{**values, "types": types, "conformal": conformal})
            if not found._is_sound():
                raise ValueError
        except (TypeError, ValueError, KeyError, AttributeError):
            raise ModelFileError("the metadata entry 'calibration' is not what crfkit writes") from None
        return found

    def _is_sound(self) -> bool:
        """Return whether the values are those that calibration can find."""
        shares = [x for entry in self.types.values() for x in (entry.threshold, entry.precision) if x is not None]
        counts = [self.sequences, *(x for entry in self.types.values() for x in (entry.kept, entry.spans))]
        precisions = [x for x in (self.precision,) if x is not None or self.types]
        return (
            _within([self.temperature], 1e-300, 1e300)
            and isinstance(self.objective, str)
            and _within([*precisions, *shares, *self.conformal], 0.0, 1.0)
            and all(_within([entry.precision], 0.0, 1.0) for entry in self.types.values())
            and _within(list(self.conformal.values()), -math.inf, 0.0)
            and all(isinstance(x, int) and not isinstance(x, bool) and x >= 0 for x in counts)
        )

    def __str__(self) -> str:
        lines = [f"temperature {self.temperature:.4f} (by {self.objective}, on {self.sequences} sequences)"]
        if self.types:
            lines.append(f"thresholds for a precision of {self.precision:.3f}")
            width = max(4, *map(len, self.types))
            lines.append(f"  {'type':<{width}}  threshold  precision    kept")
            for kind, x in self.types.items():
                least = f"{x.threshold:9.4f}" if x.threshold is not None else f"{'none':>9}"
                lines.append(f"  {kind:<{width}}  {least}  {x.precision:9.3f}  {x.kept} of {x.spans}")
        lines += [
            f"coverage {coverage:.3f}: labellings with a probability of at least {math.exp(log_p):.3g}"
            for coverage, log_p in self.conformal.items()
        ]
        return "\n".join(lines)


def _within(values: Sequence[object], low: float, high: float) -> bool:
    """Return whether these are finite numbers of a range, which may be infinite itself."""
    low, high = max(low, -sys.float_info.max), min(high, sys.float_info.max)
    return all(isinstance(x, (int, float)) and not isinstance(x, bool) and low <= x <= high for x in values)


def calibrate(
    model: ChainModel,
    X: Sequences,
    y: Iterable[Sequence[Label]],
    precision: float | None = None,
    coverage: float | Iterable[float] = (),
    objective: Objective = "auto",
    min_spans: int = 10,
) -> ChainModel:
    """Return the model with a temperature, thresholds and conformal sets that fit labelled sequences."""
    return calibrate_blocks(model, [labelled_block(model, X, y)], precision, coverage, objective, min_spans)


def calibrate_blocks(
    model: ChainModel,
    blocks: Sequence[Block],
    precision: float | None = None,
    coverage: float | Iterable[float] = (),
    objective: Objective = "auto",
    min_spans: int = 10,
) -> ChainModel:
    """Do the same with encoded sequences."""
    if objective not in OBJECTIVES:
        raise ParameterError(f"objective must be one of {', '.join(map(repr, OBJECTIVES))}, not {objective!r}")
    check_count(min_spans=min_spans)
    wished = None if precision is None else check_probability("precision", precision)
    given: Iterable[float] = [coverage] if isinstance(coverage, (int, float)) else coverage
    coverages = sorted({_check_coverage(x) for x in given})
    n_sequences = sum(len(data) for data, _ in blocks)
    if not sum(data.n_positions for data, _ in blocks):
        raise DataError("there are no labelled sequences to calibrate with")
    marked = are_phrases(model.class_list)
    if not marked and (wished is not None or objective == "spans"):
        option = "objective='spans'" if wished is None else "precision"
        raise ParameterError(f"{option} needs labels that mark phrases (B-…, I-…, O); this model has others")
    if objective == "auto":
        objective = "spans" if marked else "tokens"
    factor = 1.0 if objective == "none" else find_temperature(model, blocks, objective)
    scaled = dataclasses.replace(model, w=model.w / factor)
    before = model.calibration.temperature if model.calibration is not None else 1.0
    found = Calibration(
        before * factor,
        objective,
        n_sequences,
        wished,
        {} if wished is None else find_thresholds(scaled, blocks, wished, min_spans),
        find_conformal(scaled, blocks, coverages) if coverages else {},
    )
    return dataclasses.replace(scaled, calibration=found)


def _check_coverage(x: object) -> float:
    coverage = check_probability("coverage", x)
    if not 0 < coverage < 1:
        raise ParameterError(f"coverage must be between 0 and 1, not {x!r}")
    return coverage


# --- temperature


def find_temperature(model: ChainModel, blocks: Sequence[Block], objective: str) -> float:
    """Return the temperature that minimises a loss on labelled sequences."""
    from scipy.optimize import minimize_scalar

    def loss(log_t: float) -> float:
        scaled = dataclasses.replace(model, w=model.w / math.exp(log_t))
        if objective == "sequences":
            found = _log_probabilities(scaled, blocks)
            return -float(found[np.isfinite(found)].sum())
        if objective == "spans":
            _, p, right = predicted_spans(scaled, blocks)
            if len(p) == 0:
                raise DataError("the model predicts no phrase on these sequences; use objective='tokens'")
        else:
            p, right = predicted_tokens(scaled, blocks)
        return log_loss(p, right)

    low, high = map(math.log, TEMPERATURES)
    best = float(minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-3}).x)
    if min(best - low, high - best) < 0.01:
        why = (
            "the model is right about nearly all of these sequences; they are too few, or were used in training"
            if best < 0
            else "the model is wrong about most of these sequences; check their labels"
        )
        warn_caller(f"the temperature ended at its limit, {math.exp(best):.3g}: {why}", DataWarning)
    return math.exp(best)


def _log_probabilities(model: ChainModel, blocks: Sequence[Block]) -> Floats:
    """Return log p of the true labels of each sequence, −inf where the model does not have or allow them."""
    ids = {name: j for j, name in enumerate(model.class_list)}
    parts = [np.zeros(0)]
    for data, rows in blocks:
        gold = np.array([ids.get(label, 0) for row in rows for label in row], dtype=np.int32)
        found = log_probabilities(model, data, gold)
        found[[any(label not in ids for label in row) for row in rows]] = -np.inf
        parts.append(found)
    return np.concatenate(parts)


# --- thresholds


def find_thresholds(
    model: ChainModel, blocks: Sequence[Block], precision: float, min_spans: int = 10
) -> dict[str, TypeThreshold]:
    """Return, for each type, the least threshold at which at least `min_spans` phrases have the required precision.

    Warns about types that do not reach it; raises DataError if none does.
    """
    kinds, p, right = predicted_spans(model, blocks)
    names = np.array(kinds)
    found = {
        kind: _threshold(p[names == kind], right[names == kind], precision, min_spans) for kind in sorted(set(kinds))
    }
    missed = [kind for kind, entry in found.items() if entry.threshold is None]
    best = ", ".join(f"{kind} {found[kind].precision:.3f}" for kind in missed)
    if not found or len(missed) == len(found):
        raise DataError(
            f"no threshold gives any type a precision of {precision:g} on at least {min_spans} phrases"
            f"{f' (best: {best})' if best else ''}; ask for less, or give more data"
        )
    if missed:
        warn_caller(
            f"no threshold gives these types a precision of {precision:g} on at least {min_spans} phrases: {best} at "
            "best; their phrases are omitted where calibrated thresholds are used",
            DataWarning,
        )
    return found


def _threshold(p: Floats, right: Flags, precision: float, min_spans: int) -> TypeThreshold:
    order = np.argsort(-p, kind="stable")
    p, right = p[order], right[order]
    kept = np.arange(1, len(p) + 1)
    share = np.cumsum(right) / kept
    ends = np.append(p[1:] < p[:-1], True)  # where a threshold can cut
    usable = ends & (kept >= min_spans)
    good = np.flatnonzero(usable & (share >= precision))
    if len(good):
        k = int(good[-1])
        return TypeThreshold(float(p[k]), float(share[k]), k + 1, len(p))
    best = float(share[usable].max()) if usable.any() else 0.0
    return TypeThreshold(None, best, 0, len(p))


# --- conformal sets


def find_conformal(model: ChainModel, blocks: Sequence[Block], coverages: Sequence[float]) -> dict[float, float]:
    """Return the least log p of a member of the set, for each coverage."""
    scores = np.sort(-_log_probabilities(model, blocks))
    found = {}
    for coverage in coverages:
        k = _above((len(scores) + 1) * coverage)
        if k > len(scores):
            raise DataError(
                f"a coverage of {coverage:g} needs at least {_above(coverage / (1 - coverage))} sequences, but "
                f"there are {len(scores)}; give more, or ask for less"
            )
        if not np.isfinite(scores[k - 1]):
            raise DataError(
                f"a coverage of {coverage:g} is out of reach: too many sequences have labels that the model does not "
                "have or that its constraints forbid"
            )
        found[coverage] = -float(scores[k - 1])
    return found


def _above(x: float) -> int:
    """Return the least integer that is not below x, but for rounding: 0.9 / (1 − 0.9) is 9, not more."""
    return math.ceil(x - 1e-9)


@dataclass(frozen=True)
class LabellingSet:
    """All labellings of a sequence that are probable enough for the coverage, best first.

    It is empty if none is. `complete` is False if more labellings than were listed are probable enough.
    """

    labellings: list[Labelling]
    complete: bool


def predict_sets(model: ChainModel, X: Sequences, coverage: float, n: int = 1000) -> list[LabellingSet]:
    """Return the conformal set of each sequence, from at most n best labellings."""
    check_count(n=n)
    known = model.calibration.conformal if model.calibration is not None else {}
    if coverage not in known:
        has = f"it has {', '.join(f'{x:g}' for x in known)}" if known else "it has none"
        raise ParameterError(f"the model is not calibrated for a coverage of {coverage!r} ({has}); call calibrate")
    least = known[coverage] - 1e-9  # log p is summed in another order here
    data = model.encode(X)
    found: dict[int, LabellingSet] = {}
    size, waiting = min(n, 16), np.arange(len(data))
    while len(waiting):  # lists grow for the sequences that need it: few do
        listed = nbest_of(model, data.take(waiting), size)
        more = []
        for k, row in zip(waiting.tolist(), listed, strict=True):
            members = [x for x in row if x.log_probability >= least]
            found[k] = LabellingSet(members, len(members) < len(row) or len(row) < size)
            if not found[k].complete and size < n:
                more.append(k)
        size, waiting = min(n, 4 * size), np.array(more, dtype=np.int64)
    return [found[k] for k in range(len(data))]
