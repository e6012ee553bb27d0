"""crfkit.compat.pycrfsuite against python-crfsuite itself: the same log line by line, the same models and tags."""

import ctypes
import os
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import optional

from crfkit import arrays
from crfkit.chain.training.problem import FEW_POSITIONS
from crfkit.compat import pycrfsuite as ours

theirs = optional("pycrfsuite")


def corpus(seed: int = 0, n: int = 30):
    """Random items with values of both signs, whose labels depend on them and on each other."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        items, labels, label = [], [], 0
        for _ in range(rng.integers(1, 8)):
            word = int(rng.integers(12))
            label = (word + label) % 4 if rng.random() < 0.8 else int(rng.integers(4))
            items.append({"w": str(word), "odd": bool(word % 2), "x": float(rng.normal()), "list": ["a", f"b{word}"]})
            labels.append("BACD"[label])
        X.append(items)
        y.append(labels)
    return X, y


def train(module, path, algorithm: str, params: dict, holdout: int):
    """(log without times, model) of a training in which every seventh sequence is of group 1."""
    trainer = module.Trainer(algorithm, params=params, verbose=False)
    for n, (items, labels) in enumerate(zip(*corpus(), strict=True)):
        trainer.append(items, labels, n % 7 == 3)
    trainer.train(str(path), holdout)
    text = "".join(trainer.logparser.log)
    return re.sub(r"([Ss]econds.*): \d+\.\d+", r"\1", text).splitlines(), trainer.logparser.iterations


def train_theirs(tmp_path, *arguments):
    """CRFsuite shuffles by the C library's random numbers: they begin here as in a new process, which is srand(1)."""
    ctypes.CDLL(None if os.name == "posix" else "ucrtbase").srand(1)
    model = str(tmp_path / "theirs")
    return train(theirs, model, *arguments)[0], model


CASES = [
    ("lbfgs", {}, -1),
    ("lbfgs", {"c1": 0.3, "c2": 0.05}, 1),
    ("lbfgs", {"feature.minfreq": 2, "linesearch": "Backtracking", "max_iterations": 8}, 1),
    (
        "lbfgs",
        {"feature.possible_states": True, "feature.possible_transitions": 1, "linesearch": "StrongBacktracking"},
        -1,
    ),
    ("lbfgs", {"num_memories": 3, "period": 3, "delta": 1e-3, "c2": 0.1}, -1),
    ("l2sgd", {"max_iterations": 40}, 1),
    ("l2sgd", {"c2": 0.1, "calibration.eta": 0.5, "calibration.rate": 1.5, "calibration.samples": 9, "period": 5}, -1),
    ("l2sgd", {"calibration.candidates": 3, "calibration.max_trials": 6, "delta": 1e-2}, -1),
    ("ap", {"max_iterations": 15}, 1),
    ("ap", {"epsilon": 0.6}, -1),
    ("pa", {"max_iterations": 15}, 1),
    ("pa", {"type": 2, "c": 0.5, "error_sensitive": False, "averaging": False, "max_iterations": 15}, -1),
    ("pa", {"type": 0, "max_iterations": 5}, -1),
    ("arow", {"max_iterations": 20}, 1),
    ("arow", {"variance": 0.3, "gamma": 5.0, "epsilon": 3.0}, -1),
]


@pytest.mark.parametrize(("algorithm", "params", "holdout"), CASES)
def test_training_logs_the_same_lines_and_stores_the_same_model(tmp_path, algorithm, params, holdout):
    expected, their_model = train_theirs(tmp_path, algorithm, params, holdout)
    found, iterations = train(ours, tmp_path / "ours", algorithm, params, holdout)
    assert iterations
    _assert_alike(found, expected)
    models = []
    for module, path in ((theirs, their_model), (ours, tmp_path / "ours"), (theirs, tmp_path / "ours")):
        tagger = module.Tagger()
        tagger.open(str(path))
        models.append(tagger.info())
    for name in ("labels", "attributes", "header"):
        assert getattr(models[1], name) == getattr(models[2], name)
    for name in ("labels", "attributes"):
        assert getattr(models[1], name) == getattr(models[0], name)
    for name in ("state_features", "transitions"):
        assert list(getattr(models[1], name)) == list(getattr(models[0], name))
        values = [list(getattr(model, name).values()) for model in models]
        assert_allclose(values[1], values[0], atol=2e-6)  # CRFsuite's dump has six decimals
        assert_allclose(values[1], values[2], atol=5.1e-7)


def _assert_alike(found: list[str], expected: list[str]) -> None:
    """Compare lines; numbers may differ in the last of their six decimals."""
    number = re.compile(r"\d+\.\d{4,}")
    for mine, their in zip(found, expected, strict=True):
        assert number.sub("#", mine) == number.sub("#", their)
        pair = [[float(x) for x in number.findall(line)] for line in (mine, their)]
        assert_allclose(*pair, atol=3e-6, rtol=1e-6, err_msg=their)


def test_large_data_are_trained_in_double_precision_as_well(tmp_path):
    """From 32,768 positions on, ChainCRF begins in single floats: its first log lines would differ here."""
    X, y = corpus(seed=2, n=9000)
    assert sum(map(len, X)) > FEW_POSITIONS
    logs = []
    for module in (theirs, ours):
        trainer = module.Trainer("lbfgs", params={"c2": 0.1, "max_iterations": 6}, verbose=False)
        for items, labels in zip(X, y, strict=True):
            trainer.append(items, labels)
        trainer.train(str(tmp_path / module.__name__))
        logs.append(re.sub(r"([Ss]econds.*): \d+\.\d+", r"\1", "".join(trainer.logparser.log)).splitlines())
    expected, found = logs
    assert sum(line.startswith("Loss: ") for line in expected) == 6
    _assert_alike(found, expected)


def test_many_weights_keep_their_curvature_in_double_precision(tmp_path, monkeypatch):
    expected, _ = train_theirs(tmp_path, "lbfgs", {"c2": 0.1}, -1)
    monkeypatch.setattr(arrays, "MANY", 1)  # from as many weights on, curvature pairs are single floats by default
    found, _ = train(ours, tmp_path / "ours", "lbfgs", {"c2": 0.1}, -1)
    _assert_alike(found, expected)


@pytest.fixture(scope="module")
def taggers(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("model") / "model.crfsuite")
    train(theirs, path, "lbfgs", {"c2": 0.2}, -1)
    pair = []
    for module in (ours, theirs):
        tagger = module.Tagger()
        tagger.open(path)
        pair.append(tagger)
    return pair


def test_tags_probabilities_and_marginals_are_the_same(taggers):
    mine, their = taggers
    assert mine.labels() == their.labels()
    for items in corpus(seed=5, n=60)[0]:
        labels = their.tag(items)
        assert mine.tag(items) == mine.tag(ours.ItemSequence(items)) == labels
        other = [their.labels()[0]] * len(items)
        for path in (labels, other):
            assert_allclose(mine.probability(path), their.probability(path), rtol=1e-9)
        for t in range(len(items)):
            for label in their.labels():
                assert_allclose(mine.marginal(label, t), their.marginal(label, t), atol=1e-12)
        assert mine.tag() == their.tag()


def test_prepared_items_are_the_same():
    sequences = [
        [["a", "b", "a"], {"a": 1, "b": "c", "d": True, "e": {"f": ["g", b"h"], "i": -0.5}}],
        [{}, [], {"x"}, {"k": b"v", b"bytes": 2}],
        [{"a": {"b": 1}, "a:b": 2}, ("t", "u")],
        [],
    ]
    for sequence in sequences:
        mine, their = ours.ItemSequence(sequence), theirs.ItemSequence(sequence)
        assert mine.items() == their.items()
        assert (len(mine), repr(mine)) == (len(their), repr(their))


def test_dumps_are_the_same(taggers, tmp_path):
    texts = []
    for k, tagger in enumerate(taggers):
        tagger.dump(str(tmp_path / str(k)))
        texts.append((tmp_path / str(k)).read_text())
    assert texts[0] == texts[1]


def test_parameters_are_the_same():
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        mine, their = (module.Trainer(algorithm) for module in (ours, theirs))
        assert mine.params() == their.params()
        found, expected = mine.get_params(), their.get_params()
        assert found == expected
        for name in mine.params():
            assert mine.help(name)


def test_models_without_data_are_the_same(tmp_path):
    for module, name in ((ours, "ours"), (theirs, "theirs")):
        module.Trainer(verbose=False).train(str(tmp_path / name))
    headers = []
    for module in (ours, theirs):
        for name in ("ours", "theirs"):
            tagger = module.Tagger()
            tagger.open(str(tmp_path / name))
            assert tagger.labels() == tagger.tag([]) == []
            headers.append(tagger.info().header)
    assert all(header == headers[0] for header in headers)


def test_the_parser_reads_their_log_alike(tmp_path):
    from pycrfsuite._logparser import TrainLogParser as TheirParser

    from crfkit.compat.pycrfsuite._logparser import TrainLogParser

    for algorithm in ("lbfgs", "l2sgd", "ap"):
        trainer = theirs.Trainer(algorithm, params={"max_iterations": 3}, verbose=False)
        for n, (items, labels) in enumerate(zip(*corpus(), strict=True)):
            trainer.append(items, labels, n % 3)
        trainer.train(str(tmp_path / "model"), 2)
        mine, their = TrainLogParser(), TheirParser()
        for line in trainer.logparser.log:
            assert mine.feed(line) == their.feed(line)
            assert mine.last_log == their.last_log
        assert mine.iterations == their.iterations
        for name in ("featgen_percent", "featgen_num_features", "training_seconds", "events"):
            assert getattr(mine, name) == getattr(their, name)
