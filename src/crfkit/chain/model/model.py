"""A trained chain: vocabulary, labels, field and weights."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crfkit import _core
from crfkit._checks import is_listed
from crfkit._threads import count_threads
from crfkit._types import Array, Entries, Floats, Label, Record, Sequences
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import Vocabulary
from crfkit.chain.encoding.vocabulary import check_rows
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.chain.model import calibration as chain_calibration
from crfkit.chain.model import tagging as chain_tagging
from crfkit.chain.model.answers import ChainAnswers
from crfkit.chain.model.calibration import Calibration, Objective
from crfkit.chain.model.inputs import KINDS, read_names, table_tensors, text_features, text_tensors
from crfkit.chain.model.seen import Seen
from crfkit.errors import DataError, LimitError, ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.files.columns import ColumnSource
from crfkit.files.limits import check_labels
from crfkit.files.training_record import checked_record
from crfkit.labels import label_array, labels_from_json, to_json
from crfkit.ragged import Ragged
from crfkit.text.template import SYNTAXES, Template

# the arrays of a field in a model file, with their types
FIELD_ARRAYS: Mapping[str, type] = {
    "state_offsets": np.int64,
    "state_labels": np.int32,
    "transition_codes": np.int32,
    "pair_offsets": np.int64,
    "pair_codes": np.int32,
    "triple_codes": np.int32,
    "allowed": np.uint8,
    "allowed_start": np.uint8,
    "allowed_end": np.uint8,
    "label_classes": np.int32,
    "class_offsets": np.int64,
    "class_codes": np.int32,
}


@dataclass(frozen=True, eq=False)
class ChainModel(ChainAnswers):
    """Tag sequences, without scikit-learn."""

    vocabulary: Vocabulary
    classes: Array
    field: ChainField
    w: Floats
    training: Record = dataclasses.field(default_factory=dict)  # how it was made: penalty, objective, status …
    n_threads: int | None = None
    class_names: tuple[str, ...] = ()  # of the field's classes of labels
    calibration: Calibration | None = None  # temperature and thresholds that were found on other data
    seen: Seen | None = None  # how often the attributes occurred in training; None where that is not known
    # taggers that are not in use; threads take one each
    _taggers: deque[_core.Tagger] = dataclasses.field(default_factory=lambda: deque(maxlen=8), init=False, repr=False)

    @cached_property
    def inference(self) -> ChainInference:
        return ChainInference(self.field, self.w, self.n_threads)

    @cached_property
    def class_list(self) -> list[Label]:
        return list(self.classes.tolist())

    @property
    def tagger(self) -> _core.Tagger:
        """Return a new tagger for one sequence at a time, which is faster than a bulk call for short sequences.

        >>> from crfkit import ChainCRF
        >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]]], [["DET", "NOUN"]])
        >>> crf.model_.tagger.tag([["w=the"]])
        ['DET']
        """
        if self.vocabulary.kind == "matrix":
            raise ParameterError("a model of matrices has no tagger of single sequences; use predict")
        rows = self.vocabulary.takes_columns
        return _core.Tagger(self.vocabulary.encoder(), self.inference.decoder, self.class_list, rows)

    def encode(self, X: Sequences) -> SequenceData:
        if not is_listed(X):
            raise DataError(f"X must be a list of sequences, not {type(X).__name__}")
        return self.vocabulary.encode(X, self.n_threads)

    def predict(self, X: Sequences) -> list[list[Label]]:
        """Return the most probable labels of each sequence (Viterbi); X has the form that `ChainCRF.fit` was given."""
        if type(X) is list and len(X) == 1 and type(X[0]) in (list, tuple):
            return Ragged(self._tag_one(X[0]))
        return Ragged(self.labels_of(self.encode(X)))

    def _tag_one(self, x: object) -> list[list[Label]]:
        """Return the labels of one sequence, with a tagger that is kept for the next one."""
        count_threads(self.n_threads)  # checks the number
        if self.vocabulary.kind == "matrix" or self.field.constrained:  # errors of constraints say more in bulk
            return self.labels_of(self.encode([x]))
        try:
            tagger = self._taggers.pop()
        except IndexError:
            tagger = self.tagger
        if self.vocabulary.takes_columns:
            check_rows(x, 0, self.vocabulary.kind)
        try:
            labels = tagger.tag(x)
        except _core.BadInput as error:
            raise DataError(str(error)) from None
        self._taggers.append(tagger)
        return [labels]

    def predict_marginals(self, X: Sequences) -> list[NDArray[np.float64]]:
        """Return p(label | x) of every position: an array [positions, labels] each, columns as in `classes`."""
        data = self.encode(X)
        return Ragged(data.split(self.inference.node_marginals(data)))  # type: ignore[arg-type]

    def labels_of(self, data: SequenceData) -> list[list[Label]]:
        """Return the most probable labels of encoded sequences."""
        best, _ = self.inference.decode(data)
        return _core.name_labels(self.class_list, best, data.starts)

    def trained_model(self) -> ChainModel:
        """Return this model."""
        return self

    def calibrate(
        self,
        X: Sequences,
        y: Iterable[Sequence[Label]],
        precision: float | None = None,
        coverage: float | Iterable[float] = (),
        objective: Objective = "auto",
        min_spans: int = 10,
    ) -> ChainModel:
        """Return the calibrated model; see `ChainCRF.calibrate`. Its `calibration` has what was found."""
        return chain_calibration.calibrate(self, X, y, precision, coverage, objective, min_spans)

    def tag_columns(
        self,
        source: ColumnSource,
        marginals: str | None = None,
        labels_only: bool = False,
        choice: chain_tagging.Choice = chain_tagging.PLAIN,
        watch: chain_tagging.Watch | None = None,
    ) -> Iterator[bytes]:
        """Yield the lines of a column file with the predicted label appended, in chunks as they are ready.

        marginals: None, "best" (a further column with the label's probability) or "all" (label=probability of all).
        With labels_only, the label (and its probabilities) are all there is of a line. `choice` sets how labels are
        chosen: by the best labelling or position by position, and when to abstain.
        """
        return chain_tagging.tag_columns(self, source, marginals, labels_only, choice, watch)

    def tag_labelled(self, source: ColumnSource) -> Iterator[tuple[list[list[str]], list[list[str]]]]:
        """Yield (gold, predicted) label sequences of a labelled column file, in chunks."""
        return chain_tagging.tag_labelled(self, source)

    # --- the file

    def parts(self) -> tuple[Entries, dict[str, Array]]:
        """Return the metadata and the tensors of the model file."""
        v, f = self.vocabulary, self.field
        metadata = {
            "labels": [to_json(label) for label in self.class_list],
            "inputs": v.kind,
            "template": v.template.text if v.template else None,
            "template_syntax": v.template.syntax if v.template else None,
            "text_features": v.text.to_json() if v.text else None,
            "hash_bits": v.hash_bits,
            "n_features": v.n_features,
            "n_transition": f.n_transition,
            "order": f.order,
            "n_triple": f.n_triple,
            "class_names": list(self.class_names),
            "training": dict(self.training),
        }
        if self.calibration is not None:
            metadata["calibration"] = self.calibration.as_dict()
        tensors: dict[str, Array] = {"weights": self.w}
        for name, table in (("attributes", v.attributes), ("pair_attributes", v.pair_attributes)):
            tensors |= table_tensors(name, table)
        tensors |= text_tensors(v.text)
        if self.seen is not None:
            tensors |= self.seen.tensors()
        for name in FIELD_ARRAYS:
            array = getattr(f, name)
            if array is not None:
                tensors[f"field.{name}"] = array.astype(np.uint8).ravel() if array.dtype == bool else array
        return metadata, tensors

    @classmethod
    def from_parts(cls, contents: modelfile.Contents, n_threads: int | None = None) -> ChainModel:
        """Build a model from the contents of a file; raise ModelFileError if its parts do not fit together."""
        if contents.kind != "chain":
            raise ModelFileError(f"this is a model of kind '{contents.kind}'; expected 'chain'")
        labels = labels_from_json(contents.entry("labels", list))
        check_labels(len(labels), 2 if contents.entry("order", int) == 2 else 1, contents.size)
        n_features = contents.entry("n_features", int, type(None))
        if n_features is not None and n_features < 0:
            raise ModelFileError(f"the metadata entry 'n_features' is {n_features}")
        text = contents.entry("template", str, type(None))
        kind = contents.entry("inputs", str)
        if kind not in KINDS or (kind == "template") != (text is not None):
            raise ModelFileError(f"inputs of kind '{kind}' contradict the template")
        features = text_features(contents)
        if (kind == "text") != (features is not None):
            raise ModelFileError(f"inputs of kind '{kind}' contradict the text features")
        syntax = contents.metadata.get("template_syntax") or "crf++"  # older files do not name it
        if syntax not in SYNTAXES:
            raise ModelFileError(f"the metadata entry 'template_syntax' is {syntax!r}")
        try:
            tables = [read_names(contents, name) for name in ("attributes", "pair_attributes")]
            vocabulary = Vocabulary(
                kind,
                Template(text, None, syntax) if text is not None else None,
                tables[0],
                tables[1],
                n_features,
                features,
            )
            arrays = {
                name: contents.tensor(f"field.{name}", kind, optional=True) for name, kind in FIELD_ARRAYS.items()
            }
            if arrays["allowed"] is not None:
                arrays["allowed"] = arrays["allowed"].reshape(len(labels), len(labels))
            field = ChainField(
                len(labels),
                len(tables[0]),
                len(tables[1]),
                n_transition=contents.entry("n_transition", int),
                order=contents.entry("order", int),
                n_triple=contents.entry("n_triple", int),
                **arrays,
            )
        except (DataError, ValueError) as error:
            if isinstance(error, (ModelFileError, LimitError)):
                raise
            raise ModelFileError(f"inconsistent model: {error}") from None
        w = contents.weights(field.size)
        training = checked_record(contents.metadata)
        names = contents.entry("class_names", list)
        if len(names) != field.n_classes or not all(isinstance(name, str) for name in names):
            raise ModelFileError("the names of the label classes do not fit the field")
        calibration = Calibration.from_dict(contents.metadata.get("calibration"))
        seen = Seen.read(contents.tensors, field.n_attributes, field.n_pair_attributes)
        return cls(vocabulary, label_array(labels), field, w, training, n_threads, tuple(names), calibration, seen)

    def save(self, path: str | Path, weights: str = "double") -> None:
        """Write a model file. With weights="8bit", weights are rounded to one byte each, and the file is smaller.

        >>> import os, tempfile
        >>> from crfkit import ChainCRF, ChainModel
        >>> model = ChainCRF().fit([[["w=the"], ["w=cat"]]], [["DET", "NOUN"]]).model_
        >>> path = os.path.join(tempfile.mkdtemp(), "small.crf")
        >>> model.save(path, weights="8bit")
        >>> ChainModel.load(path).predict([[["w=the"]]])
        [['DET']]
        """
        modelfile.write(path, "chain", *modelfile.stored_weights(*self.parts(), weights))

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None) -> ChainModel:
        return modelfile.load(path, cls.from_parts, n_threads)

    def __reduce__(self) -> tuple[object, ...]:
        metadata, tensors = self.parts()
        arrays = {name: np.array(array) for name, array in tensors.items()}
        return _unpickle, (metadata, arrays, self.n_threads)


def _unpickle(metadata: Entries, tensors: dict[str, Array], n_threads: int | None) -> ChainModel:
    return ChainModel.from_parts(modelfile.Contents("chain", metadata, tensors), n_threads)
