"""One default everywhere: `crfkit train` and ChainCRF on the same file are the same training."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from crfkit import ChainCRF
from crfkit.cli.main import app
from crfkit.errors import CapabilityError
from crfkit.solvers import SOLVERS, make_solver
from crfkit.training.defaults import default_penalty
from crfkit.training.options import SolverOptions

NAMES = {  # option of `crfkit train` → parameter of ChainCRF
    "order": "order",
    "features": "features",
    "hash_bits": "hash_bits",
    "constraints": "constraints",
    "loss": "loss",
    "solver": "solver",
    "min_frequency": "min_frequency",
    "tolerance": "tolerance",
    "max_iterations": "max_iterations",
    "threads": "n_threads",
    "all_states": "all_possible_states",
}
SELECTING = {"grafting-light", "grafting", "gauss-seidel"}
WITHOUT = {"averaged-perceptron", "passive-aggressive", "arow", "mira"}


def test_the_same_weights(call):
    assert call("train", "train.txt", "-t", "template", "-m", "m.crf", "-q").code == 0
    crf = ChainCRF(template="template").fit_file("train.txt")
    np.testing.assert_array_equal(ChainCRF.load("m.crf").coef_, crf.coef_)
    assert ChainCRF.load("m.crf").state_features_ == crf.state_features_


def test_the_other_set_of_weights_is_an_option_of_both(call):
    assert call("train", "train.txt", "-t", "template", "-m", "m.crf", "-q", "--all-states", "-i", 3).code == 0
    crf = ChainCRF("template", all_possible_states=True, all_possible_transitions=True, max_iterations=3)
    with pytest.warns(match="iteration limit"):
        crf.fit_file("train.txt")
    np.testing.assert_array_equal(ChainCRF.load("m.crf").coef_, crf.coef_)
    assert len(crf.coef_) > 2 * len(ChainCRF.load("model.crf").coef_)


def test_every_default_is_that_of_the_estimator():
    options = {p.name: p.default for p in get_command(app).commands["train"].params}
    defaults = {name: p.default for name, p in inspect.signature(ChainCRF).parameters.items()}
    for option, parameter in NAMES.items():
        assert options[option] == defaults[parameter], option
    assert options["all_states"] == defaults["all_possible_transitions"]
    assert options["seed"] == 0
    assert defaults["random_state"] is None  # which the docstring says is 0
    assert defaults["penalty"] is None
    for name in ("l1", "c1", "rho1", "l2", "C", "c2", "rho2"):
        assert options[name] is None


# --- what `penalty=None` means


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_the_default_penalty_is_what_the_docstring_says(name):
    expected = "L1(1)" if name in SELECTING else "no penalty" if name in WITHOUT else "L2(1)"
    assert SolverOptions(solver=name).make_penalty(make_solver(name)).name == expected
    text = " ".join(re.sub(r"\s+", " ", ChainCRF.__doc__).split())
    told = text.partition("None is L2(1), but ")[2].partition(" solver : ")[0]
    selecting, without = told.split(", and no penalty for")
    assert (name in re.findall(r"[\w-]+", selecting)) == (name in SELECTING)
    assert (name in re.findall(r"[\w-]+", without)) == (name in WITHOUT)


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_a_training_without_a_penalty_uses_that_default(name):
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 3, [["A", "B"], ["B", "A"]] * 3
    crf = ChainCRF(solver=name, n_threads=1, tolerance=1e-2)
    if "gradient" in SOLVERS[name].needs:  # adam, of losses without a value
        with pytest.raises(CapabilityError):
            crf.fit(X, y)
        return
    crf.fit(X, y)
    penalty = default_penalty(make_solver(name)).name
    ending = f"mistakes of {name}" if penalty == "no penalty" else f"+ {penalty}"
    assert crf.result_.objective.endswith(ending)


def test_the_help_says_so_too(call):
    text = " ".join(re.sub(r"[^\w\-.()]+", " ", call("train", "--help").out).split())
    assert (
        "Default 1 solvers that select attributes use --l1 1 instead and solvers that learn from mistakes use no"
        in text
    )
    assert "with --l1 1 by default grafting-light grafting gauss-seidel" in text
    assert "take no penalty averaged-perceptron passive-aggressive arow mira" in text
    assert "All defaults are those of ChainCRF" in text
    assert not Path("m.crf").exists()
