"""Sparse matrices whose index arrays lie, and masked arrays: a sentence, not a fault and not a guess."""

import threading
from contextlib import suppress

import numpy as np
import pytest
from scipy import sparse

from crfkit import ChainCRF, GraphCRF, GridCRF
from crfkit._checks import check_features, sparse_matrix
from crfkit.errors import DataError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.text.attributes import stack_matrices

MOST = np.iinfo(np.int32).max


def matrix(kind="csr"):
    dense = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 5.0]])
    return sparse.csr_array(dense).asformat(kind)


def changed(kind, name, value):
    bad = matrix(kind)
    setattr(bad, name, np.asarray(value))
    return bad


WRONG = [
    ("indices", [0, 2, 1, 0, 3]),
    ("indices", [0, 2, 1, 0, -1]),
    ("indices", [0, 2, 1, 0, MOST]),
    ("indices", np.array([0, 2, 1, 0, 2**40])),
    ("indices", [0.5, 2, 1, 0, 2]),
    ("indices", [0, 2, 1]),
    ("indices", [[0, 2, 1, 0, 2]]),
    ("indptr", [0, 2, 3, 6]),
    ("indptr", [0, 2, 3, MOST]),
    ("indptr", [0, 3, 2, 5]),
    ("indptr", [1, 2, 3, 5]),
    ("indptr", [0, -1, 3, 5]),
    ("indptr", [0, MOST, -MOST, 5]),
    ("indptr", [0, 2, 5]),
    ("indptr", [0, 2, 3, 5, 5]),
    ("indptr", [0.0, 2.5, 3.0, 5.0]),
    ("data", [1.0, 2.0]),
    ("data", [1.0, 2.0, 3.0, 4.0, 5j]),
    ("data", ["a", "b", "c", "d", "e"]),
]


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(("name", "value"), WRONG)
def test_index_arrays_that_lie(kind, name, value):
    bad = changed(kind, name, value)
    for read in (
        lambda: check_features(bad, "features"),
        lambda: stack_matrices([bad], None),
        lambda: GraphData.make(Graph.path(3), bad),
    ):
        with pytest.raises(DataError):
            read()


def test_coordinates_that_lie():
    for axis, value in ((0, 3), (1, 7), (0, -1), (1, MOST)):
        bad = matrix("coo")
        bad.coords = tuple(np.where(np.arange(5) == 1, value, c) if k == axis else c for k, c in enumerate(bad.coords))
        with pytest.raises(DataError, match=r"does not exist|dimension|negative"):
            sparse_matrix(bad, "features")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_all_formats_are_read(kind):
    found = sparse_matrix(matrix(kind), "features")
    np.testing.assert_array_equal(found.toarray(), matrix().toarray())
    assert found.format == "csr"
    assert found.dtype == np.float64


def test_unsorted_repeated_and_wide_indices():
    """All of them are valid: entries that occur twice count together."""
    entries, columns = np.array([2.0, 1.0, 3.0, 4.0]), np.array([2, 0, 0, 1])
    messy = sparse.csr_array((entries, columns, np.array([0, 3, 4])), shape=(2, 3))
    wide = messy.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    spare = messy.copy()
    spare.indices, spare.data = np.append(spare.indices, MOST), np.append(spare.data, np.nan)  # behind the last row
    for given in (messy, wide, spare):
        found = sparse_matrix(given, "features")
        np.testing.assert_array_equal(found.toarray(), [[4.0, 0.0, 2.0], [0.0, 4.0, 0.0]])
        assert found.has_canonical_format
        starts, stacked = stack_matrices([given, messy, messy.tocoo()], None)
        np.testing.assert_array_equal(stacked.toarray(), np.tile(found.toarray(), (3, 1)))
        assert starts.tolist() == [0, 2, 4, 6]
    assert not messy.has_canonical_format  # that of the caller is as it was


@pytest.mark.filterwarnings("ignore:not converged")
def test_estimators_refuse_them():
    y = ["a", "b", "a"]
    with pytest.raises(DataError, match="column 7 does not exist"):
        ChainCRF(max_iterations=2).fit([changed("csr", "indices", [0, 2, 1, 0, 7])], [y])
    model = ChainCRF(max_iterations=2).fit([matrix()], [y])
    with pytest.raises(DataError, match="sequence 1: column 7 does not exist"):
        model.predict([matrix(), changed("csr", "indices", [0, 2, 1, 0, 7])])
    bad = changed("csr", "indptr", [0, MOST, 3, 5])
    with pytest.raises(DataError, match="indptr must ascend"):
        GraphCRF(max_iterations=2).fit([(bad, [(0, 1), (1, 2)])], [[0, 1, 0]])


@pytest.mark.filterwarnings("ignore")
def test_matrices_that_change_during_the_fit():
    """Models see checked copies: another thread may write what it likes, and is refused or not."""
    rng = np.random.default_rng(0)
    X = [sparse.random_array((40, 30), density=0.2, format="csr", rng=rng) for _ in range(3)]
    y = [rng.integers(0, 3, 40).tolist() for _ in X]
    samples = [(features, [(i, i + 1) for i in range(39)]) for features in X]
    good = [(features.indices.copy(), features.indptr.copy()) for features in X]
    done = threading.Event()

    def write():
        while not done.is_set():
            for features, (indices, indptr) in zip(X, good, strict=True):
                features.indices[:], features.indptr[1:-1] = MOST, -MOST
                features.indices[:], features.indptr[:] = indices, indptr

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(6):
            for model, given in ((ChainCRF(max_iterations=2), X), (GraphCRF(max_iterations=2), samples)):
                with suppress(DataError):
                    model.fit(given, y)
    finally:
        done.set()
        writer.join()


# --- masked arrays


def masked(values, place=0):
    array = np.ma.array(values)
    array.mask = np.zeros(array.shape, dtype=bool)
    array.mask.flat[place] = True
    return array


FEATURES = np.arange(6.0).reshape(3, 2)
IMAGE = np.arange(12.0).reshape(3, 4, 1) / 12


@pytest.mark.parametrize(
    "use",
    [
        lambda m: ChainCRF(max_iterations=2).fit([m(FEATURES)], [["a", "b", "a"]]),
        lambda m: ChainCRF(max_iterations=2).fit([FEATURES], [m(["a", "b", "a"])]),
        lambda m: ChainCRF(max_iterations=2).fit([FEATURES] * 2, [["a", "b", "a"]] * 2, sample_weight=m([1.0, 2.0])),
        lambda m: GraphData.make(Graph.path(3), m(FEATURES)),
        lambda m: GraphData.make(Graph.path(3), FEATURES, m(np.ones((2, 1)))),
        lambda m: GraphData.make(Graph.path(3), FEATURES, weights=m([1.0])),
        lambda m: GraphData.make(Graph.path(3), FEATURES, labels=m([0, 1, 0])),
        lambda m: Graph(3, m([[0, 1], [1, 2]])),
        lambda m: GridCRF(max_iterations=2).fit([m(IMAGE)], [(IMAGE[..., 0] > 0.5).astype(int)]),
        lambda m: Potentials.from_tables(Graph.path(2), m([[0.0, 1.0], [1.0, 0.0]])),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_masked_entries_are_refused(use):
    with pytest.raises(DataError, match=r"masked; fill them"):
        use(masked)
    use(np.ma.array)  # nothing is masked


def test_matrices_are_checked_again_when_they_change():
    found = sparse_matrix(matrix(), "features")
    assert sparse_matrix(found, "features") is found
    with pytest.raises(ValueError, match="read-only"):
        found.indices[0] = MOST
    found.indices = np.array([0, 2, 1, 0, MOST])
    with pytest.raises(DataError, match="does not exist"):
        sparse_matrix(found, "features")
