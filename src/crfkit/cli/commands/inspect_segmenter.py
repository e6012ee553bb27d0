"""`crfkit inspect` for segmenters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from crfkit._values import Label
from crfkit.cli.commands.inspect_choices import describe_choices
from crfkit.images.c1 import C1_NAMES
from crfkit.images.features import COLOUR_NAMES, POSITION_NAMES
from crfkit.images.model.segmenter import SegmenterModel
from crfkit.images.sift import SIFT_NAMES
from crfkit.images.training.groups import describe_choice


def report(model: SegmenterModel, top: int) -> str:
    features, field, training = model.features, model.field.field, model.field.training
    size = "" if features.size is None else f" of images resized to {features.size[0]}×{features.size[1]}"
    lines = [
        f"{len(model.classes)} classes: {' '.join(map(str, model.classes.tolist()))}",
        f"blocks of {features.block_size}×{features.block_size} pixels{size}, "
        f"{len(features.names)} features: {_by_kind(features.names)}",
        f"{field.size} weights: {field.n_node_weights} unary ({field.node_form}), "
        f"{field.n_edge_weights} pairwise ({field.edge_form})",
    ]
    if training:
        value = training.get("value")
        lines.append(
            f"trained: {training.get('objective')}{'' if value is None else f' = {value}'} "
            f"({training.get('status')}, {training.get('iterations')} iterations)"
        )
        lines += describe_choices(training, model.field.inference, model.field.decode)
        if isinstance(chosen := training.get("penalty_choice"), dict):
            lines.append(describe_choice(chosen))
    for part, used in model.selected().items():
        kinds = f" ({_by_kind(used)})" if used else ""
        lines.append(f"{part} features used: {len(used)} of {len(features.names)}{kinds}")
    for part, weights in (("unary", model.field.node_weights()), ("pairwise", model.field.edge_weights())):
        # (…, label) → weight, for all features of a label before those of the next
        names = cycle(("intercept", *features.names))
        named = [(value, name, key[-1]) for (key, value), name in zip(weights.items(), names, strict=False) if value]
        strongest = sorted(named, key=lambda item: -abs(item[0]))[:top]
        if strongest:
            lines.append(f"\nstrongest {part} weights, of standardised features")
        lines += [f"  {value:10.4f}  {name}  →  {_labels(label)}" for value, name, label in strongest]
    return "\n".join(lines)


def _by_kind(names: Sequence[str]) -> str:
    """Return the number of features of each kind."""
    kinds = {
        **dict.fromkeys(SIFT_NAMES, "sift"),
        **dict.fromkeys(C1_NAMES, "c1"),
        **dict.fromkeys(COLOUR_NAMES, "colour"),
        **dict.fromkeys(POSITION_NAMES, "position"),
    }
    counts: dict[str, int] = {}
    for name in names:
        kind = kinds.get(name, "custom")
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _labels(label: Label) -> str:
    return " – ".join(map(str, label)) if isinstance(label, tuple) else str(label)
