"""What a layer accepts and what it refuses, with messages that say what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from layer_cases import LABELS, mask_of, random_layer

from crfkit.errors import CrfkitError, DataError, MissingPackageError, ParameterError
from crfkit.torch import CRF


@pytest.fixture
def layer():
    return random_layer(3, torch.float32)


E = torch.randn(2, 4, 3)
Y = torch.zeros(2, 4, dtype=torch.long)
HOLE = torch.tensor([[1, 1, 1, 1], [1, 0, 1, 1]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c(E[0], Y), r"emissions have 2 dimensions; expected 3: \(batch, time, tags\)"),
        (lambda c: c(E[:, :, :2], Y), "emissions have 2 tags; expected 3"),
        (lambda c: c(E[:0], Y[:0]), "expected at least one sequence and step"),
        (lambda c: c(E.long(), Y), "emissions are of type torch.int64; expected floating-point"),
        (lambda c: c(E.numpy(), Y), "emissions are a ndarray; expected a tensor"),
        (lambda c: c(E.to("meta"), Y), r"emissions are on meta, the layer on cpu; move one of them with .to\(device\)"),
        (lambda c: c(E, Y.to("meta")), "tags is on meta, the emissions on cpu"),
        (lambda c: c(E, Y[:, :3]), r"tags has the shape \(2, 3\); expected \(2, 4\)"),
        (lambda c: c(E, Y.tolist()), "tags is a list; expected a tensor"),
        (lambda c: c(E, Y.float()), "tags are of type torch.float32; expected integers"),
        (lambda c: c(E, Y, mask_of([4, 3], 5)), r"mask has the shape \(2, 5\); expected \(2, 4\)"),
        (lambda c: c(E, Y, HOLE), "mask of sequence 1: step 1 is off, but a later one is on. Padding must follow"),
        (lambda c: c.decode(E, HOLE.flip(1) == 0), "mask of sequence 1: its first step is off"),
        (lambda c: c(E, Y + 3), "tags of sequence 0, step 0: 3 is not a tag; expected 0 … 2, or -100"),
        (lambda c: c(E, Y - 1), "-1 is not a tag"),
        (lambda c: c(E, torch.where(mask_of([4, 2], 4), 0, -7)), "tags of sequence 1, step 2: -7 is not a tag"),
        (lambda c: c(E, torch.zeros(2, 4, 3, dtype=torch.bool)), "sequence 0: no labelling is left"),
        (lambda c: c(E, Y, token_weights=torch.ones(2, 3)), r"token_weights has the shape \(2, 3\)"),
    ],
)
def test_bad_data(layer, call, message, path):
    with pytest.raises(DataError, match=message):
        call(layer)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CRF(0), "num_tags is 0; expected a whole number >= 1"),
        (lambda: CRF(2.5), "num_tags is 2.5"),
        (lambda: CRF(3, allowed=[[1, 0], [1, 1]]), r"allowed has the shape \(2, 2\); expected \(3, 3\)"),
        (lambda: CRF(2, allowed=[[1.5, 0], [1, 1]]), "allowed is of type float64; expected booleans"),
        (lambda: CRF(2, allowed_start=[0, 0]), "allowed_start allows no tag at all"),
        (lambda: CRF(3, scheme="iob2"), r"scheme is 'iob2', but the tags have no names; give labels="),
        (lambda: CRF(4, labels=LABELS), "labels are 5; expected num_tags = 4"),
        (lambda: CRF(2, labels=["A", "A"]), "labels must be distinct"),
        (lambda: CRF(5, labels=LABELS, scheme="iob3"), "unknown scheme 'iob3'"),
        (lambda: CRF(5, labels=LABELS, scheme="ioe2"), "do not know the label .B-X."),
        (
            lambda: CRF(3)(E.transpose(0, 1), Y.T, reduction="avg"),
            "reduction is 'avg'; expected one of none, sum, mean",
        ),
        (lambda: CRF(3, True).nbest(E, 0), "n is 0; expected a whole number >= 1"),
        (lambda: CRF(3, True).sample(E, n=-1), "n is -1"),
        (lambda: CRF(3, True).span_probabilities(E, []), "labels are not given"),
        (lambda: CRF(3, True).kl(CRF(4, True), E, E), r"other is CRF\(num_tags=4"),
    ],
)
def test_bad_options(call, message):
    with pytest.raises((ParameterError, CrfkitError), match=message) as error:
        call()
    assert isinstance(error.value, ValueError)


def test_tags_that_constraints_forbid(path):
    layer = CRF(5, batch_first=True, labels=LABELS, scheme="iob2")
    u = torch.randn(1, 3, 5)
    for tags, message in {
        (2, 0, 0): "do not let a sequence begin with tag 2",
        (0, 0, 4): "sequence 0, step 2: the constraints do not let tag 4 follow tag 0",
    }.items():
        with pytest.raises(DataError, match=message):
            layer(u, torch.tensor([tags]))
    layer = CRF(2, batch_first=True, allowed_end=[0, 1])
    with pytest.raises(DataError, match="do not let a sequence end with tag 0"):
        layer(torch.randn(1, 2, 2), torch.tensor([[1, 0]]))
    nothing = CRF(2, batch_first=True, allowed=[[0, 0], [0, 0]])
    for call in (nothing.decode, nothing.marginals, nothing.sample, lambda u: nothing.nbest(u, 2)):
        with pytest.raises(DataError, match="no labelling"):
            call(torch.randn(2, 2, 2))
    assert [len(row) for row in nothing.decode(torch.randn(2, 1, 2))] == [1, 1]


def test_emissions_of_minus_infinity_forbid(path):
    layer = random_layer(3)
    u = torch.randn(1, 4, 3, dtype=torch.float64)
    sets = torch.ones(1, 4, 3, dtype=torch.bool)
    sets[0, 1, 2] = False
    expected = layer(u, sets) + layer.log_partition(u)[0]
    forbidding = u.masked_fill(~sets, -torch.inf).requires_grad_()
    found = layer.log_partition(forbidding)[0]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    found.backward()
    assert forbidding.grad[~sets].tolist() == [0]
    assert forbidding.grad.isfinite().all()
    assert layer.decode(forbidding)[0][1] != 2
    assert (layer.sample(forbidding, n=50)[:, 0, 1] != 2).all()
    for call in (layer.decode, layer.log_partition):
        with pytest.raises(DataError, match="sequence 0: no labelling is left"):
            call(torch.full((1, 2, 3), -torch.inf, dtype=torch.float64))


def test_any_layout_and_precision_gives_the_same(layer, path):
    """Time or batch first, not contiguous, half precision: widened, and the gradient comes back in the input's type."""
    mask = mask_of([4, 2], 4)
    expected = layer(E, Y, mask)
    time_first = CRF(3)
    time_first.load_state_dict(layer.state_dict())
    torch.testing.assert_close(time_first(E.transpose(0, 1), Y.T, mask.T), expected)
    assert time_first.decode(E.transpose(0, 1), mask.T) == layer.decode(E, mask)
    assert time_first.marginals(E.transpose(0, 1), mask.T).shape == (4, 2, 3)
    assert time_first.sample(E.transpose(0, 1), mask.T, n=5).shape == (5, 4, 2)
    wide = torch.randn(2, 4, 6)
    wide[:, :, ::2] = E
    torch.testing.assert_close(layer(wide[:, :, ::2], Y, mask), expected)
    for number in (mask.byte(), mask.long(), mask.float()):
        torch.testing.assert_close(layer(E, Y, number), expected)
    for dtype in (torch.float16, torch.bfloat16):
        half = E.to(dtype).requires_grad_()
        found = layer(half, Y, mask)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, layer(half.detach().float(), Y, mask))
        found.backward()
        assert half.grad.dtype == dtype
        assert half.grad.isfinite().all()
    assert layer(E.double(), Y, mask).dtype == torch.float64


def test_not_a_number_stays_visible(layer, path):
    """Scalers of mixed precision look for it in the gradient."""
    u = E.clone()
    u[1, 2, 0] = torch.nan
    u.requires_grad_()
    value = layer(u, Y, reduction="none")
    assert value.isnan().tolist() == [False, True]
    value.sum().backward()
    assert u.grad[0].isfinite().all()
    assert u.grad[1].isnan().any()


def test_large_scores(path):
    """Scores far beyond what single exponentials hold."""
    for scale in (30.0, 1e4):
        layer = random_layer(4, torch.float32, scale)
        exact = random_layer(4)
        exact.load_state_dict(layer.state_dict())
        u, tags = scale * torch.randn(3, 40, 4), torch.randint(4, (3, 40))
        mask = mask_of([40, 17, 1], 40)
        single, double = layer(u, tags, mask), exact(u.double(), tags, mask)
        torch.testing.assert_close(single, double.float(), rtol=1e-5, atol=0)
        torch.testing.assert_close(
            layer.marginals(u, mask).double(), exact.marginals(u.double(), mask), rtol=0, atol=1e-3 * scale / 30
        )


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    import crfkit.torch as package

    with pytest.raises(
        MissingPackageError, match=r"crfkit.torch.CRF needs torch; install it with pip install 'crfkit\[torch\]'"
    ):
        assert package.CRF
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        assert package.Nothing
    assert "CRF" in dir(package)


def test_it_works_without_the_compiled_core():
    code = """
import sys
sys.modules["crfkit._core"] = None
import torch
from crfkit.torch import CRF, native
assert not native.available()
layer = CRF(5, batch_first=True, labels=["O", "B-X", "I-X", "B-Y", "I-Y"], scheme="iob2")
u = torch.randn(2, 4, 5, requires_grad=True)
(-layer(u, torch.zeros(2, 4, dtype=torch.long))).backward()
layer.decode(u), layer.nbest(u, 2), layer.sample(u), layer.span_probabilities(u, [(0, 1, 2, "X")])
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
