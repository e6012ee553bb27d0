"""Weights of a byte each: they are off by half a step at most, and the model tags as before."""

import json
import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crfkit import ChainCRF, ChainModel, _core, convert
from crfkit.errors import ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.synthetic import entity_words

BLOCK = 64


@pytest.fixture(scope="module")
def model():
    X, y = entity_words(300, seed=0)
    return ChainCRF(features="ner", max_iterations=40, tolerance=1e9).fit(X, y).model_


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
def test_no_weight_is_off_by_more_than_half_a_step(n):
    rng = np.random.default_rng(n)
    w = rng.normal(size=n) * np.exp(rng.normal(scale=5, size=n))
    w[rng.random(n) < 0.3] = 0.0
    codes, steps = _core.encode_weights(w)
    largest = np.array([np.abs(w[k : k + BLOCK]).max() for k in range(0, n, BLOCK)])
    np.testing.assert_allclose(steps, largest / 127, rtol=1e-15)
    back = _core.decode_weights(codes, steps)
    assert np.all(np.abs(back - w) <= np.repeat(steps, BLOCK)[:n] * (0.5 + 1e-12))
    assert np.all(back[w == 0.0] == 0.0)
    again = _core.encode_weights(back)
    assert_array_equal(again[0], codes)


def test_the_model_is_smaller_and_tags_alike(model, tmp_path):
    X, _ = entity_words(200, seed=1)
    model.save(tmp_path / "whole.crf")
    model.save(tmp_path / "small.crf", weights="8bit")
    small = ChainModel.load(tmp_path / "small.crf")
    saved = os.path.getsize(tmp_path / "whole.crf") - os.path.getsize(tmp_path / "small.crf")
    assert saved > 6.5 * len(model.w)
    assert small.w.dtype == np.float64
    assert not small.w.flags.writeable
    before, after = (np.concatenate(m.predict(X)) for m in (model, small))
    assert np.mean(before == after) > 0.995
    small.save(tmp_path / "again.crf")  # as doubles
    assert_array_equal(ChainModel.load(tmp_path / "again.crf").w, small.w)


def test_convert_writes_it(model, tmp_path):
    convert.save(model, tmp_path / "small.crf", weights="8bit")
    assert modelfile.read(tmp_path / "small.crf").metadata["weights"] == "8bit"
    with pytest.raises(ParameterError, match="files of wapiti cannot have weights='8bit'"):
        convert.save(model, tmp_path / "small.wapiti", "wapiti", weights="8bit")
    with pytest.raises(ParameterError, match="unknown form of weights '4bit'"):
        model.save(tmp_path / "other.crf", weights="4bit")
    assert not (tmp_path / "other.crf").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, t: m.update(weights="2bit"), "stored as '2bit', which this version cannot read. Upgrade it"),
        (lambda m, t: m.update(weights=[1]), "cannot read"),
        (lambda m, t: t.update({"weights.steps": t["weights.steps"][1:]}), "does not fit the number of weights"),
        (lambda m, t: t.update({"weights.codes": t["weights.codes"][:BLOCK], "weights.steps": t["weights.steps"][:1]}),
         "but its field needs"),
        (lambda m, t: t.update({"weights.steps": np.full_like(t["weights.steps"], np.nan)}), "not a finite number"),
        (lambda m, t: t.update({"weights.codes": t["weights.codes"].astype(np.int32)}), "expected a vector of uint8"),
        (lambda m, t: t.pop("weights.codes"), "no tensor 'weights.codes'"),
    ],
)  # fmt: skip
def test_damaged_codes_are_refused(model, tmp_path, change, message):
    metadata, tensors = modelfile.stored_weights(*model.parts(), "8bit")
    metadata = json.loads(json.dumps(metadata))
    change(metadata, tensors)
    modelfile.write(tmp_path / "wrong.crf", "chain", metadata, tensors)
    with pytest.raises(ModelFileError, match=message):
        ChainModel.load(tmp_path / "wrong.crf")


@pytest.mark.parametrize("step", [np.nan, np.inf, 1e99])
def test_steps_that_make_weights_too_large_are_refused(step):
    codes, steps = np.full(3, 255, np.uint8), np.array([step])
    contents = modelfile.Contents("chain", {"weights": "8bit"}, {"weights.codes": codes, "weights.steps": steps})
    with pytest.raises(ModelFileError, match="not a finite number"):
        contents.weights(3)


def test_steps_beside_whole_weights_say_nothing_about_them():
    tensors = {"weights": np.array([np.nan]), "weights.steps": np.ones(1)}
    with pytest.raises(ModelFileError, match="not a finite number"):
        modelfile.Contents("chain", {}, tensors).weights(1)
