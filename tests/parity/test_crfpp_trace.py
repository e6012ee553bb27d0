"""CRF++'s training log against its own rule, and against crfkit's L-BFGS: iterates, objective, errors, when to stop.

`test_crfpp_printed.py` compares what `crfkit-learn` prints. Here the parts that a person would put together are used:
LBFGS with five pairs and Moré & Thuente's line search, and SuccessiveChanges or `crfkit train --eta`.
"""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need_shared
from test_crfpp_reference import first_sentences

from crfkit import L2, ChainCRF, Template
from crfkit.chain.encoding.sequences import learn_file
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.cli.main import app
from crfkit.losses import ChainLikelihood
from crfkit.solvers import LBFGS, MoreThuente, SuccessiveChanges

need_shared("test_crfpp_enumerated.py")

ETA = 1e-5
EVALUATIONS = 68


class Log:
    """The columns of a log of crf_learn."""

    def __init__(self, text):
        rows = re.findall(r"iter=(\d+) terr=(\S+) serr=(\S+) act=(\d+) obj=(\S+) diff=(\S+)", text)
        self.iteration, self.terr, self.serr, self.act, self.obj, self.diff = np.array(rows, dtype=float).T

    @property
    def small(self):
        """Whether each change is below eta, from the second line on."""
        return np.abs(np.diff(self.obj)) / self.obj[:-1] < ETA


@pytest.fixture(scope="module", params=["chunking", "cond"])
def name(request):
    return request.param


@pytest.fixture(scope="module")
def log(name, shared_reference):
    return Log((shared_reference / "crfpp" / f"{name}.log").read_text())


@pytest.fixture(scope="module")
def train(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    return first_sentences(shared_data / "conll2000" / "train.txt", 500, folder / "train.txt")


@pytest.fixture(scope="module")
def loss(name, train, shared_reference):
    template = Template.read(shared_reference / "crfpp" / f"{name}.template")
    corpus = learn_file(train, template, 3)
    n = len(corpus.classes), len(corpus.vocabulary.attributes), len(corpus.vocabulary.pair_attributes)
    field = ChainField.from_data(
        corpus.data, *n, all_states=True, all_transitions=True, transitions=template.transitions
    )
    return ChainLikelihood(corpus.data, field, 1)


@pytest.fixture(scope="module")
def run(loss):
    """(result, [(weights' errors)]) of L-BFGS with CRF++'s settings and its rule."""
    errors = []

    def watch(iteration):
        errors.append(ChainInference(loss.field, iteration.w, 1).errors(loss.data))

    solver = LBFGS(5, SuccessiveChanges(ETA, 3), 1000, MoreThuente(), double=True)
    return solver.minimize(loss, L2.from_crfpp(C=1.0), np.zeros(loss.size), [watch]), errors


def test_the_log_follows_its_rule(log):
    assert log.iteration.tolist() == list(range(EVALUATIONS))
    assert_allclose(log.diff[1:], np.abs(np.diff(log.obj)) / log.obj[:-1], atol=5.1e-6)
    assert log.small[-3:].all()
    assert not any(log.small[k : k + 3].all() for k in range(len(log.small) - 3))


def test_the_counter_starts_again_after_a_larger_change(log, name):
    """A loop that never resets its counter, as the one printed by Wang, would end at the third small change."""
    third = int(log.iteration[1:][log.small][2])
    assert third == {"chunking": EVALUATIONS - 1, "cond": 62}[name]


def test_the_objective_at_zero(log, loss):
    """Every labelling is as likely as any other: tokens · log(labels)."""
    assert_allclose(log.obj[0], loss.data.n_positions * np.log(loss.field.n_labels), rtol=0, atol=6e-6)
    assert log.act.tolist() == [loss.size] * EVALUATIONS


def test_every_iterate_is_a_line_of_the_log(log, run):
    """The other lines are trials that a line search rejected."""
    result, errors = run
    lines, k = [], 0
    for row, (tokens, sequences) in zip(result.trace, errors, strict=True):
        while k < EVALUATIONS and abs(log.obj[k] - row.value) > 2e-7 * row.value:
            k += 1
        if k == EVALUATIONS:
            break  # iterations are compared here and evaluations there: one of the two goes on a little longer
        assert abs(log.terr[k] - tokens) < 5.1e-6
        assert abs(log.serr[k] - sequences) < 5.1e-6
        assert row.evaluations == k + 1
        lines.append(k)
    assert len(lines) > 55
    assert lines[:10] == [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]  # the first step, 1/‖g‖, was too short


def test_iterates_fall_and_end_where_crfpp_does(log, run):
    result, _ = run
    values = [row.value for row in result.trace]
    assert all(new <= old for old, new in pairwise(values))
    changes = [(old - new) / old for old, new in pairwise(values)]
    assert max(changes[-3:]) < ETA
    assert not any(max(changes[k : k + 3]) < ETA for k in range(len(changes) - 3))
    assert_allclose(result.value, log.obj[-1], rtol=3 * ETA)
    assert abs(result.evaluations - EVALUATIONS) <= 10


@pytest.mark.parametrize("name", ["chunking"], indirect=True)
def test_train_eta_ends_where_crfpp_does(log, name, train, shared_reference, tmp_path):
    template, model, trace = shared_reference / "crfpp" / f"{name}.template", tmp_path / "model.crf", tmp_path / "log"
    options = ["-t", template, "-f", 3, "--C", 1, "--all-states", "--solver", "lbfgs", "--eta", ETA, "--log", trace]
    app([*map(str, ["train", train, "-m", model, "-q", *options])], standalone_mode=False)
    assert len(ChainCRF.load(model).coef_) == log.act[0]
    values = [json.loads(line)["value"] for line in trace.read_text().splitlines() if '"value"' in line]
    assert_allclose(values[-1], log.obj[-1], rtol=3 * ETA)
    assert all(abs(old - new) < ETA * old for old, new in pairwise(values[-4:]))
