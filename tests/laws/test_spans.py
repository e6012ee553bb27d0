"""Probabilities of phrases and of labellings, against the list of all labellings."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import enumerate_labellings, make_problem

from crfkit import ChainCRF
from crfkit.chain.inference import ChainInference
from crfkit.chain.model.spans import Runs, span_probabilities, spans_of
from crfkit.errors import DataError, ParameterError
from crfkit.schemes import convert_tags, phrases

SCHEMES = {
    "iob": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "ioe": ["I-X", "O", "E-X", "E-Y", "I-Y"],
    "iobes": ["B-X", "I-X", "E-X", "S-X", "O", "S-Y"],
    "bilou": ["O", "U-X", "B-X", "I-X", "L-X"],
    "no type": ["B", "I", "O"],
    "no inside": ["O", "B-X", "B-Y"],
}


def log_partition_or_none(inference, data, allowed):
    """Return log Z of each sequence, −inf where no labelling keeps to `allowed`."""
    limits = np.ascontiguousarray(allowed, dtype=bool).view(np.uint8).ravel()
    return inference.decoder.marginals(data.native, inference.threads, False, False, limits)[0]


def by_partition(inference, data, run, spans):
    """Σ exp(log Z of the labellings that have the span, with given first and last labels, − log Z)."""
    log_z = inference.log_partition(data)
    cases = [(k, *both) for k, (_, s, e, kind) in enumerate(spans) for both in ends(run, kind, e - s)]
    copies = data.take([spans[k][0] for k, *_ in cases])
    allowed = np.ones((copies.n_positions, len(run.labels)), dtype=bool)
    for (k, first, middle, last), at, stop in zip(cases, copies.starts[:-1], copies.starts[1:], strict=True):
        _, s, e, _ = spans[k]
        allowed[at + s : at + e] = False
        allowed[at + s, first] = allowed[at + e - 1, last] = True
        allowed[at + s + 1 : at + e - 1, middle] = True
        if s > 0:
            allowed[at + s - 1] = ~run.goes_on[:, first]
        if at + e < stop:
            allowed[at + e] = ~run.goes_on[last]
    total = np.zeros(len(spans))
    of = [spans[k][0] for k, *_ in cases]
    np.add.at(total, [k for k, *_ in cases], np.exp(log_partition_or_none(inference, copies, allowed) - log_z[of]))
    return total


def ends(run, kind, length):
    """Yield (first label, labels between, last label) of phrases of a type and a length."""
    ids, goes_on = np.flatnonzero(run.type_ids == run.kinds.index(kind)).tolist(), run.goes_on
    if length == 1:
        yield from ((j, [], j) for j in ids)
        return
    between = [j for j in ids if goes_on[j, j]]  # inside: the only labels that may follow each other for long
    for first, last in product(ids, ids):
        if length == 2 and goes_on[first, last]:
            yield first, [], last
        elif length > 2 and any(goes_on[first, j] and goes_on[j, last] for j in between):
            yield first, between, last


def list_phrases(problem, n, labels):
    """Of all labellings of a sequence: (probabilities times a constant, sets of their phrases)."""
    every = enumerate_labellings(problem, n)
    score = every.features @ problem.w
    return np.exp(score - score.max()), [set(phrases([labels[j] for j in path])) for path in every.paths]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_spans_equal_enumeration(scheme, order):
    """All spans of all types, also those that the best labelling does not have."""
    labels = SCHEMES[scheme]
    for seed in range(3):
        problem = make_problem(seed, len(labels), (4, 1, 3), order=order, n_pair_attributes=seed % 2)
        inference = ChainInference(problem.field, problem.w)
        model = SimpleNamespace(class_list=labels, field=problem.field, inference=inference)
        kinds = Runs(labels).kinds
        spans = [
            (n, s, e, kind)
            for n, length in enumerate((4, 1, 3))
            for s in range(length)
            for e in range(s + 1, length + 1)
            for kind in kinds
        ]
        found = span_probabilities(model, problem.data, spans)
        listed = [list_phrases(problem, n, labels) for n in range(3)]
        for (n, s, e, kind), p in zip(spans, found.tolist(), strict=True):
            chance, held = listed[n]
            has = [(kind, s, e) in phrases_of_path for phrases_of_path in held]
            assert_allclose(p, chance[has].sum() / chance.sum(), rtol=1e-10, atol=1e-12)
        # the sum of restricted partition functions gives the same
        general = by_partition(inference, problem.data, Runs(labels), spans)
        assert_allclose(found, general, rtol=1e-9, atol=1e-12)


@given(
    scheme=st.sampled_from(sorted(SCHEMES)),
    seed=st.integers(0, 10**6),
    order=st.sampled_from([1, 2]),
    forbidden=st.sampled_from([None, 0.0, 0.3]),
    scale=st.sampled_from([0.1, 1.0, 5.0, 200.0]),
    pairs=st.sampled_from([0, 2]),
)
def test_spans_of_constrained_chains_equal_enumeration(scheme, seed, order, forbidden, scale, pairs):
    """Also where scores are so far apart that the core works in log space, and for the spans of the best labelling."""
    labels = SCHEMES[scheme]
    lengths = (3, 0, 1, 2)
    problem = make_problem(
        seed, len(labels), lengths, order=order, forbidden=forbidden, scale=scale, n_pair_attributes=pairs
    )
    inference = ChainInference(problem.field, problem.w, 2)
    model = SimpleNamespace(class_list=labels, field=problem.field, inference=inference)
    spans = [
        (n, s, e, kind)
        for n, length in enumerate(lengths)
        for s in range(length)
        for e in range(s + 1, length + 1)
        for kind in Runs(labels).kinds
    ]
    expected = []
    for n in range(len(lengths)):
        p, held = list_phrases(problem, n, labels)
        expected += [p[[(kind, s, e) in has for has in held]].sum() / p.sum() for k, s, e, kind in spans if k == n]
    chances = dict(zip(spans, span_probabilities(model, problem.data, spans).tolist(), strict=True))
    assert_allclose(list(chances.values()), expected, rtol=1e-9, atol=1e-10)
    best = inference.decode(problem.data)[0]
    for n, found in enumerate(spans_of(model, problem.data)):
        begin, end = problem.span(n)
        named = [labels[j] for j in best[begin:end]]
        assert [(s.type, s.start, s.end) for s in found] == list(phrases(named))
        assert_allclose([s.probability for s in found], [chances[n, s.start, s.end, s.type] for s in found], atol=1e-12)


def sentences():
    random = np.random.default_rng(0)
    words = ["in", "New", "York", "Rome", "rain", "falls"]
    labels = {"New": "B-LOC", "York": "I-LOC", "Rome": "B-LOC"}
    X = [random.choice(words, size=random.integers(1, 7)).tolist() for _ in range(30)]
    y = [[labels.get(word, "O") for word in row] for row in X]
    return [[[f"w={word}"] for word in row] for row in X], convert_tags(y, to="iob2")


@pytest.mark.parametrize("options", [{}, {"order": 2}, {"constraints": "iob1"}])
def test_estimators(options):
    X, y = sentences()
    if options.get("constraints"):
        y = convert_tags(y, to="iob1")
    crf = ChainCRF(**options).fit(X, y)
    for labels, spans in zip(crf.predict(X), crf.predict_spans(X), strict=True):
        assert [(s.type, s.start, s.end) for s in spans] == list(phrases(labels))
        assert all(0.0 < s.probability <= 1.0 for s in spans)
    listed = crf.predict_nbest(X, 4)
    assert [found[0].labels for found in listed] == crf.predict(X)
    for x, found in zip(X, listed, strict=True):
        again = crf.sequence_probability([x] * len(found), [each.labels for each in found])
        assert_allclose(again, [each.probability for each in found], rtol=1e-9)
        assert_allclose(crf.sequence_probability([x], [found[0].labels], log=True), np.log(again[:1]), rtol=1e-9)
    assert_allclose(sum(each.probability for each in crf.predict_nbest(X[:1], 10**6)[0]), 1.0, rtol=1e-9)


def test_forbidden_labellings_have_probability_zero():
    crf = ChainCRF(constraints="iob2").fit(*sentences())
    assert crf.sequence_probability([[["w=York"], ["w=York"]]], [["O", "I-LOC"]]).tolist() == [0.0]
    assert crf.sequence_probability([], []).tolist() == []


def test_bad_input():
    X, y = sentences()
    crf = ChainCRF().fit(X, y)
    with pytest.raises(ParameterError, match="n must be an integer >= 1, not 0"):
        crf.predict_nbest(X, 0)
    with pytest.raises(DataError, match="'B-PER'"):
        crf.sequence_probability([[["w=in"]]], [["B-PER"]])
    with pytest.raises(DataError, match="labels"):
        crf.sequence_probability([[["w=in"]]], [["O", "O"]])
    plain = ChainCRF().fit([[["a"], ["b"]]], [["DET", "NOUN"]])
    with pytest.raises(ParameterError, match="do not mark phrases"):
        plain.predict_spans([[["a"]]])
