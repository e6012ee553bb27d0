"""`crfkit inspect`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit._values import Entries
from crfkit.cli.options import shared
from crfkit.cli.runtime.help import MODEL, OUTPUT, option
from crfkit.cli.runtime.output import say
from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel


def inspect(
    model: shared.ModelFile,
    label: Annotated[
        list[str] | None,
        option(
            MODEL,
            "--label",
            metavar="LABEL",
            help="Sequence taggers only: show only weights of this label. May be repeated.",
        ),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        option(
            MODEL,
            "--attribute",
            metavar="TEXT",
            help="Sequence taggers only: show only weights of attributes that contain this text. May be repeated.",
        ),
    ] = None,
    top: Annotated[
        int,
        option(OUTPUT, "--top", "-n", metavar="N", min=0, help="Number of weights of each kind to show."),
    ] = 15,
    as_json: shared.Json = False,
) -> None:
    """Show what a model has learned: its labels, its sizes and its strongest weights."""
    from crfkit.cli.commands import inspect_graph, inspect_segmenter
    from crfkit.cli.commands.inspect_chain import summary
    from crfkit.convert import load, model_kind
    from crfkit.files import modelfile
    from crfkit.graph.model import GraphModel
    from crfkit.images.model.segmenter import SegmenterModel

    kind = modelfile.read(model).kind if model_kind(model) == "crfkit" else "chain"
    if kind in ("graph", "segmenter", "refiner") and (label or attribute):
        name = "--label" if label else "--attribute"
        raise ParameterError(
            f"{name} is only for sequence taggers, but {model} is a model of kind '{kind}'; leave {name} out"
        )
    if kind == "graph":
        graph = GraphModel.load(model)
        typer.echo(_json(_graph_summary(kind, graph, top))) if as_json else say(inspect_graph.report(graph, top))
    elif kind == "refiner":
        from crfkit.cli.commands import refine
        from crfkit.images.model.refiner import RefinerModel

        refiner = RefinerModel.load(model)
        typer.echo(_json(_refiner_summary(refiner))) if as_json else say(refine.describe(refiner))
    elif kind == "segmenter":
        segmenter = SegmenterModel.load_weights(model)
        if as_json:
            used = {part: list(names) for part, names in segmenter.selected().items()}
            known = {"classes": segmenter.classes.tolist(), "features_used": used}
            typer.echo(_json({**_graph_summary(kind, segmenter.field, top), **known}))
        else:
            say(inspect_segmenter.report(segmenter, top))
    else:
        found = summary(load(model), top, label or [], attribute or [])
        typer.echo(_json(found)) if as_json else say(_report(found))


def report(model: ChainModel, top: int) -> str:
    """Return what `crfkit inspect` prints for a sequence tagger."""
    from crfkit.cli.commands.inspect_chain import summary

    return _report(summary(model, top))


def _report(found: Entries) -> str:
    from crfkit.cli.commands.inspect_chain import describe, describe_features
    from crfkit.cli.commands.inspect_choices import describe_choices
    from crfkit.wording import counted

    weights = {name: n for name, n in found["weights"].items() if name != "total" and n}
    attributes = counted(found["attributes"], "attribute")
    if found["pair_attributes"]:
        attributes += f", {counted(found['pair_attributes'], 'pair attribute')}"
    lines = [
        f"{counted(len(found['labels']), 'label')}: {' '.join(map(str, found['labels']))}",
        f"{counted(found['weights']['total'], 'weight')}"
        + (": " if weights else "")
        + ", ".join(f"{n} {name}" for name, n in weights.items()),
        f"{attributes}, inputs: {found['inputs']}",
    ]
    lines += describe_features(found)
    training = found["training"]
    if "origin" in training:
        lines.append(f"converted from a model of {training['origin']}")
    if "objective" in training:
        lines.append(
            f"trained: {training.get('objective')} = {training.get('value')} ({training.get('status')}, "
            f"{counted(training.get('iterations', 0), 'iteration')})"
        )
    lines += describe_choices(training)
    if "calibration" in found:
        from crfkit.chain.model.calibration import Calibration

        lines.append(f"calibrated: {Calibration.from_dict(found['calibration'])}")
    for name, ends in found["strongest"].items():
        for title, rows in ends.items():
            lines.append(f"\n{title} {name} weights")
            lines += [f"  {row['weight']:10.4f}  {describe(row)}" for row in rows]
    return "\n".join(lines)


def _graph_summary(kind: str, model: Any, top: int) -> Entries:
    strongest = {}
    for block, weights in (("node", model.node_weights()), ("edge", model.edge_weights())):
        rows = sorted(weights.items(), key=lambda item: -item[1])
        ends = {"largest": rows[:top], "smallest": rows[: -top - 1 : -1] if top else []}
        strongest[block] = {
            title: [{"name": name, "weight": float(weight)} for name, weight in part] for title, part in ends.items()
        }
    sizes = {"total": model.field.size, "node": model.field.n_node_weights, "edge": model.field.n_edge_weights}
    return {"kind": kind, "weights": sizes, "training": dict(model.training), "strongest": strongest}


def _refiner_summary(model: Any) -> Entries:
    weights = {name: [float(v) for v in w] for name, w in model.edge_weights().items()}
    return {
        "kind": "refiner",
        "classes": model.classes.tolist(),
        "temperature": float(model.temperature),
        "bias": [float(b) for b in model.bias],
        "edge_weights": weights,
    }


def _json(found: Entries) -> str:
    text = json.dumps(found, indent=2, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # a lone surrogate, as JSON writes it
