"""Tagging on a cluster whose worker is killed."""

from __future__ import annotations

import os
import signal
import time

import pytest
from optional import optional

optional("distributed.client")
bags = optional("dask.bag")

from crfkit import ChainCRF  # noqa: E402
from crfkit.distributed import connect, tag_bag  # noqa: E402
from crfkit.synthetic import entity_words  # noqa: E402

pytestmark = pytest.mark.slow
X, Y = entity_words(120)


def slowly(x):
    time.sleep(0.01)
    return x


def process():
    return os.getpid()


@pytest.fixture(scope="module")
def client():
    with connect("local:2") as client:
        yield client


def test_a_worker_that_is_killed_does_not_matter(client):
    """The tasks of the lost worker, and the model that it may have held alone, go to others."""
    crf = ChainCRF(features="pos", n_threads=1).fit(X, Y)
    bag = bags.from_sequence(X * 3, npartitions=40).map(slowly)
    future = client.compute(tag_bag(crf, bag))
    victim = next(iter(client.run(process).values()))
    time.sleep(0.4)
    assert not future.done()
    os.kill(victim, signal.SIGKILL)
    assert future.result(timeout=60) == crf.predict(X * 3)
    client.wait_for_workers(2, timeout=30)
