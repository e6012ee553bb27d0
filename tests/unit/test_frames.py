"""Frames of pandas and polars: in and out, aligned with their rows; bad columns and values."""

from __future__ import annotations

import pytest
from optional import optional

from crfkit import ChainCRF, TextFeatures
from crfkit.chain.encoding.frames import FrameColumns, frame_sequences
from crfkit.errors import DataError, ParameterError

ROWS = {
    "sentence": [1, 1, 2, 2, 2, 3],
    "word": ["In", "Rome", "New", "York", "sleeps", "Rome"],
    "pos": ["P", "N", "N", "N", "V", "N"],
    "label": ["O", "B", "B", "I", "O", "B"],
    "weight": [1.0, 1.0, 2.0, 2.0, 2.0, 1.0],
}


@pytest.fixture(params=["pandas", "polars"])
def make(request):
    return optional(request.param).DataFrame


def test_frames_are_sequences(make):
    crf = ChainCRF(features="ner").fit_frame(make(ROWS), token="word")
    plain = ChainCRF(features="ner").fit([["In", "Rome"], ["New", "York", "sleeps"], ["Rome"]], crf_labels())
    assert crf.coef_.tolist() == plain.coef_.tolist()
    found = crf.predict_frame(make(ROWS))
    assert found.name == "label"
    assert found.to_list() == ROWS["label"]


def crf_labels():
    return [["O", "B"], ["B", "I", "O"], ["B"]]


def test_rows_of_sequences_may_be_mixed(make, tmp_path):
    order = [2, 0, 3, 5, 1, 4]
    mixed = make({name: [values[k] for k in order] for name, values in ROWS.items()})
    crf = ChainCRF(features=TextFeatures(columns=(1,))).fit_frame(mixed, token=["word", "pos"], sample_weight="weight")
    crf.save(tmp_path / "m.crf")
    again = ChainCRF.load(tmp_path / "m.crf").predict_frame(mixed, probability=True)
    assert again["label"].to_list() == [ROWS["label"][k] for k in order]
    assert all(0.3 < p <= 1 for p in again["probability"].to_list())
    weights = [2.0, 1.0, 1.0]
    found = frame_sequences(mixed, FrameColumns("sentence", ("word",), "label", "weight"))
    assert found.weights == weights
    assert found.X == [["New", "York", "sleeps"], ["In", "Rome"], ["Rome"]]


def test_columns_of_attributes(make):
    frame = make({**ROWS, "length": [2, 4, 3, 4, 6, 4]})
    crf = ChainCRF().fit_frame(frame, token=["word", "length"])
    assert ("word:Rome", "B") in crf.state_features_
    assert ("length", "B") in crf.state_features_
    assert crf.predict_frame(frame).to_list() == ROWS["label"]


def test_the_index_of_pandas_is_kept():
    pandas = optional("pandas")
    frame = pandas.DataFrame(ROWS, index=list("fedcba"))
    found = ChainCRF(features="pos").fit_frame(frame, token="word").predict_frame(frame)
    assert found.index.tolist() == list("fedcba")
    assert frame.assign(found=found)["found"].tolist() == ROWS["label"]


def test_missing_labels_are_unknown(make):
    frame = make({**ROWS, "label": ["O", None, "B", "I", "O", "B"]})
    crf = ChainCRF(features="ner").fit_frame(frame, token="word")
    assert crf.predict_frame(frame).to_list()[1] == "B"


def test_bad_frames_are_named(make):
    frame, crf = make(ROWS), ChainCRF(features="ner")
    with pytest.raises(DataError, match="the frame has no column 'tag'; it has 'sentence', 'word', 'pos', 'label'"):
        crf.fit_frame(frame, label="tag", token="word")
    with pytest.raises(DataError, match="no column 'doc'"):
        crf.fit_frame(frame, sequence="doc", token="word")
    with pytest.raises(DataError, match="no column 'form'"):
        crf.fit_frame(frame, token="form")
    with pytest.raises(DataError, match="row 1 of the frame has no value in the column 'word'"):
        crf.fit_frame(make({**ROWS, "word": ["In", None, "a", "b", "c", "d"]}), token="word")
    changed = make({**ROWS, "weight": [1.0, 2.0, 2.0, 2.0, 2.0, 1.0]})
    with pytest.raises(DataError, match="the rows of the sequence 1 have different weights"):
        crf.fit_frame(changed, token="word", sample_weight="weight")
    with pytest.raises(ParameterError, match="was not trained on a frame; name the columns"):
        ChainCRF(features="ner").fit([["a", "b"]], [["A", "B"]]).predict_frame(frame)
    with pytest.raises(ParameterError, match="expected a DataFrame of pandas or polars"):
        crf.fit_frame([1, 2], token="word")
