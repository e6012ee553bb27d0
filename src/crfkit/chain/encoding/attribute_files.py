"""Files of attributes (CRFsuite's) to encoded data, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from crfkit import _core
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import TaggedCorpus, Vocabulary, encode_labelled, encoded, learned_items
from crfkit.chain.encoding.vocabulary import Inputs
from crfkit.errors import DataError, LimitError, ParameterError
from crfkit.files.columns import ColumnFile, ColumnSource, column_files
from crfkit.files.crfsuite_data import AttributeSequence, crfsuite_blocks
from crfkit.files.suspicion import describe_attribute_file

SAMPLE = 1 << 16  # bytes that are looked at


def learn_attribute_files(
    sources: ColumnSource | Sequence[ColumnSource], min_frequency: int, inputs: Inputs | None = None
) -> tuple[TaggedCorpus, list[float] | None]:
    """Encode one or several CRFsuite data files as a training set; return it and the weights of its sequences.

    The weights are None if no file gives any.
    """
    files = column_files(sources, format="crfsuite")
    if not files:
        raise DataError("there are no files to learn from")
    name = ", ".join(file.name for file in files)
    inputs = inputs or Inputs()
    encoder = inputs.encoder()
    labels, weights = add_attribute_files(encoder, files)
    if not labels:
        raise DataError("the file has no sequences" if len(files) == 1 else "the files have no sequences", name)
    try:
        corpus = learned_items(encoder, labels, min_frequency, inputs)
    except DataError as error:
        raise DataError(str(error), name) from None
    weighted = any(weight != 1.0 for weight in weights)
    return replace(corpus, record={"format": "crfsuite"}), weights if weighted else None


def add_attribute_files(encoder: _core.Encoder, files: Sequence[ColumnFile]) -> tuple[list[list[str]], list[float]]:
    """Add the sequences of CRFsuite data files to an encoder; return their labels and weights."""
    labels: list[list[str]] = []
    weights: list[float] = []
    for file in files:
        for block in crfsuite_blocks(file):
            for sequence in block:
                add_sequence(encoder.add_items, sequence, file)
                labels.append(sequence.labels)
                weights.append(sequence.weight)
    return labels, weights


def encode_held_out(vocabulary: Vocabulary, file: ColumnFile) -> tuple[SequenceData, list[list[str]]]:
    """Return the sequences of a labelled file of the kind that the vocabulary was learned from, and their labels."""
    encode = encode_labelled if vocabulary.takes_columns else encode_attribute_file
    data, labels = encode(vocabulary, file)
    if len(data) == 0:
        raise DataError("the file has no sequences", file.name)
    return data, labels


def encode_attribute_file(vocabulary: Vocabulary, source: ColumnSource) -> tuple[SequenceData, list[list[str]]]:
    """Return the sequences of a CRFsuite data file, encoded, and their labels."""
    file = ColumnFile.of(source)
    encoder, labels = vocabulary.encoder(), []
    for block in crfsuite_blocks(file):
        for sequence in block:
            add_sequence(encoder.add_items, sequence, file)
            labels.append(sequence.labels)
    return encoded(encoder), labels


def add_sequence(add: Callable[[object], None], sequence: AttributeSequence, file: ColumnFile) -> None:
    """Add a sequence of a file to an encoder."""
    try:
        add(sequence.items)
    except _core.BadInput as error:
        raise DataError(str(error), file.name, sequence.line) from None


def is_attributes(
    files: Sequence[ColumnFile], template: bool, look: Callable[[ColumnFile], bool] | None = None
) -> bool:
    """Return whether files have attributes instead of columns: by their format or, without a template, by a look.

    A file that can be read only once is not looked at, unless `look` does so.
    """
    formats = {file.format for file in files}
    if "crfsuite" in formats:
        if template:
            raise ParameterError(
                "a file of CRFsuite attributes is used without a template; remove the template or the features"
            )
        if len(formats) > 1:
            raise ParameterError("some of the files are of format crfsuite and some are not; give one kind")
        return True
    return not template and all(file.format == "auto" and (look or looks_like_attributes)(file) for file in files)


def looks_like_attributes(file: ColumnFile) -> bool:
    """Return whether the beginning of a file looks like CRFsuite's data."""
    return not hasattr(file.source, "read") and begins_with_attributes(file)


def begins_with_attributes(file: ColumnFile) -> bool:
    """Return whether the beginning of a file, which is read here, looks like CRFsuite's data."""
    beginning = b""
    try:
        for block in file.text_blocks(SAMPLE):
            beginning += block
            if len(beginning) >= SAMPLE:
                break
    except (DataError, LimitError):  # reported when the file is read
        return False
    lines = [line for line in beginning.split(b"\n") if not line.startswith(b"@weight")]
    return describe_attribute_file(b"\n".join(lines)) is not None
