"""Tables with very many columns, and files whose reading once took quadratic or exponential time."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest

from crfkit import GraphCRF, StructureLearner, read_table
from crfkit.errors import DataError, LimitError
from crfkit.files import limits
from crfkit.graph.encoding.table_columns import make_structure
from crfkit.structure.encoding.tables import learn_table

N = 20_000


@pytest.fixture(autouse=True)
def quick():
    """All of these take a fraction of a second; with quadratic parts they take from 5 s to hours."""
    begin = time.process_time()
    yield
    assert time.process_time() - begin < 5


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    path = tmp_path_factory.mktemp("wide") / "t.csv"
    rows = [",".join(f"c{i}" for i in range(N)), *(",".join(str((i + r) % 2) for i in range(N)) for r in range(4))]
    path.write_text("\n".join(rows))
    return path


def test_many_features(wide):
    table = read_table(wide)
    X, Y = table.take(list(range(2, N))), table.take([0, 1])
    model = GraphCRF(graph="none", max_iterations=40).fit(X, Y)
    assert model.predict(X).shape == (4, 2)
    assert table.select(f"3-{N}") == list(range(2, N))


def test_many_labels_most_of_them_constant(wide):
    table = read_table(wide)
    table.values[: N - 1] = [np.zeros(4, dtype=np.int64)] * (N - 1)
    with limits.raised(memory=10**12), pytest.warns(UserWarning, match="constant"):
        encoder, states = learn_table(table, None, False)
    assert states.shape == (4, N)
    assert [len(classes) for classes in encoder.classes] == [2] * N


def test_edges_by_name():
    names = [f"c{i}" for i in range(N)]
    graph = make_structure(list(itertools.pairwise(names)), names)
    assert graph.n_edges == N - 1
    with pytest.raises(DataError, match="the graph has a node 'd'; the columns of Y are c0, c1"):
        make_structure([("c1", "d")], names)


def test_frames_with_many_columns():
    rng = np.random.default_rng(0)
    Y = pd.DataFrame(rng.integers(0, 2, (40, 1500))).add_prefix("c")
    assert learn_table(Y, None, False)[1].shape == (40, 1500)


def test_all_pairs_of_many_columns_are_refused(wide):
    table = read_table(wide)
    with pytest.raises(LimitError, match=r"the graph of all pairs of 20,000 columns would take 3\.2 GB of memory"):
        GraphCRF().fit(None, table)
    with pytest.raises(LimitError, match=r"learning edges between all pairs of 20,000 columns would take 9\.6 GB"):
        StructureLearner().fit(table)


def test_more_columns_than_allowed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join("a" * 100_001))
    with pytest.raises(LimitError, match=r"t\.csv:1: the line has 100,001 cells, and the limit is 100,000"):
        read_table(path)
    path = tmp_path / "t.arff"
    path.write_text("@relation r\n" + "@attribute a numeric\n" * 100_001 + "@data\n")
    with pytest.raises(LimitError, match="the table has 100,001 columns"):
        read_table(path)


def test_two_columns_of_one_name_at_the_end(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join([*(f"c{i}" for i in range(90_000)), "x", "x"]) + "\n")
    with pytest.raises(DataError, match="two columns have the name 'x'"):
        read_table(path)


def test_is_this_an_arff_file(tmp_path):
    """Every line could be taken for a comment in two ways: 2⁴⁰ in all."""
    path = tmp_path / "t.csv"
    path.write_text(" %a,1\n" * 40 + "b,2\n")
    assert len(read_table(path)) == 41
    path.write_text("% a\n\n  % b\n@RELATION r\n@attribute a numeric\n@data\n1\n")
    assert read_table(path).columns == ["a"]


def test_blanks_in_arff_cells(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text("@relation r\n@attribute a string\n@data\n'x'" + " " * 200_000 + "'\n")
    with pytest.raises(DataError, match=r"t\.arff:4: cannot read"):
        read_table(path)
    path.write_text("@relation r\n@attribute a string\n@attribute b string\n@data\n'x y' ,  z \n 'it\\'s',\"q\"\n")
    assert read_table(path).to_numpy().tolist() == [["x y", "z"], ["it's", "q"]]


def test_very_many_nominal_values(tmp_path):
    values = [f"v{k}" for k in range(30_000)]
    path = tmp_path / "t.arff"
    path.write_text("@relation r\n@attribute a {" + ",".join(values) + "}\n@data\n" + "\n".join(reversed(values)))
    assert read_table(path).values[0].tolist() == values[::-1]


def test_sparse_rows_of_many_columns(tmp_path):
    path = tmp_path / "t.arff"
    head = "@relation r\n" + "".join(f"@attribute a{k} numeric\n" for k in range(2000))
    path.write_text(f"{head}@data\n" + "{0 1}\n" * 2000)
    with limits.raised(memory=10**6), pytest.raises(LimitError, match="the table of its sparse rows would take"):
        read_table(path)
