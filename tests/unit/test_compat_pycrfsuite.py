"""crfkit.compat.pycrfsuite: what its classes promise, without python-crfsuite."""

import os
import threading

import numpy as np
import pytest

from crfkit import ChainCRF
from crfkit.compat.pycrfsuite import BaseTrainer, CRFSuiteError, ItemSequence, Tagger, Trainer
from crfkit.compat.pycrfsuite._dumpparser import CRFsuiteDumpParser
from crfkit.compat.pycrfsuite._epochs import Shuffle
from crfkit.errors import CrfkitError, DataError, ModelFileError, ParameterError

X = [[["a", "x"], {"b": 1.0}, ["a"]], [{"b": True}, ["a", "y"]], [["b"], ["b", "x"], ["a"]]]
Y = [["A", "B", "A"], ["B", "A"], ["B", "B", "A"]]
ALGORITHMS = ["lbfgs", "l2sgd", "ap", "pa", "arow"]


def trained(path, algorithm="lbfgs", **params):
    trainer = Trainer(algorithm, params=params, verbose=False)
    for items, labels in zip(X, Y, strict=True):
        trainer.append(items, labels)
    trainer.train(str(path))
    return trainer


@pytest.fixture
def model(tmp_path):
    trained(tmp_path / "model.crfsuite", c2=0.01)
    return str(tmp_path / "model.crfsuite")


# --- training


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_twice_gives_the_same_file(tmp_path, algorithm):
    trainer = trained(tmp_path / "one", algorithm, max_iterations=9)
    trained(tmp_path / "two", algorithm, max_iterations=9)
    trainer.train(str(tmp_path / "three"))
    blobs = [(tmp_path / name).read_bytes() for name in ("one", "two", "three")]
    assert blobs[0] == blobs[1] == blobs[2]


def test_instances_may_come_before_and_after_the_algorithm_and_after_training(tmp_path):
    early, late = Trainer(verbose=False), Trainer(verbose=False)
    for items, labels in zip(X, Y, strict=True):
        early.append(items, labels)
    early.select("arow")
    early.set_params({"max_iterations": 5})
    early.train(str(tmp_path / "early"))
    late.select("arow")
    late.append(X[0], Y[0])
    late.set("max_iterations", 5)
    late.train(str(tmp_path / "late"))
    for items, labels in zip(X[1:], Y[1:], strict=True):
        late.append(iter(items), tuple(labels))
    late.train(str(tmp_path / "late"))
    assert (tmp_path / "early").read_bytes() == (tmp_path / "late").read_bytes()


def test_messages_reach_a_subclass_that_does_not_call_init(tmp_path):
    class Listening(BaseTrainer):
        def __init__(self):
            self.said = []

        def message(self, message):
            self.said.append(message)

    trainer = Listening()
    trainer.append(X[0], Y[0])
    trainer.train("")  # no file
    assert "type: CRF1d\n" in trainer.said
    assert "Storing the model\n" not in trainer.said


def test_an_exception_in_a_message_ends_training(tmp_path):
    class Refusing(Trainer):
        def message(self, message):
            if message.startswith("*****"):
                raise KeyError("enough")

    trainer = Refusing()
    trainer.append(X[0], Y[0])
    with pytest.raises(KeyError, match="enough"):
        trainer.train(str(tmp_path / "model"))
    assert not (tmp_path / "model").exists()


def test_ctrl_c_in_a_message_is_not_swallowed(tmp_path):
    class Interrupted(Trainer):
        def message(self, message):
            if message.startswith("*****"):
                raise KeyboardInterrupt

    trainer = Interrupted()
    trainer.append(X[0], Y[0])
    with pytest.raises(KeyboardInterrupt):
        trainer.train(str(tmp_path / "model"))
    assert not (tmp_path / "model").exists()


def test_the_log_has_every_iteration_and_the_scores_of_the_holdout_group(tmp_path, capsys):
    trainer = Trainer("lbfgs", params={"max_iterations": 4})
    for n, (items, labels) in enumerate(zip(X, Y, strict=True)):
        trainer.append(items, labels, group=n % 2)
    trainer.train(str(tmp_path / "model"), holdout=1)
    log = trainer.logparser
    assert [info["num"] for info in log.iterations] == [1, 2, 3, 4]
    last = log.last_iteration
    assert {"loss", "feature_norm", "error_norm", "active_features", "linesearch_step", "time"} <= set(last)
    assert set(last["scores"]) == {"A", "B"}
    assert last["scores"]["A"].ref == 1
    assert last["item_accuracy"].denominator in (1, 2)
    printed = capsys.readouterr().out
    assert printed == "".join(log.log)
    assert "Holdout group: 2\n" in printed


def test_one_label_and_sequences_without_items(tmp_path):
    trainer = Trainer(verbose=False)
    trainer.append([["a"], ["b"]], ["only", "only"])
    trainer.append([], [])
    trainer.train(str(tmp_path / "model"))
    tagger = Tagger()
    tagger.open(tmp_path / "model")
    assert tagger.tag([["a"], ["c"]]) == ["only", "only"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_features_that_are_all_too_rare(tmp_path, algorithm):
    trained(tmp_path / "model", algorithm, **{"feature.minfreq": 100})
    tagger = Tagger()
    tagger.open(str(tmp_path / "model"))
    assert tagger.labels() == ["A", "B"]
    assert tagger.info().state_features == tagger.info().transitions == {}
    assert len(tagger.tag(X[0])) == 3


def test_labels_are_numbered_by_first_appearance(tmp_path):
    trainer = Trainer(verbose=False)
    trainer.append([["z"], ["b"], ["a"]], ["zulu", "alpha", "mike"])
    trainer.train(str(tmp_path / "model"))
    tagger = Tagger()
    tagger.open(str(tmp_path / "model"))
    assert tagger.labels() == ["zulu", "alpha", "mike"]
    assert list(tagger.info().attributes) == ["z", "b", "a"]


def test_a_refused_sequence_leaves_nothing_behind(tmp_path):
    trainer = Trainer(verbose=False)
    for bad in ([["a"], ["b", 3]], [["q"], "text"], [{"q": 1.0}, {"w": None}], ["q"], 5, "text", [{"q": float("nan")}]):
        with pytest.raises(ValueError, match=r"."):
            trainer.append(bad, ["A", "B"])
    with pytest.raises(TypeError, match="a label must be a string, not the int 3"):
        trainer.append(X[1], ["A", 3])
    with pytest.raises(ValueError, match=r"\|x\| = 2, \|y\| = 1"):
        trainer.append(X[1], ["A"])
    for items, labels in zip(X, Y, strict=True):
        trainer.append(items, labels)
    trainer.train(str(tmp_path / "model"))
    trained(tmp_path / "other")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "other").read_bytes()


def test_clear_forgets_the_instances(tmp_path):
    trainer = trained(tmp_path / "model")
    trainer.clear()
    with pytest.raises(ValueError, match="The data is empty"):
        trainer.train(str(tmp_path / "model"))
    trainer.append(X[0], Y[0])
    trainer.train(str(tmp_path / "model"))


def test_a_model_that_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="cannot write the model") as caught:
        trained(tmp_path / "no such folder" / "model")
    assert isinstance(caught.value, CrfkitError)
    with pytest.raises(OSError, match="Is a directory"):
        trained(tmp_path)


def test_a_target_that_cannot_be_written_is_found_before_training(tmp_path):
    said = []
    trainer = BaseTrainer()
    trainer.message = said.append
    trainer.append(X[0], Y[0])
    with pytest.raises(FileNotFoundError):
        trainer.train(str(tmp_path / "no such folder" / "model"))
    assert said == []


def test_a_pipe_is_written_and_not_replaced(tmp_path, model):
    """As /dev/null is, which some programs give as the model."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    try:
        trained(pipe, c2=0.01)
        with open(model, "rb") as stream:
            assert os.read(reader, 1 << 16) == stream.read()
        assert pipe.is_fifo()
        with pytest.raises(ModelFileError, match="not a regular file"):
            ChainCRF().fit(X, Y).save(pipe)
        assert pipe.is_fifo()
    finally:
        os.close(reader)


# --- parameters


def test_unknown_parameters_name_the_nearest():
    trainer = Trainer()
    with pytest.raises(ParameterError, match=r"unknown parameter of lbfgs 'max_iteration' \(did you mean 'max_iterat"):
        trainer.set("max_iteration", 5)
    with pytest.raises(ValueError, match="c1"):
        Trainer("l2sgd").help("c1")
    with pytest.raises(ValueError, match=r"unknown algorithm 'lbfsg' \(did you mean 'lbfgs'"):
        trainer.select("lbfsg")
    with pytest.raises(ValueError, match="did you mean 'Backtracking'"):
        trainer.set("linesearch", "backtracking")
    with pytest.raises(ValueError, match="crf1d"):
        trainer.select("lbfgs", "semim")


@pytest.mark.parametrize(("name", "bad"), [("c1", "much"), ("max_iterations", 1.5), ("feature.minfreq", None)])
def test_values_that_are_no_numbers(name, bad):
    with pytest.raises(ParameterError, match=rf"the parameter {name} must be"):
        Trainer(params={name: bad})


def test_values_may_be_text():
    trainer = Trainer(params={"c1": "0.5", "max_iterations": "7", "feature.possible_states": "1"})
    assert trainer.get_params()["c1"] == 0.5
    assert trainer.get("max_iterations") == 7
    assert trainer.get("feature.possible_states") is True


# --- tagging


def test_several_taggers_at_once_in_several_threads(model, tmp_path):
    trained(tmp_path / "other", "ap", max_iterations=2)
    taggers = [Tagger(), Tagger()]
    taggers[0].open(model)
    taggers[1].open(str(tmp_path / "other"))
    expected = [[tagger.tag(items) for items in X] for tagger in taggers]
    assert expected[0] == Y
    wrong = []

    def work(k):
        wrong.extend(k for _ in range(200) if [taggers[k].tag(items) for items in X] != expected[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_tagger_opens_models_of_crfkit(tmp_path):
    crf = ChainCRF().fit(X, Y)
    crf.save(tmp_path / "model.crf")
    tagger = Tagger()
    with tagger.open(tmp_path / "model.crf"):
        assert [tagger.tag(items) for items in X] == [list(row) for row in crf.predict(X)]
        assert tagger.info().transitions == crf.transition_features_
        assert int(tagger.info().header["num_attrs"]) == 4
    with pytest.raises(ValueError, match="not opened"):
        tagger.tag(X[0])


def test_the_environment_limits_threads(model, monkeypatch):
    for text, expected in (("1", 1), ("3,2", 3), ("", None), ("none", None), ("0", None)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        tagger = Tagger()
        tagger.open(model)
        assert tagger.model.n_threads == expected
        assert tagger.model.predict(X) == Y


def test_a_closed_tagger(model):
    tagger = Tagger()
    for call in (tagger.labels, lambda: tagger.tag(X[0]), tagger.tag, lambda: tagger.set(X[0])):
        with pytest.raises(ValueError, match="The tagger is not opened"):
            call()
    for call in (tagger.info, tagger.dump):
        with pytest.raises(RuntimeError, match="The tagger is closed"):
            call()
    with tagger.open(model) as same:
        assert same is tagger
    with pytest.raises(ValueError, match="not opened"):
        tagger.marginal("A", 0)


def test_questions_that_have_no_answer(model):
    tagger = Tagger()
    tagger.open(model)
    assert (tagger.tag(), tagger.probability([]), tagger.marginal("A", 0)) == ([], 0.0, 0.0)
    tagger.set(X[0])
    with pytest.raises(RuntimeError, match="the model has no label 'C'"):
        tagger.marginal("C", 0)
    with pytest.raises(RuntimeError, match="the model has no label 'C'"):
        tagger.probability(["A", "B", "C"])
    with pytest.raises(ValueError, match=r"\|x\| = 3, \|y\| = 2"):
        tagger.probability(["A", "B"])
    for position in (-1, 3):
        with pytest.raises(ValueError, match="out of range"):
            tagger.marginal("A", position)


def test_files_that_are_no_models(tmp_path):
    tagger = Tagger()
    with pytest.raises(FileNotFoundError) as caught:
        tagger.open(tmp_path / "nothing")
    assert isinstance(caught.value, ModelFileError)
    with pytest.raises(OSError, match="cannot open"):
        tagger.open(tmp_path)
    for blob in (b"", b"lCRF", b"lCRF" + bytes(44), b"text\n" * 40):
        (tmp_path / "bad").write_bytes(blob)
        with pytest.raises(ValueError, match=r"."):
            tagger.open(str(tmp_path / "bad"))
        with pytest.raises(ValueError, match=r"."):
            tagger.open_inmemory(blob)
    with pytest.raises(TypeError, match="must be bytes"):
        tagger.open_inmemory("lCRF")


def test_items_that_are_none(model):
    tagger = Tagger()
    tagger.open(model)
    for bad in ("foo", ["foo"], [[{"foo": 1.0}]], [{"a": None}], 5):
        with pytest.raises(DataError):
            tagger.tag(bad)
        with pytest.raises(DataError):
            ItemSequence(bad)


def test_marginals_of_each_position_sum_up_to_one(model):
    tagger = Tagger()
    tagger.open(model)
    tagger.set(ItemSequence(X[0]))
    for t in range(3):
        assert sum(tagger.marginal(label, t) for label in tagger.labels()) == pytest.approx(1.0, abs=1e-12)
    assert tagger.marginals().tolist() == [[tagger.marginal(label, t) for label in "AB"] for t in range(3)]
    assert tagger.marginals([]).shape == (0, 2)


def test_a_dump_can_be_parsed_back(model, tmp_path, capsys):
    tagger = Tagger()
    tagger.open(model)
    tagger.dump()
    parser = CRFsuiteDumpParser()
    for line in capsys.readouterr().out.splitlines(keepends=True):
        parser.feed(line)
    found, info = parser.result, tagger.info()
    assert (found.header, found.labels, found.attributes) == (info.header, info.labels, info.attributes)
    for name in ("transitions", "state_features"):
        for key, weight in getattr(info, name).items():
            assert getattr(found, name)[key] == pytest.approx(weight, abs=5.1e-7)


def test_names_that_hold_an_arrow(tmp_path):
    trainer = Trainer(verbose=False)
    trainer.append([["a --> b"], ["c --> "]], ["x --> y", "z"])
    trainer.train(str(tmp_path / "model"))
    tagger = Tagger()
    tagger.open(str(tmp_path / "model"))
    tagger.dump(tmp_path / "text")
    parser = CRFsuiteDumpParser()
    for line in (tmp_path / "text").read_text().splitlines(keepends=True):
        parser.feed(line)
    assert set(parser.result.state_features) == {("a --> b", "x --> y"), ("c --> ", "z")}


def test_item_sequences_are_made_of_anything():
    made = ItemSequence({"w": word} for word in ("a", "b"))
    assert made.items() == [{"w:a": 1.0}, {"w:b": 1.0}]
    assert ItemSequence(made).items() == made.items()
    assert len(ItemSequence([])) == 0


def test_errors_have_crfsuites_codes():
    error = CRFSuiteError(-(2**31) + 5)
    assert (error.code, str(error)) == (-(2**31) + 5, "Overflow")
    assert str(CRFSuiteError(7)) == "Unexpected error"


def test_shuffling_follows_the_c_library():
    shuffle = Shuffle(3)
    assert shuffle._draw(3) == [1804289383, 846930886, 1681692777]
    orders = [tuple(Shuffle(5).next()) for _ in range(2)]
    assert orders[0] == orders[1]
    assert sorted(shuffle.next()) == [0, 1, 2]


def test_weights_that_are_not_finite_raise(tmp_path):
    trainer = Trainer("l2sgd", params={"c2": 0.0, "calibration.eta": 1e300, "max_iterations": 2}, verbose=False)
    trainer.append([{"a": 1e300}, {"b": 1e300}], ["A", "B"])
    with np.errstate(all="ignore"), pytest.raises(CrfkitError):
        trainer.train(str(tmp_path / "model"))
    assert not (tmp_path / "model").exists()


def test_damaged_models_are_refused_or_tag(model):
    """Flipped bytes and truncations end in an error with a sentence, or in a model that still has its labels."""
    with open(model, "rb") as stream:
        blob = stream.read()
    rng = np.random.default_rng(7)
    busy = [k for k, byte in enumerate(blob) if byte or k < 120]
    refused = []
    for k in range(500):
        damaged = bytearray(blob[: rng.integers(len(blob))] if k % 5 == 0 else blob)
        for _ in range(rng.integers(1, 4) if k % 5 else 0):
            damaged[rng.choice(busy)] = rng.integers(256)
        tagger = Tagger()
        try:
            tagger.open_inmemory(bytes(damaged))
            for items in X:
                assert set(tagger.tag(items)) <= set(tagger.labels())
                assert 0 <= tagger.marginal(tagger.labels()[0], 0) <= 1 + 1e-9
            tagger.info()
        except CrfkitError as error:
            refused.append(str(error))
    assert len(refused) > 300
    assert all(refused)
