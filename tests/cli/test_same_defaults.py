"""One default everywhere: commands, estimators and the training behind them have the same options."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from crfkit import ChainCRF, GraphCRF, ImageSegmenter, Refiner, StructureLearner
from crfkit.chain.training.train import ChainTraining
from crfkit.cli.main import app
from crfkit.errors import CapabilityError, ParameterError
from crfkit.graph.training.train import GraphTraining
from crfkit.images.training.refiner import RefinerTraining
from crfkit.images.training.segmenter import SegmenterTraining
from crfkit.solvers import SOLVERS, make_solver
from crfkit.structure.options import StructureOptions
from crfkit.training.defaults import default_penalty
from crfkit.training.options import SolverOptions


@dataclass(frozen=True)
class Shared:
    """A command, the estimator and the training behind it, and what they call the same option."""

    command: str
    estimator: type
    training: type
    names: dict[str, str]  # option of the command → parameter of the estimator
    fields: dict[str, str]  # option of the command → field of the training, if it is another name
    different: frozenset[str] = frozenset()  # options whose defaults differ on purpose
    choices: tuple[str, ...] = ()  # options that take one of several names

    def __str__(self):
        return self.command

    @property
    def pairs(self):
        """Return option → parameter of the estimator, of equal names or named above."""
        alike = {name: name for name in defaults_of_command(self.command) if name in defaults_of(self.estimator)}
        return {**alike, **self.names}


SHARED = [
    Shared(
        "train",
        ChainCRF,
        ChainTraining,
        {"threads": "n_threads", "all_states": "all_possible_states"},
        {"all_states": "all_possible_transitions"},
        choices=("loss", "solver", "precision", "order"),
    ),
    Shared(
        "graph train",
        GraphCRF,
        GraphTraining,
        {"threads": "n_threads", "edges": "graph", "edge_l2": "edge_penalty"},
        {"edge_l2": "edge_penalty"},
        # None of GraphCRF: features of edges where the graph has them. Training is also that of grids, without scaling
        frozenset({"edge_features", "standardize"}),
        ("loss", "inference", "solver"),
    ),
    Shared(
        "segment train",
        ImageSegmenter,
        SegmenterTraining,
        {
            "threads": "n_threads",
            "block": "block_size",
            "multi_class": "multiclass",
            "validation": "validation_fraction",
        },
        {"validation": "validation_fraction"},
        frozenset({"features", "masks"}),  # features are a text and a tuple; masks are a folder and the rules for it
        ("loss", "inference", "upsample"),
    ),
    Shared(
        "refine train",
        Refiner,
        RefinerTraining,
        {"threads": "n_threads", "edges": "edge_features"},
        {"edges": "edge_features"},
        frozenset({"verbose"}),  # False and 0
        ("layout", "inference"),
    ),
    Shared(
        "structure learn",
        StructureLearner,
        StructureOptions,
        {"threads": "n_threads", "strength": "edge_strength", "gamma": "ebic_gamma"},
        {"strength": "edge_strength", "gamma": "ebic_gamma"},
        choices=("loss", "inference", "method", "refit", "group_norm", "form", "missing"),
    ),
]
every_training = pytest.mark.parametrize("shared", SHARED, ids=str)
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


def command(path):
    found = get_command(app)
    for name in path.split():
        found = found.commands[name]
    return found


def defaults_of_command(path):
    return {param.name: param.default for param in command(path).params}


def defaults_of(estimator):
    return {name: p.default for name, p in inspect.signature(estimator).parameters.items()}


def defaults_of_training(kind):
    """Return the defaults of a dataclass and of the dataclasses in it."""
    found = {}
    for item in fields(kind):
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        found |= vars(default) if isinstance(default, SolverOptions) else {item.name: default}
    return found


@every_training
def test_every_default_is_that_of_the_estimator_and_of_training(shared):
    options, parameters = defaults_of_command(shared.command), defaults_of(shared.estimator)
    own = defaults_of_training(shared.training)
    compared = 0
    for option, parameter in shared.pairs.items():
        field = shared.fields.get(option, parameter)
        compared += field in own
        if option not in shared.different:
            assert options[option] == parameters[parameter], option
            assert field not in own or own[field] == parameters[parameter], option
    assert compared > 5
    if "seed" in options:
        assert options["seed"] == 0
        assert parameters["random_state"] is None  # which the docstring says is 0
    for name in ("l1", "c1", "rho1", "l2", "C", "c2", "rho2"):
        assert options.get(name) is None
        assert parameters.get("penalty") is None


@every_training
def test_every_default_of_the_estimator_is_that_of_training(shared):
    parameters, own = defaults_of(shared.estimator), defaults_of_training(shared.training)
    for name in (own.keys() & parameters) - shared.different:
        assert own[name] == parameters[name], name


@pytest.mark.parametrize(("shared", "option"), [(shared, option) for shared in SHARED for option in shared.choices])
def test_wrong_names_get_the_same_answer_everywhere(call, tmp_path, monkeypatch, shared, option):
    """It lists the choices, which `--help` lists as well."""
    parameter = shared.pairs[option]
    for folder in ("probabilities", "images", "masks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "table.csv").write_text("a,b,c\n" + "x,0,y\nz,1,w\n" * 9, encoding="utf-8")
    files = {
        "train": ["train.txt"],
        "segment train": ["images", "masks"],
        "refine train": ["probabilities", "images", "masks"],
    }.get(shared.command, ["table.csv"])
    given = [name if name == "train.txt" else str(tmp_path / name) for name in files]
    wrong = 7 if option == "order" else "nosuch"
    name = "--" + option.replace("_", "-")
    told = call(*shared.command.split(), *given, "-m", str(tmp_path / "m.crf"), name, wrong)
    assert told.code == 2
    with pytest.raises(ParameterError) as error:
        check(shared.estimator(**{parameter: wrong}))
    assert listed(told.err) == listed(str(error.value))
    if option == "solver" and shared.command != "train":
        return  # whose help lists the solvers of all commands
    monkeypatch.setenv("COLUMNS", "400")
    help_text = re.sub(r"[│\s]", "", call(*shared.command.split(), "--help").out)
    for choice in re.findall(r"[\w-]+", listed(told.err).partition(", not")[0]):
        assert choice in help_text or choice == "adam", choice


def check(estimator):
    if isinstance(estimator, ChainCRF):
        estimator.fit([[["a"], ["b"]]], [["A", "B"]])
    elif isinstance(estimator, GraphCRF):
        estimator.fit(np.zeros((2, 1)), np.array([[0, 1], [1, 0]]))
    elif isinstance(estimator, Refiner):
        estimator.fit([], [], [])
    elif isinstance(estimator, ImageSegmenter):
        estimator.check()
    else:
        estimator.fit(np.array([[0, 1], [1, 0]]))


def listed(message):
    """Return the part of an error that says what is expected."""
    return re.split(r"expected one of|must be", message)[1].strip()


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
    assert "All defaults are the same as in ChainCRF" in text
    assert not Path("m.crf").exists()
