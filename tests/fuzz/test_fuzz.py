"""A few cases of every target of the fuzzer, always the same ones; `make fuzz` runs more."""

import random
import sys

import pytest

from fuzz.campaign import Campaign, Options
from fuzz.imported import change_wapiti
from fuzz.target import Target
from fuzz.targets import find_targets
from fuzz.values import change_json, copied
from fuzz.watched import Worker

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are watched in /proc")


def test_a_few_cases_of_every_target(tmp_path):
    campaign = Campaign(Options(seconds=120, cases=8, seed=3, jobs=1, folder=tmp_path))
    campaign.run(find_targets())
    assert not campaign.findings, campaign.summary()
    assert all(count.total() == 8 for count in campaign.counts.values())
    assert all(count["fine"] for count in campaign.counts.values())


def test_cases_depend_on_their_number_alone():
    target, *_ = find_targets("chain-items")
    valid = target.seed()
    assert target.case(valid, 7, 0) == valid
    cases = [target.case(valid, 7, n) for n in range(1, 20)]
    assert cases == [target.case(valid, 7, n) for n in range(1, 20)]
    assert len({*cases, *(target.case(valid, 8, n) for n in range(1, 20))}) > 30


def test_deep_trees_can_be_changed_again():
    tree, deep = {"a": [1, {"b": 2}]}, 0
    for _ in range(5000):
        deep = [deep]
    copy = copied({**tree, "deep": deep})
    assert copy["a"] == tree["a"]
    assert copy["a"][1] is not tree["a"][1]
    assert all(isinstance(change_json({"deep": deep}, random.Random(n)), dict) for n in range(10))


def test_lines_of_a_broken_model_can_be_changed_again():
    """A name that got a line end leaves a line such as "407:a=", which has a sign but no number in front of it."""
    broken = b"407:a=b\n5=0x1p+0\n"
    assert len({change_wapiti(broken, random.Random(n)) for n in range(40)}) > 10


def test_each_target_has_a_name_of_its_own():
    names = [target.name for target in find_targets()]
    assert len(set(names)) == len(names)
    assert all(isinstance(target, Target) for target in find_targets("chain"))


@pytest.mark.parametrize(
    ("target", "why"),
    [("bad-crash", "SIGSEGV"), ("bad-hang", "hang"), ("bad-memory", "memory"), ("bad-error", "KeyError at")],
)
def test_what_a_worker_does_wrong_is_found(tmp_path, monkeypatch, target, why):
    monkeypatch.setenv("CRFKIT_FUZZ_BAD", "1")
    (tmp_path / target).write_bytes(b"")
    worker = Worker(tmp_path, 0, 1.0, 400_000_000)
    try:
        answer = worker.run(target, 1)
    finally:
        worker.close()
    assert answer["outcome"] == "finding"
    assert why in answer["place"]
