"""What is not loaded until it is needed: only estimators load scikit-learn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

import crfkit
from crfkit import ChainCRF
from crfkit.cli.demo.data import TEMPLATE
from crfkit.parameters import NestedParameters
from crfkit.synthetic import entity_corpus, write_columns
from crfkit.training.estimator import Estimator

ESTIMATORS = ("ChainCRF", "GraphCRF", "GridCRF", "ImageSegmenter", "Refiner", "StructureLearner")

HEAVY = (
    "crfkit.solvers",
    "array_api_compat.numpy",
    "joblib",
    "matplotlib",
    "networkx",
    "numpy.f2py",
    "numpy.testing",
    "pandas",
    "PIL",
    "pydantic",
    "rich",
    "scipy",
    "sklearn",
    "torch",
    "typer",
)
DATA = "X = [[['a'], ['b']], [['b'], ['a']]]; y = [['A', 'B'], ['B', 'A']]\n"
CHECK = f"import json, sys; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("startup")
    write_columns(str(folder / "train.txt"), entity_corpus(30, 1))
    write_columns(str(folder / "one.txt"), entity_corpus(1, 2))
    ChainCRF(TEMPLATE).fit_file(folder / "train.txt").save(folder / "model.crf")
    return folder


def python(code: str, folder: Path) -> str:
    """Runs a process; what it writes to stderr."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stderr


def loaded(code: str, folder: Path) -> list[str]:
    """Which of the heavy modules a process has loaded at its end."""
    at_exit = f"import atexit\natexit.register(lambda: exec({CHECK!r}, {{}}))\n"
    found: list[str] = json.loads(python(at_exit + code, folder))
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import crfkit",
        "import crfkit; crfkit.__version__",
        "from crfkit import ChainModel, L1, L2, Template, read_columns, evaluate",
        "from crfkit import ChainModel; ChainModel.load('model.crf').decode",
        "from crfkit import ChainModel; ChainModel.load('model.crf').predict([[('a', 'x')]])",
        "import sys; sys.argv = ['crfkit', 'tag', 'model.crf', 'one.txt']; from crfkit.cli.entry import main; main()",
        "import sys; sys.argv = 'crfkit tag model.crf one.txt -o out --marginals'.split(); import crfkit.__main__",
    ],
)
def test_nothing_heavy_is_loaded(folder, code):
    assert loaded(code, folder) == []


def test_training_needs_no_scikit_learn(folder):
    (folder / "template").write_text(TEMPLATE)
    code = (
        "import sys; sys.argv = 'crfkit train train.txt -t template -m m.crf --quiet'.split(); import crfkit.__main__"
    )
    assert set(loaded(code, folder)).isdisjoint({"sklearn", "scipy", "joblib", "pandas"})


def test_estimators_are_plain_subclasses_of_scikit_learns():
    for name in ESTIMATORS:
        estimator = getattr(crfkit, name)
        assert issubclass(estimator, BaseEstimator), name
        assert estimator.get_params is BaseEstimator.get_params, name
        assert hasattr(estimator, "set_fit_request"), name
    assert Estimator.__bases__ == (NestedParameters, BaseEstimator)


def test_no_import_hook_is_left_behind(folder):
    code = "import crfkit, sys; crfkit.ChainModel, crfkit.Graph; before = [*sys.meta_path]; crfkit.ChainCRF\n"
    code += "assert not any(type(finder).__module__.startswith('crfkit') for finder in [*before, *sys.meta_path])"
    python(code, folder)


def test_an_estimator_that_is_not_fitted():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ChainCRF().predict([[["a"]]])
