"""python-crfsuite: the same parameter set, objective, optimum, predictions and marginals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import optional

from crfkit import L2, ChainCRF
from crfkit.losses import ChainLikelihood
from crfkit.solvers import GradientNorm

pycrfsuite = optional("pycrfsuite")

C2 = 1.0


def corpus(seed: int, values: bool):
    """Random items whose labels depend on them and on each other."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(15):
        items, labels, label = [], [], 0
        for _ in range(rng.integers(1, 8)):
            word = int(rng.integers(12))
            label = (word + label) % 4 if rng.random() < 0.8 else int(rng.integers(4))
            item = {"w": str(word), "odd": bool(word % 2), "bias": 1.0}
            if values:
                # not negative: CRFsuite drops (attribute, label) pairs whose values sum up to less than 0
                item |= {"x": float(rng.exponential()), "nested": {"y": float(rng.random())}}
            items.append(item)
            labels.append("ABCD"[label])
        X.append(items)
        y.append(labels)
    return X, y


def train_crfsuite(path, X, y, everything: bool):
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select("lbfgs")
    trainer.set_params(
        {
            "c1": 0.0,
            "c2": C2,
            "max_iterations": 5000,
            "epsilon": 1e-9,
            "delta": 1e-13,
            "num_memories": 20,
            "feature.possible_states": everything,
            "feature.possible_transitions": everything,
        }
    )
    for items, labels in zip(X, y, strict=True):
        trainer.append(items, labels)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger, trainer.logparser


@pytest.fixture(scope="module", params=[(s, v, e) for s, v in ((0, False), (1, True)) for e in (False, True)], ids=str)
def pair(request, tmp_path_factory):
    """(X, y, CRFsuite's tagger and log, our estimator), trained on the same data."""
    seed, values, everything = request.param
    X, y = corpus(seed, values)
    tagger, log = train_crfsuite(tmp_path_factory.mktemp("crfsuite") / "model", X, y, everything)
    crf = ChainCRF(
        penalty=L2.from_crfsuite(C2),
        all_possible_states=everything,
        all_possible_transitions=everything,
        tolerance=GradientNorm(1e-8),
        n_threads=1,
    ).fit(X, y)
    return X, y, tagger, log, crf


def test_the_same_weights_exist(pair):
    *_, tagger, log, crf = pair
    info = tagger.info()
    assert set(info.transitions) == set(crf.transition_features_)
    # CRFsuite does not save weights that are 0
    assert set(info.state_features) <= set(crf.state_features_)
    assert log.featgen_num_features == len(crf.coef_)
    assert set(info.labels) == set(crf.classes_.tolist())


def test_the_optimum_is_the_same(pair):
    *_, tagger, log, crf = pair
    info = tagger.info()
    for key, weight in crf.state_features_.items():
        assert_allclose(info.state_features.get(key, 0.0), weight, atol=1e-3)
    for key, weight in crf.transition_features_.items():
        assert_allclose(info.transitions[key], weight, atol=1e-3)
    # it prints six decimals, and stops a little early
    loss = log.last_iteration["loss"]
    assert crf.result_.value <= loss + 1e-5
    assert_allclose(crf.result_.value, loss, rtol=1e-6)


def test_the_objective_at_its_weights_is_the_same(pair):
    X, y, tagger, log, crf = pair
    info = tagger.info()
    w = np.array(
        [info.state_features.get(key, 0.0) for key in crf.state_features_]
        + [info.transitions[key] for key in crf.transition_features_]
    )
    labels, data = crf.classes_.tolist(), crf.model_.encode(X)
    coded = np.array([labels.index(label) for row in y for label in row], dtype=np.int32)
    value = ChainLikelihood(data.with_labels(coded), crf.model_.field, 1).at(w).value + C2 * w @ w
    assert_allclose(value, log.last_iteration["loss"], rtol=1e-6)


def test_predictions_and_marginals_are_the_same(pair):
    X, _, tagger, _, crf = pair
    unseen, _ = corpus(99, values="x" in X[0][0])
    for items in X + unseen:
        tagger.set(items)
        assert tagger.tag() == crf.predict_single(items)
        (node,) = crf.predict_marginals([items])
        expected = [[tagger.marginal(label, t) for label in crf.classes_] for t in range(len(items))]
        assert_allclose(node, expected, atol=1e-4)
    data = crf.model_.encode(X)
    best, log_z = crf.model_.inference.decode(data)[1], crf.model_.inference.log_partition(data)
    for n, items in enumerate(X):
        tagger.set(items)
        assert_allclose(np.exp(best[n] - log_z[n]), tagger.probability(tagger.tag()), atol=1e-4)


def test_repeated_attributes_count_as_often(tmp_path):
    X = [[["a", "a", "b"], ["b"], ["a"]], [["b", "b"], ["a", "b"]]]
    y = [["x", "y", "y"], ["y", "x"]]
    tagger, _ = train_crfsuite(tmp_path / "model", X, y, everything=True)
    crf = ChainCRF(
        penalty=L2.from_crfsuite(C2),
        all_possible_states=True,
        all_possible_transitions=True,
        tolerance=GradientNorm(1e-8),
        n_threads=1,
    ).fit(X, y)
    for key, weight in tagger.info().state_features.items():
        assert_allclose(crf.state_features_[key], weight, atol=1e-3)
