"""Options, copies and data of pairwise fields that were refused late, unclearly or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from crfkit.errors import ParameterError
from crfkit.inference.belief_propagation import BeliefPropagation
from crfkit.inference.gibbs import Gibbs
from crfkit.inference.max_product import MaxProduct
from crfkit.inference.mean_field import MeanField
from crfkit.inference.tree_reweighted import TreeReweighted

ITERATIVE = [BeliefPropagation, TreeReweighted, MeanField, MaxProduct]


@pytest.mark.parametrize("engine", ITERATIVE)
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_iterations", 10**10),
        ("max_iterations", 10.0),
        ("tolerance", "small"),
        ("tolerance", float("nan")),
        ("tolerance", None),
        ("damping", "strong"),
        ("damping", 1.0),
        ("n_threads", 0),
        ("n_threads", 2.5),
        ("n_threads", "2"),
    ],
)
def test_options_are_checked_when_given(engine: Any, option: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=option.removeprefix("max_")):
        engine(**{option: value})


@pytest.mark.parametrize("engine", [MeanField, MaxProduct])
def test_only_sum_product_chooses_its_damping(engine: Any) -> None:
    with pytest.raises(ParameterError, match="damping"):
        engine(damping=None)


@pytest.mark.parametrize("value", [0, 2.5, "2"])
def test_threads_of_gibbs(value: Any) -> None:
    with pytest.raises(ParameterError, match="n_threads"):
        Gibbs(n_threads=value)
