"""`crfkit inspect` for fields on graphs, tables and grids."""

from __future__ import annotations

from crfkit._values import Record
from crfkit.cli.commands.inspect_choices import describe_choices
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.model import GraphModel


def report(model: GraphModel, top: int) -> str:
    encoder, field, training = model.encoder, model.field, model.training
    if isinstance(encoder, TableEncoder):
        lines = [
            f"{len(encoder.variables)} variables, {encoder.structure.n_edges} edges, "
            f"{len(encoder.features or [])} features",
            *(
                f"  {v}: {' '.join(map(str, c.tolist()))}"
                for v, c in zip(encoder.variables, encoder.classes, strict=True)
            ),
        ]
    else:
        names = " ".join(map(str, encoder.classes.tolist()))
        lines = [f"{len(encoder.classes)} labels: {names}", f"inputs: {encoder.kind}"]
    lines.append(
        f"{field.size} weights: {field.n_node_weights} node ({field.node_form}), "
        f"{field.n_edge_weights} edge ({field.edge_form})"
    )
    if training:
        value = training.get("value")
        lines.append(
            f"trained: {training.get('objective')}{'' if value is None else f' = {value}'} "
            f"({training.get('status')}, {training.get('iterations')} iterations)"
        )
        lines += describe_choices(training, model.inference, model.decode)
    if isinstance(structure := training.get("structure"), dict):
        lines += describe_structure(structure)
    for kind, weights in (("node", model.node_weights()), ("edge", model.edge_weights())):
        for title, sign in (("largest", -1), ("smallest", 1)):
            strongest = sorted(weights.items(), key=lambda item, sign=sign: sign * item[1])[:top]  # type: ignore[misc]
            if strongest:
                lines.append(f"\n{title} {kind} weights")
            lines += [f"  {value:10.4f}  {_show(name)}" for name, value in strongest]
    return "\n".join(lines)


SCORES = {"ebic": "eBIC", "stability": "eBIC", "cv": "held-out loss"}


def describe_structure(record: Record, path: bool = False) -> list[str]:
    """Return lines that say how the edges of a model were learnt; with the path of penalties if `path`."""
    rule, refit = record.get("rule"), record.get("refit")
    lines = [
        f"structure by {record.get('method')}, loss {record.get('loss')}: penalty λ {record.get('strength'):.6g}"
        + (f", chosen by {rule}" if rule else "")
        + f" (no edges from {record.get('critical_strength'):.6g} on)"
    ]
    if isinstance(refit, dict):
        off = refit.get("mismatch")
        within = "" if off is None else f", marginals within {off:.3f} of the data's"
        lines.append(f"weights by {refit.get('by')}{within}")
    steps = record.get("path") or []
    if steps and not path:
        return lines
    what = SCORES.get(str(rule))
    if steps and what:
        lines.append(f"path ({what}: lower is better)")
    for k, (strength, n_edges, score, error, *_) in enumerate(steps):
        scored = "" if score is None else f"  {what} {score:.6g}" + ("" if error is None else f" ± {error:.2g}")
        mark = "  ←" if k == record.get("chosen") else ""
        lines.append(f"  λ {strength:10.4g}  {n_edges:5d} edges{scored}{mark}")
    return lines


def _show(name: tuple[object, ...]) -> str:
    return "  ".join(" – ".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in name)
