"""crfkit in the place of pycrfsuite and sklearn_crfsuite: modules, pickles, scripts."""

import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from optional import optional

import crfkit.compat.sklearn_crfsuite as ours
from crfkit.compat import install, installed, uninstall

X, Y = [[["a"], ["b"]], [["b"], ["a"], ["a"]]], [["A", "B"], ["B", "A", "A"]]

NAMES = ["pycrfsuite", "pycrfsuite._logparser", "sklearn_crfsuite", "sklearn_crfsuite.estimator"]


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warning that the real modules were imported before, which is to be expected here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*imported before")
        yield


def python(code: str, *arguments: str) -> str:
    """What a program prints in a process of its own."""
    run = subprocess.run([sys.executable, *arguments, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout


def test_modules_and_submodules_are_crfkits():
    code = """
from crfkit.compat import install
install()
install()  # once is enough
import pycrfsuite, pycrfsuite._pycrfsuite, pycrfsuite._dumpparser
from pycrfsuite._logparser import TrainLogParser
from sklearn_crfsuite import CRF, metrics, scorers
import sklearn_crfsuite.estimator, sklearn_crfsuite._fileresource, sklearn_crfsuite.trainer, sklearn_crfsuite.utils
print(pycrfsuite.Trainer is pycrfsuite._pycrfsuite.Trainer, CRF is sklearn_crfsuite.estimator.CRF)
print(pycrfsuite.__name__, TrainLogParser.__module__, metrics.__name__)
"""
    assert python(code).split() == [
        "True",
        "True",
        "crfkit.compat.pycrfsuite",
        "crfkit.compat.pycrfsuite._logparser",
        "crfkit.compat.sklearn_crfsuite.metrics",
    ]


def test_installing_loads_nothing_that_is_not_asked_for():
    code = """
import sys
from crfkit.compat import install
install()
print("numpy" in sys.modules)
import pycrfsuite
print("sklearn" in sys.modules)
try:
    import sklearn_crfsuite.nothing
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert python(code).split() == ["False", "False", "sklearn_crfsuite.nothing"]


def test_uninstall_puts_back_what_was_there():
    optional("sklearn_crfsuite")
    before = {name: sys.modules.get(name) for name in NAMES}
    with quietly(), installed():
        import pycrfsuite

        assert pycrfsuite.__name__ == "crfkit.compat.pycrfsuite"
        with installed():
            pass
        assert sys.modules["pycrfsuite"] is pycrfsuite
    assert {name: sys.modules.get(name) for name in NAMES} == before
    uninstall()


def test_a_warning_if_they_were_imported_before():
    optional("pycrfsuite")
    try:
        with pytest.warns(UserWarning, match=r"pycrfsuite .*imported before crfkit.compat.install\(\).*call install"):
            install()
    finally:
        uninstall()


def test_pickles_of_sklearn_crfsuite_become_crfkits(tmp_path):
    theirs = optional("sklearn_crfsuite")
    crf = theirs.CRF(c1=0.1).fit(X, Y, X[:1], Y[:1])
    expected = crf.predict(X).tolist()
    weights, log = crf.state_features_, crf.training_log_
    blobs = [pickle.dumps(crf, protocol) for protocol in (2, pickle.HIGHEST_PROTOCOL)]
    del crf.keep_tempfiles  # version 0.3 does not keep it
    blobs.append(pickle.dumps(crf))
    with quietly(), installed():
        for blob in blobs:
            copy = pickle.loads(blob)
            assert type(copy) is ours.CRF
            assert copy.predict(X).tolist() == expected
            assert copy.state_features_ == pytest.approx(weights, abs=1e-6)
            assert copy.training_log_.last_iteration["scores"] == log.last_iteration["scores"]
            assert copy.get_params()["keep_tempfiles"] is False


SCRIPT = """
import sys
import pycrfsuite
if __name__ == "__main__":
    print(pycrfsuite.__name__, sys.argv[1:], sys.path[0])
    sys.exit(3)
"""


def test_scripts_and_modules_run_on_crfkit(tmp_path):
    (tmp_path / "tool.py").write_text(SCRIPT)
    for arguments in ([str(tmp_path / "tool.py")], ["-m", "tool"]):
        run = subprocess.run(
            [sys.executable, "-m", "crfkit.compat", *arguments, "one", "-x"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert run.returncode == 3, run.stderr
        assert run.stdout.split(maxsplit=1) == ["crfkit.compat.pycrfsuite", f"['one', '-x'] {tmp_path}\n"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "usage: python -m crfkit.compat SCRIPT"),
        (["--help"], 0, "usage: python -m crfkit.compat SCRIPT"),
        (["no_such_script.py"], 2, "error: there is no script no_such_script.py"),
        (["-m"], 2, "error: -m needs the name of a module"),
        (["-m", "no_such_module"], 2, "error: there is no module no_such_module"),
        (["-m", "no_such_package.module"], 2, "error: there is no module no_such_package.module"),
        (["{directory}"], 2, "is a directory without __main__.py; give a script"),
        (["--what"], 2, "error: unknown option --what"),
    ],
)
def test_calls_that_run_nothing(arguments, code, said, tmp_path):
    arguments = [argument.replace("{directory}", str(tmp_path)) for argument in arguments]
    run = subprocess.run([sys.executable, "-m", "crfkit.compat", *arguments], capture_output=True, text=True)
    assert run.returncode == code
    assert said in run.stdout + run.stderr
    assert "Traceback" not in run.stderr
