"""CRF++'s CRF-L1 (`crf_learn -a CRF-L1 -f 3 -c 1`, first 500 sentences of CoNLL-2000): its objective, as sparse."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need_shared

from crfkit import L1, Template
from crfkit.chain.encoding.sequences import learn_file
from crfkit.chain.fields.field import ChainField
from crfkit.errors import StopTraining
from crfkit.losses import ChainLikelihood
from crfkit.result import Status
from crfkit.solvers import PeriodDecrease, make_solver

need_shared("test_crfpp_enumerated.py")


@pytest.fixture(scope="module")
def reference(shared_data, shared_reference, tmp_path_factory):
    """Their log and their training set in our encoding."""
    blocks = (shared_data / "conll2000" / "train.txt").read_text(encoding="utf-8").split("\n\n")[:500]
    train = tmp_path_factory.mktemp("l1") / "train.txt"
    train.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    folder = shared_reference / "crfpp"
    corpus = learn_file(train, Template.read(folder / "chunking.template"), 3)
    attributes = len(corpus.vocabulary.attributes)
    field = ChainField.from_data(corpus.data, len(corpus.classes), attributes, all_states=True, all_transitions=True)
    log = (folder / "l1.log").read_text()
    rows = [(int(active), float(value)) for active, value in re.findall(r"act=(\d+) obj=([\d.]+)", log)]
    return SimpleNamespace(
        loss=ChainLikelihood(corpus.data, field, 1), active=rows[-1][0], value=rows[-1][1], rows=rows
    )


def train(reference, callbacks=(), **options):
    loss = reference.loss
    return make_solver("owlqn", **options).minimize(loss, L1.from_crfpp(C=1.0), np.zeros(loss.size), callbacks)


def test_the_start_is_theirs(reference):
    """At w = 0 theirs prints the value after its first evaluation."""
    start = reference.loss.at(np.zeros(reference.loss.size)).value
    assert_allclose(start, reference.rows[0][1], rtol=1e-6)


def test_their_objective_is_reached_in_fewer_iterations_and_as_sparse(reference):
    def stop(iteration):
        if iteration.row.value <= reference.value:
            raise StopTraining

    result = train(reference, [stop])
    assert result.status is Status.STOPPED_BY_CALLBACK
    assert result.iterations < len(reference.rows)
    assert_allclose(result.trace[-1].nonzeros, reference.active, rtol=0.1)


def test_their_end_is_near_the_optimum(reference):
    """They stopped after three relative changes below 1e-4: a little above, and with more weights."""
    result = train(reference, stopping=PeriodDecrease(1e-6))
    assert result.status is Status.CONVERGED
    assert 0.99 * reference.value < result.value < reference.value
    assert 0.8 * reference.active < result.trace[-1].nonzeros <= reference.active
