"""`crfkit inspect` for sequence taggers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array, Entries
from crfkit.chain.encoding.vocabulary import Vocabulary
from crfkit.chain.model.model import ChainModel
from crfkit.errors import ParameterError
from crfkit.wording import counted

Row = Entries  # a weight and its name


def summary(
    model: ChainModel, top: int, only_labels: Sequence[str] = (), only_attributes: Sequence[str] = ()
) -> Entries:
    """Return labels, sizes, how the model was trained, and the strongest weights of each kind.

    `only_labels` restricts the weights to those that name one of these labels, `only_attributes` to those of attributes
    that contain one of these texts.
    """
    field, vocabulary = model.field, model.vocabulary
    strongest = {}
    for name, (parts, make) in _kinds(model).items():
        w = model.w[field.layout[name]]
        keep = _chosen(model, name, parts, only_labels, only_attributes)
        ids = np.flatnonzero(keep)
        count = min(top, len(ids))
        if count == 0:
            continue
        order = ids[np.argsort(-w[ids], kind="stable")]
        low = ids[np.argsort(w[ids], kind="stable")]
        strongest[name] = {
            title: [{**make(int(k)), "weight": float(w[k])} for k in part[:count].tolist()]
            for title, part in (("largest", order), ("smallest", low))
        }
    return {
        "kind": "chain",
        "labels": model.class_list,
        "weights": {
            "total": field.size,
            **{name: block.stop - block.start for name, block in field.layout.items() if block.stop > block.start},
        },
        "attributes": len(vocabulary.attributes),
        "pair_attributes": len(vocabulary.pair_attributes),
        "inputs": vocabulary.kind,
        "features": _features(vocabulary),
        "hash_bits": vocabulary.hash_bits,
        "order": field.order,
        "training": dict(model.training),
        **({"calibration": model.calibration.as_dict()} if model.calibration is not None else {}),
        "strongest": strongest,
    }


def _features(vocabulary: Vocabulary) -> Entries | None:
    """Return the options of text features that differ from the defaults, their rules, lists and vectors."""
    if vocabulary.text is None:
        return None
    found = vocabulary.text.to_json()
    plain = type(vocabulary.text)().to_json()
    kept = {name: value for name, value in found.items() if value != plain[name] or name == "rules"}
    if vocabulary.text.gazetteers:
        kept["gazetteers"] = {name: len(phrases) for name, phrases in vocabulary.text.gazetteers.items()}
    if vocabulary.text.embeddings is not None:
        kept["embeddings"] = list(vocabulary.text.embeddings.vectors.shape)
    return kept


def describe_features(found: Entries) -> list[str]:
    """Return lines about the text features of a summary, and about hashed names."""
    lines = []
    features = dict(found["features"] or {})
    if features:
        rules = features.pop("rules")
        lists = features.pop("gazetteers", {})
        vectors = features.pop("embeddings", None)
        changed = ", ".join(f"{name}={value}" for name, value in features.items())
        lines.append(f"text features{f' ({changed})' if changed else ''}: {' '.join(rules)}")
        lines += [f"gazetteer {name}: {counted(n, 'phrase')}" for name, n in lists.items()]
        if vectors:
            lines.append(f"embeddings: {counted(vectors[0], 'word')}, {counted(vectors[1], 'dimension')}")
    if found["hash_bits"] is not None:
        lines.append(
            f"names of attributes are hashed to 2^{found['hash_bits']} buckets and not kept: #7 is the bucket 7"
        )
    return lines


def describe(row: Row) -> str:
    """Return the name of a weight as one line.

    >>> describe({"attribute": "w=the", "label": "DET"}), describe({"labels": ["A", "B"]})
    ('w=the  →  DET', 'A  →  B')
    """
    attribute = row.get("attribute")
    if "labels" in row:
        path = "  →  ".join(map(str, row["labels"]))
        return path if attribute is None else f"{attribute}  {path}"
    return f"{attribute}  →  " + (f"class {row['class']}" if "class" in row else str(row["label"]))


def _kinds(model: ChainModel) -> dict[str, tuple[tuple[Array, ...], Callable[[int], Row]]]:
    """Return for each kind of weights the ids that identify them, and a function that names the k-th weight."""
    field, v = model.field, model.vocabulary
    labels = model.class_list
    a, j = field.state_ids()
    i, to = field.transition_ids()
    b, source, target = field.pair_ids()
    x, y, z = field.triple_ids()
    of, group = field.class_ids()
    return {
        "state": ((a, j), lambda k: {"attribute": v.attributes[int(a[k])], "label": labels[j[k]]}),
        "transition": ((i, to), lambda k: {"labels": [labels[i[k]], labels[to[k]]]}),
        "pair": (
            (b, source, target),
            lambda k: {
                "attribute": v.pair_attributes[int(b[k])],
                "labels": [labels[source[k]], labels[target[k]]],
            },
        ),
        "triple": ((x, y, z), lambda k: {"labels": [labels[x[k]], labels[y[k]], labels[z[k]]]}),
        "class": ((of, group), lambda k: {"attribute": v.attributes[int(of[k])], "class": model.class_names[group[k]]}),
    }


def _chosen(
    model: ChainModel, name: str, parts: tuple[Array, ...], labels: Sequence[str], attributes: Sequence[str]
) -> NDArray[np.bool_]:
    keep = np.ones(len(parts[0]), dtype=bool)
    has_attribute = name in ("state", "pair", "class")
    if labels:
        known = [str(label) for label in model.class_list]
        for label in labels:
            if label not in known:
                raise ParameterError(f"the model has no label {label!r}; it has {', '.join(known)}")
        of_labels = [known.index(label) for label in labels]
        if name == "class":
            assert model.field.label_classes is not None or not len(keep)
            of_labels = [] if model.field.label_classes is None else model.field.label_classes[of_labels].tolist()
        keep &= np.any([np.isin(part, of_labels) for part in parts[has_attribute:]], axis=0)
    if attributes:
        if not has_attribute:
            return np.zeros(len(keep), dtype=bool)
        tables = (model.vocabulary.attributes, model.vocabulary.pair_attributes)
        names = [table.to_list() for table in tables]
        for text in attributes:
            if not any(text in attribute for table in names for attribute in table):
                raise ParameterError(f"no attribute of the model contains {text!r}")
        mine = names[name == "pair"]
        found = [k for k, attribute in enumerate(mine) if any(text in attribute for text in attributes)]
        keep &= np.isin(parts[0], found)
    return keep
