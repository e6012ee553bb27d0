"""Temperature, thresholds, reliability and conformal sets of chains."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import optional
from scipy.optimize import approx_fprime

from crfkit import ChainCRF, ChainModel
from crfkit.chain.model.calibration import Calibration, _threshold
from crfkit.chain.model.reliability import log_loss, measure, predicted_spans
from crfkit.errors import DataError, DataWarning, ModelFileError, ParameterError
from crfkit.schemes import phrases


def corpus(n: int, seed: int, noise: float = 0.15):
    """Sentences whose words nearly say their labels."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        row, labels, before = [], [], "O"
        for _ in range(random.integers(2, 8)):
            label = random.choice(["O", "B-X", "B-Y", "I-X"] if before in ("B-X", "I-X") else ["O", "B-X", "B-Y"])
            word = random.choice(["o", "x", "y", "i"]) if random.random() < noise else label[-1] + label[0]
            row.append([f"w={word}", f"z={random.integers(30)}"])
            labels.append(str(label))
            before = label
        X.append(row)
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def trained():
    from crfkit import L2

    return ChainCRF(penalty=L2(0.01)).fit(*corpus(150, 0)), corpus(400, 1), corpus(400, 2)


@pytest.mark.parametrize("objective", ["sequences", "spans", "tokens"])
def test_the_temperature_minimises_its_loss(trained, objective):
    crf, (X, y), _ = trained
    model = crf.model_
    found = model.calibrate(X, y, objective=objective)
    assert found.predict(X) == model.predict(X)  # the best labels stay
    assert_allclose(found.w * found.calibration.temperature, model.w, rtol=1e-12)

    def loss(log_t):
        at = ChainModel(model.vocabulary, model.classes, model.field, model.w / np.exp(log_t[0]))
        if objective == "sequences":
            return -at.sequence_probability(X, y, log=True).mean()
        if objective == "tokens":
            best = at.decode(X)
            p = np.concatenate([d.confidences for d in best])
            return log_loss(
                p,
                np.array([a == b for d, row in zip(best, y, strict=True) for a, b in zip(d.labels, row, strict=True)]),
            )
        spans = [(s, set(phrases(row))) for found, row in zip(at.predict_spans(X), y, strict=True) for s in found]
        return log_loss(
            np.array([s.probability for s, _ in spans]),
            np.array([(s.type, s.start, s.end) in gold for s, gold in spans]),
        )

    at = np.array([np.log(found.calibration.temperature)])
    assert abs(approx_fprime(at, loss, 1e-4)[0]) < 2e-3
    assert loss(at) < loss(np.zeros(1))
    again = found.calibrate(X, y, objective=objective)  # it is at its optimum, and temperatures multiply
    assert_allclose(again.calibration.temperature, found.calibration.temperature, rtol=2e-3)


def test_calibration_helps_on_other_data(trained):
    crf, dev, test = trained
    before, after = crf.model_, crf.model_.calibrate(*dev)
    assert before.reliability(*test).ece > after.reliability(*test).ece
    assert before.reliability(*test).log_loss > after.reliability(*test).log_loss
    tokens = after.reliability(*test, kind="tokens")
    assert tokens.total == sum(map(len, test[1]))


def test_reliability_by_hand():
    p = np.array([0.05, 0.15, 0.15, 0.95, 1.0, 1.0])
    right = np.array([False, True, False, True, True, False])
    found = measure("spans", p, right)
    assert found.counts.tolist() == [1, 2, 0, 0, 0, 0, 0, 0, 0, 3]
    assert_allclose(found.accuracy[[0, 1, 9]], [0, 1 / 2, 2 / 3])
    gaps = [0.05, 0.35, abs(2.95 / 3 - 2 / 3)]
    assert_allclose(found.ece, (gaps[0] + 2 * gaps[1] + 3 * gaps[2]) / 6)
    assert "expected calibration error" in str(found)
    assert_allclose(log_loss(np.array([0.5, 0.25]), np.array([True, False])), -np.log([0.5, 0.75]).mean())


def test_thresholds_are_the_least_that_do(trained):
    crf, (X, y), _ = trained
    model = crf.model_.calibrate(X, y, precision=0.9)
    kinds, p, right = predicted_spans(model, [(model.encode(X), y)])
    for kind, least in model.calibration.thresholds.items():
        of = np.array(kinds) == kind
        assert right[of & (p >= least)].mean() >= 0.9
        lower = [x for x in np.unique(p[of]) if x < least]
        assert all(right[of & (p >= x)].mean() < 0.9 for x in lower)
    kept = model.predict_spans(X, min_probability="calibrated")
    expected = [
        [s for s in row if s.probability >= model.calibration.thresholds[s.type]] for row in model.predict_spans(X)
    ]
    assert kept == expected
    by_type = model.predict_spans(X, min_probability={"X": 1.0})
    assert {s.type for row in by_type for s in row} == {"Y"}


def test_a_threshold_by_hand():
    p, right = np.array([0.9, 0.8, 0.8, 0.7, 0.6]), np.array([True, True, False, True, False])
    assert _threshold(p, right, 0.75, 1).threshold == 0.7
    assert _threshold(p, right, 0.9, 1).threshold == 0.9
    missed = _threshold(p, right, 0.9, 3)
    assert (missed.threshold, missed.precision) == (None, 0.75)


def test_conformal_sets(trained):
    crf, (X, y), (X_test, y_test) = trained
    model = crf.model_.calibrate(X, y, coverage=(0.8, 0.95))
    for coverage in (0.8, 0.95):
        found = model.predict_sets(X_test, coverage)
        held = np.mean([any(x.labels == gold for x in row.labellings) for row, gold in zip(found, y_test, strict=True)])
        assert abs(held - coverage) < 0.06  # three standard errors of two samples of 400
        least = np.exp(model.calibration.conformal[coverage])
        assert all(x.probability >= least * (1 - 1e-9) for row in found for x in row.labellings)
        for x, row in list(zip(X_test, found, strict=True))[:20]:  # nothing that belongs there is missing
            assert row.complete
            every = model.predict_nbest([x], 20_000)[0]
            assert len(row.labellings) == sum(each.probability >= least for each in every)
    few = model.predict_sets(X_test, 0.95, n=1)
    assert any(not row.complete for row in few)
    assert all(len(row.labellings) <= 1 for row in few)


def test_the_least_number_of_sequences(trained):
    crf, (X, y), _ = trained
    assert crf.model_.calibrate(X[:9], y[:9], coverage=0.9, objective="none").calibration.conformal  # 10 · 0.9 = 9
    with pytest.raises(DataError, match=r"a coverage of 0\.9 needs at least 9 sequences, but there are 8"):
        crf.model_.calibrate(X[:8], y[:8], coverage=0.9, objective="none")


def test_the_file_keeps_it(trained, tmp_path):
    crf, (X, y), _ = trained
    model = crf.model_.calibrate(X, y, precision=0.9, coverage=0.9)
    model.save(tmp_path / "m.crf")
    again = ChainModel.load(tmp_path / "m.crf")
    assert again.calibration == model.calibration
    assert again.predict_spans(X, "calibrated") == model.predict_spans(X, "calibrated")
    text = str(model.calibration)
    assert "thresholds for a precision of 0.900" in text
    assert "coverage 0.900" in text
    assert Calibration.from_dict(json.loads(json.dumps(model.calibration.as_dict()))) == model.calibration
    kept = model.calibration.as_dict()
    changes = [
        {"temperature": "warm"}, {"temperature": "1"}, {"temperature": -1.0}, {"precision": None}, {"precision": "0.9"},
        {"sequences": -1}, {"objective": 3}, {"conformal": {"0.9": 1e308}}, {"conformal": {"9": -1.0}},
        {"types": {"X": {**kept["types"]["X"], "threshold": 2.0}}},
        {"types": {"X": {**kept["types"]["X"], "kept": "1"}}},
    ]  # fmt: skip
    for broken in ({}, [], {"temperature": 1}, *({**kept, **change} for change in changes)):
        with pytest.raises(ModelFileError, match="calibration"):
            Calibration.from_dict(broken)


def test_the_estimator_calibrates_itself(trained):
    (X, y), dev = corpus(60, 3), corpus(50, 4, noise=0.5)
    crf = ChainCRF().fit(X, y)
    assert crf.calibration_ is None
    assert crf.calibrate(*dev, coverage=0.8) is crf
    assert crf.calibration_.sequences == 50
    assert crf.fit(X, y).calibration_ is None
    with pytest.warns(DataWarning, match="they are too few, or were used in training"):
        crf.calibrate(X[:1], crf.predict(X[:1]))


def test_bad_input(trained):
    crf, (X, y), _ = trained
    model = crf.model_
    with pytest.raises(DataError, match="no threshold gives any type a precision of 1 on at least 10000 phrases"):
        model.calibrate(X, y, precision=1.0, min_spans=10_000)
    rare = [row if "B-Y" not in row else [label if label != "B-Y" else "O" for label in row] for row in y]
    with pytest.warns(DataWarning, match="no threshold gives these types a precision of 0.99"):
        found = model.calibrate(X, rare, precision=0.99, objective="none")
    assert found.calibration.thresholds["Y"] is None
    assert not any(s.type == "Y" for row in found.predict_spans(X, "calibrated") for s in row)
    with pytest.raises(DataError, match=r"a coverage of 0\.999 needs at least 999 sequences, but there are 400"):
        model.calibrate(X, y, coverage=0.999)
    with pytest.raises(ParameterError, match="coverage must be between 0 and 1, not 1"):
        model.calibrate(X, y, coverage=1)
    with pytest.raises(ParameterError, match="precision must be a probability"):
        model.calibrate(X, y, precision=95)
    with pytest.raises(ParameterError, match="objective must be one of"):
        model.calibrate(X, y, objective="ece")
    with pytest.raises(DataError, match="there are no labelled sequences"):
        model.calibrate([], [])
    with pytest.raises(ParameterError, match=r"not calibrated for a coverage of 0.5 \(it has none\)"):
        model.predict_sets(X, 0.5)
    with pytest.raises(ParameterError, match="no calibrated thresholds"):
        model.predict_spans(X, "calibrated")
    with pytest.raises(ParameterError, match="the type 'Z'; the types of the model are 'X', 'Y'"):
        model.predict_spans(X, {"Z": 0.5})
    with pytest.raises(ParameterError, match="kind must be"):
        model.reliability(X, y, kind="words")
    with pytest.raises(ParameterError, match="bins"):
        model.reliability(X, y, bins=0)
    unknown = [["B-Q", *row[1:]] for row in y]
    with pytest.raises(DataError, match="too many sequences have labels that the model does not have"):
        model.calibrate(X, unknown, coverage=0.5)
    some = [*unknown[:20], *y[20:]]  # they count as not held
    assert (
        model.calibrate(X, some, coverage=0.8, objective="none").calibration.conformal[0.8]
        < (model.calibrate(X, y, coverage=0.8, objective="none").calibration.conformal[0.8])
    )
    with pytest.warns(DataWarning, match="ended at its limit, 20: the model is wrong about most"):
        model.calibrate(X, [["O"] * len(row) for row in y])
    plain = ChainCRF().fit([[["a"], ["b"]]], [["DET", "NOUN"]])
    with pytest.raises(ParameterError, match="precision needs labels that mark phrases"):
        plain.calibrate([[["a"]]], [["DET"]], precision=0.9)
    assert plain.calibrate([[["a"]]] * 20, [["DET"]] * 15 + [["NOUN"]] * 5).calibration_.objective == "tokens"


def test_plot(trained):
    optional("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    from crfkit.plots import plot_reliability

    crf, dev, _ = trained
    found = crf.model_.reliability(*dev)
    top, bottom = plot_reliability({"before": found})
    there = found.counts > 0
    assert_allclose(top.lines[1].get_ydata(), found.accuracy[there])
    assert_allclose(top.lines[1].get_xdata(), found.confidence[there])
    assert bottom.get_ylabel() == "spans"
    plt.close("all")
