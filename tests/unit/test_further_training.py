"""Training further without the old data: close to training on all of them."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit import L1, L2, ChainCRF, ElasticNet, NoPenalty, evaluate
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.losses.anchored import Anchored
from crfkit.chain.losses.likelihood import ChainLikelihood
from crfkit.chain.model.model import ChainModel
from crfkit.chain.model.seen import Seen
from crfkit.chain.training.train import ChainTraining
from crfkit.chain.training.update import update_problem
from crfkit.errors import DataError, ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.synthetic import entity_words
from crfkit.training.options import penalty_record, recorded_penalty

OLD, MORE, TEST = entity_words(150, seed=0), entity_words(30, seed=1), entity_words(200, seed=2)
EXACT = {"tolerance": 1e-9, "max_iterations": 3000}


def test_derivatives_of_an_anchored_loss():
    rng, inner, step = np.random.default_rng(0), ChainLikelihood.example(), 1e-5
    n = inner.size
    loss = Anchored(inner, rng.normal(size=n), rng.random(n), rng.normal(size=n))
    w = rng.normal(size=n)
    ahead, behind = ([loss.at(w + sign * step * e) for e in np.eye(n)] for sign in (1, -1))
    slopes = [(a.value - b.value) / (2 * step) for a, b in zip(ahead, behind, strict=True)]
    np.testing.assert_allclose(loss.at(w).grad, slopes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(loss.at(w).hess_diag(), inner.at(w).hess_diag() + loss.stiffness)


@pytest.mark.parametrize("penalty", [L2(2.0), ElasticNet(0.1, 1.0)], ids=lambda p: p.name)
def test_an_update_begins_with_the_gradient_of_training_on_all(penalty):
    """The old data are gone; at the old weights, the gradient is that of old and new data and the penalty."""
    training = ChainTraining(penalty, features="pos", all_possible_states=True, **EXACT, precision="double")
    old, _ = training.fit(*OLD)
    corpus = learn(*MORE, training.make_inputs(), 1)
    found = update_problem(training, corpus, old)
    merged, place = found.corpus, {label: k for k, label in enumerate(found.corpus.classes.tolist())}
    labels = np.array([place[label] for row in OLD[1] for label in row], dtype=np.int32)
    field = found.part.whole
    before = ChainLikelihood(merged.vocabulary.encode(OLD[0]).with_labels(labels), field)
    now = ChainLikelihood(merged.data, field)
    whole = before.at(found.w0).grad + now.at(found.w0).grad
    ours = np.zeros(field.size)
    ours[found.part.places] = found.loss.at(found.loss.anchor).grad
    if isinstance(penalty, ElasticNet):
        whole += 0.1 * np.sign(found.w0)
        ours[found.part.places] += 0.1 * np.sign(found.loss.anchor)
    whole, ours = whole + penalty.split()[0].strength * found.w0, ours + penalty.split()[0].strength * found.w0
    known = np.zeros(field.size, dtype=bool)
    known[found.part.places] = found.loss.anchor != 0
    assert known.sum() > 100
    np.testing.assert_allclose(ours[known], whole[known], atol=1e-4)


def test_counts_of_attributes_are_sums_over_positions():
    training = ChainTraining()
    X = [[{"a": 2.0, "b": 1.0}, {"a": -1.0}], [{"b": 0.5}]]
    corpus = learn(X, [["x", "y"], ["x"]], training.make_inputs(), 1)
    seen = Seen.of(corpus.data.with_weights([1.0, 4.0]), 2, 0)
    assert seen.positions == 2 + 4
    assert dict(zip(corpus.vocabulary.attributes.to_list(), seen.attributes.tolist(), strict=True)) == {"a": 5, "b": 2}
    both = seen.plus(seen).extended(3, 1)
    assert both.attributes.tolist() == [10, 4, 0]
    assert both.pair_attributes.tolist() == [0]
    assert both.take(np.array([1]), np.array([], dtype=int)).attributes.tolist() == [4]


@pytest.mark.parametrize("options", [{}, {"order": 2}, {"penalty": L1(0.2)}, {"solver": "owlqn"}, {"solver": "lbfgs"}])
def test_models_keep_the_counts(tmp_path, options):
    crf = ChainCRF(features="pos", **options).fit(*OLD)
    crf.save(tmp_path / "a.crf")
    read, made = ChainModel.load(tmp_path / "a.crf").seen, crf.model_.seen
    np.testing.assert_array_equal(read.attributes, made.attributes)
    assert read.positions == sum(map(len, OLD[0]))
    assert len(read.attributes) == len(crf.model_.vocabulary.attributes)


def f1(crf, data):
    return evaluate(data[1], crf.predict(data[0])).overall.f1


@pytest.mark.parametrize("n", [5, 30])
def test_an_update_is_close_to_training_on_all(n):
    more = MORE[0][:n], MORE[1][:n]
    old = ChainCRF(features="ner").fit(*OLD)
    again = ChainCRF(features="ner").fit(OLD[0] + more[0], OLD[1] + more[1])
    before = f1(old, TEST)
    old.update(*more)
    assert f1(old, TEST) > before - 0.01
    assert f1(old, TEST) > f1(again, TEST) - 0.02
    assert f1(old, more) > 0.95


def test_an_update_with_the_old_sentences_moves_little_and_one_with_new_words_learns_them():
    crf = ChainCRF().fit([[["the"], ["cat"]]] * 50, [["D", "N"]] * 50)
    before = dict(crf.state_features_)
    crf.update([[["the"], ["owl"], ["sings"]]] * 3, [["D", "N", "V"]] * 3)
    after = crf.state_features_
    assert crf.predict([[["the"], ["owl"], ["sings"]], [["the"], ["cat"]]]) == [["D", "N", "V"], ["D", "N"]]
    assert abs(after["the", "D"] - before["the", "D"]) < 0.3
    assert after["cat", "N"] == before["cat", "N"]
    assert crf.classes_.tolist() == ["D", "N", "V"]


def test_the_penalty_of_an_update_is_that_of_training(tmp_path):
    ChainCRF(features="pos", penalty=L2(30.0)).fit(*OLD).save(tmp_path / "a.crf")
    models = [ChainCRF.load(tmp_path / "a.crf").set_params(penalty=p).update(*MORE) for p in (None, L2(30.0), L2(1.0))]
    np.testing.assert_array_equal(models[0].model_.w, models[1].model_.w)
    assert np.abs(models[0].model_.w - models[2].model_.w).max() > 0.01


@pytest.mark.parametrize("penalty", [L1(0.5), L2(0.3), ElasticNet(0.5, 2.0), NoPenalty()], ids=lambda p: p.name)
def test_penalties_come_back_from_the_record(penalty):
    assert recorded_penalty({"penalty": penalty_record(penalty)}) == penalty
    assert recorded_penalty({}) is None


def test_updates_that_cannot_be(tmp_path):
    crf = ChainCRF(features="pos").fit(*OLD)
    with pytest.raises(DataError, match="needs the likelihood"):
        crf.update([["a", "b"]], [["B-PER", None]])
    crf.set_params(solver="sgd").partial_fit(*MORE)
    with pytest.raises(ParameterError, match="does not record how often"):
        crf.set_params(solver="auto").update(*MORE)


@pytest.mark.parametrize("change", [np.nan, -1.0, None])
def test_counts_that_do_not_fit_are_refused(tmp_path, change):
    file = tmp_path / "a.crf"
    ChainCRF(features="pos").fit(*OLD).save(file)
    contents = modelfile.read(file)
    seen = np.array(contents.tensors["seen.attributes"])
    changed = seen[:-1] if change is None else np.where(np.arange(len(seen)) == 3, np.float32(change), seen)
    metadata = {key: value for key, value in contents.metadata.items() if key not in ("version", "kind", "checksums")}
    modelfile.write(file, "chain", metadata, {**contents.tensors, "seen.attributes": changed.astype(np.float32)})
    with pytest.raises(ModelFileError, match="counts of attributes"):
        ChainModel.load(file)
