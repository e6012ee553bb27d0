"""Texts with a lone surrogate, which no file can hold: an error that names the place, wherever they come from."""

import numpy as np
import pandas as pd
import pytest

from crfkit import ChainCRF, GraphCRF, StructureLearner, Template, TextFeatures, _core
from crfkit.compat import pycrfsuite, sklearn_crfsuite
from crfkit.errors import CrfkitError, DataError

S = "\ud800"
X, Y = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}, {"w": "a"}]], [["A", "B"], ["B", "A"]]
ROWS = [[("a", "x"), ("b", "y")]]
TEMPLATE = "U:%x[0,0]\nB\n"


def named(rows, columns):
    """A frame whose columns have these names; pandas itself may store names in UTF-8, which lacks some."""
    return pd.DataFrame(rows, columns=pd.Index(columns, dtype=object))


@pytest.mark.parametrize("item", [{S: "a"}, {"a": S}, {"a": {S: 1.0}}, {"a": ["b", S]}, [S], {f"é{S}"}])
def test_attributes(item):
    crf = ChainCRF().fit(X, Y)
    for call in (
        lambda: ChainCRF().fit([X[0], [{"w": "b"}, item]], Y),
        lambda: crf.predict([X[0], [{"w": "b"}, item]]),
    ):
        with pytest.raises(DataError, match=r"sequence 1, position 1: .*lone surrogate"):
            call()
    with pytest.raises(DataError, match=r"sequence 0, position 0: .*lone surrogate"):
        crf.model_.tagger.tag([item])


@pytest.mark.parametrize("inputs", [{"template": Template(TEMPLATE)}, {"features": "ner"}])
def test_words_and_columns(inputs):
    crf = ChainCRF(**inputs).fit(ROWS, Y[:1])
    with pytest.raises(DataError, match=r"sequence 0, position 1: .*lone surrogate"):
        crf.predict([[("a", "x"), ("b", S)]])
    with pytest.raises(DataError, match=r"sequence 0, position 0: .*lone surrogate"):
        ChainCRF(**inputs).fit([[(S, "x"), ("b", "y")]], Y[:1])


def test_labels():
    with pytest.raises(DataError, match=r"sequence 1, position 1: the label '\\ud800' is not valid Unicode"):
        ChainCRF().fit(X, [["A", "B"], ["B", S]])
    with pytest.raises(DataError, match=r"label '\\ud800'"):
        ChainCRF().fit(X, [["A", "B"], ["B", {S, "A"}]])
    assert ChainCRF().fit(X, Y).score(X, [[S, S], [S, S]]) == 0.0  # a label that no model has


@pytest.mark.parametrize(
    "make",
    [
        lambda: ChainCRF(features=TextFeatures(gazetteers={"c": ["x", S]})).fit([["a", "b"]], Y[:1]),
        lambda: ChainCRF(features=TextFeatures(gazetteers={S: ["x"]})).fit([["a", "b"]], Y[:1]),
        lambda: ChainCRF(features=TextFeatures(embeddings={S: [1.0], "x": [2.0]})).fit([["a", "b"]], Y[:1]),
        lambda: Template(f"U{S}:%x[0,0]\nB"),
        lambda: _core.StringTable.from_strings(["a", S]),
        lambda: pycrfsuite.Trainer(verbose=False).append([["a"]], [S]),
        lambda: pycrfsuite.Trainer(verbose=False).append([["a"]], [b"\xff"]),
        lambda: pycrfsuite.Trainer(verbose=False).append([[S]], ["A"]),
        lambda: pycrfsuite.ItemSequence([{S: 1}]),
        lambda: sklearn_crfsuite.CRF().fit(X, [[S, "B"], ["B", S]]),
        lambda: GraphCRF().fit(np.array([[0.0], [1.0]]), np.array([[S, "b"], ["c", "d"]], dtype=object)),
        lambda: GraphCRF().fit(named([[0.0], [1.0]], [S]), pd.DataFrame({"y": [0, 1], "z": [1, 0]})),
        lambda: GraphCRF().fit(None, named([[0, 1], [1, 0]], [f"y{S}", "z"])),
        lambda: StructureLearner().fit(np.array([[S, "b"], ["c", "d"], [S, "b"], ["c", "b"]], dtype=object)),
    ],
)
def test_other_texts(make):
    with pytest.raises(CrfkitError, match=r"not valid Unicode|lone surrogate"):
        make()


def test_looking_one_up():
    assert _core.StringTable.from_strings(["a"]).find(S) == -1
