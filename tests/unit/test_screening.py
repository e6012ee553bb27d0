"""ChainCRF under L1: attributes that cannot have weights are left out, and nobody notices but the clock."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from crfkit import L1, L2, Blockwise, ChainCRF, ElasticNet, Template
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.training.problem import ChainOptions
from crfkit.chain.training.train import ChainTraining
from crfkit.errors import ParameterError
from crfkit.files.checkpoint import Checkpoint
from crfkit.solvers import GradientNorm
from crfkit.synthetic import entity_corpus

TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[0,1]\nU3:%x[-1,0]/%x[0,0]\nB\nB1:%x[0,0]")
CORPUS = entity_corpus(40, 5)
X = [[token[:2] for token in row] for row in CORPUS]
Y = [[token[2] for token in row] for row in CORPUS]
TIGHT = GradientNorm(1e-7)


def crf(penalty=None, **options):
    given = {"template": TEMPLATE, "n_threads": 1, "tolerance": TIGHT, "penalty": penalty or ElasticNet(1.2, 0.1)}
    return ChainCRF(**{**given, **options})


def problems(penalty, weights=None, **options):
    """Return the problem with all attributes, and without those that are left out."""
    training = ChainTraining(penalty, template=TEMPLATE, n_threads=1, **options)
    corpus = learn(X, Y, training.make_inputs(), 1)
    return training.make_problem(corpus, weights), training.make_problem(corpus, weights, screen=penalty)


@pytest.fixture
def unscreened(monkeypatch):
    """Return a function after whose call nothing is left out any more."""
    make = ChainOptions.make_problem

    def whole(self, corpus, sample_weight=None, known_labels=(), screen=None):
        return make(self, corpus, sample_weight, known_labels)

    return lambda: monkeypatch.setattr(ChainOptions, "make_problem", whole)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"all_possible_states": True, "all_possible_transitions": True},
        {"loss": "softmax-margin"},
        {"order": 2},
        {"solver": "fista"},
        {"solver": "grafting-light"},
        {"label_classes": {"B-PER": "PER", "I-PER": "PER"}},
        {"hash_bits": 12},
    ],
    ids=str,
)
def test_the_model_is_the_same(options, unscreened):
    labels = {label for row in Y for label in row}
    if "label_classes" in options:
        options = {"label_classes": {label: label[2:] for label in sorted(labels) if label != "O"}}
    few, sizes = crf(**options).fit(X, Y), []
    sizes.append(few.result_.w.size)
    unscreened()
    whole = crf(**options).fit(X, Y)
    sizes.append(whole.result_.w.size)
    if options.get("solver") != "grafting-light":  # whose weights are those that it has selected
        assert sizes[0] < sizes[1]
    assert_allclose(few.result_.value, whole.result_.value, rtol=1e-9)
    assert few.state_features_.keys() == whole.state_features_.keys()
    for name, weight in whole.state_features_.items():
        assert few.state_features_[name] == pytest.approx(weight, abs=1e-4)
    assert few.predict(X) == whole.predict(X)


def test_weights_of_sequences_count():
    heavy = np.where(np.arange(len(X)) % 2, 3.0, 0.5)
    kept = [problems(L1(1.0), weights)[1].field.size for weights in (None, heavy, 10.0 * heavy)]
    assert kept[0] != kept[1] < kept[2]


def test_what_has_no_bounds_is_left_whole():
    for penalty, options in (
        (L2(1.0), {}),
        (L1(1.0), {"class_weight": "balanced"}),
        (L1(1.0), {"loss": "hinge"}),
        (Blockwise({"transition": L1(1.0)}), {}),
    ):
        whole, few = problems(penalty, **options)
        assert few.screen is None
        assert few.field.size == whole.field.size
    whole, few = problems(Blockwise({"state": L1(1.0), "transition": L2(1.0)}))
    assert few.field.n_attributes < whole.field.n_attributes
    assert few.field.n_pair_attributes == whole.field.n_pair_attributes


def test_a_start_keeps_its_weights():
    start = crf(L2(1.0)).fit(X, Y).model_
    fitted = crf(max_iterations=1)
    training = fitted._training()
    corpus = learn(X, Y, training.make_inputs(), 1)
    with_start = training._problem(corpus, None, start, None)
    assert with_start.screen is None
    assert training._problem(corpus, None, None, None).screen is not None


@pytest.mark.parametrize("k", [1, 4])
def test_checkpoints_go_on(k, tmp_path, unscreened):
    whole = crf().fit(X, Y)
    with pytest.warns(ConvergenceWarning):
        part = crf(max_iterations=k).fit(X, Y)
    part.checkpoint().save(tmp_path / "c")
    rest = crf().fit(X, Y, resume=Checkpoint.load(tmp_path / "c"))
    assert (rest.result_.w == whole.result_.w).all()
    with pytest.raises(ParameterError, match="other options"):
        crf(ElasticNet(2.5, 0.1)).fit(X, Y, resume=part.checkpoint())


def test_a_checkpoint_of_all_weights_goes_on_with_all(monkeypatch):
    with monkeypatch.context() as inner:
        make = ChainOptions.make_problem
        inner.setattr(ChainOptions, "make_problem", lambda self, *given, screen=None: make(self, *given))
        with pytest.warns(ConvergenceWarning):
            old = crf(max_iterations=3).fit(X, Y).checkpoint()
    rest = crf().fit(X, Y, resume=old)
    assert rest.result_.w.size == old.w.size
    assert_allclose(rest.result_.value, crf().fit(X, Y).result_.value, rtol=1e-9)


@pytest.mark.parametrize("strengths", [[4.0, 1.1, 2.0], None], ids=["given", "grid"])
def test_paths_keep_what_their_smallest_strength_needs(strengths, unscreened):
    def path():
        given = iter(strengths) if strengths else None
        return crf().path(X[:30], Y[:30], strengths=given, n=4, ratio=0.02, X_dev=X[30:], y_dev=Y[30:])

    few = path()
    unscreened()
    whole = path()
    assert few[-1].result.w.size < whole[-1].result.w.size
    for a, b in zip(few, whole, strict=True):
        assert a.strength == b.strength
        assert_allclose(a.value, b.value, rtol=1e-8)
        assert a.nonzeros == b.nonzeros
        assert a.score == b.score


def test_development_sets_see_the_same_scores(unscreened):
    dev = {"X_dev": X[30:], "y_dev": Y[30:], "patience": 50, "training_error": True}
    few = crf().fit(X[:30], Y[:30], **dev)
    unscreened()
    whole = crf().fit(X[:30], Y[:30], **dev)
    columns = [[row.extra for row in found.result_.trace[:10]] for found in (few, whole)]
    assert columns[0] == columns[1]
