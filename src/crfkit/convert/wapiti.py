"""Wapiti's model files to chains and back."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crfkit import _core
from crfkit._checks import check_encoding
from crfkit._types import Floats, Ids, Ints
from crfkit.chain.encoding.sequences import Vocabulary
from crfkit.chain.fields.field import ChainField
from crfkit.chain.model.model import ChainModel
from crfkit.convert.sources import Source, write_bytes
from crfkit.convert.wapiti_model import WapitiModel, format_wapiti, read_wapiti
from crfkit.errors import EncodingError, ModelFileError, TemplateError
from crfkit.labels import label_array
from crfkit.text.template import Template


def read(source: Source, n_threads: int | None = None, encoding: str = "utf-8") -> ChainModel:
    """Return the model of a Wapiti file, which takes the columns that its patterns name.

    A model without patterns takes lists of observations, each beginning with u, b or *.
    """
    contents = read_wapiti(source)
    try:
        return from_wapiti(contents, n_threads, encoding)
    except ModelFileError as error:
        raise (error.in_file(source) if isinstance(source, (str, Path)) else error) from None


def write(model: ChainModel, path: str | Path) -> None:
    """Write a chain as a Wapiti model; raise ModelFileError if it does not fit.

    The model must take Wapiti's patterns, or observations, and have neither constraints, label classes nor order 2.
    """
    write_bytes(path, format_wapiti(to_wapiti(model)))


def from_wapiti(
    contents: WapitiModel, n_threads: int | None = None, encoding: str = "utf-8", keep_all: bool = False
) -> ChainModel:
    """Return the chain of a Wapiti model.

    Its weights are those that are not zero. With `keep_all`, observations without weights are kept as well.
    """
    if contents.unigrams_only:
        raise ModelFileError("a Wapiti model of the pure maxent mode (--me), whose observations lack their prefix")
    contents = _in_utf8(contents, encoding)
    template = _template(contents.patterns)
    labels = [_text(label, "label") for label in contents.labels]
    L = len(labels)
    names = np.array([name[0] for name in contents.observations], dtype=np.uint8)
    starts = contents.starts()
    used = contents.weights != 0
    index, weights = contents.index[used], contents.weights[used]
    observation = np.searchsorted(starts, index, side="right") - 1
    place = index - starts[observation]
    is_state = (names[observation] != ord("b")) & (place < L)
    code = np.where(names[observation] == ord("*"), place - L, place)
    transition = _transition_observation(template, contents.observations)
    is_transition = observation == transition
    is_pair = ~is_state & ~is_transition

    def kept(mask: NDArray[np.bool_], kinds: str) -> Ints:
        """Return the observations of a table: wide ones first, as the kernels prefer, then in the order of the file."""
        counts = np.bincount(observation[mask], minlength=len(names))
        listed = np.isin(names, [ord(kind) for kind in kinds]) if keep_all else counts > 0
        if transition >= 0:
            listed[transition] = False
        ids = np.flatnonzero(listed)
        return ids[np.argsort(counts[ids] <= -(-L // 8), kind="stable")]

    state_ids, pair_ids = kept(is_state, "u*"), kept(is_pair, "b*")
    state = _lists(observation[is_state], place[is_state], weights[is_state], state_ids, len(names))
    pair = _lists(observation[is_pair], code[is_pair], weights[is_pair], pair_ids, len(names))
    field = ChainField(
        L,
        len(state_ids),
        len(pair_ids),
        state_offsets=state[0],
        state_labels=state[1],
        transition_codes=place[is_transition].astype(np.int32),
        n_transition=int(is_transition.sum()),
        pair_offsets=pair[0],
        pair_codes=pair[1],
    )
    vocabulary = Vocabulary(
        "template" if template else "observations",
        template,
        _table(contents.observations, state_ids),
        _table(contents.observations, pair_ids),
        template.n_columns if template else None,
    )
    w = np.concatenate([state[2], weights[is_transition], pair[2]])
    return ChainModel(vocabulary, label_array(labels), field, w, {"origin": "Wapiti"}, n_threads)


def to_wapiti(model: ChainModel) -> WapitiModel:
    """Return a chain as a Wapiti model; raise ModelFileError if it does not fit."""
    v, f = model.vocabulary, model.field
    template = v.template
    if v.kind != "observations" and (template is None or template.syntax != "wapiti"):
        what = f"inputs of kind '{v.kind}'" if template is None else "a CRF++ template"
        raise ModelFileError(f"a Wapiti model needs Wapiti's patterns or observations; this model has {what}")
    if f.order != 1 or f.constrained or f.n_classes:
        raise ModelFileError("Wapiti has neither chains of order 2, constraints nor label classes; this model does")
    labels = tuple(str(label).encode("utf-8", "surrogatepass") for label in model.class_list)
    if any(not label or re.search(rb"\s", label) for label in labels):
        raise ModelFileError("Wapiti's labels are words; a label of this model is empty or has a blank")
    L, line = f.n_labels, template.transition_line if template else None
    if not isinstance(v.attributes, _core.StringTable) or not isinstance(v.pair_attributes, _core.StringTable):
        raise ModelFileError("Wapiti models contain the names of observations, but this model has hashed them")
    states, pairs = _strings(v.attributes), _strings(v.pair_attributes)
    names = dict.fromkeys([*states, *pairs])
    if f.n_transition or line:
        names.setdefault((line or "b").encode())
    observations = tuple(names)
    number = {name: i for i, name in enumerate(observations)}
    contents = WapitiModel(
        tuple(text.encode() for _, text in template.lines()) if template else (),
        labels,
        observations,
        np.empty(0, np.int64),
        np.empty(0),
    )
    starts = contents.starts()
    state_at = starts[[number[name] for name in states]] if states else np.empty(0, np.int64)
    skip = np.array([L if name.startswith(b"*") else 0 for name in pairs], dtype=np.int64)
    pair_at = starts[[number[name] for name in pairs]] + skip if pairs else np.empty(0, np.int64)
    a, label = f.state_ids()
    i, j = f.transition_ids()
    b, left, right = f.pair_ids()
    transitions = starts[number[(line or "b").encode()]] if f.n_transition else 0
    index = np.concatenate(
        [
            state_at[a] + label,
            transitions + i.astype(np.int64) * L + j,
            pair_at[b] + left.astype(np.int64) * L + right,
        ]
    )
    order = np.argsort(index)
    return WapitiModel(contents.patterns, labels, observations, index[order], model.w[order])


def _lists(owner: Ints, codes: Ints, weights: Floats, ids: Ints, n: int) -> tuple[Ints, Ids, Floats]:
    """Return offsets, codes and weights per id, where `owner` is ascending."""
    counts = np.bincount(owner, minlength=n)
    begin = np.concatenate([[0], np.cumsum(counts)])
    offsets = np.concatenate([[0], np.cumsum(counts[ids])]).astype(np.int64)
    take = np.repeat(begin[ids] - offsets[:-1], counts[ids]) + np.arange(offsets[-1])
    return offsets, codes[take].astype(np.int32), weights[take]


def _table(names: Sequence[bytes], ids: Ints) -> _core.StringTable:
    texts = [names[i] for i in ids.tolist()]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.uint64)
    return _core.StringTable.from_bytes(offsets, np.frombuffer(b"".join(texts), dtype=np.uint8))


def _strings(table: _core.StringTable) -> list[bytes]:
    data, offsets = table.bytes.tobytes(), table.offsets.tolist()
    return [data[a:b] for a, b in pairwise(offsets)]


def _template(patterns: Sequence[bytes]) -> Template | None:
    if not patterns:
        return None
    for pattern in patterns:
        if re.search(rb"[#\n]|\s$|^\s", pattern):
            raise ModelFileError(f"damaged: the pattern {pattern!r} has a comment or a blank that Wapiti would remove")
    try:
        return Template("\n".join(_text(pattern, "pattern") for pattern in patterns), None, "wapiti")
    except TemplateError as error:
        raise ModelFileError(f"damaged: {error}") from None


def _transition_observation(template: Template | None, observations: Sequence[bytes]) -> int:
    """Return the number of the observation that stands for the transitions, or −1."""
    if template is None or template.transition_line is None:
        return -1
    name = template.transition_line.encode()
    return observations.index(name) if name in observations else -1


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelFileError(
            f"the {what} {data!r} is not UTF-8; name the encoding of the model, as in encoding='latin-1'"
        ) from None


def _in_utf8(contents: WapitiModel, encoding: str) -> WapitiModel:
    """Return the texts in UTF-8."""
    check_encoding(encoding)
    try:
        if codecs.lookup(encoding).name in ("utf-8", "ascii"):
            return contents
        recoded = [
            tuple(text.decode(encoding).encode("utf-8") for text in texts)
            for texts in (contents.patterns, contents.labels, contents.observations)
        ]
    except UnicodeDecodeError as error:
        raise EncodingError(f"the text {error.object!r} is not {encoding}") from None
    expressions = any(re.search(rb"%[tTmM]\[", pattern) for pattern in contents.patterns)
    if expressions and any(not name.isascii() for name in recoded[2]):
        raise ModelFileError(
            f"the expressions of this model (%t, %m) match bytes of {encoding}, but crfkit matches UTF-8 bytes"
        )
    return WapitiModel(recoded[0], recoded[1], recoded[2], contents.index, contents.weights)
