"""The layer beside pytorch-crf and inside PyTorch: state dicts, autocast, torch.compile, training, copies."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from layer_cases import LABELS, mask_of, random_layer
from optional import optional
from torch import nn

from crfkit.torch import CRF

SHAPES = [(1, 1, 1), (3, 1, 4), (2, 7, 1), (5, 23, 9), (4, 11, 17), (3, 9, 40)]


@pytest.mark.filterwarnings("ignore:where received a uint8 condition tensor")  # in pytorch-crf
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_parity_with_pytorch_crf(shape, batch_first, path):
    peer = optional("torchcrf").CRF(shape[2], batch_first=batch_first)
    ours = CRF(shape[2], batch_first=batch_first)
    assert {k: v.shape for k, v in ours.state_dict().items()} == {k: v.shape for k, v in peer.state_dict().items()}
    ours.load_state_dict(peer.state_dict())
    peer.load_state_dict(ours.state_dict())
    peer, ours = peer.double(), ours.double()
    batch, time, n_tags = shape
    lengths = [time, *torch.randint(1, time + 1, (batch - 1,)).tolist()]
    mask, u = mask_of(lengths, time), torch.randn(batch, time, n_tags).double()
    tags = torch.randint(n_tags, (batch, time))
    if not batch_first:
        mask, u, tags = mask.T, u.transpose(0, 1), tags.T
    u.requires_grad_()
    for reduction in ("none", "sum", "mean", "token_mean"):
        results = []
        for layer in (ours, peer):
            layer.zero_grad()
            u.grad = None
            value = layer(u, tags, mask, reduction)
            value.sum().backward()
            results.append(
                [
                    value,
                    u.grad.clone(),
                    *(torch.zeros_like(p) if p.grad is None else p.grad for p in layer.parameters()),
                ]
            )
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours(u, tags), peer(u, tags), rtol=1e-9, atol=1e-9)
    assert ours.decode(u, mask) == peer.decode(u, mask.byte())
    assert ours.decode(u) == peer.decode(u)


def test_initial_parameters():
    layer = CRF(50)
    for parameter in layer.parameters():
        assert parameter.abs().max() <= 0.1
        assert parameter.std() > 0.04
    assert list(layer.state_dict()) == ["start_transitions", "end_transitions", "transitions"]
    assert repr(CRF(5, True, labels=LABELS, scheme="iob2")) == "CRF(num_tags=5, batch_first=True, scheme='iob2')"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [*SHAPES, (2, 6, 100)])
def test_the_core_agrees_with_the_plain_path(shape, dtype, monkeypatch):
    from crfkit.torch import native

    if not native.available():
        pytest.skip("the compiled core is not there")
    batch, time, n_tags = shape
    layer = random_layer(n_tags, dtype)
    u = torch.randn(shape, dtype=dtype, requires_grad=True)
    mask = mask_of([time, *torch.randint(0, time + 1, (batch - 1,)).tolist()], time)
    tags = torch.randint(n_tags, (batch, time))

    def answers():
        losses = [layer(u, tags, mask), layer.entropy(u, mask).sum(), (layer.marginals(u, mask) ** 2).sum()]
        gradients = [g for loss in losses for g in torch.autograd.grad(loss, [u, *layer.parameters()])]
        return [*losses, *gradients], layer.decode(u, mask), layer.nbest(u, 3, mask)

    compiled, decoded, best = answers()
    monkeypatch.setattr(native, "available", lambda: False)
    plain, decoded_plainly, best_plainly = answers()
    tolerance = 1e-9 if dtype == torch.float64 else 2e-5
    for a, b in zip(compiled, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    assert decoded == decoded_plainly
    for row, row_plainly in zip(best, best_plainly, strict=True):
        torch.testing.assert_close([s for _, s in row], [s for _, s in row_plainly], rtol=tolerance, atol=tolerance)


def test_single_precision_is_close_to_double(path):
    layer = random_layer(9, torch.float32)
    exact = random_layer(9)
    exact.load_state_dict(layer.state_dict())
    u, tags = torch.randn(4, 300, 9), torch.randint(9, (4, 300))
    single, double = u.clone().requires_grad_(), u.double().requires_grad_()
    a, b = layer(single, tags), exact(double, tags)
    torch.testing.assert_close(a.double(), b, rtol=1e-6, atol=0)
    a.backward()
    b.backward()
    torch.testing.assert_close(single.grad.double(), double.grad, rtol=0, atol=1e-5)
    torch.testing.assert_close(layer.transitions.grad.double(), exact.transitions.grad, rtol=1e-5, atol=1e-4)


def test_autocast(path):
    """Emissions come in bfloat16, and the recursions stay in float32."""
    network, layer = nn.Linear(6, 5), random_layer(5, torch.float32)
    x, tags = torch.randn(3, 30, 6), torch.randint(5, (3, 30))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        emissions = network(x)
        assert emissions.dtype == torch.bfloat16
        value = layer(emissions, tags)
        value.backward(retain_graph=True)
        entropy = layer.entropy(emissions).sum()
        entropy.backward()
        decoded = layer.decode(emissions)
    assert value.dtype == entropy.dtype == torch.float32
    exact = emissions.detach().float()
    torch.testing.assert_close(value, layer(exact, tags))
    torch.testing.assert_close(entropy, layer.entropy(exact).sum())
    assert decoded == layer.decode(exact)
    gradient = layer.transitions.grad.clone()
    layer.zero_grad()
    (layer(exact, tags) + layer.entropy(exact).sum()).backward()
    torch.testing.assert_close(layer.transitions.grad, gradient)
    assert network.weight.grad.isfinite().all()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(backend, path):
    layer = CRF(5, batch_first=True, labels=LABELS, scheme="iob2")
    network = nn.Linear(6, 5)
    x, tags, mask = torch.randn(3, 8, 6), torch.zeros(3, 8, dtype=torch.long), mask_of([8, 3, 0], 8)

    def loss(x, tags, mask):
        emissions = network(x)
        return -layer(emissions, tags, mask, reduction="mean") - 0.1 * layer.entropy(emissions, mask).mean()

    compiled = torch.compile(loss, backend=backend, fullgraph=True)
    results = []
    for function in (loss, compiled):
        network.zero_grad()
        layer.zero_grad()
        value = function(x, tags, mask)
        value.backward()
        results.append([value, network.weight.grad.clone(), layer.transitions.grad.clone()])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)
    decode = torch.compile(layer.decode, backend=backend)
    emissions = network(x).detach()
    assert decode(emissions, mask) == layer.decode(emissions, mask)
    with pytest.raises(ValueError, match="mask of sequence 1"):
        compiled(x, tags, mask.flip(1))
    with pytest.raises(ValueError, match="sequence 0, step 0: -100, an unknown tag, cannot be used"):
        compiled(x, tags - 100, mask)


def test_it_trains_saves_and_copies(path):
    torch.manual_seed(3)
    x, tags = torch.randn(20, 6, 4), torch.randint(3, (20, 6))
    network = nn.ModuleDict({"scores": nn.Linear(4, 3), "crf": CRF(3, batch_first=True, allowed=[[1, 1, 1]] * 3)})
    optimiser = torch.optim.Adam(network.parameters(), 0.1)
    values = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = -network["crf"](network["scores"](x), tags, reduction="token_mean")
        loss.backward()
        optimiser.step()
        values.append(loss.item())
    assert values[-1] < values[0] - 0.05
    other = copy.deepcopy(network)
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    other["crf"].reset_parameters()
    other.load_state_dict(torch.load(file))
    pickled = pickle.loads(pickle.dumps(network["crf"]))
    u = network["scores"](x)
    assert other["crf"].decode(u) == network["crf"].decode(u) == pickled.decode(u)
