"""ChainCRF and `crfkit train` with solvers that select attributes: the same models as OWL-QN, by another way."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from crfkit import L1, ByBlock, ChainCRF, ElasticNet, GroupL2, Template
from crfkit.cli.main import app
from crfkit.errors import CapabilityError, ParameterError
from crfkit.files.checkpoint import Checkpoint
from crfkit.result import Status
from crfkit.solvers import GradientNorm, Grafting, GraftingLight, make_solver
from crfkit.synthetic import entity_corpus, gaussian_chains, write_columns

TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[1,0]\nU3:%x[0,1]\nU4:%x[-1,0]/%x[0,0]\nB\nB1:%x[0,1]")
CORPUS = entity_corpus(40, 5)
X = [[token[:2] for token in row] for row in CORPUS]
Y = [[token[2] for token in row] for row in CORPUS]
FAMILY = ["grafting-light", "grafting", "gauss-seidel"]


def crf(solver="grafting-light", **options):
    made = make_solver(solver, select_unit=10) if isinstance(solver, str) and solver in FAMILY else solver
    defaults = {"template": TEMPLATE, "n_threads": 1, "penalty": L1(0.5)}
    return ChainCRF(solver=made, **{**defaults, **options})


@pytest.mark.parametrize(
    ("solver", "order"), [("grafting-light", 1), ("grafting-light", 2), ("grafting", 2), ("gauss-seidel", 1)]
)
def test_the_model_is_that_of_owlqn(solver, order, tmp_path):
    n = 15 if solver == "gauss-seidel" else len(X)  # it is slow
    full = crf("owlqn", order=order).fit(X[:n], Y[:n])
    chosen = crf(solver, order=order).fit(X[:n], Y[:n])
    assert_allclose(chosen.result_.value, full.result_.value, rtol=1e-4 if solver == "gauss-seidel" else 2e-5)
    assert chosen.score(X, Y) == pytest.approx(full.score(X, Y), abs=0.01)
    assert chosen.n_attributes_ == pytest.approx(full.n_attributes_, rel=0.1)
    chosen.save(tmp_path / "m.crf")
    assert ChainCRF.load(tmp_path / "m.crf").predict(X) == chosen.predict(X)


def test_weights_have_the_same_names():
    penalty, rule = ElasticNet(0.5, 0.1), GradientNorm(1e-4)  # under L1 attributes that go together may share anyhow
    best = crf("owlqn", penalty=penalty, tolerance=rule).fit(X, Y)
    chosen = crf(GraftingLight(select_unit=7, stopping=rule), penalty=penalty).fit(X, Y)
    mine, other = chosen.state_features_, best.state_features_
    for name in {*mine, *other}:
        assert mine.get(name, 0.0) == pytest.approx(other.get(name, 0.0), abs=1e-2)
    assert chosen.result_.loss.n_candidates > 0.5 * chosen.result_.loss.pool.n_ids


def test_matrices_and_items():
    inputs, labels, relevant = gaussian_chains(150, n_inputs=40, n_relevant=4, seed=2)
    fitted = ChainCRF(solver="grafting-light", penalty=L1(25.0), n_threads=1).fit(list(inputs), labels)
    names = {name for name, _ in fitted.state_features_}
    assert names >= {f"x{j}" for j in relevant}
    assert len(names) < 20
    items = [[[f"w={word}", f"s={shape}"] for word, shape in row] for row in X]
    assert ChainCRF(solver="grafting-light", n_threads=1).fit(items, Y).result_.objective.endswith("+ L1(1)")


def test_impossible_chains():
    for bad in ({"n_relevant": 3}, {"length": 0}, {"n": -1}):
        with pytest.raises(ParameterError, match="n_relevant <= n_inputs"):
            gaussian_chains(**{"n": 2, "n_inputs": 2, "n_relevant": 1} | bad)


def test_other_penalties():
    full = crf("owlqn", penalty=ElasticNet(0.3, 0.2)).fit(X, Y)
    assert_allclose(crf(penalty=ElasticNet(0.3, 0.2)).fit(X, Y).result_.value, full.result_.value, rtol=1e-4)
    groups = crf(penalty=ByBlock(GroupL2, 2.0, L1(0.1))).fit(X, Y)
    assert groups.result_.status is Status.CONVERGED
    assert 0 < groups.n_attributes_ < groups.result_.loss.pool.n_ids / 4
    with pytest.raises(ParameterError, match="no names for the attributes"):
        crf(GraftingLight(batches=[None])).fit(X, Y)
    with pytest.raises(CapabilityError, match="needs candidates"):
        crf(loss="hinge").fit(X, Y)


def test_the_softmax_margin_selects():
    full = crf("owlqn", loss="softmax-margin").fit(X, Y)
    for solver in FAMILY:
        found = crf(solver, loss="softmax-margin").fit(X, Y)
        assert found.result_.status is Status.CONVERGED
        assert_allclose(found.result_.value, full.result_.value, rtol=1e-4)
        assert found.predict(X) == full.predict(X)


def test_sample_weights_count():
    twice = crf().fit(X, Y, sample_weight=np.full(len(X), 2.0))
    assert_allclose(crf().fit(X + X, Y + Y).result_.value, twice.result_.value, rtol=1e-6)


@pytest.mark.parametrize("solver", [GraftingLight, Grafting])
def test_a_run_goes_on_from_a_file(solver, tmp_path):
    never = {"select_unit": 5, "stopping": GradientNorm(1e-3)}
    whole = crf(solver(**never)).fit(X, Y)
    with pytest.warns(ConvergenceWarning):
        part = crf(solver(**never, max_iterations=3)).fit(X, Y)
    part.checkpoint().save(tmp_path / "c.crf")
    rest = crf(solver(**never)).fit(X, Y, resume=Checkpoint.load(tmp_path / "c.crf"))
    assert_allclose(rest.result_.value, whole.result_.value, rtol=1e-5)
    with pytest.raises(ParameterError, match="checkpoint"):
        crf(solver(**never)).fit(X[:2], Y[:2], resume=Checkpoint.load(tmp_path / "c.crf"))


def test_a_warm_start_begins_with_what_was_selected():
    estimator = crf(warm_start=True).fit(X, Y)
    first = estimator.result_
    again = estimator.fit(X, Y).result_
    assert_allclose(again.trace[0].value, first.value, rtol=1e-9)
    assert again.trace[0].extra["selected"] > 10


def test_a_development_set_and_the_training_error():
    estimator = crf().fit(X[:25], Y[:25], X_dev=X[25:], y_dev=Y[25:], patience=3, training_error=True)
    row = estimator.result_.trace[-1]
    assert {"dev_f1", "token_error", "selected", "violators", "passes"} <= set(row.extra)
    best = max(row.extra["dev_f1"] for row in estimator.result_.trace)
    from crfkit.metrics import evaluate

    assert evaluate(Y[25:], estimator.predict(X[25:])).overall.f1 == pytest.approx(best)


@pytest.mark.parametrize("solver", FAMILY)
def test_the_command_line(solver, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_columns("train.txt", CORPUS)
    Path("t").write_text("U0:%x[0,0]\nU1:%x[0,1]\nB\n", "utf-8")
    call = ["train", "train.txt", "-t", "t", "-m", "m.crf", "--l1", "0.5", "--solver", solver, "-q", "--log", "l.jsonl"]
    outcome = CliRunner().invoke(app, [*call, "--threads", "1"])
    assert outcome.exit_code == 0, outcome.output
    assert "chain likelihood + L1(0.5)" in outcome.output
    rows = [json.loads(line) for line in Path("l.jsonl").read_text("utf-8").splitlines()]
    assert rows[-1]["selected"] > 0
    assert CliRunner().invoke(app, ["eval", "m.crf", "train.txt"]).exit_code == 0
