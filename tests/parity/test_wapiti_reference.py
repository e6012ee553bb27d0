"""What Wapiti 1.5 itself printed: labels, probabilities, n-best lists, weights, and the size of what it trained."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need_shared

from crfkit import convert
from crfkit.compat.wapiti.command import main
from crfkit.convert.wapiti_model import format_wapiti, parse_wapiti
from crfkit.files.columns import read_columns


def run(capfdbinary, *arguments) -> tuple[bytes, bytes]:
    assert main([str(argument) for argument in arguments]) == 0
    return capfdbinary.readouterr()


def test_conll2000_is_one_of_the_corpora():
    """Where it is there, all tests of this file run on it as well."""
    need_shared("this file")


NUMBER = re.compile(rb"-?\d+\.\d{6}")


def assert_same_text(ours: bytes, theirs: bytes) -> None:
    """The same bytes, but for the last digit of numbers."""
    if ours != theirs:
        assert NUMBER.sub(b"", ours) == NUMBER.sub(b"", theirs)
        pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
        assert all(abs(float(a) - float(b)) < 1.5e-6 for a, b in pairs)


@pytest.mark.parametrize(("name", "flags"), [("rich.out", []), ("rich.post", ["-s", "-p", "-n", "1"])])
def test_label_prints_what_wapiti_printed(files, capfdbinary, name, flags):
    out, _ = run(capfdbinary, "label", "-m", files / "rich.model", *flags, files / "test.txt")
    assert_same_text(out, (files / name).read_bytes())


def test_n_best_lists_are_those_that_wapiti_printed(files, capfdbinary):
    """Where labellings have equal scores ("such as" three times in one sentence), they may come in any order."""
    out, _ = run(capfdbinary, "label", "-m", files / "rich.model", "-s", "-n", "5", files / "test.txt")
    ours, theirs = (text.split(b"\n\n") for text in (out, (files / "rich.n5").read_bytes()))
    assert len(ours) == len(theirs) == 5 * files.n_sentences + 1
    for begin in range(0, 5 * files.n_sentences, 5):
        several = [sorted(ours[begin : begin + 5]), sorted(theirs[begin : begin + 5])]
        scores = [[float(block.split()[2]) for block in blocks[begin : begin + 5]] for blocks in (ours, theirs)]
        assert_allclose(scores[0], scores[1], atol=1.5e-6)
        if len(set(scores[1])) == 5:
            several = [ours[begin : begin + 5], theirs[begin : begin + 5]]
        else:  # of those with equal scores, the rank is anything
            several = [sorted(re.sub(rb"^# \d ", b"", block) for block in blocks) for blocks in several]
        for mine, other in zip(*several, strict=True):
            assert_same_text(mine, other)


def test_dump_prints_what_wapiti_printed(files, capfdbinary):
    out, _ = run(capfdbinary, "dump", files / "rich.model")
    assert out == (files / "rich.dump").read_bytes()


def test_the_model_is_written_as_wapiti_wrote_it(files):
    data = (files / "rich.model").read_bytes()
    assert format_wapiti(parse_wapiti(data)) == data


def test_the_model_in_python(files):
    """Labels, marginals and probabilities of the library are those of the file that `-s -p` made."""
    model = convert.load(files / "rich.model")
    X, _ = read_columns(files / "test.txt")
    blocks = (files / "rich.post").read_text().strip().split("\n\n")
    assert len(model.w) == files.n_weights
    for marginals, block in zip(model.predict_marginals(X), blocks, strict=True):
        head, *lines = block.split("\n")
        labels, probabilities = zip(*(line.split("\t")[-1].rsplit("/", 1) for line in lines), strict=True)
        chosen = marginals.argmax(axis=1)
        assert [model.class_list[j] for j in chosen] == list(labels)
        assert_allclose(marginals.max(axis=1), np.array(probabilities, dtype=float), atol=6e-7)
        assert_allclose(np.prod(marginals.max(axis=1)), float(head.split()[2]), atol=6e-7)


def test_training_is_of_the_same_size_and_ends_lower(files, capfdbinary, tmp_path):
    """The same data, blocks and features; the objective where our solver stops is below Wapiti's."""
    flags = ["-a", "l-bfgs", "-t", "1", "-1", "0.1", "-2", "0.5", "-i", "80", *files.flags]
    _, log = run(
        capfdbinary, "train", *flags, "-p", files / "rich.pattern", files / "train.txt", tmp_path / "ours.model"
    )
    expected = (files / "rich.log").read_text()
    until = expected.index("  [   1]")
    assert log.decode()[:until] == expected[:until]
    ours, theirs = (float(re.findall(r"obj=([\d.]+)", text)[-1]) for text in (log.decode(), expected))
    assert theirs == files.objective
    assert files.optimum < ours < theirs
    assert log.decode().endswith("* Save the model\n* Done\n")
    assert convert.load(tmp_path / "ours.model").class_list == convert.load(files / "rich.model").class_list
