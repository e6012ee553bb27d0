"""What a grid layer accepts and what it refuses, with messages that say what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from grid_cases import random_grid_layer

from crfkit.errors import DataError, ParameterError
from crfkit.torch import GridCRF

U = torch.randn(2, 3, 4, 5)
Y = torch.zeros(2, 4, 5, dtype=torch.long)
MASK = torch.ones(2, 4, 5, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: g(U[0], Y), r"unary scores have 3 dimensions; expected 4: \(batch, labels, height, width\)"),
        (lambda g: g(U[:, :2], Y), "unary scores have 2 labels; expected 3, as num_labels says$"),
        (lambda g: g(U.permute(0, 2, 3, 1), Y), "have 4 labels; expected 3, as num_labels says; pass channels_last"),
        (lambda g: g(U[:0], Y[:0]), "expected at least one image and pixel"),
        (lambda g: g(U.long(), Y), "unary scores are of type torch.int64; expected floating-point"),
        (lambda g: g.decode(U.numpy()), "unary scores are a ndarray; expected a tensor"),
        (lambda g: g(U.to("meta"), Y), "unary scores are on meta, the layer on cpu; move one of them with .to"),
        (lambda g: g(U, Y.to("meta")), "labels is on meta, the unary scores on cpu"),
        (lambda g: g(U, Y[:, :3]), r"labels has the shape \(2, 3, 5\); expected \(2, 4, 5\)"),
        (lambda g: g(U, Y.tolist()), "labels is a list; expected a tensor"),
        (lambda g: g(U, Y.float()), "labels are of type torch.float32; expected integers"),
        (lambda g: g(U, Y, MASK[:, :, :4]), r"mask has the shape \(2, 4, 4\)"),
        (lambda g: g(U, Y + 3), r"labels of image 0, pixel \(0, 0\): 3 is not a label; expected 0 … 2, or -100"),
        (lambda g: g(U, Y - 1), "-1 is not a label"),
        (lambda g: g(U, Y, pixel_weights=MASK[0].float()), r"pixel_weights has the shape \(4, 5\)"),
        (lambda g: g.marginals(U - torch.inf), r"image 0, pixel \(0, 0\): unary scores of -inf forbid all labels"),
        (
            lambda g: g(torch.where(torch.arange(3)[:, None, None] == 0, -torch.inf, U), Y),
            r"labels of image 0, pixel \(0, 0\): unary scores of -inf forbid its label 0",
        ),
        (lambda g: g.decode(U, image=U), "takes no image; pass contrast=True"),
    ],
)
def test_bad_data(call, message):
    with pytest.raises(DataError, match=message):
        call(random_grid_layer(3, torch.float32))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (None, "needs image=, as contrast=True says"),
        (U[0], r"the image has 3 dimensions; expected a tensor \(batch, channels, height, width\)"),
        ([1], "the image has the type list"),
        (U[:, :, :3], r"the image has the shape \(2, 3, 3, 5\); expected \(2, 3, 4, 5\)"),
        (U[:, :0], "the image has no channels"),
        (U > 0, "the image is of type torch.bool; expected numbers"),
        (U.to("meta"), "the image is on meta"),
    ],
)
def test_bad_images(image, message):
    layer = random_grid_layer(3, torch.float32, contrast=True)
    for call in (lambda: layer(U, Y, image=image), lambda: layer.decode(U, image=image)):
        with pytest.raises(DataError, match=message):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GridCRF(1), "num_labels is 1; expected a whole number >= 2"),
        (lambda: GridCRF(2.5), "num_labels is 2.5"),
        (lambda: GridCRF(2, 6), "neighbours is 6; expected 4 or 8"),
        (lambda: GridCRF(2, form="ising"), "form is 'ising'; expected one of full, potts"),
        (lambda: GridCRF(2, loss="likelihood"), "loss is 'likelihood'; expected one of pseudo-likelihood, marginals"),
        (lambda: GridCRF(2, sweeps=0), "sweeps is 0; expected a whole number >= 1"),
        (lambda: GridCRF(2, damping=1), "damping is 1; expected a number from 0 to below 1"),
        (lambda: GridCRF(2, damping="half"), "damping is 'half'"),
        (lambda: GridCRF(3)(U, Y, reduction="token_mean"), "reduction is 'token_mean'; expected one of none, sum"),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_any_layout_and_precision_gives_the_same():
    """Labels last, not contiguous, half precision: widened, and the gradient comes back in the input's type."""
    for options in ({}, {"loss": "marginals"}, {"contrast": True}):
        layer = random_grid_layer(3, torch.float32, 0.3, **options)
        last = random_grid_layer(3, torch.float32, channels_last=True, **options)
        last.load_state_dict(layer.state_dict())
        given = {"image": U[:, :2]} if layer.contrast else {}
        turned = {"image": U[:, :2].permute(0, 2, 3, 1)} if layer.contrast else {}
        expected = layer(U, Y, MASK, **given)
        torch.testing.assert_close(last(U.permute(0, 2, 3, 1), Y, MASK, **turned), expected)
        assert torch.equal(last.decode(U.permute(0, 2, 3, 1), **turned), layer.decode(U, **given))
        marginals = last.marginals(U.permute(0, 2, 3, 1), **turned)
        torch.testing.assert_close(marginals, layer.marginals(U, **given).permute(0, 2, 3, 1))
        wide = torch.randn(2, 6, 4, 10)
        wide[:, ::2, :, ::2] = U
        torch.testing.assert_close(layer(wide[:, ::2, :, ::2], Y, **given), expected)
        for number in (MASK.byte(), MASK.long(), MASK.float()):
            torch.testing.assert_close(layer(U, Y.int(), number, **given), expected)
        for dtype in (torch.float16, torch.bfloat16):
            half = U.to(dtype).requires_grad_()
            found = layer(half, Y, **given)
            assert found.dtype == torch.float32
            torch.testing.assert_close(found, layer(half.detach().float(), Y, **given))
            found.backward()
            assert half.grad.dtype == dtype
            assert half.grad.isfinite().all()
        assert layer(U.double(), Y, **given).dtype == torch.float64
        exact = random_grid_layer(3, **options)
        exact.load_state_dict(layer.state_dict())
        exact_given = {name: x.double() for name, x in given.items()}
        torch.testing.assert_close(exact(U.double(), Y, **exact_given).float(), expected, rtol=1e-5, atol=0)


def test_not_a_number_stays_visible():
    for loss in ("pseudo-likelihood", "marginals"):
        layer = random_grid_layer(3, torch.float32, loss=loss)
        u = U.clone()
        u[1, 0, 2, 2] = torch.nan
        assert layer(u, Y, reduction="none").isnan().tolist() == [False, True]


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (4, 1), (2, 1)])
def test_thin_images(size):
    """Some directions have no edges there."""
    layer = random_grid_layer(3, torch.float32, neighbours=8, contrast=True)
    u, image = torch.randn(2, 3, *size), torch.randn(2, 1, *size)
    loss = layer(u, torch.zeros(2, *size, dtype=torch.long), image=image)
    loss.backward()
    torch.testing.assert_close(layer.marginals(u, image=image).sum(1), torch.ones(2, *size))
    if size == (1, 1):
        torch.testing.assert_close(loss, -torch.log_softmax(u, 1)[:, 0].sum())


def test_it_works_without_the_compiled_core():
    code = """
import sys
sys.modules["crfkit._core"] = None
import torch
from crfkit.torch import GridCRF
layer = GridCRF(3, 8, contrast=True, loss="marginals")
u = torch.randn(2, 3, 4, 4, requires_grad=True)
layer(u, torch.zeros(2, 4, 4, dtype=torch.long), image=u).backward()
layer.decode(u, image=u)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
