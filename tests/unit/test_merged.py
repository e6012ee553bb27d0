"""Attributes that occur once at the same position share weights under L2: the same optimum with fewer numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit import L1, L2, ChainCRF, ElasticNet, Template, evaluate
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.fields.merged import MergedAttributes
from crfkit.chain.losses import merged
from crfkit.chain.losses.merged import MergedLikelihood, merged_likelihood
from crfkit.chain.training.train import ChainTraining
from crfkit.errors import ParameterError
from crfkit.losses import ChainLikelihood
from crfkit.solvers import GradientNorm
from crfkit.synthetic import entity_corpus

TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[0,1]\nU3:%x[-1,0]/%x[0,0]\nU4:%x[0,0]/%x[1,0]\nB\nB1:%x[0,1]")
CORPUS = entity_corpus(30, 3)
X = [[token[:2] for token in row] for row in CORPUS]
Y = [[token[2] for token in row] for row in CORPUS]
ALL = {"all_possible_states": True, "all_possible_transitions": True}


def crf(**options):
    given = {"template": TEMPLATE, "n_threads": 1, "tolerance": GradientNorm(1e-8), "penalty": L2(0.5), **ALL}
    return ChainCRF(**{**given, **options})


def pair(**options):
    """Return the likelihood of all weights, and that of the weights that are left."""
    training = ChainTraining(L2(0.5), template=TEMPLATE, n_threads=1, **ALL, **options)
    problem = training.make_problem(learn(X, Y, training.make_inputs(), 1))
    part = MergedAttributes.of(problem.data, problem.field)
    return problem.loss, MergedLikelihood(part, n_threads=1)


@pytest.fixture
def merging(monkeypatch):
    """Merge in small problems, too; count how often that was done."""
    made = []

    def counted(loss, penalty):
        found = merged_likelihood(loss, penalty)
        made.append(found is not loss)
        return found

    monkeypatch.setattr(merged, "LEAST_WEIGHTS", 0)
    monkeypatch.setattr("crfkit.chain.training.train.merged_likelihood", counted)
    return made


@pytest.mark.parametrize("options", [{}, {"order": 2}, {"constraints": "iob2"}], ids=str)
def test_values_gradients_and_penalties_are_those_of_all_weights(options):
    whole, part = pair(**options)
    assert part.size < 0.9 * whole.size
    rng = np.random.default_rng(0)
    v, direction = rng.normal(size=(2, part.size))
    w = part.in_full(v)
    assert_allclose(w @ w, v @ v, rtol=1e-12)
    assert_allclose(part.of_full(w), v, rtol=1e-12, atol=1e-13)
    here, there = part.at(v), whole.at(w)
    assert_allclose(here.value, there.value, rtol=1e-12)
    assert_allclose(part.in_full(here.grad), there.grad, rtol=1e-10, atol=1e-11)
    product = there.hessp(part.in_full(direction))
    assert_allclose(part.in_full(here.hessp(direction)), product, rtol=1e-9, atol=1e-10)


def test_weights_of_the_whole_field_keep_their_scores():
    whole, part = pair()
    w = np.random.default_rng(1).normal(size=whole.size)
    v = part.of_full(w)
    assert_allclose(part.at(v).value, whole.at(w).value, rtol=1e-12)
    assert v @ v < w @ w


def test_a_subset_knows_the_whole_field():
    whole, part = pair()
    v = np.random.default_rng(2).normal(size=part.size)
    ids = np.arange(7)
    assert_allclose(part.subset(ids).at(v).value, whole.subset(ids).at(part.in_full(v)).value, rtol=1e-12)
    assert_allclose(part.subset(ids).in_full(v), part.in_full(v))


@pytest.mark.parametrize("options", [{}, {"order": 2}, {"precision": "single", "tolerance": 1e-7}], ids=str)
def test_models_are_the_same(merging, options, monkeypatch):
    found = crf(**options).fit(X, Y)
    assert merging == [True]
    assert len(found.result_.w) < len(found.coef_)
    monkeypatch.setattr(merged, "LEAST_WEIGHTS", 10**9)
    same = crf(**options).fit(X, Y)
    single = options.get("precision") == "single"
    assert_allclose(found.result_.value, same.result_.value, rtol=1e-5 if single else 1e-9)
    if not single:
        assert_allclose(found.coef_, same.coef_, atol=1e-5)


def test_every_way_to_train_takes_them(merging):
    weights = np.linspace(0.5, 2.0, len(X))
    reference = crf(solver="lbfgs").fit(X, Y, sample_weight=weights)
    assert merging == []
    found = crf().fit(X, Y, sample_weight=weights, training_error=True)
    assert merging == [True]
    assert_allclose(found.coef_, reference.coef_, atol=1e-5)
    assert_allclose(found.score(X, Y), 1 - found.result_.trace[-1].extra["token_error"])
    early = crf(tolerance=1e-5).fit(X[:20], Y[:20], X_dev=X[20:], y_dev=Y[20:], patience=3)
    assert len(early.coef_) > len(early.result_.w)
    best = max(row.extra["dev_f1"] for row in early.result_.trace)
    assert_allclose(evaluate(Y[20:], early.predict(X[20:])).overall.f1, best)


def test_training_goes_on_from_weights_and_checkpoints(merging, monkeypatch):
    done = crf().fit(X, Y)
    warm = crf(warm_start=True).fit(X, Y)
    warm.fit(X, Y)
    assert warm.result_.iterations < done.result_.iterations / 2
    assert_allclose(warm.coef_, done.coef_, atol=1e-5)
    part = crf(max_iterations=5)
    with pytest.warns(match="limit"):
        part.fit(X, Y)
    rest = crf().fit(X, Y, resume=part.checkpoint())
    assert_allclose(rest.coef_, done.coef_, atol=1e-5)
    monkeypatch.setattr(merged, "LEAST_WEIGHTS", 10**9)
    with pytest.warns(match="limit"):
        part = crf(max_iterations=5).fit(X, Y)  # of all weights, as earlier versions wrote them
    monkeypatch.setattr(merged, "LEAST_WEIGHTS", 0)
    assert_allclose(crf().fit(X, Y, resume=part.checkpoint()).coef_, done.coef_, atol=1e-5)
    with pytest.raises(ParameterError, match="other data or of other options"):
        crf().fit(X[:9], Y[:9], resume=part.checkpoint())


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": L1(0.1)},
        {"penalty": ElasticNet(0.1, 0.1)},
        {"penalty": L2(0.0), "max_iterations": 3, "tolerance": 1.0},
        {"solver": "lbfgs"},
        {"solver": "averaged-perceptron", "penalty": None, "max_iterations": 2, "tolerance": 1e-3},
        {"all_possible_states": False},
        {"loss": "softmax-margin"},
        {"label_classes": {"B-PER": "PER", "I-PER": "PER"}},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_an_l2_problem_with_all_weights_stays_as_it_is(merging, options):
    crf(**{"tolerance": 1e-3, **options}).fit(X, Y)
    assert not any(merging)


def test_attributes_with_values_or_without_company_are_not_merged():
    training = ChainTraining(L2(0.5), n_threads=1, **ALL)
    valued = learn([[{"a": 0.5, "b": 2.0}, {"c": 1.5}]] * 2, [["x", "y"]] * 2, training.make_inputs(), 1)
    alone = learn([[["a", "r"], ["a", "s"]]] * 2, [["x", "y"]] * 2, training.make_inputs(), 1)
    for corpus in (valued, alone):
        problem = training.make_problem(corpus)
        assert MergedAttributes.of(problem.data, problem.field) is None
        assert isinstance(problem.loss, ChainLikelihood)
