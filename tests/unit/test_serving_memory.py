"""A model that answers for days keeps nothing of what it was asked."""

import gc
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

from crfkit import ChainCRF

ASKED = random.Random(5)
WORDS = [f"word{i}" for i in range(500)]
ANSWERS: dict[str, Callable[[ChainCRF, Any], Any]] = {
    "predict": lambda crf, x: crf.predict([x]),
    "predict_marginals": lambda crf, x: crf.predict_marginals([x]),
    "predict_nbest": lambda crf, x: crf.predict_nbest([x], n=3),
    "predict_spans": lambda crf, x: crf.predict_spans([x]),
    "explain": lambda crf, x: crf.explain(x),
}


def sentence() -> list[dict[str, object]]:
    return [{"word": ASKED.choice(WORDS), "capital": ASKED.random() < 0.5} for _ in range(ASKED.randint(3, 25))]


@pytest.fixture(scope="module")
def crf() -> ChainCRF:
    X = [sentence() for _ in range(60)]
    return ChainCRF(max_iterations=200).fit(X, [[ASKED.choice(["O", "B-P", "I-P"]) for _ in x] for x in X])


def blocks_after(crf: ChainCRF, answer: Callable[[ChainCRF, Any], Any], calls: int) -> int:
    """Return how many blocks of memory Python holds. A full collection also empties its lists of free tuples, which
    grow for a while and are bounded."""
    for _ in range(calls):
        answer(crf, sentence())
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_leave_no_memory_behind(crf, name):
    answer = ANSWERS[name]
    blocks_after(crf, answer, 200)
    before = blocks_after(crf, answer, 50)
    grown = blocks_after(crf, answer, 600) - before
    assert grown < 150, f"{grown} blocks more after 600 calls of {name}"
