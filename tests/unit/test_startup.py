"""What is not loaded until it is needed; and estimators that become scikit-learn's when scikit-learn is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.exceptions import NotFittedError

from crfkit import ChainCRF
from crfkit.cli.demo.data import TEMPLATE
from crfkit.synthetic import entity_corpus, write_columns

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
        "from crfkit import ChainCRF, ChainModel, L1, L2, Template, read_columns, evaluate",
        "from crfkit import ChainModel; ChainModel.load('model.crf').decode",
        "from crfkit import ChainCRF; ChainCRF.load('model.crf').predict([[('a', 'x')]])",
        "import sys; sys.argv = ['crfkit', 'tag', 'model.crf', 'one.txt']; from crfkit.cli.entry import main; main()",
        "import sys; sys.argv = 'crfkit tag model.crf one.txt -o out --marginals'.split(); import crfkit.__main__",
    ],
)
def test_nothing_heavy_is_loaded(folder, code):
    assert loaded(code, folder) == []


def test_training_needs_no_scikit_learn(folder):
    code = f"from crfkit import ChainCRF\n{DATA}ChainCRF().fit(X, y).save('m.crf')"
    assert set(loaded(code, folder)).isdisjoint({"sklearn", "scipy", "joblib", "pandas", "typer"})


# --- estimators and scikit-learn


@pytest.mark.parametrize("first", ["crfkit", pytest.param("sklearn", marks=pytest.mark.slow)])
def test_an_estimator_is_one_of_scikit_learn_once_that_is_loaded(folder, first):
    """Whichever was imported first, and for instances and subclasses that were made before."""
    imports = ["from crfkit import ChainCRF", "from sklearn.base import BaseEstimator, clone"]
    code = "\n".join(
        [
            imports[first == "sklearn"],
            "class Mine(ChainCRF): pass\ncrf, mine = ChainCRF(order=2), Mine()" if first == "crfkit" else "",
            "get_params = crf.get_params" if first == "crfkit" else "",
            imports[first == "crfkit"],
            "assert get_params()['order'] == 2" if first == "crfkit" else "",
            "class Mine(ChainCRF): pass\ncrf, mine = ChainCRF(order=2), Mine()" if first == "sklearn" else "",
            "assert isinstance(crf, BaseEstimator) and isinstance(mine, BaseEstimator)",
            "assert ChainCRF.get_params is BaseEstimator.get_params",
            "assert clone(crf).order == 2 and repr(crf) == 'ChainCRF(order=2)', repr(crf)",
            "assert type(clone(mine)) is Mine",
            "assert all(hasattr(Mine, f'set_{name}_request') for name in ('fit', 'score', 'partial_fit'))",
            DATA + "from sklearn.model_selection import GridSearchCV, KFold",
            "assert GridSearchCV(crf.fit(X, y), {'order': [1, 2]}, cv=KFold(2)).fit(X, y).predict(X)",
            "import sys; assert not any(type(finder).__module__.startswith('crfkit') for finder in sys.meta_path)",
        ]
    )
    python(code, folder)


@pytest.mark.parametrize(
    "code",
    [
        "assert repr(ChainCRF(order=2)) == 'ChainCRF(order=2)'",
        pytest.param("assert ChainCRF(order=2).set_params(order=1).get_params()['order'] == 1", marks=pytest.mark.slow),
        pytest.param(
            "import pickle; assert pickle.loads(pickle.dumps(ChainCRF(order=2))).get_params()['order'] == 2",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_methods_of_scikit_learn_load_it(folder, code):
    python(f"from crfkit import ChainCRF\n{code}\nimport sys; assert 'sklearn.base' in sys.modules", folder)


def test_an_estimator_that_is_not_fitted():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ChainCRF().predict([[["a"]]])
