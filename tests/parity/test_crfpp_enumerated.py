"""crfkit-learn and crfkit-test against a slow twin of CRF++ that enumerates all labellings of short sentences.

tests/parity/test_crfpp_printed.py and test_crfpp_reference.py say the same of what CRF++ itself printed on CoNLL-2000.
"""

import re
import sys
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from crfpp_cases import binary_model
from crfpp_twin import Twin, lbfgs_trace, mira_trace, short_sentences
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from crfkit import L1, L2, ChainCRF, Template, read_columns
from crfkit.chain.encoding.sequences import learn_file
from crfkit.chain.fields.field import ChainField
from crfkit.compat.crfpp import learn, tag
from crfkit.convert import crfpp
from crfkit.losses import ChainLikelihood
from crfkit.result import Status
from crfkit.solvers import GradientNorm, make_solver
from crfkit.synthetic import write_columns

TRAIN, UNSEEN = short_sentences(12, seed=12), short_sentences(12, seed=4)
UNIGRAMS = "# words and shapes\nU00:%x[-2,0]\nU01:%x[0,0]\nU02:%x[-1,1]/%x[0,1]/%x[2,1]\n\nU03:%x[1,0]\nB\n"
TEMPLATES = {"plain": UNIGRAMS, "cond": UNIGRAMS + "B01:%x[0,1]\n"}
FREQ, C = 2, 1.25  # a C that CRF++, which reads single floats, has exactly
every_template = pytest.mark.parametrize("name", TEMPLATES)


@cache
def twin_of(name):
    return Twin(TRAIN, TEMPLATES[name], FREQ)


def weights(name, seed=0):
    return np.random.default_rng(seed).normal(size=twin_of(name).size).astype(np.float32).astype(np.float64)


@cache
def lowest(name):
    """The optimum with L2, by SciPy."""
    twin = twin_of(name)

    def at(w):
        value, gradient = twin.likelihood(w)
        return value + w @ w / (2 * C), gradient + w / C

    return minimize(at, np.zeros(twin.size), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})


@cache
def sparsest(name):
    """The optimum with L1, by SciPy, on w = a − b with a, b ≥ 0."""
    twin = twin_of(name)

    def at(ab):
        a, b = np.split(ab, 2)
        value, gradient = twin.likelihood(a - b)
        return value + ab.sum() / C, np.concatenate([gradient, -gradient]) + 1 / C

    options = {"ftol": 1e-15, "gtol": 1e-8, "maxiter": 5000, "maxfun": 10_000}
    return minimize(
        at, np.zeros(2 * twin.size), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * twin.size), options=options
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_columns("train.txt", TRAIN)
    write_columns("test.txt", UNSEEN)
    for name, text in TEMPLATES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def problem(name):
    """(our loss, the places of our weights among theirs)"""
    template, twin = Template.read(name), twin_of(name)
    corpus = learn_file("train.txt", template, FREQ)
    v, L = corpus.vocabulary, len(corpus.classes)
    attributes, pairs = v.attributes.to_list(), v.pair_attributes.to_list()
    field = ChainField.from_data(
        corpus.data, L, len(attributes), len(pairs), all_states=True, all_transitions=True, transitions=True
    )
    assert {"B", *attributes, *pairs} == set(twin.starts)
    assert corpus.classes.tolist() == twin.labels
    starts = [(twin.starts[a], L) for a in attributes] + [(twin.starts[a], L * L) for a in ["B", *pairs]]
    places = np.concatenate([np.arange(start, start + size) for start, size in starts])
    assert sorted(places.tolist()) == list(range(twin.size))
    return ChainLikelihood(corpus.data, field, 1), places


def learned(capsys, *arguments):
    assert learn.learn([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def tagged(capfdbinary, *arguments):
    assert tag.tag([str(argument) for argument in arguments]) == 0
    sys.stdout.flush()
    return capfdbinary.readouterr().out.decode()


def numbers(log, name):
    return np.array([float(x) for x in re.findall(rf" {name}=(\S+)", log)])


# --- the objective and the model


@every_template
@pytest.mark.parametrize("seed", range(3))
def test_weights_have_the_objective_and_the_gradient_of_the_twin(files, name, seed):
    loss, places = problem(name)
    w = weights(name, seed)
    value, gradient = twin_of(name).likelihood(w)
    ours = loss.at(w[places])
    assert_allclose(ours.value, value, rtol=1e-10)
    assert_allclose(ours.grad, gradient[places], atol=1e-9)
    assert_allclose(L2.from_crfpp(C).value(w), w @ w / (2 * C), rtol=1e-14)
    assert_allclose(L1.from_crfpp(C).value(w), np.abs(w).sum() / C, rtol=1e-14)


@every_template
def test_the_text_model_is_written_as_the_twin_writes_it(files, capsys, name):
    learned(capsys, "-t", "-f", FREQ, "-c", C, name, "train.txt", "model")
    text = (files / "model.txt").read_text()
    *head, weights = text.rstrip("\n").split("\n\n")
    w = np.array(weights.split("\n"), dtype=float)  # with more than 16 decimals where a double needs them
    assert head == twin_of(name).text_model(w).split("\n\n")[:-1]
    assert_allclose(twin_of(name).likelihood(w)[0] + w @ w / (2 * C), lowest(name).fun, rtol=1e-3)


@every_template
def test_training_reaches_the_optimum(files, name):
    twin, end = twin_of(name), lowest(name)
    template, penalty = Template.read(name), L2.from_crfpp(C)
    crf = ChainCRF(
        template=template,
        penalty=penalty,
        min_frequency=FREQ,
        all_possible_states=True,
        all_possible_transitions=True,
        n_threads=1,
    ).fit_file("train.txt")
    assert len(crf.coef_) == twin.size
    assert_allclose(crf.result_.value, end.fun, rtol=1e-4)
    # J is 1/C-strongly convex: from SciPy's end no more than C‖gradient‖²/2 can be gained
    assert crf.result_.value >= end.fun - C * (end.jac @ end.jac) / 2 - 1e-9


@every_template
def test_a_written_model_is_the_model(files, name):
    """A model with weights for observed pairs only, written for CRF++, which has weights for all."""
    model = ChainCRF(template=Template.read(name), tolerance=1e-3, n_threads=1).fit_file("train.txt").model_
    crfpp.write(model, "model.txt")
    again = crfpp.read("model.txt", n_threads=1)
    assert again.field.size > 1.5 * model.field.size
    assert np.count_nonzero(again.w) == np.count_nonzero(model.w)
    assert np.array_equal(np.unique(again.w[again.w != 0]), np.unique(model.w[model.w != 0]))
    X, _ = read_columns("test.txt")
    assert again.predict(X) == model.predict(X)
    ours, theirs = again.predict_marginals(X), model.predict_marginals(X)
    assert_allclose(np.concatenate(list(ours)), np.concatenate(list(theirs)), rtol=0, atol=1e-12)


# --- what the commands print


@every_template
def test_the_training_trace_is_that_of_the_twin(files, capsys, name):
    eta, twin = 1e-4, twin_of(name)
    ours = learned(capsys, "-t", "-f", FREQ, "-c", C, "-e", eta, "-p", 2, name, "train.txt", "model")
    trace = lbfgs_trace(twin, C, eta)
    lines, exact = [line for line in ours.split("\n") if line.startswith("iter=")], 0
    assert len(lines) == len(trace) > 10
    assert_allclose(numbers(ours, "obj"), [value for _, value in trace], rtol=1e-7, atol=1e-5)
    changes = [1.0] + [abs(a - b) / a for (_, a), (_, b) in pairwise(trace)]
    assert_allclose(numbers(ours, "diff"), changes, rtol=0, atol=1.01e-5)
    for k, (line, (w, _)) in enumerate(zip(lines, trace, strict=True)):
        found = re.fullmatch(r"iter=(\d+) terr=(\S+) serr=(\S+) act=(\d+) obj=\S+ diff=\S+", line)
        errors = np.array(found.groups(), dtype=float)
        assert errors[[0, 3]].tolist() == [k, twin.size]
        least, most = (np.round(share, 5) for share in twin.errors(w))
        assert (least <= errors[1:3]).all()
        assert (errors[1:3] <= most).all()
        exact += least.tolist() == most.tolist()
    assert exact >= len(lines) - 2
    assert f"Number of sentences: {len(TRAIN)}\nNumber of features:  {twin.size}\n" in ours
    model = crfpp.read("model.txt")
    assert model.class_list == twin.labels
    assert_allclose(np.sort(model.w), np.sort(trace[-1][0]), atol=1e-6)


@every_template
def test_crf_l1_is_the_objective_of_the_twin(files, capsys, name):
    """The first step is along the pseudo-gradient; the end is near the optimum, and about as sparse."""
    twin, end = twin_of(name), sparsest(name)
    ours = learned(capsys, "-t", "-a", "CRF-L1", "-f", FREQ, "-c", C, name, "train.txt", "model")
    start, gradient = twin.likelihood(np.zeros(twin.size))
    steepest = -np.sign(gradient) * np.maximum(np.abs(gradient) - 1 / C, 0.0)
    first = steepest / np.linalg.norm(steepest)
    expected = [start, twin.likelihood(first)[0] + np.abs(first).sum() / C]
    assert_allclose(numbers(ours, "obj")[:2], expected, atol=1e-5)
    assert numbers(ours, "act")[:2].tolist() == [0, np.count_nonzero(first)]
    assert end.fun * (1 - 1e-7) - 1e-5 <= numbers(ours, "obj")[-1] <= 1.005 * end.fun
    w = np.subtract(*np.split(end.x, 2))
    assert abs(numbers(ours, "act")[-1] / np.count_nonzero(np.abs(w) > 1e-6) - 1) < 0.25
    model = crfpp.read("model.txt")
    assert np.count_nonzero(model.w) == numbers(ours, "act")[-1]


@every_template
def test_owlqn_ends_where_the_conditions_of_the_optimum_hold(files, name):
    """Conditions of the twin's gradient g: g = −sign(w)/C where w ≠ 0, and |g| ≤ 1/C elsewhere."""
    loss, places = problem(name)
    solver = make_solver("owlqn", stopping=GradientNorm(1e-6), max_iterations=5000)
    result = solver.minimize(loss, L1.from_crfpp(C), np.zeros(loss.size))
    assert result.status in (Status.CONVERGED, Status.ROUNDING)
    w = np.zeros(loss.size)
    w[places] = result.w
    _, gradient = twin_of(name).likelihood(w)
    assert_allclose(gradient[w != 0], -np.sign(w[w != 0]) / C, atol=1e-4)
    assert (np.abs(gradient[w == 0]) <= 1 / C + 1e-4).all()
    assert_allclose(result.value, sparsest(name).fun, rtol=1e-6)
    assert 0 < result.trace[-1].nonzeros == np.count_nonzero(w) < 0.5 * loss.size


@every_template
def test_mira_is_that_of_the_twin(files, capsys, name):
    ours = learned(capsys, "-t", "-a", "MIRA", "-c", C, "-f", FREQ, name, "train.txt", "model")
    lines, w = mira_trace(twin_of(name), C)
    assert [line for line in ours.split("\n") if line.startswith("iter=")] == lines
    assert_allclose(np.sort(crfpp.read("model.txt").w), np.sort(w), atol=1e-9)


@pytest.mark.parametrize("flag", ["-v0", "-v1", "-v2", "-n5"])
@pytest.mark.parametrize("kind", ["binary", "text"])
@every_template
def test_the_output_is_that_of_the_twin(files, capfdbinary, name, kind, flag):
    twin, w = twin_of(name), weights(name)
    if kind == "text":
        (files / "model").write_text(twin.text_model(w))
    else:
        (files / "model").write_bytes(binary_model(twin.labels, twin.lines, list(twin.starts), w))
    ours = tagged(capfdbinary, "-m", "model", flag, "test.txt")
    theirs = twin.printed(UNSEEN, w, **{{"v": "verbose", "n": "nbest"}[flag[1]]: int(flag[2])})
    number = re.compile(r"\d\.\d{6}")
    assert number.sub("#", ours) == number.sub("#", theirs)
    pairs = zip(number.findall(ours), number.findall(theirs), strict=True)
    assert all(abs(float(a) - float(b)) <= 1.01e-6 for a, b in pairs)
