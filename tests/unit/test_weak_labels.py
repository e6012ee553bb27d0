"""Training with labels that are known in part, several annotators, and weights of classes and tokens."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit import L1, L2, Annotations, ChainCRF
from crfkit.errors import CapabilityError, DataError, ParameterError

X = [[["w=in"], ["w=New"], ["w=York"]], [["w=York"], ["w=in"], ["w=rain"]], [["w=rain"], ["w=in"], ["w=Rome"]]]
Y = [["O", "B", "I"], ["B", "O", "O"], ["O", "O", "B"]]


def weights(crf: ChainCRF) -> dict:
    return {**crf.state_features_, **crf.transition_features_}


def close(a: ChainCRF, b: ChainCRF, tolerance: float = 1e-5) -> None:
    first, second = weights(a), weights(b)
    for name in first.keys() | second.keys():
        assert abs(first.get(name, 0.0) - second.get(name, 0.0)) < tolerance, name


def agree(predicted, known) -> None:
    """Every label is one of those that are possible."""
    for row, possible in zip(predicted, known, strict=True):
        for label, one in zip(row, possible, strict=True):
            assert one is None or label in one


def fit(y, X=X, tolerance=1e-10, **options) -> ChainCRF:
    options = {"penalty": L2(0.05), **options}
    fitted = {name: options.pop(name) for name in ("sample_weight", "token_weight") if name in options}
    return ChainCRF(tolerance=tolerance, **options).fit(X, y, **fitted)


def test_sets_of_one_label_are_labels():
    close(fit([[{label} for label in row] for row in Y], all_possible_transitions=True),
          fit(Y, all_possible_transitions=True))  # fmt: skip


def test_unknown_labels_are_learned_from_the_rest():
    crf = fit([["O", "B", "I"], ["B", None, "O"], [None, "O", "B"]])
    assert crf.predict(X) == Y
    assert not crf.result_.convex
    assert "not convex" in crf.result_.outcome
    assert crf.model_.training["convex"] is False


def test_a_set_may_hold_a_label_that_no_position_has_alone():
    crf = fit([["O", {"B", "C"}, "I"], ["B", "O", "O"], ["O", "O", "B"]])
    assert crf.classes_.tolist() == ["B", "C", "I", "O"]
    assert crf.predict(X)[0][1] == "B"


def test_an_attribute_has_weights_for_the_labels_that_are_possible():
    crf = fit([["O", {"B", "I"}, "I"], ["B", "O", None], ["O", "O", "B"]])
    assert {label for name, label in crf.state_features_ if name == "w=New"} == {"B", "I"}
    assert {label for name, label in crf.state_features_ if name == "w=rain"} == {"O"}


@pytest.mark.parametrize("template", ["U00:%x[0,0]\nB", "U00:%x[0,0]\nB01:%x[0,0]"])
@pytest.mark.parametrize("order", [1, 2])
def test_templates_and_orders(template, order):
    rows = [[(item[0],) for item in row] for row in X]
    partly = [["O", "B", "I"], [{"B", "O"}, "O", "O"], ["O", None, "B"]]
    crf = fit(partly, X=rows, template=template, order=order)
    agree(crf.predict(rows), partly)


def test_annotators_are_weighted_copies():
    both = fit([Annotations([Y[0], ["O", "O", "B"]], [3, 1]), Y[1], Annotations([Y[2]])])
    copies = fit([Y[0], ["O", "O", "B"], Y[1], Y[2]], X=[X[0], X[0], X[1], X[2]], sample_weight=[0.75, 0.25, 1, 1])
    close(both, copies)
    assert both.result_.convex


@pytest.mark.parametrize("form", ["list", "generator", "array"])
def test_annotators_in_any_iterable(form):
    rows = [Annotations([Y[0], ["O", "O", "B"]]), *Y[1:]]
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    given = {"list": rows, "generator": iter(rows), "array": array}[form]
    close(fit(given), fit(rows))


def test_annotators_with_weights_of_sequences_and_unknown_labels():
    crf = fit([Annotations([Y[0], ["O", None, "I"]]), Y[1], Y[2]], sample_weight=[2.0, 1.0, 0.5])
    assert crf.predict(X) == Y


def test_annotators_count_attributes_once():
    """min_frequency is about the sequences, not about their readings."""
    crf = fit([Annotations([Y[0]] * 3), Y[1], Y[2]], min_frequency=2)
    assert "w=New" not in {name for name, _ in crf.state_features_}


def test_equal_token_weights_are_weights_of_the_sequences():
    crf = fit(Y, token_weight=[[2.0] * 3, [1.0] * 3, [0.5] * 3])
    close(crf, fit(Y, sample_weight=[2.0, 1.0, 0.5]))
    assert crf.result_.convex


def test_class_weights_move_the_decision():
    rng = np.random.default_rng(0)
    inputs = [[[f"a={rng.integers(3)}"] for _ in range(6)] for _ in range(60)]
    labels = [["R" if item[0] == "a=0" and rng.random() < 0.3 else "O" for item in row] for row in inputs]

    def found(**options):
        return sum(row.count("R") for row in ChainCRF(**options).fit(inputs, labels).predict(inputs))

    assert found() < found(class_weight={"R": 10.0})
    assert found(class_weight="balanced") == found(class_weight={
        label: 360 / (2 * sum(row.count(label) for row in labels)) for label in ("O", "R")})  # fmt: skip
    assert found(class_weight={"R": 10.0}) == found(class_weight={"O": 0.1}, penalty=L2(0.1))


def test_class_weights_are_token_weights():
    by_class = fit(Y, class_weight={"O": 0.3, "B": 2.0})
    by_token = fit(Y, token_weight=[[{"O": 0.3, "B": 2.0, "I": 1.0}[label] for label in row] for row in Y])
    close(by_class, by_token)
    both = fit(Y, class_weight={"O": 0.3}, token_weight=[[2.0, 1.0, 1.0]] * 3)
    close(both, fit(Y, token_weight=[[w * (0.3 if a == "O" else 1.0) for w, a in zip((2, 1, 1), row, strict=True)]
                                     for row in Y]))  # fmt: skip


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "auto", "gradient-descent", "ista"])
def test_solvers_of_smooth_losses_take_them(solver):
    partly = [["O", "B", "I"], ["B", None, "O"], Y[2]]
    crf = ChainCRF(solver=solver, penalty=L2(0.05), class_weight={"O": 0.5}, tolerance=1e-2).fit(X, partly)
    agree(crf.predict(X), partly)


def test_l1_selects_with_partial_labels():
    crf = ChainCRF(penalty=L1(0.05)).fit(X, [["O", "B", "I"], ["B", None, "O"], Y[2]])
    assert np.count_nonzero(crf.coef_) == len(crf.coef_)


def test_a_path_of_strengths_with_partial_labels():
    path = ChainCRF(penalty=L1()).path(X, [["O", "B", "I"], ["B", None, "O"], Y[2]], n=3)
    assert len(path) == 3


def test_all_but_one_sequence_unknown():
    crf = fit([Y[0], [None] * 3, [None] * 3])
    assert crf.predict(X)[0] == Y[0]


def test_marginals_of_a_known_label_do_not_change_the_rest():
    """Hiding a label that the model is sure of leaves the optimum close to that of all labels."""
    full = fit(Y * 5, X=X * 5)
    hidden = fit([*Y * 4, ["O", "B", "I"], ["B", None, "O"], Y[2]], X=X * 5)
    assert_allclose(full.predict_marginals(X)[0], hidden.predict_marginals(X)[0], atol=0.05)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[None] * 3] * 3, "no label is known"),
        ([["O", None, None], [None] * 3, [None] * 3], "the only label is 'O'"),
        ([["O", set(), "I"], *Y[1:]], "sequence 0, position 1: the set of possible labels is empty"),
        ([["O", None], *Y[1:]], "sequence 0 has 3 items but 2 labels"),
        ([["O", {1}, "I"], *Y[1:]], "of one type"),
        ([Annotations([Y[0], ["O"]]), *Y[1:]], "sequence 0 has 3 items but 1 labels"),
        ([Annotations([Y[0]]), Y[1]], "3 sequences but 2"),
    ],
)
def test_labels_that_say_nothing(y, message):
    with pytest.raises(DataError, match=message):
        ChainCRF().fit(X, y)


@pytest.mark.parametrize(("readings", "shares"), [([], None), ([Y[0]], [0.0]), ([Y[0]], [1, 2]), ([Y[0]], ["a"])])
def test_annotations_that_cannot_be(readings, shares):
    with pytest.raises(DataError, match="Annotations"):
        Annotations(readings, shares)


@pytest.mark.parametrize(
    ("token_weight", "message"),
    [
        ([[1.0] * 3] * 2, "2 rows, but there are 3"),
        ([[1.0] * 3, [1.0] * 2, [1.0] * 3], "sequence 1 has 3 items but 2 token weights"),
        ([[1.0] * 3, [1.0, -1.0, 1.0], [1.0] * 3], "sequence 1, position 1: the weight is -1.0"),
        ([[1.0] * 3, [1.0, float("nan"), 1.0], [1.0] * 3], "sequence 1, position 1"),
        ([["a"] * 3] * 3, "numbers"),
    ],
)
def test_token_weights_that_cannot_be(token_weight, message):
    with pytest.raises(DataError, match=message):
        ChainCRF().fit(X, Y, token_weight=token_weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_weight": "even"}, "class_weight must be"),
        ({"class_weight": {"b": 2.0}}, "names 'b', which is not a label"),
        ({"class_weight": {"B": -1.0}}, "class weight of 'B'"),
        ({"class_weight": {"B": "2"}}, "class weight of 'B' must be a number"),
        ({"class_weight": np.ones(3)}, "class_weight must be"),
        ({"class_weight": {"B": 2.0}, "loss": "hinge"}, "need the loss 'likelihood'"),
        ({"class_weight": {"B": 2.0}, "solver": "grafting-light"}, "owlqn"),
        ({"class_weight": dict.fromkeys("BIO", 0.0)}, "weight 0"),
    ],
)
def test_class_weights_that_cannot_be(options, message):
    with pytest.raises(ParameterError, match=message):
        ChainCRF(**options).fit(X, Y)


def test_solvers_that_need_more_say_so():
    with pytest.raises(CapabilityError, match="marginal likelihood"):
        ChainCRF(solver="averaged-perceptron", class_weight={"O": 0.5}).fit(X, Y)


def test_constraints_that_leave_no_labelling():
    with pytest.raises(DataError, match="sequence 1, position 1"):
        ChainCRF(constraints=[("B", "O")]).fit(X, [Y[0], ["B", {"O"}, None], [None] * 3])
    with pytest.raises(ParameterError, match="not known"):
        ChainCRF(constraints="observed").fit(X, [Y[0], ["B", None, "O"], Y[2]])
    crf = ChainCRF(constraints=[("B", "O")]).fit(X, [Y[0], ["B", {"O", "I"}, None], [None] * 3])
    assert crf.predict(X)[1][1] != "O"


@pytest.mark.parametrize("row", [["O", None, "I"], ["O", {"B", "I"}, "I"], Annotations([Y[0]])])
def test_batches_need_known_labels(row):
    with pytest.raises(DataError, match="partial_fit needs one known label"):
        ChainCRF(solver="sgd").partial_fit(X[:1], [row])
