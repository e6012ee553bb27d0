"""The kernels behind the layer, for every instruction set and number of threads, against the plain recursions."""

from __future__ import annotations

import pytest
import torch
from layer_cases import COMPILED_CORE

from crfkit.torch import paths, recursions

if not COMPILED_CORE:
    pytest.skip("the compiled core is not there", allow_module_level=True)

from crfkit import _core


@pytest.fixture(params=[(1, 1), (2, 3), (9, 7), (17, 5), (33, 4), (70, 3)], ids=lambda shape: f"{shape[0]} labels")
def scores(request):
    n, time = request.param
    lengths = torch.tensor([time, 0, 1, *torch.randint(0, time + 1, (9,)).tolist()])
    u, P = torch.randn(len(lengths), time, n).double(), torch.randn(n, n).double()
    start, end = torch.randn(n).double(), torch.randn(n).double()
    return u, start, P, end, lengths


@pytest.mark.parametrize("forbidding", [False, True])
@pytest.mark.parametrize("time_first", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernels", _core.available_kernels())
@pytest.mark.parametrize("n_threads", [1, 3])
def test_beliefs_tangents_and_best_paths(scores, kernels, n_threads, dtype, time_first, forbidding):
    u, start, P, end, lengths = scores
    if forbidding and P.shape[0] > 2:  # all labels can be reached from each other still
        P = P.masked_fill(torch.rand(P.shape) < 0.3, -torch.inf)
        P.fill_diagonal_(0.5)
        u = u.masked_fill(torch.rand(u.shape) < 0.2, -torch.inf)
        u[:, :, 0] = 1.0
        P[0, 0] = 0.0
    batch, time, n = u.shape
    rounded = [x.to(dtype) for x in (u, start, P, end)]
    exact = [x.double() for x in rounded]
    with_ends = recursions.with_boundaries(exact[0], exact[1], exact[3], lengths)
    expected = recursions.beliefs(with_ends, exact[2], lengths)

    def arrays(u, start, P, end):
        u = u.transpose(0, 1).contiguous() if time_first else u
        return (u.numpy(), time_first, start.numpy(), P.numpy(), end.numpy(), lengths.numpy(), n_threads)

    log_z, node, edge = (
        torch.empty(batch).double(),
        torch.empty(batch, time, n).to(dtype),
        torch.empty(batch, n, n).to(dtype),
    )
    outputs = (log_z.numpy(), node.view(-1).numpy(), edge.view(-1).numpy())
    _core.dense_beliefs(*arrays(*rounded), *outputs, kernels=kernels)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if dtype == torch.float64 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(log_z, expected.log_z, **tolerance)
    torch.testing.assert_close(node.double(), expected.node, **tolerance)
    torch.testing.assert_close(edge.double(), expected.edge, **tolerance)

    tags, best = torch.empty(batch, time, dtype=torch.int32), torch.empty(batch).double()
    given = arrays(rounded[0], rounded[1], exact[2], rounded[3])
    _core.dense_viterbi(*given, tags.view(-1).numpy(), best.numpy(), kernels=kernels)
    finite = recursions.finite(with_ends), recursions.finite(exact[2])
    tags_plainly, best_plainly = paths.viterbi(*finite, lengths)
    torch.testing.assert_close(best, best_plainly, **tolerance)
    inside = recursions.active(lengths, time)
    assert torch.equal(tags[inside].long(), tags_plainly[inside])
    if dtype == torch.float64:
        du, dP = torch.randn(batch, time, n).double(), torch.randn(batch, n, n).double()
        d_node, d_edge = recursions.tangents(with_ends, P, lengths, du, dP)
        outputs = (node.view(-1).numpy(), edge.view(-1).numpy())
        _core.dense_covariances(*arrays(*exact), du.numpy(), dP.numpy(), *outputs, kernels=kernels)
        torch.testing.assert_close(node, d_node, **tolerance)
        torch.testing.assert_close(edge, d_edge, **tolerance)


def test_large_scores_take_the_kernels_of_log_space(scores):
    u, start, P, end, lengths = scores
    u, P = 1e3 * u, 1e3 * P
    batch, time, n = u.shape
    node, edge = torch.empty(batch, time, n).double(), torch.empty(batch, n, n).double()
    given = (u.numpy(), False, start.numpy(), P.numpy(), end.numpy(), lengths.numpy(), 1)
    du, dP = torch.randn(batch, time, n).double(), torch.randn(batch, n, n).double()
    _core.dense_covariances(*given, du.numpy(), dP.numpy(), node.view(-1).numpy(), edge.view(-1).numpy())
    with_ends = recursions.with_boundaries(u, start, end, lengths)
    d_node, d_edge = recursions.tangents(with_ends, P, lengths, du, dP)
    torch.testing.assert_close(node, d_node, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(edge, d_edge, rtol=1e-9, atol=1e-9)
