"""`device=` of ChainCRF and of `crfkit train`: the model of the compiled core, trained on tensors."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import optional

torch = optional("torch")

from tensor_cases import as_on_a_device  # noqa: E402

from crfkit import L1, L2, ChainCRF, ChainModel, GraphCRF, GridCRF  # noqa: E402
from crfkit.errors import CapabilityError, MissingPackageError, ParameterError  # noqa: E402
from crfkit.files.columns import read_columns  # noqa: E402
from crfkit.solvers.parts.stopping import GradientNorm  # noqa: E402
from crfkit.synthetic.sentences import entity_corpus, write_columns  # noqa: E402

CLOSE = GradientNorm(1e-7)


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    X, y = [], []
    for n in rng.integers(1, 8, 60):
        words = rng.integers(0, 20, n)
        X.append([[f"w={k}", f"odd={k % 2}"] for k in words])
        y.append([("B" if k % 5 == 0 else "I" if k % 5 < 3 else "O") for k in words + rng.integers(0, 2, n)])
    return X, y


@pytest.mark.parametrize("options", [{}, {"all_possible_states": True}, {"penalty": L1(0.3), "solver": "owlqn"}])
def test_the_model_is_that_of_the_core(corpus, options):
    here = ChainCRF(tolerance=CLOSE, **options).fit(*corpus)
    with as_on_a_device():
        there = ChainCRF(tolerance=CLOSE, device="torch:cpu", **options).fit(*corpus)
    assert_allclose(there.result_.value, here.result_.value, rtol=1e-9)
    assert there.predict(corpus[0]) == here.predict(corpus[0])
    assert isinstance(there.coef_, np.ndarray)
    assert there.coef_.dtype == np.float64
    assert_allclose(there.coef_, here.coef_, atol=1e-4)


def test_the_model_file_is_unchanged(corpus, tmp_path):
    crf = ChainCRF(device="torch:cpu").fit(*corpus)
    crf.save(tmp_path / "tagger.crf")
    assert ChainModel.load(tmp_path / "tagger.crf").predict(corpus[0]) == crf.predict(corpus[0])


@pytest.mark.filterwarnings("ignore:not converged")
def test_callbacks_see_numpy_weights_and_a_run_can_be_resumed(corpus):
    seen = []
    half = ChainCRF(device="torch:cpu", max_iterations=5, tolerance=CLOSE)
    half.fit(*corpus, callbacks=[lambda iteration: seen.append(iteration.w)])
    assert all(isinstance(w, np.ndarray) for w in seen)
    rest = ChainCRF(device="torch:cpu", max_iterations=15, tolerance=CLOSE).fit(*corpus, resume=half.checkpoint())
    whole = ChainCRF(device="torch:cpu", max_iterations=20, tolerance=CLOSE).fit(*corpus)
    assert_allclose(rest.coef_, whole.coef_, rtol=1e-6, atol=1e-9)


def test_development_sets_and_warm_starts(corpus):
    crf = ChainCRF(device="torch:cpu", warm_start=True).fit(
        *corpus, X_dev=corpus[0], y_dev=corpus[1], training_error=True
    )
    assert {"dev_f1", "token_error"} <= set(crf.result_.trace[-1].extra)
    again = crf.fit(*corpus)
    assert again.result_.trace[0].value < 1.1 * again.result_.value


@pytest.mark.parametrize("precision", ["single", "auto", "double"])
def test_precisions(corpus, precision):
    crf = ChainCRF(device="torch:cpu", precision=precision).fit(*corpus)
    assert_allclose(crf.result_.value, ChainCRF().fit(*corpus).result_.value, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"device": "gpu"}, ParameterError, "unknown device 'gpu'"),
        ({"device": 1}, ParameterError, "device must be None, 'cuda'"),
        (
            {"loss": "hinge", "solver": "sgd"},
            CapabilityError,
            "only the loss 'likelihood' runs on a device, not 'hinge'",
        ),
        ({"order": 2}, CapabilityError, "of order 1, not 2"),
        ({"label_classes": {"B": "X", "I": "X"}}, CapabilityError, "no label_classes"),
        (
            {"class_weight": "balanced"},
            CapabilityError,
            "weights of classes or tokens cannot be combined with a device",
        ),
        ({"solver": "sgd"}, CapabilityError, "sgd does not run on a device; .* or use .*lbfgs"),
        ({"solver": "grafting"}, CapabilityError, "grafting selects attributes in the compiled core"),
        ({"cluster": "local:1"}, ParameterError, "device cannot be combined with cluster"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_run_on_a_device_says_so(corpus, options, error, message):
    with pytest.raises(error, match=message):
        ChainCRF(**{"device": "torch:cpu", **options}).fit(*corpus)


def test_labels_that_are_not_known(corpus):
    X, y = corpus
    with pytest.raises(CapabilityError, match="labels that are known in part"):
        ChainCRF(device="torch:cpu").fit(X, [[None, *row[1:]] for row in y])


def test_other_ways_to_train_refuse(corpus):
    crf = ChainCRF(device="torch:cpu")
    with pytest.raises(ParameterError, match="partial_fit cannot be combined with a device"):
        crf.partial_fit(*corpus)
    with pytest.raises(ParameterError, match="path cannot be combined with a device"):
        crf.path(*corpus, strengths=[1.0])
    with pytest.raises(ParameterError, match="update cannot be combined with a device"):
        crf.fit(*corpus).update(*corpus)


def test_without_torch(corpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingPackageError, match=r"device='cuda' needs torch; install it with pip install 'crfkit\[torch"
    ):
        ChainCRF(device="cuda").fit(*corpus)


def test_the_command_line(tmp_path):
    write_columns(str(tmp_path / "train.txt"), entity_corpus(30))
    here, there = tmp_path / "here.crf", tmp_path / "there.crf"
    command = ["train", str(tmp_path / "train.txt"), "--features", "ner", "--quiet", "--solver", "lbfgs", "-m"]
    for more in ([str(here)], [str(there), "--device", "torch:cpu"]):
        subprocess.run([sys.executable, "-m", "crfkit", *command, *more], check=True)
    X, _ = read_columns(tmp_path / "train.txt")
    a, b = (ChainModel.load(path) for path in (here, there))
    assert_allclose(b.training["value"], a.training["value"], rtol=1e-4)
    assert a.predict(X) == b.predict(X)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(1)
    Y = [np.zeros((9, 10), dtype=int) for _ in range(4)]
    for n, labels in enumerate(Y):
        labels[2 + n : 5 + n, 3:8] = 1
    return [(labels + rng.normal(0, 0.5, labels.shape))[..., None] for labels in Y], Y


@pytest.mark.filterwarnings("ignore::crfkit.errors.ApproximationWarning")  # edges that are too strong, in both
@pytest.mark.parametrize(
    "options", [{}, {"edge_form": "full", "neighbours": 8}, {"penalty": L1(0.3), "solver": "owlqn"}]
)
def test_grids_have_the_model_of_the_core(images, options):
    given = {"loss": "pseudo-likelihood", "tolerance": CLOSE, **options}
    here = GridCRF(**given).fit(*images)
    with as_on_a_device():
        there = GridCRF(device="torch:cpu", **given).fit(*images)
    assert_allclose(there.result_.value, here.result_.value, rtol=1e-9)
    assert isinstance(there.coef_, np.ndarray)
    assert_allclose(there.coef_, here.coef_, atol=1e-4)
    for a, b in zip(there.predict(images[0]), here.predict(images[0]), strict=True):
        assert (a == b).all()


def test_tables_have_the_model_of_the_core(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    Y = (X @ rng.normal(size=(2, 4)) + rng.normal(size=(60, 4)) > 0).astype(int)
    given = {"loss": "pseudo-likelihood", "tolerance": CLOSE}
    for options in ({}, {"edge_features": True, "penalty": L2(1.0)}):
        here = GraphCRF(**given, **options).fit(X, Y)
        there = GraphCRF(device="torch:cpu", **given, **options).fit(X, Y)
        assert_allclose(there.result_.value, here.result_.value, rtol=1e-9)
        assert_allclose(there.coef_, here.coef_, atol=1e-4)
        there.save(tmp_path / "table.crf")
        assert (GraphCRF.load(tmp_path / "table.crf").predict(X) == there.predict(X)).all()


def test_graphs_say_what_does_not_run_on_a_device(images):
    for loss in ("likelihood", "composite"):
        with pytest.raises(CapabilityError, match="of graphs only the loss 'pseudo-likelihood' runs on a device"):
            GridCRF(loss=loss, device="torch:cpu").fit(*images)
    crf = GridCRF(loss="pseudo-likelihood", device="torch:cpu")
    with pytest.raises(ParameterError, match="path cannot be combined with a device"):
        crf.path(*images, [1.0])
    with pytest.raises(ParameterError, match="device cannot be combined with cluster"):
        GridCRF(loss="pseudo-likelihood", device="torch:cpu", cluster="local:2").fit(*images)
    with pytest.raises(ParameterError, match="unknown device 'tpu'"):
        GridCRF(loss="pseudo-likelihood", device="tpu").fit(*images)


def test_the_command_for_tables_takes_a_device(tmp_path):
    rows = np.random.default_rng(3).integers(0, 2, (40, 3))
    table = "a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "table.csv").write_text(table)
    for extra in ([], ["--device", "torch:cpu"]):
        command = "graph train table.csv --labels a,b,c --features none --loss pseudo-likelihood -m m.crf"
        done = subprocess.run(
            [sys.executable, "-m", "crfkit", *command.split(), *extra],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stderr
