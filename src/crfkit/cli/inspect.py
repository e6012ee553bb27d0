"""`crfkit inspect`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from crfkit.data.sequences import Floats
    from crfkit.estimators.chain_model import ChainModel


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    top: Annotated[
        int, typer.Option("--top", "-n", metavar="N", min=0, help="How many of the strongest weights.")
    ] = 15,
) -> None:
    """Show what a model has learned: labels, sizes, the strongest weights and transitions."""
    from crfkit import modelfile
    from crfkit.cli import inspect_graph, inspect_segmenter
    from crfkit.estimators.chain_model import ChainModel
    from crfkit.estimators.graph_model import GraphModel
    from crfkit.estimators.segmenter_model import SegmenterModel

    kind = modelfile.read(model).kind
    if kind == "graph":
        typer.echo(inspect_graph.report(GraphModel.load(model), top))
    elif kind == "refiner":
        from crfkit.cli import refine
        from crfkit.estimators.refiner_model import RefinerModel

        typer.echo(refine.describe(RefinerModel.load(model)))
    elif kind == "segmenter":
        typer.echo(inspect_segmenter.report(SegmenterModel.load(model), top))
    else:
        typer.echo(report(ChainModel.load(model), top))


def report(model: ChainModel, top: int) -> str:
    labels = [str(label) for label in model.class_list]
    field, vocabulary, training = model.field, model.vocabulary, model.training
    lines = [
        f"{len(labels)} labels: {' '.join(labels)}",
        f"{field.size} weights: " + ", ".join(f"{w.stop - w.start} {name}" for name, w in field.layout.items()),
        f"{len(vocabulary.attributes)} attributes, {len(vocabulary.pair_attributes)} pair attributes, "
        f"inputs: {vocabulary.kind}",
    ]
    if training:
        lines.append(
            f"trained: {training.get('objective')} = {training.get('value')} "
            f"({training.get('status')}, {training.get('iterations')} iterations)"
        )
    a, j = field.state_names()
    blocks: dict[str, Callable[[int], str]] = {
        "state": lambda k: f"{vocabulary.attributes[int(a[k])]}  →  {labels[j[k]]}",
    }
    i, to = field.transition_names()
    blocks["transition"] = lambda k: f"{labels[i[k]]}  →  {labels[to[k]]}"
    b, source, target = field.pair_names()
    blocks["pair"] = lambda k: f"{vocabulary.pair_attributes[int(b[k])]}  {labels[source[k]]}  →  {labels[target[k]]}"
    x, y, z = field.triple_names()
    blocks["triple"] = lambda k: f"{labels[x[k]]}  →  {labels[y[k]]}  →  {labels[z[k]]}"
    of, group = field.class_names()
    blocks["class"] = lambda k: f"{vocabulary.attributes[int(of[k])]}  →  class {model.class_names[group[k]]}"
    for name, describe in blocks.items():
        lines += _strongest(name, model.w[field.layout[name]], top, describe)
    return "\n".join(lines)


def _strongest(name: str, w: Floats, top: int, describe: Callable[[int], str]) -> list[str]:
    import numpy as np

    if len(w) == 0 or top == 0:
        return []
    lines = []
    count = min(top, len(w))
    for title, key in (("largest", -w), ("smallest", w)):
        part = np.argpartition(key, count - 1)[:count]
        lines.append(f"\n{title} {name} weights")
        lines += [f"  {w[k]:10.4f}  {describe(k)}" for k in part[np.argsort(key[part], kind="stable")]]
    return lines
