"""Models of CRF++: read from its text and binary files, written as its text file.

CRF++ has a weight for every (attribute, label) and every (label, label), a template, and nothing else; so a model that
is read here has the same weights, and a model that is written must fit that.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from crfkit import _core
from crfkit._checks import check_encoding
from crfkit._types import Floats
from crfkit.chain.encoding.sequences import Vocabulary
from crfkit.chain.fields.field import ChainField
from crfkit.chain.model.model import ChainModel
from crfkit.convert.crfpp_model import VERSION, CRFPPModel, read_crfpp_model
from crfkit.errors import EncodingError, ModelFileError, ParameterError, TemplateError
from crfkit.files.atomic import replacing
from crfkit.labels import label_array
from crfkit.text.template import Template

TRANSITION = "B"  # the feature of a bare B
MAX_ROW = 8  # CRF++ accepts %x[-8,…] to %x[8,…]
MAX_COLUMNS = 1024
_MAX_WEIGHTS = 2**31 - 1


def read(source: str | Path | bytes, n_threads: int | None = None, encoding: str = "utf-8") -> ChainModel:
    """Return the model in a CRF++ file, text or binary, or in the bytes of one.

    `encoding` is the encoding of the training file: CRF++ itself keeps names as bytes. Blanks and carriage returns at
    the end of a template line, which CRF++ takes for a part of every feature's name, are removed from both.
    """
    if n_threads is not None and n_threads < 1:
        raise ParameterError(f"the number of threads must be >= 1, not {n_threads}")
    check_encoding(encoding)
    file = read_crfpp_model(source)
    try:
        return _model(file, n_threads, encoding)
    except (ModelFileError, TemplateError) as error:
        found = error if isinstance(error, ModelFileError) else ModelFileError(str(error))
        raise (found if isinstance(source, bytes) else found.in_file(source)) from None


def _model(file: CRFPPModel, n_threads: int | None, encoding: str) -> ChainModel:
    labels = _decoded(file.labels, encoding, "label")
    names = _decoded(file.names, encoding, "feature")
    lines = _decoded(file.templates, encoding, "template line", distinct=False)
    times = lines.count(TRANSITION)  # CRF++ adds the weight once for every bare B
    first = lines.index(TRANSITION) if times else -1
    kept = [line for k, line in enumerate(lines) if line != TRANSITION or k == first]
    template = Template("\n".join(kept), syntax="crf++")

    if not template.n_columns <= file.n_columns <= MAX_COLUMNS:
        raise ModelFileError(
            f"damaged: its header says that lines have {file.n_columns} columns, but its template needs "
            f"{template.n_columns}, and CRF++ reads at most {MAX_COLUMNS}"
        )

    def block(kind: str, size: int) -> tuple[list[str], Floats]:
        """Return the names that start with U, or with B, and their weights, in the order of the file."""
        ids = [k for k, name in enumerate(names) if name[0] == kind and name != TRANSITION]
        ids.sort(key=file.starts.__getitem__)
        places = file.starts[np.array(ids, dtype=np.int64)][:, None] + np.arange(size)
        return [names[k] for k in ids], file.weights[places].ravel()

    L = len(labels)
    attributes, state = block("U", L)
    pair_attributes, pair = block("B", L * L)
    transition: Floats = np.zeros(0)
    if times and TRANSITION in names:
        start = int(file.starts[names.index(TRANSITION)])
        transition = times * file.weights[start : start + L * L]
    field = ChainField(L, len(attributes), len(pair_attributes), n_transition=len(transition))
    vocabulary = Vocabulary(
        "template",
        template,
        _core.StringTable.from_strings(attributes),
        _core.StringTable.from_strings(pair_attributes),
        file.n_columns,
    )
    w = np.concatenate([state, transition, pair])
    record = {"origin": "CRF++", "encoding": encoding}
    return ChainModel(vocabulary, label_array(labels), field, w, record, n_threads)


def _decoded(names: tuple[bytes, ...], encoding: str, what: str, distinct: bool = True) -> list[str]:
    """Return names as text without blanks and carriage returns at their ends."""
    try:
        texts = [name.decode(encoding).rstrip(" \t\r") for name in names]
    except UnicodeDecodeError as error:
        raise EncodingError(
            f"the {what} {error.object!r} is not {encoding} (byte {error.start + 1}, 0x{error.object[error.start]:02X})"
            "; name the encoding of the training file, as in --encoding euc-jp or, in Python, encoding='euc-jp'"
        ) from None
    if distinct and len(set(texts)) < len(texts):
        twice = next(text for text, n in Counter(texts).items() if n > 1)
        raise ModelFileError(
            f"the {what} {twice!r} occurs twice, with and without blanks at its end; clean the template and train again"
        )
    return texts


# --- writing


def write(model: ChainModel, path: str | Path, encoding: str = "utf-8") -> None:
    """Write a model as CRF++'s text file, which ``crf_learn -C`` makes a binary one of.

    Raises ModelFileError if the model has something that CRF++ has not. Weights that the model does not have are
    written as zeros.
    """
    templates = _check_fits(model)
    with replacing(path) as stream, io.TextIOWrapper(stream, encoding=encoding, newline="\n") as text:
        try:
            text.writelines(_text(model, templates))
        except UnicodeEncodeError as error:
            raise ModelFileError(
                f"the model has a character that {encoding} does not have: {error.object[error.start]!r}"
            ) from None


def _text(model: ChainModel, templates: list[str]) -> Iterator[str]:
    vocabulary, L = model.vocabulary, model.field.n_labels
    blocks: dict[str, Floats] = dict(zip(vocabulary.attributes.to_list(), _table(model, "state"), strict=True))
    blocks.update(zip(vocabulary.pair_attributes.to_list(), _table(model, "pair"), strict=True))
    if TRANSITION in templates:
        transitions = _table(model, "transition")
        blocks[TRANSITION] = transitions[0] if len(transitions) else np.zeros(L * L)
    # CRF++ sorts features by their bytes, which is the order of code points
    order = sorted(blocks)
    yield f"version: {VERSION}\ncost-factor: 1\nmaxid: {sum(map(len, blocks.values()))}\n"
    yield f"xsize: {max(vocabulary.template.n_columns, 1) if vocabulary.template else 1}\n\n"
    yield from (f"{label}\n" for label in model.class_list)
    yield "\n"
    yield from (f"{line}\n" for line in templates)
    yield "\n"
    start = 0
    for name in order:
        yield f"{start} {name}\n"
        start += len(blocks[name])
    yield "\n"
    for name in order:
        yield "".join(f"{_number(value)}\n" for value in blocks[name].tolist())


def _number(value: float) -> str:
    """Return a weight with 16 decimals, as CRF++ writes it, or with all its digits where those are not enough."""
    if value == 0.0:  # most of a sparse model
        return "0.0000000000000000"
    text = f"{value:.16f}"
    return text if float(text) == value else repr(value)


def _table(model: ChainModel, block: str) -> Floats:
    """Return a block of weights as [lists, codes], with zeros for those that the field does not have."""
    return model.field.blocks[block].table(model.w[model.field.layout[block]])


def _check_fits(model: ChainModel) -> list[str]:
    """Return the template lines; raise ModelFileError if CRF++ could not read or use the model."""
    vocabulary, field = model.vocabulary, model.field

    def refuse(why: str) -> ModelFileError:
        return ModelFileError(f"this model cannot be written for CRF++: {why}")

    if vocabulary.kind != "template" or vocabulary.template is None:
        raise refuse(f"CRF++ models have a template, but this one takes inputs of kind '{vocabulary.kind}'")
    if vocabulary.hash_bits is not None:
        raise refuse("the names of its attributes are hashed")
    if vocabulary.template.syntax != "crf++":
        raise refuse(f"its template is in the syntax of {vocabulary.template.syntax}")
    if field.order != 1:
        raise refuse(f"CRF++ models are of order 1, but this one is of order {field.order}")
    if field.label_classes is not None:
        raise refuse("it has weights for classes of labels, which CRF++ has not")
    if field.constrained:
        raise refuse("it has constraints, which CRF++ has not; train it without constraints")
    lines = [line.rstrip(" \t\r") for line in vocabulary.template.text.removeprefix("\ufeff").split("\n")]
    lines = [line for line in lines if line and not line.lstrip(" \t").startswith("#")]
    for line in lines:
        rest = re.sub(r"%x\[[+-]?\d+,\d+\]", "", line)
        if line[0] not in "UB" or "%" in rest:
            raise refuse(f"the template line '{line}' is not in CRF++'s syntax")
        for row in re.findall(r"%x\[([+-]?\d+),", line):
            if abs(int(row)) > MAX_ROW:
                raise refuse(f"'{line}' looks {row} rows away, but CRF++ allows -{MAX_ROW} to {MAX_ROW}")
    if field.n_transition and TRANSITION not in lines:
        raise refuse("it has transitions, but its template has no line with B alone")
    for label in model.class_list:
        if not isinstance(label, str) or not label or set(label) & set(" \t\r\n\0"):
            raise refuse(f"the label {label!r} is not a word")
    for table in (vocabulary.attributes, vocabulary.pair_attributes):
        for name in table.to_list():
            if "\n" in name or "\0" in name:
                raise refuse(f"the attribute {name!r} has a line end or a zero byte")
    size = len(vocabulary.attributes) * field.n_labels + (len(vocabulary.pair_attributes) + 1) * field.n_labels**2
    if size > _MAX_WEIGHTS:
        raise refuse(f"it would have {size} weights, but CRF++ counts up to {_MAX_WEIGHTS}")
    lines = [re.sub(r"%x\[\+", "%x[", line) for line in lines]
    return [line for line in lines if line[0] == "U"] + [line for line in lines if line[0] == "B"]
