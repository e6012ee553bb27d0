"""The part of a chain's model file that turns inputs into attributes: names or buckets of attributes, text features."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from crfkit import _core
from crfkit._types import Array
from crfkit.chain.encoding.vocabulary import Names
from crfkit.errors import CrfkitError, ModelFileError
from crfkit.files import limits, modelfile
from crfkit.text.embeddings import Embeddings
from crfkit.text.gazetteers import Phrases
from crfkit.text.words import TextFeatures

PER_BUCKET = 8  # bytes, in the tables of attributes and of pair attributes together
KINDS = ("template", "text", "items", "matrix", "observations")


def table_tensors(name: str, table: Names) -> dict[str, Array]:
    """Return the tensors of a table of names, or of buckets."""
    if isinstance(table, _core.BucketTable):
        return {f"{name}.buckets": table.buckets}
    return {f"{name}.{part}": getattr(table, part) for part in ("offsets", "bytes", "slots")}


def read_names(contents: modelfile.Contents, name: str) -> Names:
    """Return a table of names, or of buckets, of a model file."""
    bits = contents.metadata.get("hash_bits")  # older files do not name it
    if bits is None or f"{name}.buckets" not in contents.tensors:
        return _table(contents, name)
    if isinstance(bits, bool) or not isinstance(bits, int) or not 4 <= bits <= 28:
        raise ModelFileError(f"the metadata entry 'hash_bits' is {bits!r}")
    limits.check_memory(PER_BUCKET << bits, f"a table of 2^{bits} buckets", contents.size)
    return _core.BucketTable(bits, contents.tensor(f"{name}.buckets", np.uint32))


def text_tensors(features: TextFeatures | None) -> dict[str, Array]:
    """Return the tensors of text features: the phrases of each list, and words with their vectors."""
    found: dict[str, Array] = {}
    if features is None:
        return found
    for k, phrases in enumerate((features.gazetteers or {}).values()):
        found |= table_tensors(f"gazetteer.{k}", phrases.table)
    if features.embeddings is not None:
        found |= table_tensors("embeddings", features.embeddings.words)
        found["embeddings.vectors"] = features.embeddings.vectors.ravel()
    return found


def text_features(contents: modelfile.Contents) -> TextFeatures | None:
    """Return the text features of a model file; raise ModelFileError if they are not what crfkit writes."""
    entry = contents.metadata.get("text_features")  # older files have none
    if entry is None:
        return None
    if not isinstance(entry, dict):
        raise ModelFileError(f"the metadata entry 'text_features' is {entry!r}")
    given = dict(entry)
    rules, names, has_vectors = given.pop("rules", None), given.pop("gazetteers", None), given.pop("embeddings", None)
    if not _strings(rules) or not _strings(names) or len(set(names)) < len(names) or not isinstance(has_vectors, bool):
        raise ModelFileError("the metadata entry 'text_features' has no rules, or its lists have no names")
    unknown = set(given) - {item.name for item in fields(TextFeatures)}
    if unknown:
        raise ModelFileError(f"the text features have an unknown option {min(unknown)!r}; upgrade crfkit")
    try:
        if names:
            lists = [_table(contents, f"gazetteer.{k}").to_list() for k in range(len(names))]
            given["gazetteers"] = {name: Phrases(phrases) for name, phrases in zip(names, lists, strict=True)}
        if has_vectors:
            given["embeddings"] = _embeddings(contents)
        features = TextFeatures(**given)
        # the options of another version of crfkit may stand for other rules
        return features if list(features.all_rules) == rules else TextFeatures(**given | {"rules": rules, "extra": ()})
    except ModelFileError:
        raise
    except (CrfkitError, TypeError, ValueError) as error:
        raise ModelFileError(f"the text features are damaged: {error}") from None


def _embeddings(contents: modelfile.Contents) -> Embeddings:
    words, vectors = _table(contents, "embeddings"), contents.tensor("embeddings.vectors", np.float32)
    if len(words) == 0 or len(vectors) % len(words):
        raise ModelFileError("the number of vectors differs from that of the words")
    return Embeddings(words, vectors.reshape(len(words), -1))


def _strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _table(contents: modelfile.Contents, name: str) -> _core.StringTable:
    return _core.StringTable(
        contents.tensor(f"{name}.offsets", np.uint64),
        contents.tensor(f"{name}.bytes", np.uint8),
        contents.tensor(f"{name}.slots", np.uint64),
    )
