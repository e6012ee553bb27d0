"""scikit-learn for real: its own checks, searches over nested options, cross-validation, metadata routing."""

import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_val_predict, cross_val_score
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

from crfkit import ChainCRF, ElasticNet, GraphCRF, GridCRF, ImageSegmenter, StructureLearner, penalties
from crfkit.chain.model.model import ChainModel
from crfkit.errors import DataError, ParameterError
from crfkit.metrics import evaluate, phrase_f1_scorer
from crfkit.penalties import L1, L2, Blockwise, GroupL2, NoPenalty
from crfkit.ragged import Ragged
from crfkit.solvers import LBFGS, SOLVERS, GradientNorm, PeriodDecrease
from crfkit.synthetic import entity_corpus

SENTENCES = entity_corpus(40, seed=3)
X = [[[f"w={word}", f"s={shape}"] for word, shape, _ in sentence] for sentence in SENTENCES]
y = [[label for _, _, label in sentence] for sentence in SENTENCES]
RNG = np.random.default_rng(0)
COLUMN = RNG.integers(0, 2, 40)
TABLE = RNG.normal(size=(40, 3)), np.stack([COLUMN, COLUMN ^ (RNG.random(40) < 0.05), RNG.integers(0, 2, 40)], axis=1)
IMAGES = [RNG.normal(size=(4, 4 + k % 2, 2)) for k in range(6)]
MASKS = [(image[..., 0] > 0).astype(int) for image in IMAGES]
FITTED = {
    "chain": (ChainCRF(), (X, y)),
    "table": (GraphCRF(), TABLE),
    "grid": (GridCRF(), (IMAGES, MASKS)),
    "structure": (StructureLearner(), (TABLE[1],)),
}  # fmt: skip
every_estimator = pytest.mark.parametrize("name", FITTED)


# --- scikit-learn's checks

# Why a check cannot apply. The data of nearly all of them are a table of numbers with one label for each row.
NOT_A_TABLE = "it fits a table with a label for each row, which is no set of sequences, images or categories"
OTHER_WORDS = "it expects the words of scikit-learn's own messages; ours say the same in others"
ON_TABLES = [
    "check_fit_score_takes_y",
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_estimators_dtypes",
    "check_complex_data",
    "check_dtype_object",
    "check_estimators_empty_data_messages",
    "check_pipeline_consistency",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_n_features_in",
    "check_fit2d_predict1d",
]
WEIGHTS = [
    "check_sample_weights_not_an_array",
    "check_sample_weights_list",
    "check_all_zero_sample_weights_error",
    "check_sample_weights_shape",
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
    *(["check_sample_weights_pandas_series"] if find_spec("pandas") else []),  # else scikit-learn skips it
]
SPARSE = ["check_estimator_sparse_tag", "check_estimator_sparse_array", "check_estimator_sparse_matrix"]
NO_TABLE = {
    **dict.fromkeys([*ON_TABLES, *WEIGHTS, *SPARSE], NOT_A_TABLE),
    "check_requires_y_none": OTHER_WORDS,
}
FEATURES_IN = "the number of features is the encoder's; n_features_in_ is not set"
GRAPHS = {
    "check_n_features_in_after_fitting": FEATURES_IN,
    "check_n_features_in": FEATURES_IN,
    "check_sample_weights_not_an_array": "X must be a NumPy array, a sparse matrix or a data frame",
    "check_sample_weight_equivalence_on_dense_data": "labels are called Y",
    "check_sample_weight_equivalence_on_sparse_data": "labels are called Y",
    "check_estimator_sparse_array": "not every sparse format is taken; CSR is",
    "check_estimator_sparse_matrix": "not every sparse format is taken; CSR is",
    "check_dtype_object": "X must be numbers",
    "check_dict_unchanged": "predict leaves decoding_, which says whether its answer is optimal",
    **dict.fromkeys(
        [
            "check_all_zero_sample_weights_error",
            "check_complex_data",
            "check_estimators_empty_data_messages",
            "check_estimators_nan_inf",
            "check_fit2d_1sample",
            "check_fit2d_predict1d",
            "check_requires_y_none",
        ],
        OTHER_WORDS,
    ),
}


# Checks that older versions of scikit-learn do not have.
ABSENT = {name for name in ("check_all_zero_sample_weights_error",) if not hasattr(estimator_checks, name)}


def checked(estimator, reasons):
    """Names of the checks that passed; fails if others than those with a reason fail, or one of those passes."""
    reasons = {name: reason for name, reason in reasons.items() if name not in ABSENT}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, expected_failed_checks=reasons, on_fail=None, on_skip=None)
    failed = {row["check_name"]: row["exception"] for row in found if row["status"] == "failed"}
    assert not failed
    assert set(reasons) <= {row["check_name"] for row in found if row["status"] == "xfail"}
    return {row["check_name"] for row in found if row["status"] == "passed"}


def as_table(kind):
    """The estimator as if its inputs were tables: scikit-learn leaves out most checks for others."""

    class Table(kind):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.two_d_array = True
            return tags

    Table.__name__ = Table.__qualname__ = kind.__name__
    return Table()


def test_checks_of_tables():
    passed = checked(GraphCRF(), GRAPHS)
    assert {"check_estimators_pickle", "check_fit_idempotent", "check_methods_subset_invariance"} <= passed


@pytest.mark.parametrize("kind", [ChainCRF, GridCRF, ImageSegmenter, StructureLearner], ids=lambda kind: kind.__name__)
def test_checks_of_others(kind):
    reasons = dict(NO_TABLE)
    if kind is ImageSegmenter:  # its fit takes no sample_weight; it refuses sparse matrices as the check has it
        reasons = {name: reason for name, reason in reasons.items() if name not in (*WEIGHTS, *SPARSE)}
    if kind is StructureLearner:  # there are no weights, and its table is the first argument
        reasons = {name: reason for name, reason in reasons.items() if name not in (*WEIGHTS, "check_requires_y_none")}
    passed = checked(as_table(kind), reasons)
    assert {"check_estimator_cloneable", "check_get_params_invariance", "check_set_params"} <= passed


@pytest.mark.parametrize("kind", [ChainCRF, GridCRF, ImageSegmenter], ids=lambda kind: kind.__name__)
def test_scikit_learn_knows_that_inputs_are_no_tables(kind):
    tags = kind().__sklearn_tags__()
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required
    assert tags.target_tags.multi_output
    with pytest.warns(SkipTestWarning, match="requires input"):
        check_estimator(kind())


# --- the same laws on data that do apply


def first(data, rows):
    return [[part[k] for k in rows] if isinstance(part, list) else part[list(rows)] for part in data]


@every_estimator
def test_fit_changes_no_option_and_can_be_repeated(name):
    estimator, data = clone(FITTED[name][0]), FITTED[name][1]
    before = estimator.get_params()
    assert estimator.fit(*data) is estimator
    after = estimator.get_params()
    assert all(after[key] is value for key, value in before.items())
    once = estimator.predict(*data[:1]) if name != "structure" else estimator.edges_
    estimator.fit(*data)
    again = estimator.predict(*data[:1]) if name != "structure" else estimator.edges_
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))


@pytest.mark.parametrize("name", ["chain", "table", "grid"])
def test_predictions_do_not_depend_on_the_other_samples(name):
    estimator, data = FITTED[name]
    fitted = clone(estimator).fit(*data)
    rows = [3, 0, 5]
    whole, some = fitted.predict(data[0]), fitted.predict(first(data, rows)[0])
    assert all(np.array_equal(whole[row], found) for row, found in zip(rows, some, strict=True))
    copy = pickle.loads(pickle.dumps(fitted))
    assert all(np.array_equal(a, b) for a, b in zip(whole, copy.predict(data[0]), strict=True))


@pytest.mark.parametrize("name", ["chain", "table"])
def test_a_weight_of_two_is_a_sample_twice(name):
    estimator, data = FITTED[name]
    tight = clone(estimator).set_params(tolerance=GradientNorm(1e-7), solver="lbfgs", penalty=L2(1.0))
    n = len(data[0])
    twice = first(data, [*range(n), *range(10)])
    weighted = clone(tight).fit(*data, sample_weight=1.0 + (np.arange(n) < 10))
    assert_allclose(weighted.result_.value, clone(tight).fit(*twice).result_.value, rtol=1e-9)


# --- options of penalties and solvers


def test_options_of_penalties_solvers_and_rules_by_name():
    crf = ChainCRF(penalty=ElasticNet(2.0, 0.5), solver=LBFGS(memory=4, stopping=PeriodDecrease(1e-3)))
    options = crf.get_params()
    assert options["penalty__l1"] == 2.0
    assert options["solver__memory"] == 4
    assert options["solver__stopping__delta"] == 1e-3
    assert "penalty__l1" not in crf.get_params(deep=False)
    penalty, solver = crf.penalty, crf.solver
    assert crf.set_params(penalty__l1=3.0, solver__stopping__period=5, min_frequency=2) is crf
    assert crf.penalty == ElasticNet(3.0, 0.5)
    assert (crf.solver.memory, crf.solver.stopping) == (4, PeriodDecrease(1e-3, 5))
    assert crf.min_frequency == 2
    assert penalty == ElasticNet(2.0, 0.5)  # others may hold it
    assert solver.stopping.period == 10
    assert crf.set_params(penalty=L2(), penalty__strength=7.0).penalty == L2(7.0)


@pytest.mark.parametrize(
    "estimator", [ChainCRF(), GraphCRF(), GridCRF(), ImageSegmenter()], ids=lambda estimator: type(estimator).__name__
)
def test_every_estimator_and_its_clones(estimator):
    estimator = clone(estimator).set_params(penalty=L2(2.0), solver=LBFGS())
    copy = clone(estimator).set_params(penalty__strength=5.0, solver__memory=3)
    assert (copy.penalty, copy.solver.memory) == (L2(5.0), 3)
    assert (estimator.penalty, estimator.solver.memory) == (L2(2.0), 6)
    assert clone(copy).penalty == L2(5.0)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_has_options(name):
    solver = SOLVERS[name]()
    options = solver.get_params(deep=False)
    assert solver.set_params(max_iterations=17).max_iterations == 17
    assert type(solver)(**options) == solver == clone(solver)


@pytest.mark.parametrize(
    "penalty",
    [L1(2.0), L2(2.0), NoPenalty(), GroupL2(2.0, [0, 0, 1]), Blockwise({"state": L1(1.0)}), penalties.HuberL1(2.0)],
    ids=lambda penalty: penalty.name,
)
def test_every_penalty_has_options(penalty):
    assert clone(penalty) is penalty
    options = penalty.get_params()
    assert repr(penalty.set_params(**options)) == repr(penalty)
    if "strength" in options:
        changed = penalty.set_params(strength=4.0)
        assert changed.value(np.ones(3)) == pytest.approx(2 * penalty.value(np.ones(3)))


def test_options_that_cannot_be_set_are_refused_with_a_remedy():
    with pytest.raises(ParameterError, match=r"penalty__strength .* penalty of ChainCRF is None.*penalty=L2\(\)"):
        ChainCRF().set_params(penalty__strength=1.0)
    with pytest.raises(ParameterError, match=r"solver of ChainCRF is 'lbfgs'.*solver=LBFGS\(\)"):
        ChainCRF(solver="lbfgs").set_params(solver__memory=3)
    with pytest.raises(ParameterError, match="Invalid parameter 'streng' for L2: there are strength"):
        ChainCRF(penalty=L2()).set_params(penalty__streng=1.0)
    with pytest.raises(ParameterError, match="Invalid parameter 'penalti' for ChainCRF"):
        ChainCRF().set_params(penalti=1.0)
    with pytest.raises(ParameterError, match="strength of L2"):
        ChainCRF(penalty=L2()).set_params(penalty__strength=-1.0)


# --- searches and folds


def test_grid_search_over_the_strength_of_a_penalty():
    strengths = [0.01, 1.0, 1e4]
    search = GridSearchCV(ChainCRF(penalty=L2()), {"penalty__strength": strengths}, cv=2).fit(X, y)
    assert search.best_estimator_.penalty == L2(search.best_params_["penalty__strength"])
    scores = search.cv_results_["mean_test_score"]
    assert scores[2] < max(scores[:2])  # almost no weights
    by_hand = [cross_val_score(ChainCRF(penalty=L2(s)), X, y, cv=2).mean() for s in strengths]
    assert_allclose(scores, by_hand)


def test_randomised_search_with_distributions():
    choices = {"penalty__l1": scipy.stats.loguniform(0.01, 1.0), "solver__memory": scipy.stats.randint(5, 9)}
    crf = ChainCRF(penalty=ElasticNet(1.0, 1.0), solver=SOLVERS["owlqn"]())
    search = RandomizedSearchCV(crf, choices, n_iter=3, cv=2, random_state=0).fit(X, y)
    tried = search.cv_results_["params"]
    assert len({row["penalty__l1"] for row in tried}) == 3
    assert search.best_estimator_.penalty.l1 == search.best_params_["penalty__l1"]
    assert search.best_estimator_.solver.memory == search.best_params_["solver__memory"]


@pytest.mark.parametrize("same_length", [False, True])
def test_predictions_of_folds_are_put_together(same_length):
    data = ([x[:4] for x in X if len(x) >= 4], [x[:4] for x in y if len(x) >= 4]) if same_length else (X, y)
    folds = KFold(4, shuffle=True, random_state=0)
    found = cross_val_predict(ChainCRF(), *data, cv=folds)
    assert (found.shape, found.dtype) == ((len(data[0]),), object)
    for train, test in folds.split(data[0]):
        crf = ChainCRF().fit(*first(data, train))
        assert [found[k] for k in test] == crf.predict(first(data, test)[0])


def test_lists_of_predictions_are_lists():
    crf = ChainCRF().fit(X, y)
    found, marginals = crf.predict(X[:3]), crf.predict_marginals(X[:3])
    assert isinstance(found, list)
    assert found == [list(row) for row in found]
    assert repr(found) == repr(list(found))
    assert pickle.loads(pickle.dumps(found)) == found
    assert np.asarray(found).shape == np.asarray(marginals).shape == (3,)
    assert np.asarray(Ragged([[1, 2], [3, 4]])).shape == (2,)
    assert np.concatenate(found).tolist() == [label for row in found for label in row]
    with pytest.raises(ValueError, match="without a copy"):
        np.array(found, copy=False)


def test_the_phrase_scorer():
    assert phrase_f1_scorer(ChainCRF().fit(X, y), X, y) == evaluate(y, ChainCRF().fit(X, y).predict(X)).overall.f1
    search = GridSearchCV(ChainCRF(penalty=L2()), {"penalty__strength": [0.1, 1e4]}, scoring=phrase_f1_scorer, cv=2)
    assert search.fit(X, y).best_params_ == {"penalty__strength": 0.1}
    plain = [[label.replace("-", "") for label in row] for row in y]
    with pytest.raises(DataError, match="do not mark phrases"):
        phrase_f1_scorer(ChainCRF().fit(X, plain), X, plain)


def test_sample_weights_are_routed():
    weights = np.where(np.arange(len(X)) % 3 == 0, 5.0, 0.1)
    seen = []

    class Watched(ChainCRF):
        def fit(self, X, y, sample_weight=None):
            seen.append(sample_weight)
            return super().fit(X, y, sample_weight)

    with config_context(enable_metadata_routing=True):
        crf = Watched(penalty=L2()).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(crf, {"penalty__strength": [0.1, 1.0]}, cv=2).fit(X, y, sample_weight=weights)
        assert_allclose(
            search.best_estimator_.coef_, ChainCRF(penalty=search.best_estimator_.penalty).fit(X, y, weights).coef_
        )
        plain = GridSearchCV(
            ChainCRF(penalty=L2()).set_fit_request(sample_weight=False).set_score_request(sample_weight=True),
            {"penalty__strength": [0.1]},
            cv=2,
        ).fit(X, y, sample_weight=weights)
        assert plain.cv_results_["mean_test_score"][0] != search.cv_results_["mean_test_score"][0]
    assert [len(found) for found in seen] == [20, 20, 20, 20, 40]
    assert_allclose(seen[-1], weights)


# --- the model, without scikit-learn


def test_a_model_predicts_as_its_estimator(tmp_path):
    crf = ChainCRF().fit(X, y)
    crf.save(tmp_path / "m.crf")
    model = ChainModel.load(tmp_path / "m.crf")
    assert model.predict(X) == crf.predict(X)
    for ours, theirs in zip(model.predict_marginals(X), crf.predict_marginals(X), strict=True):
        assert_allclose(ours, theirs, rtol=1e-12)
        assert_allclose(ours.sum(axis=1), 1.0)
    assert model.predict([]) == []
