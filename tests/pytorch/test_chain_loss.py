"""The chain likelihood on tensors: the numbers of the compiled core, and laws of its derivatives."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import optional
from oracle import make_problem

torch = optional("torch")

from tensor_cases import chains, tensor_loss  # noqa: E402

from crfkit.chain.data import SequenceData  # noqa: E402
from crfkit.chain.fields.field import ChainField  # noqa: E402
from crfkit.errors import CapabilityError, DataError, ParameterError  # noqa: E402
from crfkit.losses import ChainLikelihood  # noqa: E402
from crfkit.torch.chain_arrays import ChainArrays  # noqa: E402
from crfkit.torch.chain_loss import TensorChainLikelihood  # noqa: E402
from crfkit.torch.log_space import LogChains  # noqa: E402

TOLERANCE = {"double": 1e-9, "single": 1e-5}


def near(found, expected, precision) -> None:
    """Relative to the largest number of a vector."""
    tolerance = TOLERANCE[precision]
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance * scale)


def check(data, field, w, precision="double", every=True) -> None:
    """Value, gradient, Hessian products and diagonal are those of the compiled core."""
    loss, native = tensor_loss(data, field, precision), ChainLikelihood(data, field).at(w)
    found, v = loss.at(loss.vector(w)), np.random.default_rng(0).normal(size=len(w))
    assert loss.size == field.size
    near(found.value, native.value, precision)
    near(found.grad, native.grad, precision)
    if every:
        near(found.hessp(loss.vector(v)), native.hessp(v), precision)
        near(found.hess_diag(), native.hess_diag(), precision)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("states", ["all", "observed"])
@pytest.mark.parametrize("seed", range(4))
def test_the_numbers_are_those_of_the_core(seed, states, precision):
    data, field = chains(seed, states=states)
    check(data, field, np.random.default_rng(seed).normal(size=field.size), precision)


@pytest.mark.parametrize("lengths", [(), (0,), (1,), (0, 0), (1, 1), (5, 0, 1), (2, 3, 1, 3), (12,)])
def test_all_lengths(lengths):
    if not sum(lengths):
        starts = np.zeros(len(lengths) + 1, np.int64)
        data = SequenceData(starts, [0], np.zeros(0, np.int32), labels=np.zeros(0, np.int32))
        field = ChainField(3, 2, n_transition=9)
        loss = tensor_loss(data, field)
        found = loss.at(loss.zeros())
        assert (found.value, float(found.grad.abs().max())) == (0.0, 0.0)
        assert float(found.hessp(loss.zeros() + 1.0).abs().max()) == 0.0
        return
    problem = make_problem(len(lengths), 3, lengths, weights=True, values=True)
    check(problem.data, problem.field, problem.w)


@pytest.mark.parametrize("n_labels", [1, 2, 31, 70])
def test_label_counts(n_labels):
    problem = make_problem(0, n_labels, (3, 2, 4))
    check(problem.data, problem.field, problem.w)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("spread", [30.0, 60.0, 150.0, 250.0, 800.0])
def test_scores_of_any_size(spread, precision):
    """Where probabilities underflow, logarithms take over."""
    for seed in range(4):
        problem = make_problem(seed, 3, (5, 2, 4), weights=True, values=True)
        w = spread * np.random.default_rng(seed).uniform(-1, 1, problem.field.size)
        check(problem.data, problem.field, w, precision)


@pytest.mark.parametrize("spread", [1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_constraints(seed, spread):
    data, field = chains(seed, n_labels=4)
    assert data.labels is not None
    last = data.starts[1:][data.lengths > 0] - 1
    first = data.starts[:-1][data.lengths > 0]
    allowed = np.zeros((4, 4), dtype=bool)
    inner = np.setdiff1d(np.arange(data.n_positions), first)
    some = inner[: len(inner) // 2]
    allowed[data.labels[some - 1], data.labels[some]] = True
    allowed[:, 0] = True
    labels = data.labels.copy()
    labels[labels > 1] = 0  # what is forbidden does not occur
    labels[first] = labels[last] = 0
    start, end = np.array([1, 0, 1, 1], bool), np.array([1, 1, 1, 0], bool)
    allowed[:2, :2] = True
    masked = replace(field, allowed=allowed, allowed_start=start, allowed_end=end)
    check(data.with_labels(labels), masked, spread * np.random.default_rng(seed).normal(size=field.size))


def test_labels_that_constraints_forbid_are_named():
    data, field = chains(1)
    with pytest.raises(DataError, match=r"sequence 1, position 0: the constraints forbid the label"):
        tensor_loss(data, replace(field, allowed_start=np.zeros(4, dtype=bool)))


def test_no_transitions():
    data, _ = chains(2)
    check(
        data, ChainField.from_data(data, 4, 30, all_states=True, all_transitions=True, transitions=False), np.ones(120)
    )


@pytest.mark.parametrize("spread", [1.0, 700.0])
def test_gradients_are_finite_differences(spread):
    data, field = chains(3, n=8)
    loss = tensor_loss(data, field)
    rng = np.random.default_rng(0)
    w, v = loss.vector(spread * rng.normal(size=field.size)), loss.vector(rng.normal(size=field.size))
    step = 1e-5
    ahead, behind, here = loss.at(w + step * v), loss.at(w - step * v), loss.at(w)
    assert_allclose(float(here.grad @ v), (ahead.value - behind.value) / (2 * step), rtol=1e-5, atol=1e-5)
    difference = (ahead.grad - behind.grad) / (2 * step)
    assert_allclose(np.asarray(here.hessp(v)), np.asarray(difference), rtol=1e-5, atol=1e-6)


def test_the_hessian_is_symmetric_and_its_diagonal_is_that_of_independent_features():
    problem = make_problem(5, 3, (4, 3, 1), n_attributes=4)
    loss = tensor_loss(problem.data, problem.field)
    here = loss.at(loss.vector(problem.w))
    H = np.stack(
        [np.asarray(here.hessp(row)) for row in loss.vector(np.zeros(loss.size)).new_tensor(np.eye(loss.size))]
    )
    assert_allclose(H, H.T, atol=1e-12)
    assert np.linalg.eigvalsh(H).min() > -1e-10


def test_parts_sum_to_the_whole():
    data, field = chains(4)
    loss, rng = tensor_loss(data, field), np.random.default_rng(0)
    w = loss.vector(rng.normal(size=field.size))
    whole, order = loss.at(w), rng.permutation(len(data))
    parts = [loss.subset(order[k : k + 7]).at(w) for k in range(0, len(data), 7)]
    assert_allclose(sum(part.value for part in parts), whole.value, rtol=1e-12)
    assert_allclose(np.asarray(sum(part.grad for part in parts)), np.asarray(whole.grad), atol=1e-11)
    native = ChainLikelihood(data, field).subset(order[:7]).at(np.asarray(w))
    assert_allclose(parts[0].value, native.value, rtol=1e-12)
    assert len(loss.subset(order[:7]).data) == 7


def test_arrays_survive_a_file(tmp_path):
    data, field = chains(5)
    arrays = ChainArrays.of(data, field)
    arrays.save(tmp_path / "chains.npz")
    found = TensorChainLikelihood(ChainArrays.load(tmp_path / "chains.npz"), "torch:cpu")
    w = np.random.default_rng(0).normal(size=field.size)
    assert found.at(found.vector(w)).value == tensor_loss(data, field).at(found.vector(w)).value


def test_both_recursions_agree():
    data, field = chains(6)
    loss = tensor_loss(data, field)
    w, v = (loss.vector(np.random.default_rng(k).normal(size=field.size)) for k in range(2))
    here, rows = loss.at(w), loss.data
    logs = LogChains(*rows.scores.potentials(w), rows.packing)
    scaled = here._distributions()
    for square in (False, True):
        torch.testing.assert_close(
            logs.pair_sums(rows.later_weights, square), scaled.pair_sums(rows.later_weights, square)
        )
    torch.testing.assert_close(logs.nodes, scaled.nodes)
    changes = rows.scores.linear(v)
    for a, b in zip(
        logs.tangent(*changes, rows.later_weights), scaled.tangent(*changes, rows.later_weights), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


def test_the_precision_can_change_on_the_way():
    data, field = chains(0)
    loss = tensor_loss(data, field, "auto")
    w = loss.vector(np.random.default_rng(0).normal(size=field.size))
    rough = loss.at(w)
    assert rough.grad.dtype == torch.float64
    assert loss.used == "single, then double" or loss.used == "single"
    loss.tolerance = loss.finest
    exact = loss.at(w)
    assert 0 < abs(rough.value - exact.value) < 1e-5 * exact.value
    near(exact.value, ChainLikelihood(data, field).at(np.asarray(w)).value, "double")


# --- what cannot be


def test_errors():
    data, field = chains(0)
    loss = tensor_loss(data, field)
    with pytest.raises(ParameterError, match=r"the weights are a numpy\.ndarray; expected a tensor on cpu"):
        loss.at(np.zeros(loss.size))
    with pytest.raises(ParameterError, match=rf"shape \(3,\) .*expected shape \({loss.size},\)"):
        loss.at(torch.zeros(3, dtype=torch.float64))
    with pytest.raises(ParameterError, match=r"torch\.float16 .*expected .* float32 or float64"):
        loss.at(loss.zeros().half())
    with pytest.raises(ParameterError, match=r"unknown device 'gpu'; expected 'cuda', 'cuda:1' or 'torch:cpu'"):
        tensor_loss(data, field, device="gpu")
    with pytest.raises(DataError, match="needs labels"):
        tensor_loss(replace(data, labels=None), field)
    with pytest.raises(DataError, match=r"labels go from 0 to 7; expected 0 to 3"):
        tensor_loss(data.with_labels(np.where(data.labels == 1, 7, data.labels)), field)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none():
    with pytest.raises(
        ParameterError, match=r"the device 'cuda' cannot be used: .*drop the device to train on the CPU"
    ):
        tensor_loss(*chains(0), device="cuda")


def test_fields_that_tensors_do_not_have():
    data, field = chains(0)
    with pytest.raises(CapabilityError, match="of order 1, not 2"):
        ChainArrays.of(data, ChainField.from_data(data, 4, 30, all_states=True, all_transitions=True, order=2))
    with pytest.raises(CapabilityError, match="no label_classes"):
        ChainArrays.of(data, replace(field, label_classes=np.zeros(4, np.int32)))
    problem = make_problem(0, 3, (3, 2), n_pair_attributes=2)
    with pytest.raises(CapabilityError, match="attributes of label pairs"):
        ChainArrays.of(problem.data, problem.field)
