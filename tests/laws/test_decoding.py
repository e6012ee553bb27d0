"""Decoding under restrictions, posterior decoding, entropies, samples and contiguity, against all labellings."""

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracle import KERNELS, Problem, enumerate_labellings, make_problem, small_problems

from crfkit import L2, ChainCRF
from crfkit.chain.inference import ChainInference
from crfkit.chain.model import decoding as chain_decoding
from crfkit.chain.model.limits import one_run_each
from crfkit.errors import DataError, ParameterError


def model_of(problem: Problem, labels=None) -> SimpleNamespace:
    """What decoding asks of a model; X is the encoded data itself."""
    names = list(labels) if labels is not None else [f"y{j}" for j in range(problem.field.n_labels)]
    return SimpleNamespace(
        class_list=names,
        field=problem.field,
        w=problem.w,
        n_threads=2,
        inference=ChainInference(problem.field, problem.w, 2),
        encode=lambda X: X,
    )


def all_of(problem: Problem, n: int):
    """(paths, scores) of all labellings of a sequence."""
    every = enumerate_labellings(problem, n)
    return every.paths, every.features @ problem.w


def restrictions(problem: Problem, names, seed: int):
    """Random known labels, allowed labels and forbidden pairs that leave a labelling of every sequence; which it is."""
    random = np.random.default_rng(seed)
    known, allowed, pairs, paths = [], [], set(), []
    for n in range(len(problem.data)):
        listed = enumerate_labellings(problem, n).paths
        path = listed[random.integers(len(listed))]
        paths.append(path)
        pairs |= set(zip(path[:-1].tolist(), path[1:].tolist(), strict=True))
        known.append([names[j] if random.random() < 0.3 else None for j in path])
        more = random.random((len(path), len(names))) < 0.6
        allowed.append(
            [
                {names[j], *(names[k] for k in np.flatnonzero(row))} if random.random() < 0.6 else None
                for j, row in zip(path, more, strict=True)
            ]
        )
    forbidden = [
        (names[i], names[j])
        for i in range(len(names))
        for j in range(len(names))
        if (i, j) not in pairs and random.random() < 0.2
    ]
    if seed % 5 == 0:
        known[0] = allowed[-1] = None
    return known, allowed, forbidden


def keeps(path, names, known, allowed, forbidden) -> bool:
    labels = [names[j] for j in path]
    return (
        (known is None or all(k is None or k == label for k, label in zip(known, labels, strict=True)))
        and (allowed is None or all(a is None or label in a for a, label in zip(allowed, labels, strict=True)))
        and not any(pair in forbidden for pair in pairwise(labels))
    )


@given(problem=small_problems(), seed=st.integers(0, 99))
def test_decoding_under_restrictions_equals_enumeration(problem, seed):
    model = model_of(problem)
    names = model.class_list
    known, allowed, forbidden = restrictions(problem, names, seed)
    limits = {"known": known, "allowed": allowed, "constraints": forbidden}
    found = chain_decoding.decode(model, problem.data, 4, entropy=True, **limits)
    posterior = chain_decoding.decode(model, problem.data, method="posterior", **limits)
    entropies = chain_decoding.entropies(model, problem.data, **limits)
    samples = chain_decoding.sample(model, problem.data, 3, seed, **limits)
    for n, result in enumerate(found):
        paths, scores = all_of(problem, n)
        kept = [keeps(path, names, known[n], allowed[n], set(forbidden)) for path in paths]
        paths, scores = paths[kept], scores[kept]
        logs = scores - scores.max()
        logs -= np.log(np.exp(logs).sum())
        p = np.exp(logs)
        order = np.argsort(-scores, kind="stable")
        listed = [result, *result.alternatives]
        assert len(listed) == min(4, len(paths))
        assert_allclose([x.score for x in listed], scores[order][:4], rtol=1e-10, atol=1e-10)
        assert_allclose([x.log_probability for x in listed], logs[order][:4], rtol=1e-10, atol=1e-10)
        assert_allclose([x.probability for x in listed], p[order][:4], rtol=1e-9, atol=1e-10)
        for x in result.alternatives:
            assert_allclose(x.difference, x.score - result.score, atol=1e-10)
            assert keeps([names.index(y) for y in x.labels], names, known[n], allowed[n], set(forbidden))
        node = np.array([[p[paths[:, t] == j].sum() for j in range(len(names))] for t in range(paths.shape[1])])
        chosen = [names.index(y) for y in result.labels]
        assert_allclose(result.confidences, [node[t, j] for t, j in enumerate(chosen)], atol=1e-10)
        total = -(p * logs).sum()
        assert_allclose([result.entropy, entropies[n].sequence], [total, total], atol=1e-10)
        per_position = [-(row[row > 0] * np.log(row[row > 0])).sum() for row in node]
        assert_allclose(entropies[n].positions, per_position, atol=1e-10)
        best = [node[t, names.index(y)] for t, y in enumerate(posterior[n].labels)]
        assert_allclose(best, [row.max() for row in node], atol=1e-10)
        assert all(keeps([names.index(y) for y in x], names, known[n], allowed[n], set(forbidden)) for x in samples[n])


def test_posterior_labels_that_a_constraint_forbids_to_follow_each_other():
    """The most probable labels of each position need not be a labelling that is possible: its probability is 0."""
    crf = ChainCRF(penalty=L2(1e-3), n_threads=1)
    paths = ["aa", "ac", "bb", "cb"]
    model = crf.fit([[["x"], ["x", "last"]]] * 10, [list(paths[k]) for k in (0, 0, 0, 1, 1, 1, 2, 2, 3, 3)]).model_
    (found,) = model.decode([[["x"], ["x", "last"]]], method="posterior", constraints=[("a", "b")])
    assert found.labels == ["a", "b"]
    assert (found.score, found.log_probability, found.probability) == (-np.inf, -np.inf, 0.0)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_entropies_and_samples_of_every_kernel(kernels, order, scale):
    """Also in log space, where the scores are far apart."""
    problem = make_problem(5, 3, (4, 0, 1, 3), order=order, n_pair_attributes=2, scale=scale)
    inference = ChainInference(problem.field, problem.w, 1, kernels)
    entropy = inference.entropies(problem.data)
    drawn = inference.sample(problem.data, 4000, 7)
    node = inference.node_marginals(problem.data)
    for n, rows in enumerate(drawn):
        paths, scores = all_of(problem, n)
        logs = scores - scores.max()
        logs -= np.log(np.exp(logs).sum())
        assert_allclose(entropy[n], -(np.exp(logs) * logs).sum(), atol=1e-10)
        begin, end = problem.span(n)
        assert rows.shape == (4000, end - begin)
        shares = (rows[:, :, None] == np.arange(3)).mean(axis=0)
        assert_allclose(shares, node[begin:end], atol=0.04)  # five standard errors
        # labellings as a whole, too: a chain of independent positions would fail
        for path in paths[np.argsort(-scores)][:2]:
            share = (rows == path).all(axis=1).mean()
            assert_allclose(share, np.exp(logs[(paths == path).all(axis=1)][0]), atol=0.04)


def test_samples_depend_on_the_seed_alone():
    problem = make_problem(1, 4, (30, 500, 2, 0, 90) * 4)
    one, two = (ChainInference(problem.field, problem.w, threads) for threads in (1, 2))
    for a, b, c in zip(*(x.sample(problem.data, 3, seed) for x, seed in ((one, 5), (two, 5), (one, 6))), strict=True):
        assert_array_equal(a, b)
        assert a.shape[1] < 30 or (a != c).any()


# --- contiguity


def runs_once(labels, groups, goes_on) -> bool:
    seen = []
    for t, j in enumerate(labels):
        if groups[j] >= 0 and (t == 0 or not goes_on[labels[t - 1], j]):
            seen.append(groups[j])
    return len(seen) == len(set(seen))


@pytest.mark.parametrize("labels", [["a", "b", "O"], ["B-A", "I-A", "O", "B-B"], ["a", "b"]], ids=len)
@given(seed=st.integers(0, 10**6), order=st.sampled_from([1, 2]), masks=st.sampled_from([None, 0.3]))
def test_contiguous_labellings_equal_enumeration(labels, seed, order, masks):
    problem = make_problem(seed, len(labels), (5, 0, 1, 4), order=order, scale=2.0, forbidden=masks)
    model = model_of(problem, labels)
    groups, goes_on = one_run_each(labels, True)
    expected = []
    for n in range(len(problem.data)):
        paths, scores = all_of(problem, n)
        expected.append(np.sort(scores[[runs_once(path, groups, goes_on) for path in paths]])[::-1][:4])
    if not all(len(row) for row in expected):
        with pytest.raises(DataError, match="no labelling with at most one run of each label exists"):
            chain_decoding.decode(model, problem.data, contiguous=True)
        return
    found = chain_decoding.decode(model, problem.data, 4, contiguous=True)
    for result, scores in zip(found, expected, strict=True):
        listed = [result, *result.alternatives]
        assert result.exact
        assert_allclose([x.score for x in listed], scores, rtol=1e-10, atol=1e-10)
        assert all(runs_once([labels.index(y) for y in x.labels], groups, goes_on) for x in listed)


def test_the_limit_of_the_search_is_flagged():
    problem = make_problem(3, 6, (40,), scale=3.0)
    model = model_of(problem, "abcdef")
    best = chain_decoding.decode(model, problem.data, contiguous=True)[0]
    assert best.exact
    quick = chain_decoding.decode(model, problem.data, contiguous=True, search_limit=5)[0]
    groups, goes_on = one_run_each("abcdef", True)
    assert not quick.exact
    assert runs_once(["abcdef".index(y) for y in quick.labels], groups, goes_on)
    assert quick.score <= best.score + 1e-9


def test_what_a_run_is():
    assert one_run_each(["a", "b", "O"], True)[0].tolist() == [0, 1, -1]
    assert one_run_each(["a", "b", "O"], ["b", "O"])[0].tolist() == [-1, 0, 1]
    groups, goes_on = one_run_each(["B-X", "I-X", "B-Y", "O"], ["B-X"])  # a label stands for its type
    assert groups.tolist() == [0, 0, -1, -1]
    assert goes_on.tolist() == [[False, True, False, False], [False, True, False, False], [False] * 4, [False] * 4]
    with pytest.raises(ParameterError, match="contiguous names 'c'"):
        one_run_each(["a", "b"], ["c"])
    with pytest.raises(ParameterError, match="True, False or a collection"):
        one_run_each(["a", "b"], "a")


# --- estimators


@pytest.fixture(scope="module")
def tagged():
    random = np.random.default_rng(0)
    X = [[[f"w={w}"] for w in random.integers(0, 9, size=random.integers(1, 9))] for _ in range(60)]
    y = [[["O", "B-X", "I-X"][int(item[0][2:]) % 3] for item in row] for row in X]
    return ChainCRF().fit(X, y), X, y


def test_abstention(tagged):
    crf, X, _ = tagged
    plain = crf.decode(X)
    for cut, result, before in zip([0.9] * len(X), crf.decode(X, min_confidence=0.9, abstain="?"), plain, strict=True):
        assert result.full_labels == before.labels == before.full_labels
        assert [y == "?" for y in result.labels] == (result.confidences < cut).tolist()
    assert [x.labels for x in plain] == crf.predict(X)
    assert any("?" in x.labels for x in crf.decode(X, min_confidence=0.99, abstain="?"))
    assert all(None not in x.labels for x in crf.decode(X, min_confidence=0.0))


def test_constraints_at_decoding(tagged):
    crf, X, _ = tagged
    for found in crf.decode(X, constraints="iob2"):
        assert "O I-X" not in " ".join(found.labels)
        assert found.labels[0] != "I-X"


def test_many_threads_get_what_one_gets(tagged):
    crf, X, _ = tagged
    model = pickle.loads(pickle.dumps(crf.model_))  # its lazy parts are made by whichever thread comes first
    calls = {
        "predict": lambda: model.predict(X),
        "marginals": lambda: [row.tolist() for row in model.predict_marginals(X)],
        "nbest": lambda: model.predict_nbest(X, 3),
        "spans": lambda: model.predict_spans(X),
        "decode": lambda: [(d.labels, d.score, d.alternatives) for d in model.decode(X, 2, constraints="iob2")],
        "sample": lambda: model.sample(X, 2, 3),
        "entropies": lambda: [e.sequence for e in model.entropies(X)],
    }
    with ThreadPoolExecutor(8) as pool:
        jobs = [(name, pool.submit(calls[name])) for _ in range(6) for name in calls]
        found = [(name, job.result()) for name, job in jobs]
    serial = {name: call() for name, call in calls.items()}
    for name, result in found:
        assert result == serial[name], name


def test_the_core_works_without_the_gil():
    """Another thread runs while one call is in the core."""
    problem = make_problem(1, 8, (60_000,))
    inference = ChainInference(problem.field, problem.w, 1)
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    calls = (
        lambda: inference.decoder.nbest(problem.data.native, 1, 5),
        lambda: inference.decoder.sample(problem.data.native, 1, 40, 0),
        lambda: [inference.decoder.entropies(problem.data.native, 1) for _ in range(5)],
    )
    try:
        for call in calls:
            begin = time.perf_counter()
            call()
            end = time.perf_counter()
            margin = (end - begin) / 5
            assert any(begin + margin < t < end - margin for t in ticks)
    finally:
        done.set()
        thread.join()


def test_bad_input(tagged):
    crf, X, _ = tagged
    x = [X[0][:1] * 3]
    with pytest.raises(ParameterError, match="n must be an integer >= 1, not 0"):
        crf.decode(x, 0)
    with pytest.raises(ParameterError, match="method must be 'viterbi' or 'posterior', not 'best'"):
        crf.decode(x, method="best")
    with pytest.raises(ParameterError, match="n > 1 is for method='viterbi'"):
        crf.decode(x, 2, method="posterior")
    with pytest.raises(ParameterError, match="min_confidence must be a probability between 0 and 1, not 2"):
        crf.decode(x, min_confidence=2)
    with pytest.raises(DataError, match="there is 1 sequence, but known has 2 entries"):
        crf.decode(x, known=[None, None])
    with pytest.raises(DataError, match="sequence 0 has 3 items, but known has 2 entries"):
        crf.decode(x, known=[[None, "O"]])
    with pytest.raises(DataError, match="sequence 0, position 1: the model has no label 'B-Y'; did you mean"):
        crf.decode(x, known=[[None, "B-Y", None]])
    with pytest.raises(DataError, match="position 2: allowed takes a collection of labels or None, not 'O'"):
        crf.decode(x, allowed=[[None, None, "O"]])
    with pytest.raises(DataError, match="sequence 0, position 0: no label is allowed"):
        crf.decode(x, allowed=[[[], None, None]])
    with pytest.raises(DataError, match="sequence 0, position 0: the known label 'O' is not among the allowed"):
        crf.decode(x, allowed=[[["B-X"], None, None]], known=[["O", None, None]])
    with pytest.raises(ParameterError, match="random_state"):
        crf.sample(x, random_state="now")
    # no path: which sequence, which position
    limits = {"known": [None, ["O", None, None]], "allowed": [None, [None, ["I-X"], None]]}
    with pytest.raises(DataError, match="no labelling of sequence 1: at position 1, no label that is allowed"):
        crf.decode(x * 2, constraints="iob2", **limits)
    with pytest.raises(DataError, match="sequence 0: at position 0, no label that is allowed there may begin"):
        crf.decode(x, constraints="iob2", known=[["I-X", None, None]])
    # more labellings than there are: all of them
    assert len(crf.predict_nbest([X[0][:1]], 100)[0]) == 3
    assert len(crf.decode([X[0][:1]], 100)[0].alternatives) == 2
    assert crf.decode([]) == crf.sample([], 2) == crf.entropies([]) == []
