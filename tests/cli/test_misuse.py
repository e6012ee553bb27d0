"""What used to pass in silence: labels that never occur, files of another kind, templates with one name twice."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from optional import need_shared

from crfkit import ChainCRF, Template
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.fields.field import ChainField
from crfkit.chain.training.early_stopping import Development
from crfkit.errors import DataError, DataWarning, StopTraining, TemplateWarning
from crfkit.files.suspicion import describe_attribute_file
from crfkit.synthetic import entity_corpus, news_corpus

TRAIN = ["train", "train.txt", "-t", "template", "-m", "m.crf", "-q"]


# --- development sets


def relabelled(change) -> None:
    """dev.txt: the test file with other labels."""
    lines = Path("test.txt").read_text("utf-8").split("\n")
    cells = [line.split("\t") for line in lines]
    Path("dev.txt").write_text("\n".join("\t".join([*c[:-1], change(c[-1])]) if c != [""] else "" for c in cells))


def test_a_development_set_without_a_known_label_is_refused(fails):
    relabelled(str.lower)
    message = fails(*TRAIN, "--dev", "dev.txt")
    assert re.match(r"dev\.txt: no label of the development set occurs in the training set: it has 'b-date', ", message)
    assert "the training set has 'B-DATE', " in message
    with pytest.raises(DataError, match="no label of the development set"):
        ChainCRF().fit([[["a"], ["b"]]], [["A", "B"]], X_dev=[[["a"]]], y_dev=[["C"]])


def test_some_unknown_labels_are_a_warning(run):
    relabelled(lambda label: label.replace("-LOC", "-GPE"))
    outcome = run(*TRAIN, "--dev", "dev.txt")
    assert outcome.code == 0
    assert re.fullmatch(
        r"crfkit: warning: dev\.txt: 2 labels of the development set \('B-GPE', 'I-GPE'; [\d.]+% of its positions\) do "
        r"not occur in the training set and can never be predicted\n",
        outcome.err,
    )
    assert len(ChainCRF.load("m.crf").coef_)


def test_patience_begins_when_something_is_right(monkeypatch):
    """A score of 0 is no reason to stop, nor to keep the weights of the start."""
    corpus = learn([["a", "b"]], [["A", "B"]], Template("U%x[0,0]\nB"), 1)
    field = ChainField.from_data(corpus.data, 2, 2, all_states=True, all_transitions=True)
    for scores, stop, best in (([0, 0, 0, 0.5, 0.4], 4, 3), ([0, 0, 0, 0], None, 3), ([0.1, 0.1, 0.2], 1, 0)):
        dev = Development(corpus.data, [["A", "B"]], ["A", "B"], field, patience=1, n_threads=1)
        given = iter(scores)
        monkeypatch.setattr(dev, "score", lambda w, given=given: next(given))
        stopped = None
        for k in range(len(scores)):
            iteration = SimpleNamespace(w=np.array([k]), loss=SimpleNamespace(in_full=lambda w: w), row=k)
            dev(iteration)
            try:
                dev.stop(iteration)
            except StopTraining:
                stopped = k
                break
        assert (stopped, int(dev.best_w[0]), dev.best_row) == (stop, best, best)


# --- files of attributes


CRFSUITE = {
    "even": "".join(f"{'BI'[k % 2]}-NP\tw[0]=word{k}\tpos[0]=N{k % 9}\tw[1]=word{k + 1}\n" for k in range(60)),
    "constant": "".join(f"{'BIO'[k % 3]}-NP\tw=word{k}\tcap={k % 2 == 0}\n" for k in range(60)),
    "ragged": "".join(
        f"{'BI'[k % 2]}-NP\tw=word{k}\tpos=N{k % 9}{chr(9) + '__BOS__' * (k % 6 == 0)}\n" for k in range(60)
    ),
    "scaled": "".join(f"{'BI'[k % 2]}-NP\tw=word{k}:0.5\tx:{k}\n" for k in range(60)),
    "pixels": "".join(f"{'abc'[k % 3]}\t" + "\t".join(f"p{j}" for j in range(k % 7, 40, 3)) + "\n" for k in range(60)),
}


@pytest.mark.parametrize("name", CRFSUITE)
def test_a_file_of_attributes_is_refused(fails, name):
    Path("a.txt").write_text(CRFSUITE[name])
    Path("t").write_text("U0:%x[0,0]\nB\n")
    message = fails("train", "a.txt", "-t", "t", "-m", "m.crf")
    assert re.match(r"a\.txt(:\d+)?: this looks like a file of CRFsuite attributes \(the label first", message)
    assert "crfkit train FILE --format crfsuite" in message
    with pytest.raises(DataError, match="CRFsuite attributes"):
        ChainCRF("t").fit_file("a.txt")


@pytest.mark.parametrize(
    "text",
    [
        "the\tpos=DT\tB-NP\ncat\tpos=NN\tI-NP\n\nit\tpos=PRP\tB-NP\n",
        "word\tNN\tCase=Nom|Number=Sing\nhouse\tNN\tCase=Nom\ncat\tNN\tCase=Nom\n",
        "10:30\tCD\tTIME\n11:00\tCD\tTIME\nnoon\tNN\tO\n",
        "a b O\nc d X\n",
        "",
    ],
)
def test_column_files_are_not_taken_for_files_of_attributes(text):
    assert describe_attribute_file(text.encode()) is None


@pytest.mark.parametrize("corpus", [entity_corpus, news_corpus])
@pytest.mark.parametrize("gap", [" ", "\t"])
def test_generated_column_files_are_not_taken_for_files_of_attributes(corpus, gap):
    text = "\n\n".join("\n".join(gap.join(row) for row in sentence) for sentence in corpus(500, 5))
    assert describe_attribute_file(text.encode()[: 1 << 16]) is None


def test_real_column_files_are_not_taken_for_files_of_attributes(shared_data):
    need_shared("the test above")
    for name in ("conll2000/train.txt", "conll2000/test.txt", "conll2002_spanish/esp.testa"):
        assert describe_attribute_file((shared_data / name).read_bytes()[: 1 << 16]) is None
        assert describe_attribute_file((shared_data / name).read_bytes()[: 1 << 16].replace(b" ", b"\t")) is None


def test_a_last_column_that_cannot_be_labels(fails):
    Path("words.txt").write_text("".join(f"NN\tw{k}\n" for k in range(300)))
    Path("t").write_text("U0:%x[0,0]\nB\n")
    message = fails("train", "words.txt", "-t", "t", "-m", "m.crf")
    assert message.startswith("words.txt: the last column has 300 different values ('w0', 'w1', 'w2' …) in 300 lines")


# --- templates


def test_two_lines_of_one_identifier_are_a_warning(run):
    Path("twice").write_text("# words\nU01:%x[0,0]\n\nU01:%x[0,1]\nU02:%x[1,0]\nU02:%x[1,0]\nB\n")
    outcome = run("train", "train.txt", "-t", "twice", "-m", "m.crf", "-q")
    assert outcome.code == 0
    first, second = outcome.err.splitlines()
    assert first.startswith("crfkit: warning: twice:4: 'U01:%x[0,1]' has the identifier of line 2, 'U01:%x[0,0]'")
    assert "Give each line its own identifier" in first
    assert second.startswith("crfkit: warning: twice:6: 'U02:%x[1,0]' is a duplicate of line 5")
    assert run("tag", "m.crf", "test.txt").err == ""  # it was said when the model was made


def test_the_estimator_warns_as_well():
    template = Template("U1:%x[0,0]\nU1:%x[-1,0]\nB")
    with pytest.warns(TemplateWarning, match=r"^template:2: 'U1:%x\[-1,0\]' has the identifier of line 1"):
        ChainCRF(template).fit([["a", "b"]] * 2, [["A", "B"]] * 2)


@pytest.mark.parametrize(
    "text", ["U%x[0,0]\nU%x[1,0]\nB", "U:%x[0,0]\nU:%x[1,0]", "U1:%x[0,0]\nU11:%x[0,0]\nB1:%x[0,0]"]
)
def test_templates_that_mean_what_they_say(text):
    """Lines without an identifier are a bag of words, as CRF++'s manual has it."""
    assert Template(text).clashes() == []


def test_lines_of_one_identifier_do_share_their_weights():
    """Which is what the warning says."""
    crf = ChainCRF(Template("U1:%x[0,0]\nU1:%x[0,1]\nB"), n_threads=1)
    with pytest.warns(TemplateWarning):
        crf.fit([[("a", "b"), ("b", "a")]] * 2, [["A", "B"]] * 2)
    assert {name for name, _ in crf.state_features_} == {"U1:a", "U1:b"}


def test_known_development_labels_give_no_warning(recwarn):
    ChainCRF(n_threads=1).fit([[["a"], ["b"]]] * 2, [["A", "B"]] * 2, X_dev=[[["a"]]], y_dev=[["A"]])
    assert not [w for w in recwarn if issubclass(w.category, DataWarning)]
