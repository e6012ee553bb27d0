"""The layer against enumeration of all taggings: values, gradients, answers; every length from 0 on."""

from __future__ import annotations

import warnings

import pytest
import torch
from layer_cases import LAYERS, LENGTHS, TIME, enumerated, mask_of, random_layer

from crfkit.torch import operators

EXACT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(params=list(LAYERS))
def case(request):
    """Return (layer, emissions, mask, tags, the enumeration of each sequence)."""
    n_tags, options = LAYERS[request.param]
    layer = random_layer(n_tags, **options)
    emissions = torch.randn(len(LENGTHS), TIME, n_tags, dtype=torch.float64, requires_grad=True)
    every = [enumerated(layer, emissions[n, :length]) for n, length in enumerate(LENGTHS)]
    tags = torch.full((len(LENGTHS), TIME), 77)
    for n, (found, length) in enumerate(zip(every, LENGTHS, strict=True)):
        tags[n, :length] = torch.tensor(found.paths[len(found.paths) // 2], dtype=torch.long)
    return layer, emissions, mask_of(LENGTHS, TIME), tags, every


def expected_likelihood(tags, every):
    rows = [tuple(tags[n, :length].tolist()) for n, length in enumerate(LENGTHS)]
    return torch.stack([all_.scores[all_.paths.index(row)] - all_.log_z for all_, row in zip(every, rows, strict=True)])


def test_values_and_gradients(case, path):
    layer, emissions, mask, tags, every = case
    found, expected = layer(emissions, tags, mask, reduction="none"), expected_likelihood(tags, every)
    torch.testing.assert_close(found, expected, **EXACT)
    by = torch.randn(len(LENGTHS), dtype=torch.float64)
    inputs = [emissions, *layer.parameters()]
    ours, theirs = (torch.autograd.grad((by * x).sum(), inputs, retain_graph=True) for x in (found, expected))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, **EXACT)


def test_reductions(case, path):
    layer, emissions, mask, tags, every = case
    expected = expected_likelihood(tags, every)
    for reduction, value in {
        "sum": expected.sum(),
        "mean": expected.mean(),
        "token_mean": expected.sum() / mask.sum(),
    }.items():
        torch.testing.assert_close(layer(emissions, tags, mask, reduction), value, **EXACT)


def test_log_partition_entropy_and_marginals(case, path):
    layer, emissions, mask, _, every = case
    torch.testing.assert_close(layer.log_partition(emissions, mask), torch.stack([x.log_z for x in every]), **EXACT)
    entropy = torch.stack([-(x.chances * x.chances.log()).sum() for x in every])
    torch.testing.assert_close(layer.entropy(emissions, mask), entropy, **EXACT)
    marginals = layer.marginals(emissions, mask)
    torch.testing.assert_close(marginals.sum(2), mask.double(), **EXACT)
    for n, length in enumerate(LENGTHS):
        for t in range(length):
            for j in range(layer.num_tags):
                expected = every[n].probability(lambda y, t=t, j=j: y[t] == j).double()
                torch.testing.assert_close(marginals[n, t, j], expected, **EXACT)


def test_derivatives_of_entropy_and_marginals(case, path):
    layer, emissions, mask, _, every = case
    inputs = [emissions, *layer.parameters()]
    entropy = torch.stack([-(x.chances * x.chances.log()).sum() for x in every])
    place = layer.marginals(emissions, mask)[0, 1, 0], every[0].probability(lambda y: y[1] == 0)
    for a, b in ((layer.entropy(emissions, mask).sum(), entropy.sum()), place):
        ours = torch.autograd.grad(a, inputs, retain_graph=True)
        theirs = torch.autograd.grad(b, inputs, retain_graph=True, allow_unused=True, materialize_grads=True)
        for x, y in zip(ours, theirs, strict=True):
            torch.testing.assert_close(x, y, **EXACT)


def test_decode_and_nbest(case, path):
    layer, emissions, mask, _, every = case
    best = layer.decode(emissions, mask)
    assert best == [x.sorted()[0][0] for x in every]
    for n in (1, 3, 500):
        for found, expected in zip(layer.nbest(emissions, n, mask), every, strict=True):
            wanted = expected.sorted()[:n]
            assert [tags for tags, _ in found] == [tags for tags, _ in wanted]
            torch.testing.assert_close([s for _, s in found], [s for _, s in wanted], **EXACT)


def test_samples(case, path):
    layer, emissions, mask, _, every = case
    n = 4000
    drawn = layer.sample(emissions, mask, n, torch.Generator().manual_seed(1))
    assert drawn.shape == (n, len(LENGTHS), TIME)
    assert (drawn[:, ~mask] == -100).all()
    for k, length in enumerate(LENGTHS):
        rows = [tuple(row) for row in drawn[:, k, :length].tolist()]
        assert set(rows) <= set(every[k].paths)
        for tags, p in zip(every[k].paths, every[k].chances.tolist(), strict=True):
            assert abs(rows.count(tags) / n - p) < 5 * (p * (1 - p) / n) ** 0.5 + 1e-3


def test_kl(case, path):
    layer, emissions, mask, _, every = case
    other = random_layer(layer.num_tags)
    emissions_2 = torch.randn(emissions.shape, dtype=torch.float64, requires_grad=True)
    expected = []
    for n, length in enumerate(LENGTHS):
        q = enumerated(other, emissions_2[n, :length])
        log_q = torch.stack([q.scores[q.paths.index(y)] for y in every[n].paths]) - q.log_z
        p = every[n].chances
        expected.append((p * (p.log() - log_q)).sum())
    found = layer.kl(other, emissions, emissions_2, mask)
    assert (found >= -1e-12).all()
    torch.testing.assert_close(found, torch.stack(expected), **EXACT)
    inputs = [emissions, emissions_2, *layer.parameters(), *other.parameters()]
    ours, theirs = (torch.autograd.grad(x.sum(), inputs) for x in (found, torch.stack(expected)))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, **EXACT)
    torch.testing.assert_close(layer.kl(layer, emissions, emissions, mask), torch.zeros(len(LENGTHS)).double(), **EXACT)


def test_kl_to_a_layer_that_forbids_more(path):
    emissions = torch.randn(2, 3, 2)
    free, strict = random_layer(2, torch.float32), random_layer(2, torch.float32, allowed=[[1, 0], [1, 1]])
    assert free.kl(strict, emissions, emissions).isinf().all()
    assert strict.kl(free, emissions, emissions).isfinite().all()


def test_sets_of_tags(case, path):
    layer, emissions, mask, tags, every = case
    sets = torch.rand(*tags.shape, layer.num_tags) < 0.5
    sets |= torch.nn.functional.one_hot(tags.where(mask, torch.tensor(0)), layer.num_tags).bool()
    expected = torch.stack(
        [x.probability(lambda y, n=n: all(sets[n, t, j] for t, j in enumerate(y))).log() for n, x in enumerate(every)]
    ).double()
    found = layer(emissions, sets, mask, reduction="none")
    torch.testing.assert_close(found, expected, **EXACT)
    inputs = [emissions, *layer.parameters()]
    ours, theirs = (torch.autograd.grad(x.sum(), inputs) for x in (found, expected))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, **EXACT)


def test_unknown_tags(case, path):
    layer, emissions, mask, tags, every = case
    unknown = torch.rand(tags.shape) < 0.4
    partly = tags.masked_fill(unknown, -100)
    expected = torch.stack(
        [
            x.probability(lambda y, n=n: all(partly[n, t] in (-100, j) for t, j in enumerate(y))).log()
            for n, x in enumerate(every)
        ]
    ).double()
    torch.testing.assert_close(layer(emissions, partly, mask, reduction="none"), expected, **EXACT)
    nothing = torch.full_like(tags, -100)
    torch.testing.assert_close(
        layer(emissions, nothing, mask, reduction="none"), torch.zeros(len(LENGTHS)).double(), **EXACT
    )


def test_token_weights(case, path):
    """log p(y_t in K_t | the sets before) is a ratio of the probabilities of two prefixes."""
    layer, emissions, mask, tags, every = case
    weights = torch.rand(tags.shape, dtype=torch.float64)
    partly = tags.masked_fill(torch.rand(tags.shape) < 0.3, -100)
    expected = []
    for n, (x, length) in enumerate(zip(every, LENGTHS, strict=True)):
        total, before = torch.zeros(()).double(), torch.zeros(()).double()
        for t in range(length):
            prefix = partly[n, : t + 1].tolist()
            holds = x.probability(lambda y, prefix=prefix: all(k in (-100, j) for k, j in zip(prefix, y, strict=False)))
            total = total + weights[n, t] * (holds.log() - before)
            before = holds.log()
        expected.append(total)
    found = layer(emissions, partly, mask, reduction="none", token_weights=weights)
    torch.testing.assert_close(found, torch.stack(expected), **EXACT)
    inputs = [emissions, *layer.parameters()]
    ours, theirs = (torch.autograd.grad(x.sum(), inputs, allow_unused=True) for x in (found, torch.stack(expected)))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, **EXACT)
    ones = torch.ones_like(weights)
    torch.testing.assert_close(
        layer(emissions, partly, mask, token_weights=ones), layer(emissions, partly, mask), **EXACT
    )


def test_span_probabilities(path):
    n_tags, options = LAYERS["scheme"]
    layer = random_layer(n_tags, **options)
    emissions = torch.randn(2, TIME, n_tags, dtype=torch.float64)
    lengths = [4, 3]
    every = [enumerated(layer, emissions[n, :length]) for n, length in enumerate(lengths)]
    spans = [
        (n, a, b, kind)
        for n, length in enumerate(lengths)
        for a in range(length)
        for b in range(a + 1, length + 1)
        for kind in ("X", "Y")
    ]
    found = layer.span_probabilities(emissions, spans, mask_of(lengths, TIME))
    for (n, a, b, kind), p in zip(spans, found, strict=True):
        first, inside = layer.labels.index(f"B-{kind}"), layer.labels.index(f"I-{kind}")

        def holds(y, a=a, b=b, first=first, inside=inside):
            return (
                y[a] == first and all(y[t] == inside for t in range(a + 1, b)) and not (b < len(y) and y[b] == inside)
            )

        torch.testing.assert_close(p, every[n].probability(holds).double(), **EXACT)


def test_gradcheck(path):
    for n_tags, options in LAYERS.values():
        layer = random_layer(n_tags, **options)
        mask = mask_of([3, 0, 1], 3)
        emissions = torch.randn(3, 3, n_tags, dtype=torch.float64, requires_grad=True)
        tags = torch.zeros(3, 3, dtype=torch.long)
        for row, best in zip(tags, layer.decode(emissions, mask), strict=True):
            row[: len(best)] = torch.tensor(best, dtype=torch.long)
        inputs = (emissions, *layer.parameters())
        assert torch.autograd.gradcheck(of(layer, "forward", tags, mask), inputs)
        assert torch.autograd.gradgradcheck(of(layer, "forward", tags, mask), inputs)
        assert torch.autograd.gradgradcheck(of(layer, "log_partition", mask), inputs)
        for method in ("marginals", "entropy"):
            assert torch.autograd.gradcheck(of(layer, method, mask), inputs)


def of(layer, method, *arguments):
    """Return a function of (emissions, *parameters) that calls a method of the layer."""
    module = Calls(layer, method, arguments)
    names = [name for name, _ in module.named_parameters()]
    return lambda u, *values: torch.func.functional_call(module, dict(zip(names, values, strict=True)), (u,))


class Calls(torch.nn.Module):
    """A method of a layer as a module, for functional_call."""

    def __init__(self, layer, method, arguments):
        super().__init__()
        self.layer, self.method, self.arguments = layer, method, arguments

    def forward(self, emissions):
        return getattr(self.layer, self.method)(emissions, *self.arguments)


def test_operators_fit_their_declarations(path):
    """Schema, fake tensors and autograd registration, as torch.compile relies on them."""
    layer = random_layer(3)
    u, lengths = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True), torch.tensor([4, 2])
    scores = (u, layer.start_transitions, layer.transitions, layer.end_transitions, lengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.library.opcheck(operators.beliefs, (*scores, False))
        torch.library.opcheck(operators.beliefs, (*scores, False, torch.zeros(2, 4, dtype=torch.long)))
        values = tuple(x.detach() for x in scores)
        torch.library.opcheck(operators.viterbi, (*values, False))
        dP = torch.randn(2, 3, 3, dtype=torch.float64)
        torch.library.opcheck(operators.covariances, (*values, torch.randn(2, 4, 3, dtype=torch.float64), dP))
