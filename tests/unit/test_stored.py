"""Training from blocks on disk is training from memory."""

import tempfile

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit import L1, L2, ChainCRF, _core
from crfkit.chain.encoding.stored import store_files
from crfkit.chain.encoding.vocabulary import Inputs
from crfkit.chain.losses.stored import StoredChain
from crfkit.chain.training.stored import fit_stored
from crfkit.chain.training.train import ChainTraining
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import column_files
from crfkit.losses import ChainLikelihood
from crfkit.result import Status
from crfkit.solvers import Auto
from crfkit.text.template import Template

TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB01:%x[0,0]\n"


@pytest.fixture
def text(tmp_path):
    """Four files: a block ends where a piece of a file does that was read at once, which is larger than these."""
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"train{k}.txt" for k in range(4)]
    for path in paths:
        lines = []
        for _ in range(15):
            for _ in range(rng.integers(1, 6)):
                k = rng.integers(8)
                lines.append(f"w{k} {'AB'[k % 2] if rng.random() < 0.8 else 'C'}")
            lines.append("")
        path.write_text("\n".join(lines) + "\n")
    return paths


def both(path, folder, **options):
    """The same training set in memory and in blocks, with the losses on them."""
    training = ChainTraining(template=TEMPLATE, **options)
    corpus, _ = training.learn_files(column_files(path))
    stored = store_files(column_files(path), Inputs(Template.make(TEMPLATE)), training.min_frequency, folder, 200)
    return training, corpus, stored


@pytest.mark.parametrize("options", [{}, {"order": 2}, {"all_possible_states": True}, {"min_frequency": 3}])
def test_the_loss_is_that_of_the_data_in_memory(text, tmp_path, options):
    training, corpus, stored = both(text, tmp_path / "blocks", **options)
    assert len(stored.blocks) > 2
    assert stored.vocabulary.attributes.to_list() == corpus.vocabulary.attributes.to_list()
    assert stored.classes.tolist() == corpus.classes.tolist()
    field = training.make_problem(corpus).field
    w = np.random.default_rng(1).normal(size=field.size)
    whole, parts = ChainLikelihood(corpus.data, field).at(w), StoredChain(stored.blocks, field).at(w)
    assert_allclose(parts.value, whole.value, rtol=1e-12)
    assert_allclose(parts.grad, whole.grad, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"penalty": L1(0.5), "solver": "owlqn"}, {"order": 2}, {"hash_bits": 8}])
def test_the_model_is_that_of_the_data_in_memory(text, options):
    options = {"solver": "lbfgs", "penalty": L2(0.5), "tolerance": 1e-9, **options}
    training = ChainTraining(template=TEMPLATE, **options)
    stored, result = fit_stored(training, column_files(text), block_bytes=300)
    memory, expected = training.fit_file(column_files(text))
    assert_allclose(result.value, expected.value, rtol=1e-7)
    assert len(stored.w) == len(memory.w)
    assert_allclose(stored.w, memory.w, atol=2e-3)


@pytest.mark.parametrize("precision", ["double", "single"])
def test_auto_ends_at_the_optimum(text, precision):
    """It took 100 stochastic passes before, and had not converged after them."""
    training = ChainTraining(template=TEMPLATE, penalty=L2(0.5), precision=precision)
    model, result = fit_stored(training, column_files(text), block_bytes=300)
    _, expected = training.fit_file(column_files(text))
    assert result.status is Status.CONVERGED
    assert model.training["precision"] == precision
    assert_allclose(result.value, expected.value, rtol=1e-4)


def test_stochastic_epochs_before_the_finish(text):
    solver = Auto(epochs=3, least_sequences=1)
    training = ChainTraining(template=TEMPLATE, penalty=L2(0.5), solver=solver)
    model, result = fit_stored(training, column_files(text), block_bytes=300)
    _, expected = training.fit_file(column_files(text))
    assert model.training["auto"]["solver"] == "stochastic epochs, then lbfgs"
    assert_allclose(result.value, expected.value, rtol=1e-4)


def test_an_epoch_reads_each_block_once(text, tmp_path):
    training, _, stored = both(text, tmp_path / "blocks")
    field = training.make_problem(training.learn_files(column_files(text))[0]).field
    loss = StoredChain(stored.blocks, field)
    order = loss.order(len(loss.data), 1, 2)
    assert sorted(order) == list(range(len(loss.data)))
    blocks = np.searchsorted(loss.data.begins, order, side="right")
    assert np.count_nonzero(np.diff(blocks)) == len(stored.blocks) - 1
    assert order.tolist() != sorted(order)


@pytest.mark.parametrize("options", [{}, {"order": 2}, {"all_possible_states": True}, {"label_classes": {"A": "x"}}])
def test_kept_plans_are_those_of_the_data(text, tmp_path, options):
    training, _, stored = both(text, tmp_path / "blocks", **options)
    field = training.make_problem(training.learn_files(column_files(text))[0]).field
    loss, w = StoredChain(stored.blocks, field), np.random.default_rng(1).normal(size=field.size)
    first, again = loss.at(w), loss.at(w)
    assert again.value == first.value
    np.testing.assert_array_equal(again.grad, first.grad)
    np.testing.assert_array_equal(again.hess_diag(), first.hess_diag())
    (stored.blocks[0].folder / "plan" / "rows.npy").unlink()
    with pytest.raises(DataError, match="the encoded sequences are gone"):
        _ = loss.at(w).value


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda a: a + 10**6),
        ("rows", lambda a: -1 - a),
        ("rows", lambda a: a[:-1]),
        ("row_offsets", lambda a: a[::-1]),
        ("row_offsets", lambda a: a[:-1]),
        ("entry_weights", lambda a: np.full(len(a) + 1, 2**32 - 1, a.dtype)),
        ("entry_labels", lambda a: np.full(len(a), 2**16 - 1, a.dtype)),
        ("group_offsets", lambda a: a[:0]),
        ("group_members", lambda a: np.full(len(a) + 1, 2**30, a.dtype)),
    ],
)
def test_plans_that_do_not_fit_are_refused(text, tmp_path, name, change):
    training, _, stored = both(text, tmp_path / "blocks")
    field = training.make_problem(training.learn_files(column_files(text))[0]).field
    loss = ChainLikelihood(stored.blocks[0].read(), field)
    arrays = dict(loss.plan())
    if not len(arrays["entry_labels"]) and name == "entry_labels":
        arrays["entry_labels"] = np.zeros(1, np.uint16)
    arrays[name] = np.ascontiguousarray(change(arrays[name]))
    with pytest.raises(DataError):
        ChainLikelihood(stored.blocks[0].read(), field, plan=_core.KeptPlan(**arrays))


def test_files_of_attributes_with_weights(tmp_path):
    path = tmp_path / "train.crfsuite"
    path.write_text("@weight:2\nA\ta:1\tb\nB\tb\n\nA\tc\nC\ta\n\n" * 5)
    training = ChainTraining(solver="lbfgs", tolerance=1e-9)
    stored, result = fit_stored(training, column_files(path, format="crfsuite"), block_bytes=1)
    memory, expected = training.fit_file(column_files(path, format="crfsuite"))
    assert_allclose(result.value, expected.value, rtol=1e-7)
    assert stored.training["format"] == "crfsuite"
    assert stored.predict([[["b"]]]) == memory.predict([[["b"]]])


def test_the_estimator_and_its_temporary_folder(text, monkeypatch, tmp_path):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    crf = ChainCRF(TEMPLATE).fit_file(text, out_of_core=True)
    assert crf.score([[["w0"], ["w1"]]], [["A", "B"]]) == 1.0
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss"),
        ({"class_weight": "balanced"}, "class_weight"),
        ({"constraints": "observed"}, "observed"),
        ({"template": None}, "template"),
    ],
)
def test_what_cannot_be_done_from_disk(text, options, message):
    with pytest.raises(ParameterError, match=message):
        fit_stored(ChainTraining(**{"template": TEMPLATE, **options}), column_files(text))


def test_empty_and_dull_files(tmp_path):
    empty, dull = tmp_path / "empty.txt", tmp_path / "dull.txt"
    empty.write_text("\n")
    dull.write_text("a X\n\n")
    training = ChainTraining(template="U00:%x[0,0]")
    with pytest.raises(DataError, match="no sequences"):
        fit_stored(training, column_files(empty))
    with pytest.raises(DataError, match="every position has the label 'X'"):
        fit_stored(training, column_files(dull))


def test_a_full_disk(text, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(DataError, match="TMPDIR"):
        fit_stored(ChainTraining(template=TEMPLATE), column_files(text))


@pytest.mark.parametrize("change", ["missing", "empty", "shorter"])
def test_blocks_that_somebody_has_removed(text, tmp_path, change):
    block = both(text, tmp_path / "blocks")[2].blocks[0]
    file = block.folder / "starts.npy"
    if change == "missing":
        file.unlink()
    else:
        file.write_bytes(b"" if change == "empty" else file.read_bytes()[:-8])
    with pytest.raises(DataError, match="the encoded sequences are gone"):
        block.read()
