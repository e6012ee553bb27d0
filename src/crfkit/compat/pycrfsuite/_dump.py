"""A model as text, in the form of `crfsuite dump`, and as dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crfkit.chain.model.model import ChainModel
from crfkit.compat.pycrfsuite._dumpparser import ParsedDump


def describe(model: ChainModel | None, header: Mapping[str, str]) -> ParsedDump:
    """Return the weights of a model by name."""
    found = ParsedDump()
    found.header = dict(header)
    if model is None:
        return found
    labels, names = model.class_list, model.vocabulary.attributes.to_list()
    found.labels = {label: str(k) for k, label in enumerate(labels)}
    found.attributes = {name: str(k) for k, name in enumerate(names)}
    field = model.field
    weights = {block: model.w[place].tolist() for block, place in field.layout.items()}
    moves, states = ([ids.tolist() for ids in pair] for pair in (field.transition_ids(), field.state_ids()))
    found.transitions = {
        (labels[i], labels[j]): weight for i, j, weight in zip(*moves, weights["transition"], strict=True)
    }
    found.state_features = {
        (names[a], labels[j]): weight for a, j, weight in zip(*states, weights["state"], strict=True)
    }
    return found


def dump_lines(found: ParsedDump) -> Iterator[str]:
    """Yield the lines of the dump."""
    yield from _section("FILEHEADER", (f"  {name}: {value}" for name, value in found.header.items()))
    yield from _section("LABELS", (f"  {number:>5}: {name}" for name, number in found.labels.items()))
    yield from _section("ATTRIBUTES", (f"  {number:>5}: {name}" for name, number in found.attributes.items()))
    for title, kind, weights in (
        ("TRANSITIONS", 1, found.transitions),
        ("STATE_FEATURES", 0, found.state_features),
    ):
        yield from _section(title, (f"  ({kind}) {a} --> {b}: {w:f}" for (a, b), w in weights.items()))


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"{title} = {{\n"
    for line in lines:
        yield f"{line}\n"
    yield "}\n"
    yield "\n"
