"""The grid layer inside PyTorch: state dicts, autocast, torch.compile, copies, training with a network."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from grid_cases import LAYERS, random_grid_layer
from torch import nn

from crfkit.torch import GridCRF


def test_it_begins_with_the_network_alone():
    u, labels = torch.randn(2, 3, 4, 5), torch.randint(3, (2, 4, 5))
    expected = nn.functional.cross_entropy(u, labels, reduction="sum")
    for options in LAYERS.values():
        for loss in ("pseudo-likelihood", "marginals"):
            layer = GridCRF(3, loss=loss, **options)
            given = {"image": u} if layer.contrast else {}
            torch.testing.assert_close(layer(u, labels, **given), expected)
            torch.testing.assert_close(layer.marginals(u, **given), torch.softmax(u, 1))


def test_copies_and_files():
    layer = random_grid_layer(3, contrast=True, neighbours=8)
    u = torch.randn(1, 3, 4, 4).double()
    stream = io.BytesIO()
    torch.save(layer.state_dict(), stream)
    loaded = GridCRF(3, 8, contrast=True).double()
    loaded.load_state_dict(torch.load(io.BytesIO(stream.getvalue())))
    for other in (loaded, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        torch.testing.assert_close(other.marginals(u, image=u), layer.marginals(u, image=u))
    assert "neighbours=8" in repr(layer)


def test_autocast_does_not_narrow():
    layer = random_grid_layer(3, torch.float32, contrast=True)
    u, labels = torch.randn(2, 3, 6, 6), torch.randint(3, (2, 6, 6))
    expected, marginals = layer(u, labels, image=u), layer.marginals(u, image=u)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(u, labels, image=u), expected)
        assert torch.equal(layer.marginals(u, image=u), marginals)


@pytest.mark.parametrize("loss", ["pseudo-likelihood", "marginals"])
@pytest.mark.parametrize("options", LAYERS.values(), ids=list(LAYERS))
def test_compiled_programs(options, loss):
    """One graph without a break, with the same values and gradients."""
    layer = random_grid_layer(3, loss=loss, **options)
    u = torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    labels, mask = torch.randint(3, (2, 4, 5)), torch.rand(2, 4, 5) < 0.8
    labels[0, 0, 0] = -100
    given = {"image": torch.rand(2, 1, 4, 5, dtype=torch.float64)} if layer.contrast else {}
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    results = []
    for run in (layer, compiled):
        found = run(u, labels, mask, **given)
        results.append([found, *torch.autograd.grad(found, [u, *layer.parameters()])])
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", ["pseudo-likelihood", "marginals"])
def test_a_network_learns_with_it(loss):
    """A network of single pixels, and images with noise that only neighbours tell apart."""
    generator = torch.Generator().manual_seed(1)
    truth = torch.zeros(8, 16, 16, dtype=torch.long)
    for image in truth:
        y, x = torch.randint(2, 9, (2,), generator=generator).tolist()
        image[y : y + 6, x : x + 6] = 1
    x = truth[:, None] + 0.8 * torch.randn(truth[:, None].shape, generator=generator)
    network, layer = nn.Conv2d(1, 2, 1), GridCRF(2, form="potts", loss=loss)
    optimiser = torch.optim.Adam([*network.parameters(), *layer.parameters()], 0.1)
    for _ in range(60):
        optimiser.zero_grad()
        layer(network(x[:4]), truth[:4], reduction="pixel_mean").backward()
        optimiser.step()
    with torch.no_grad():
        unary = network(x[4:])
    alone = (unary.argmax(1) == truth[4:]).float().mean()
    together = (layer.decode(unary) == truth[4:]).float().mean()
    assert (layer.compatibility > 0.3).all()
    assert alone < 0.85
    assert together > 0.93
