"""crfkit-learn and crfkit-test against what crf_learn and crf_test printed: the whole training trace, every output."""

import gzip
import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need_shared

from crfkit import ChainCRF, Template, read_columns
from crfkit.compat.crfpp import learn, tag
from crfkit.convert import crfpp

need_shared("test_crfpp_enumerated.py")


def first_sentences(source, n, target):
    blocks = source.read_text(encoding="utf-8").split("\n\n")[:n]
    target.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def train(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("crfpp")
    return first_sentences(shared_data / "conll2000" / "train.txt", 500, folder / "train.txt")


@pytest.fixture(scope="module")
def unseen(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("crfpp")
    return first_sentences(shared_data / "conll2000" / "test.txt", 200, folder / "test.txt")


def numbers(log, name):
    return np.array([float(x) for x in re.findall(rf" {name}=(\S+)", log)])


def learned(capsys, *arguments):
    assert learn.learn([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", ["chunking", "cond"])
def test_the_training_trace_is_that_of_crf_learn(shared_reference, train, tmp_path, capsys, name):
    folder = shared_reference / "crfpp"
    template, model = folder / f"{name}.template", tmp_path / "model"
    ours = learned(capsys, "-t", "-f", 3, "-c", 1.0, "-e", 0.00001, "-p", 2, template, train, model)
    theirs = (folder / f"{name}.log").read_text()
    assert len(numbers(ours, "obj")) == len(numbers(theirs, "obj")) == 68
    assert_allclose(numbers(ours, "obj"), numbers(theirs, "obj"), rtol=1e-7)
    for column in ("terr", "serr", "act"):
        assert numbers(ours, column).tolist() == numbers(theirs, column).tolist()
    assert_allclose(numbers(ours, "diff"), numbers(theirs, "diff"), rtol=0, atol=1.01e-5)
    # all else but the banner, the times and last digits is the same text
    mask = re.compile(r"Done!.*|(obj|diff)=\S+")
    assert mask.sub("#", ours).split("\n")[3:] == mask.sub("#", theirs).split("\n")[3:]

    with gzip.open(folder / f"{name}.model.txt.gz", "rb") as stream:
        reference = crfpp.read(stream.read())
    written = crfpp.read(f"{model}.txt")
    assert written.vocabulary.attributes.to_list() == reference.vocabulary.attributes.to_list()
    assert_allclose(written.w, reference.w, rtol=0, atol=1e-6)


def test_crf_l1_ends_lower_after_fewer_evaluations(shared_reference, train, tmp_path, capsys):
    folder = shared_reference / "crfpp"
    ours = learned(capsys, "-a", "CRF-L1", "-f", 3, folder / "chunking.template", train, tmp_path / "model")
    theirs = (folder / "l1.log").read_text()
    assert numbers(ours, "obj")[:2].tolist() == numbers(theirs, "obj")[:2].tolist()  # the same objective and first step
    assert len(numbers(ours, "obj")) < len(numbers(theirs, "obj"))
    assert 0.995 * numbers(theirs, "obj")[-1] < numbers(ours, "obj")[-1] <= numbers(theirs, "obj")[-1]
    assert abs(numbers(ours, "act")[-1] / numbers(theirs, "act")[-1] - 1) < 0.1


def test_mira_begins_and_ends_alike(shared_reference, train, tmp_path, capsys):
    folder = shared_reference / "crfpp"
    ours = learned(capsys, "-a", "MIRA", "-f", 3, folder / "chunking.template", train, tmp_path / "model")
    theirs = (folder / "mira.log").read_text()
    # labellings with the same score are then chosen by rounding, and later epochs depend on that
    for column in ("terr", "serr", "act", "uact", "kkt"):
        assert numbers(ours, column)[:2].tolist() == numbers(theirs, column)[:2].tolist()
        assert numbers(ours, column)[-1] == numbers(theirs, column)[-1]
    assert_allclose(numbers(ours, "obj")[:2], numbers(theirs, "obj")[:2], rtol=1e-6)
    assert_allclose(numbers(ours, "obj")[-1], numbers(theirs, "obj")[-1], rtol=0.02)


@pytest.mark.parametrize("flag", ["-v1", "-v2", "-n5"])
@pytest.mark.parametrize("kind", ["model", "model.txt"])
@pytest.mark.parametrize("name", ["chunking", "cond"])
def test_the_output_is_that_of_crf_test(shared_reference, unseen, tmp_path, capfdbinary, name, kind, flag):
    folder = shared_reference / "crfpp"
    model = tmp_path / "model"
    with gzip.open(folder / f"{name}.{kind}.gz", "rb") as stream:
        model.write_bytes(stream.read())
    assert tag.tag(["-m", str(model), flag, str(unseen)]) == 0
    sys.stdout.flush()
    ours = capfdbinary.readouterr().out.decode()
    with gzip.open(folder / f"{name}.{flag[1:]}.gz", "rt", encoding="utf-8") as stream:
        theirs = stream.read()
    number = re.compile(r"\d\.\d{6}")
    different = sum(
        a != b for a, b in zip(number.sub("#", ours).split("\n\n"), number.sub("#", theirs).split("\n\n"), strict=True)
    )
    # crf_test read the binary model. The text model has more digits, which order up to three labellings of one sequence
    # another way; those have the same probability in all digits that are printed
    assert different <= (3 if (kind, flag) == ("model.txt", "-n5") else 0)
    # CRF++ adds the weights of a binary model in single floats
    assert_allclose(
        [float(x) for x in number.findall(ours)],
        [float(x) for x in number.findall(theirs)],
        rtol=0,
        atol=1.01e-6,
    )


@pytest.mark.parametrize("name", ["chunking", "cond"])
def test_a_written_model_is_the_model(shared_reference, train, unseen, tmp_path, name):
    """A model with weights for observed pairs only, written for CRF++, which has weights for all."""
    template = Template.read(shared_reference / "crfpp" / f"{name}.template")
    model = ChainCRF(template=template, tolerance=1e-3, n_threads=1).fit_file(train).model_
    crfpp.write(model, tmp_path / "model.txt")
    again = crfpp.read(tmp_path / "model.txt", n_threads=1)
    assert again.field.size > 2 * model.field.size
    assert np.count_nonzero(again.w) == np.count_nonzero(model.w)
    assert np.array_equal(np.unique(again.w[again.w != 0]), np.unique(model.w[model.w != 0]))
    X, _ = read_columns(unseen)
    assert again.predict(X) == model.predict(X)
    ours, theirs = again.predict_marginals(X), model.predict_marginals(X)
    assert_allclose(np.concatenate(list(ours)), np.concatenate(list(theirs)), rtol=0, atol=1e-12)
