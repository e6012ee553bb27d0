"""CRFsuite's model files as chains, and chains as CRFsuite's model files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crfkit import _core
from crfkit._checks import check_encoding
from crfkit.chain.encoding.sequences import Vocabulary
from crfkit.chain.fields.field import ChainField
from crfkit.chain.model.model import ChainModel
from crfkit.convert.sources import Source, read_bytes, write_bytes
from crfkit.errors import EncodingError, ModelFileError
from crfkit.labels import label_array


def read(source: Source, n_threads: int | None = None, encoding: str = "utf-8") -> ChainModel:
    """Return the model in a CRFsuite file (a path or its bytes). It takes attributes, as CRFsuite does.

    `encoding` is the encoding of the labels. Attributes are compared as UTF-8, which is what Python's packages write.
    """
    check_encoding(encoding)
    data = read_bytes(source)
    try:
        labels, attributes, offsets, state_labels, transitions, w = _core.read_crfsuite(data)
        names = [label.decode(encoding) for label in labels]
    except _core.BadModel as error:
        raise ModelFileError(f"this is not a sound CRFsuite model: {error}") from None
    except UnicodeDecodeError as error:
        raise EncodingError(
            f"the label {error.object!r} is not {encoding} (byte 0x{error.object[error.start]:02X}); name its encoding"
        ) from None
    if len(set(names)) != len(names):
        raise ModelFileError("this is not a sound CRFsuite model: a label occurs twice")
    field = ChainField(
        len(names),
        len(attributes),
        state_offsets=offsets,
        state_labels=state_labels,
        transition_codes=transitions,
        n_transition=len(transitions),
    )
    vocabulary = Vocabulary("items", None, attributes, _core.StringTable.from_strings([]))
    return ChainModel(vocabulary, label_array(names), field, w, {"origin": "CRFsuite"}, n_threads)


def write(model: ChainModel, path: str | Path) -> None:
    """Write a model as a CRFsuite file; raise ModelFileError if it has what the format cannot hold."""
    write_bytes(path, to_bytes(model))


def to_bytes(model: ChainModel) -> bytes:
    """Return the CRFsuite file of a model.

    Weights that are 0 are not written. A model with a template can be written if all its lines are unigrams or a bare
    B: the file then takes the attributes that the template makes (``U00:the``), not columns.

    >>> from crfkit import ChainCRF
    >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]]], [["DET", "NOUN"]])
    >>> to_bytes(crf.model_)[:4]
    b'lCRF'
    """
    _check_fits(model)
    names = model.vocabulary.attributes
    assert isinstance(names, _core.StringTable)
    field, w = model.field, model.w
    offsets, labels = field.state_offsets, field.state_labels
    if offsets is None or labels is None:
        offsets = np.arange(field.n_attributes + 1, dtype=np.int64) * field.n_labels
        labels = np.tile(np.arange(field.n_labels, dtype=np.int32), field.n_attributes)
    codes = field.transition_codes
    if codes is None:
        codes = np.arange(field.n_transition, dtype=np.int32)
    try:
        return _core.write_crfsuite(model.class_list, names, offsets, labels, codes, np.ascontiguousarray(w))
    except _core.BadModel as error:
        raise ModelFileError(f"the model cannot be written as a CRFsuite file: {error}") from None


def _check_fits(model: ChainModel) -> None:
    field = model.field
    obstacles = {
        "its inputs are matrices": model.vocabulary.kind == "matrix",
        "the names of its attributes are hashed": model.vocabulary.hash_bits is not None,
        "it is of order 2": field.order != 1,
        "its template has bigram lines other than a bare B": field.n_pair > 0,
        "it scores classes of labels": field.n_class > 0,
        "it has constraints": field.constrained,
        "its labels are not strings": not all(isinstance(label, str) for label in model.class_list),
    }
    found = [reason for reason, applies in obstacles.items() if applies]
    if found:
        raise ModelFileError(f"the model cannot be written as a CRFsuite file: {'; '.join(found)}")
