"""The grid layer against pixels one at a time, enumeration, and the compiled core; values, gradients, masks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from grid_cases import LAYERS, Pixels, native_case, random_grid_layer
from layer_cases import COMPILED_CORE

EXACT = {"rtol": 1e-9, "atol": 1e-9}
MASK = torch.tensor([[[1, 1, 1], [1, 1, 1]], [[1, 1, 0], [1, 0, 1]], [[0, 0, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0]]])


@pytest.fixture(params=list(LAYERS))
def case(request):
    """Return (layer, keywords with the image, unary scores, mask, labels) of four images."""
    options = LAYERS[request.param]
    layer = random_grid_layer(2 if request.param == "potts" else 3, **options)
    unary = torch.randn(len(MASK), layer.num_labels, 2, 3, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(layer.num_labels, (len(MASK), 2, 3))
    labels[MASK == 0] = 77
    image = {"image": torch.randn(len(MASK), 2, 2, 3, dtype=torch.float64, requires_grad=True)}
    return layer, image if layer.contrast else {}, unary, MASK.bool(), labels


def each_image(layer, given, unary, inside):
    for n in range(len(unary)):
        image = given["image"][n] if given else None
        yield n, Pixels.of(layer, unary[n], image, inside[n])


def chosen(labels, n):
    return {tuple(place): int(labels[n][tuple(place)]) for place in np.ndindex(*labels.shape[1:])}


def check_gradients(found, expected, inputs):
    by = torch.randn(found.shape, dtype=torch.float64)
    both = [
        torch.autograd.grad((by * x).sum(), inputs, retain_graph=True, allow_unused=True, materialize_grads=True)
        for x in (found, expected)
    ]
    for a, b in zip(*both, strict=True):
        torch.testing.assert_close(a, b, **EXACT)


def test_pseudo_likelihood(case):
    """Also with unknown labels, whose pixels leave the grid, and weights."""
    layer, given, unary, mask, labels = case
    inputs = [unary, *given.values(), *layer.parameters()]
    weights = torch.rand(labels.shape, dtype=torch.float64)
    for unknown in (torch.zeros_like(mask), torch.rand(mask.shape) < 0.3):
        labels = labels.masked_fill(unknown, -100)
        rows = []
        for n, pixels in each_image(layer, given, unary, mask & ~unknown):
            terms = pixels.log_conditionals(chosen(labels, n))
            rows.append(-sum((weights[n][p] * term for p, term in terms.items()), unary.new_zeros(())))
        expected = torch.stack(rows)
        found = layer(unary, labels, mask, reduction="none", pixel_weights=weights, **given)
        torch.testing.assert_close(found, expected, **EXACT)
        check_gradients(found, expected, inputs)


def test_marginals_and_their_loss(case):
    layer, given, unary, mask, labels = case
    layer.sweeps, layer.damping, layer.loss = 3, 0.3, "marginals"
    inputs = [unary, *given.values(), *layer.parameters()]
    labels = labels.masked_fill(torch.rand(mask.shape) < 0.3, -100)
    expected, losses = torch.zeros_like(unary), []
    for n, pixels in each_image(layer, given, unary, mask):
        q = pixels.mean_field(3, 0.3)
        for (y, x), row in q.items():
            expected[n, :, y, x] = row
        terms = [q[p][labels[n][p]].log() for p in q if labels[n][p] >= 0]
        losses.append(-sum(terms, unary.new_zeros(())))
    found = layer.marginals(unary, mask, **given)
    torch.testing.assert_close(found, expected, **EXACT)
    check_gradients(found, expected, inputs)
    torch.testing.assert_close(found.sum(1), mask.double(), **EXACT)
    best = layer.decode(unary, mask, **given)
    assert torch.equal(best, found.argmax(1).masked_fill(~mask, -100))
    loss = layer(unary, labels, mask, reduction="none", **given)
    torch.testing.assert_close(loss, torch.stack(losses), **EXACT)
    check_gradients(loss, torch.stack(losses), inputs)


def test_lower_bound(case):
    layer, given, unary, mask, _ = case
    layer.sweeps = 100
    bound = layer.lower_bound(unary, mask, **given)
    for n, pixels in each_image(layer, given, unary, mask):
        log_z = pixels.log_z()
        assert bound[n] <= log_z + 1e-9
        if len(pixels.places) <= 1:
            torch.testing.assert_close(bound[n], log_z, **EXACT)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
    expected = torch.where(mask, torch.logsumexp(unary, 1), 0.0).sum((1, 2))
    torch.testing.assert_close(layer.lower_bound(unary, mask, **given), expected, **EXACT)


@pytest.mark.skipif(not COMPILED_CORE, reason="the compiled core is not there")
@pytest.mark.parametrize("contrast", [False, True])
@pytest.mark.parametrize("neighbours", [4, 8])
class TestTheCore:
    """One image of some size with equal weights in the compiled core."""

    def case(self, neighbours, contrast, scale):
        layer = random_grid_layer(3, scale=scale, neighbours=neighbours, contrast=contrast)
        unary = torch.randn(3, 9, 11, dtype=torch.float64)
        labels = torch.randint(3, (9, 11))
        image = torch.randn(2, 9, 11, dtype=torch.float64) if contrast else None
        given = {"image": image[None]} if contrast else {}
        return layer, unary, labels, given, native_case(layer, unary, labels, image)

    def test_pseudo_likelihood(self, neighbours, contrast):
        from crfkit.graph.losses.pseudo import PseudoLikelihood

        layer, unary, labels, given, (data, field, w) = self.case(neighbours, contrast, 1.0)
        expected = PseudoLikelihood(data, field).at(w)
        _, by_edge = field.unpack(expected.grad)
        for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-5)):
            layer = layer.to(dtype)
            layer.zero_grad()
            value = layer(unary[None].to(dtype), labels[None], **{k: x.to(dtype) for k, x in given.items()})
            assert value.dtype == dtype
            torch.testing.assert_close(value.item(), expected.value, rtol=tolerance, atol=0)
            value.backward()
            tables = [layer.compatibility, *([layer.contrast_compatibility] if contrast else [])]
            for g, table in enumerate(tables):
                wanted = torch.from_numpy(by_edge[:, :, g].copy()).view_as(table)
                torch.testing.assert_close(
                    table.grad.double(), wanted, rtol=tolerance, atol=tolerance * float(wanted.abs().max())
                )

    def test_mean_field(self, neighbours, contrast):
        from crfkit.graph.inference.mean_field import MeanField

        layer, unary, _, given, (data, field, w) = self.case(neighbours, contrast, 0.2)
        layer.sweeps = 300
        expected = MeanField(tolerance=1e-13).run(field.potentials(data, w))
        found = layer.marginals(unary[None], **given)[0].flatten(1).T
        torch.testing.assert_close(found.detach().numpy(), expected.nodes, **EXACT)
        bound = layer.lower_bound(unary[None], **given)
        torch.testing.assert_close(bound.detach().numpy(), expected.log_z, **EXACT)


@pytest.mark.parametrize("options", LAYERS.values(), ids=list(LAYERS))
def test_gradcheck(options):
    layer = random_grid_layer(2, sweeps=2, damping=0.4, **options)
    unary = torch.randn(1, 2, 2, 2, dtype=torch.float64, requires_grad=True)
    labels, mask = torch.randint(2, (1, 2, 2)), torch.tensor([[[1, 1], [1, 0]]])
    given = (torch.randn(1, 1, 2, 2, dtype=torch.float64, requires_grad=True),) if layer.contrast else ()
    names = [name for name, _ in layer.named_parameters()]

    def call(method, loss="marginals"):
        def function(u, *values):
            layer.loss = loss
            image = {"image": values[-1]} if layer.contrast else {}
            arguments = (u, labels, mask) if method == "forward" else (u, mask)
            parameters = dict(zip(names, values, strict=False))
            return torch.func.functional_call(
                Calls(layer, method), {f"layer.{k}": v for k, v in parameters.items()}, arguments, image
            )

        return function

    values = (unary, *(p.detach().clone().requires_grad_() for p in layer.parameters()), *given)
    for function in (
        call("forward", "pseudo-likelihood"),
        call("forward"),
        call("marginals"),
        call("lower_bound"),
    ):
        assert torch.autograd.gradcheck(function, values)
        assert torch.autograd.gradgradcheck(function, values)


class Calls(torch.nn.Module):
    """A method of a layer as a module, for functional_call."""

    def __init__(self, layer, method):
        super().__init__()
        self.layer, self.method = layer, method

    def forward(self, *arguments, **keywords):
        return getattr(self.layer, self.method)(*arguments, **keywords)


def test_padding_may_hold_anything(case):
    layer, given, unary, mask, labels = case
    layer.loss = "marginals"
    layer(unary, labels, mask, **given).backward()
    expected = unary.grad.clone()
    wild = unary.detach().clone()
    wild[~mask[:, None].expand_as(wild)] = torch.nan
    wild.requires_grad_()
    given = {name: torch.where(mask[:, None], x.detach(), torch.inf) for name, x in given.items()}
    found = layer(wild, labels, mask, **given)
    torch.testing.assert_close(found, layer(unary, labels, mask, **given), **EXACT)
    found.backward()
    torch.testing.assert_close(wild.grad, expected, **EXACT)


def test_a_mask_cuts_an_image(case):
    """Padding at the right and below gives what the image gives by itself."""
    layer, given, unary, _, labels = case
    labels = labels.where(labels != 77, 0)
    for loss in ("pseudo-likelihood", "marginals"):
        layer.loss = loss
        cut = {name: x[:, :, :1, :2] for name, x in given.items()}
        mask = torch.zeros_like(labels)
        mask[:, :1, :2] = 1
        found = layer(unary, labels, mask, reduction="none", **given)
        expected = layer(unary[:, :, :1, :2], labels[:, :1, :2], reduction="none", **cut)
        torch.testing.assert_close(found, expected, **EXACT)


def test_reductions(case):
    layer, given, unary, mask, labels = case
    rows = layer(unary, labels, mask, "none", **given)
    known = mask.sum()
    for reduction, expected in {"sum": rows.sum(), "mean": rows.mean(), "pixel_mean": rows.sum() / known}.items():
        torch.testing.assert_close(layer(unary, labels, mask, reduction, **given), expected, **EXACT)
    nothing = torch.full_like(labels, -100)
    assert layer(unary, nothing, mask, "pixel_mean", **given).item() == 0


def test_forbidden_labels(case):
    """Scores of −inf: the probability is 0, gradients are finite, also through all sweeps."""
    layer, given, unary, mask, labels = case
    labels = torch.where(mask, labels, 0)
    forbidden = torch.nn.functional.one_hot((labels + 1) % layer.num_labels, layer.num_labels).permute(0, 3, 1, 2)
    u = unary.detach().masked_fill(forbidden.bool(), -torch.inf).requires_grad_()
    lowest = unary.detach().masked_fill(forbidden.bool(), -800.0).requires_grad_()
    assert (layer.marginals(u, mask, **given)[forbidden.bool()] == 0).all()
    for loss in ("pseudo-likelihood", "marginals"):
        layer.loss = loss
        found, expected = layer(u, labels, mask, **given), layer(lowest, labels, mask, **given)
        torch.testing.assert_close(found, expected, **EXACT)
        (a,), (b,) = torch.autograd.grad(found, u), torch.autograd.grad(expected, lowest)
        torch.testing.assert_close(a, b, **EXACT)
    torch.testing.assert_close(layer.lower_bound(u, mask, **given), layer.lower_bound(lowest, mask, **given), **EXACT)


def test_marginals_do_not_underflow():
    """A label that is nearly impossible still has a loss and a gradient."""
    layer = random_grid_layer(2, torch.float32, loss="marginals", damping=0.5)
    unary = torch.zeros(1, 2, 2, 2)
    unary[0, 0] = 500.0
    unary.requires_grad_()
    loss = layer(unary, torch.ones(1, 2, 2, dtype=torch.long))
    assert loss.item() > 4 * 400
    loss.backward()
    torch.testing.assert_close(unary.grad[:, 1], -torch.ones(1, 2, 2))
