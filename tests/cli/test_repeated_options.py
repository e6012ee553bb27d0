"""An option with one value that is given twice: which one counts would be a guess."""

import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "train.txt", "-t", "a", "--template", "b", "-m", "m.crf"),
        ("tag", "m.crf", "x.txt", "--nbest", "2", "--nbest=3"),
        ("graph", "train", "x.csv", "--labels", "1", "--labels", "2"),
        ("convert-tags", "x.txt", "--to", "iob2", "--to", "bilou"),
    ],
)
def test_once(fails, arguments):
    assert "is given twice; give it once" in fails(*arguments)


def test_flags_and_lists_may_be_repeated(call):
    assert call("inspect", "model.crf", "--label", "O", "--label", "B-PER", "--json", "--json").code == 0
