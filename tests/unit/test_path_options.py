"""Options of paths: arrays of strengths, counts, development sets, and tables without a slope."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from crfkit import L1, ChainCRF, GraphCRF, ImageSegmenter, StructureLearner
from crfkit.errors import ParameterError
from crfkit.synthetic import disc_images

X = [[["a"], ["b"]], [["b"], ["a"]]]
Y = [["A", "B"], ["B", "A"]]


def test_strengths_may_be_an_array():
    given = np.geomspace(1.0, 0.1, 3)
    found = ChainCRF(penalty=L1(1.0)).path(X, Y, strengths=given)
    assert [point.strength for point in found] == given.tolist()


@pytest.mark.parametrize("n", [0, 2.5, True])
def test_the_number_of_strengths_is_an_integer(n):
    with pytest.raises(ParameterError, match="n must be an integer >= 1"):
        ChainCRF(penalty=L1(1.0)).path(X, Y, n=n)


def test_inputs_and_labels_of_a_development_set_go_together():
    rows, labels = np.eye(4), np.array([[0, 1], [1, 0], [0, 0], [1, 1]])
    with pytest.raises(ParameterError, match="X_dev and Y_dev go together"):
        GraphCRF(penalty=L1(1.0)).path(rows, labels, X_dev=rows)


def test_a_path_without_a_slope():
    table = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    with pytest.raises(ParameterError, match="no pair of columns depends on each other"):
        StructureLearner().path(table)


def test_few_rows_for_folds_are_no_trouble_of_inference():
    table = np.array([[0, 1], [1, 0], [1, 1], [0, 0]])
    with pytest.raises(ParameterError, match=r"^4 rows cannot make 5 folds"):
        StructureLearner(loss="likelihood", edge_strength="cv").fit(table)


def test_the_engine_that_auto_became_is_recorded():
    images, masks = disc_images(3, shape=(48, 64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        segmenter = ImageSegmenter(max_iterations=2).fit(images, masks)
    engine = segmenter.model_.field.training["auto"]["inference"]
    assert engine in ("junction", "trw", "tree")


def test_ctrl_c_between_two_strengths_keeps_the_points():
    seen = []

    def press(point):
        seen.append(point)
        if len(seen) == 2:
            raise KeyboardInterrupt

    found = ChainCRF(penalty=L1(1.0)).path(X, Y, strengths=[1.0, 0.5, 0.1], callback=press)
    assert [point.strength for point in found] == [1.0]
