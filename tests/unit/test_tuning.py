"""Choosing the options of a tagger on held-out sentences."""

from dataclasses import replace

import numpy as np
import pytest

from crfkit import L2, evaluate, read_columns
from crfkit.chain.training.train import ChainTraining
from crfkit.chain.training.tuning import Candidate, Space, Tuner, _planned, _rungs
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import column_files
from crfkit.result import Status
from crfkit.solvers import LBFGS

TEMPLATE = "U00:%x[0,0]\nB"


def write(path, n, seed):
    """Words say most of their label; some are noise."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        for _ in range(rng.integers(2, 7)):
            k = rng.integers(6)
            lines.append(f"w{k if rng.random() < 0.9 else rng.integers(500)} {'B-X' if k < 2 else 'O'}")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning")
    return write(folder / "train.txt", 90, 0), write(folder / "dev.txt", 40, 1)


@pytest.fixture
def tuner(files):
    train, dev = (column_files(path) for path in files)
    space = Space({"words": {"template": TEMPLATE}}, strengths={"l2": (0.01, 100.0), "l1": (0.01, 10.0)})
    return Tuner(ChainTraining(tolerance=1e-4), space, train, dev[0], trials=12)


def test_candidates_are_different_and_spread(tuner):
    drawn = tuner.space.draw(30, 0)
    assert len(set(drawn)) == 30
    assert {c.group for c in drawn} == {("words", cut, 1, kind) for cut in (1, 2, 3) for kind in ("l1", "l2")}
    own = sorted(c.strength for c in drawn if c.group == ("words", 1, 1, "l2"))
    assert len(own) == 5
    assert all(0.01 * 1e4 ** (k / 5) <= x <= 0.01 * 1e4 ** ((k + 1) / 5) for k, x in enumerate(own))
    assert tuner.space.draw(30, 0) == drawn


def test_the_best_model_is_the_one_that_training_gives(tuner, files):
    found = tuner.run()
    best = found.best
    assert best.share == 1.0
    assert best.score == max(trial.score for trial in found.trials if trial.share == 1.0)
    assert found.measure == "F1"
    assert best.candidate.strength < 50
    again = tuner._training(best.candidate).fit_file(column_files(files[0]))[0]
    X = [[["w0"], ["w3"]], [["w1"], ["w1"], ["w5"]]]
    assert found.model.predict(X) == again.predict(X)
    assert found.model.training["tuned"]["trials"] == len(found.trials)


def test_halving_takes_the_best_third_on(tuner):
    seen = []
    found = tuner.run(lambda trial, done, total: seen.append((trial.share, done, total)))
    shares = [share for share, _, _ in seen]
    assert sorted(set(shares)) == pytest.approx([1 / 9, 1 / 3, 1])
    assert [shares.count(share) for share in sorted(set(shares))] == [12, 4, 1]
    assert [done for _, done, _ in seen] == list(range(1, 18))
    assert seen[-1][2] == _planned(12, _rungs(12)) == 17
    first = [trial for trial in found.trials if trial.share < 0.2]
    onward = {trial.candidate for trial in found.trials if 0.2 < trial.share < 0.5}
    least = min(trial.score for trial in first if trial.candidate in onward)
    assert all(trial.score <= least for trial in first if trial.candidate not in onward)


def test_the_search_continues_beyond_the_end_of_a_range(tuner):
    """A best value at the end of its range was returned without a word."""
    strong = replace(tuner.space, strengths={"l2": (30.0, 300.0)}, cuts=[1])
    found = replace(tuner, space=strong, method="random", trials=8).run()
    inside = max(t.score for t in found.trials if t.candidate.strength >= 30)
    assert found.best.candidate.strength < 30
    assert found.best.score > inside
    assert "is beyond its range, 30 to 300" in found.remarks[0]
    fixed = replace(tuner.space, strengths={"l2": (30.0, 30.0)}, cuts=[1])
    assert replace(tuner, space=fixed, method="random", trials=1).run().remarks == []


def test_folds_and_random_search(tuner, files):
    found = replace(tuner, dev=None, folds=3, method="random", trials=4).run()
    assert len(found.trials) == 4
    assert all(trial.share == 1.0 for trial in found.trials)
    assert found.model.predict([[["w0"], ["w3"]]]) == [["B-X", "O"]]


def test_a_path_ends_where_a_start_at_zero_does(tuner):
    group = [Candidate("words", 1, 1, "l2", strength) for strength in (0.1, 1.0, 10.0)]
    from crfkit.chain.training.tuning import _Search

    path = _Search(replace(tuner, training=ChainTraining(tolerance=1e-9)), None).rung(group, 1.0)
    assert [trial.candidate.strength for trial in path] == [10.0, 1.0, 0.1]
    X, y = read_columns(tuner.dev)
    for trial in path:
        crf = ChainTraining(template=TEMPLATE, penalty=L2(trial.candidate.strength), tolerance=1e-9)
        model, _ = crf.fit_file(tuner.files)
        assert np.count_nonzero(model.w) == trial.weights
        assert evaluate(y, model.predict(X)).overall.f1 == pytest.approx(trial.score, abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": 0}, "trials must be at least 1"),
        ({"dev": None, "folds": 1}, "folds must be at least 2"),
        ({"dev": None, "folds": 500}, "cannot be split"),
        ({"method": "grid"}, "halving or random"),
        ({"space": Space({})}, "no inputs"),
        ({"space": Space({"words": {"template": TEMPLATE}}, strengths={"l2": (0.0, 1.0)})}, "0 < low"),
        ({"space": Space({"words": {"template": TEMPLATE}}, strengths={"l3": (0.1, 1.0)})}, "cannot be tuned"),
        ({"space": Space({"words": {"template": TEMPLATE}}, orders=[3])}, "order must be 1 or 2"),
        ({"training": ChainTraining(solver="grafting-light"),
          "space": Space({"words": {"template": TEMPLATE}}, strengths={"l1": (0.1, 1.0)})}, "use auto"),
    ],
)  # fmt: skip
def test_searches_that_cannot_be(tuner, changes, message):
    with pytest.raises(ParameterError, match=message):
        replace(tuner, **changes).run()


def test_an_empty_development_set(tuner, tmp_path):
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(DataError, match="no sequences"):
        replace(tuner, dev=column_files(tmp_path / "empty.txt")[0]).run()


@pytest.mark.parametrize("dev", [True, False])
@pytest.mark.parametrize("after", [0, 3, 6])
def test_ctrl_c_ends_the_search(tuner, monkeypatch, dev, after):
    """Solvers turn Ctrl-C into a status. A search must not go on with the next candidate, nor keep such a model."""
    runs = []
    minimize = LBFGS.minimize

    def interrupted(self, *args, **options):
        result = minimize(self, *args, **options)
        runs.append(result)
        return replace(result, status=Status.INTERRUPTED) if len(runs) > after else result

    monkeypatch.setattr(LBFGS, "minimize", interrupted)
    some = replace(
        tuner, training=ChainTraining(solver="lbfgs"), space=Space({"words": {"template": TEMPLATE}}), trials=2
    )
    # the best of these two lies within its range, so that no others follow
    some = replace(some, space=replace(some.space, strengths={"l2": (1e-3, 1e3)}))
    some = replace(some, method="random") if dev else replace(some, method="random", dev=None, folds=3)
    if dev and after:
        assert some.run().best.score > 0  # two trials, and no more training
        return
    with pytest.raises(KeyboardInterrupt):
        some.run()
    assert len(runs) == after + 1  # six of the folds, the seventh on all
