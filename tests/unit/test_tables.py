"""Tables: CSV and ARFF in their forms, columns by a text, errors that name the line."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import arff as scipy_arff

from crfkit.errors import DataError, ParameterError
from crfkit.files.tables import Table, read_table


@pytest.fixture
def write(tmp_path):
    def make(text: str, name: str = "t.csv") -> Path:
        path = tmp_path / name
        data = text.encode("utf-8")
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return make


def columns(table: Table) -> dict[str, list[object]]:
    return dict(zip(table.columns, [values.tolist() for values in table.values], strict=True))


# --- CSV


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t"])
def test_forms_of_csv(write, mark, end, name):
    text = end.join(mark.join(row) for row in (["size", "colour", "n"], ["1.5", "red", "1"], ["2", "blue", "3"]))
    for whole in (text, text + end, "\ufeff" + text, text.replace("red", '"red"')):
        table = read_table(write(whole, name))
        assert columns(table) == {"size": [1.5, 2.0], "colour": ["red", "blue"], "n": [1, 3]}
        assert table.values[2].dtype == np.int64
        assert table.lines.tolist() == [2, 3]
        assert len(table) == 2


def test_headers_are_detected(write):
    assert read_table(write("1,2\n3,4\n")).columns == ["x1", "x2"]
    assert read_table(write("1,2\n3,4\n"), prefix="y").columns == ["y1", "y2"]
    assert read_table(write("a,2\nb,4\n")).columns == ["x1", "x2"]  # a number: a row
    assert read_table(write("a,2\n3,4\n")).columns == ["a", "2"]  # a stands above numbers only
    assert read_table(write("a,b\nc,d\n")).columns == ["a", "b"]
    assert read_table(write("a,b\nc,d\n"), header=False).columns == ["x1", "x2"]
    assert read_table(write("1,2\n3,4\n"), header=True).columns == ["1", "2"]


def test_missing_cells(write):
    table = read_table(write("a,b,c\n1,,x\n?,2,\n"))
    np.testing.assert_array_equal(table.values[0], [1, np.nan])
    np.testing.assert_array_equal(table.values[1], [np.nan, 2])
    assert table.values[2].tolist() == ["x", None]
    assert table.to_numpy().dtype == object
    assert table.take([1, 0]).to_numpy().dtype == np.float64


def test_quotes_and_blank_lines(write):
    table = read_table(write('"a, b";"c"\n\n"x ""y"" z";"2"\n"two\nlines";3\n'))
    assert columns(table) == {"a, b": ['x "y" z', "two\nlines"], "c": [2, 3]}
    assert table.lines.tolist() == [3, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv: the file is empty"),
        ("a,b\n1,2\n\n1,2,3\n", "t.csv:4: the line has 3 cells, but the lines before it have 2"),
        ("a,a\n1,2\n", "t.csv: two columns have the name 'a'"),
        ('a,b\n1,"2\n', "t.csv:2: the file is not CSV"),
    ],
)
def test_errors_of_csv(write, text, message):
    with pytest.raises(DataError) as error:
        read_table(write(text))
    assert message in str(error.value)


def test_files_that_cannot_be_read(tmp_path, write):
    with pytest.raises(DataError, match="none: cannot read the file: No such file"):
        read_table(tmp_path / "none")
    (tmp_path / "latin").write_bytes("a,b\né,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="latin:2: the file is not UTF-8"):
        read_table(tmp_path / "latin")
    (tmp_path / "t.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="cannot read the file"):
        read_table(tmp_path / "t.gz")


@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.integers(-99, 99), st.text("ab,;\"' é", min_size=1)), min_size=1))
def test_what_the_csv_module_writes_is_read(tmp_path_factory, rows):
    import csv

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["real", "whole", "text"])
    writer.writerows([(a, b, f"t{c}t") for a, b, c in rows])
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    table = read_table(path)
    assert table.values[0].tolist() == [a for a, _, _ in rows]
    assert table.values[1].tolist() == [b for _, b, _ in rows]
    assert table.values[2].tolist() == [f"t{c}t" for _, _, c in rows]


# --- columns by a text


def test_select():
    table = Table(["a", "b", "7", "d", "e"], [])
    assert table.select("a,d") == [0, 3]
    assert table.select("1-3") == [0, 1, 2]
    assert table.select("-2:") == [3, 4]
    assert table.select("7") == [2]  # a name before a number
    assert table.select("5, b") == [4, 1]
    for spec, message in (
        ("f", "no column 'f'; the columns are a, b"),
        ("0", "not a range"),
        ("6", "not a range of columns; the table has 5 columns"),
        ("3-2", "not a range"),
        ("-6:", "not a range"),
        ("", "no column ''"),
    ):
        with pytest.raises(DataError, match=message):
            table.select(spec)
    with pytest.raises(ParameterError, match="names the column 'b' twice"):
        table.select("1-3,b")


def test_check_numbers(write):
    table = read_table(write("a,b\n1,2\n\n3,x\n"))
    table.take([0]).check_numbers()
    with pytest.raises(DataError, match=r"t\.csv:4: column 'b' is 'x'; expected a number"):
        table.check_numbers()
    with pytest.raises(DataError, match=r"t\.csv:3: column 'b' has no value"):
        read_table(write("a,b\n1,2\n3,\n")).check_numbers()
    with pytest.raises(DataError, match=r"t\.csv:3: column 'b' is inf"):
        read_table(write("a,b\n1,2\n3,inf\n")).check_numbers()


# --- ARFF

ARFF = """% a comment
@RELATION 'some thing'

@attribute 'a name' numeric
@ATTRIBUTE plain REAL
@attribute "with \\" quote" integer
@attribute colour {red, 'dark blue',green}
@attribute beach {0,1}
@attribute note string

@data
% another
1,2.5,3,red,1,hello
4, ?, 5 ,'dark blue',0,'it\\'s, so'
{0 7, 3 green, 4 1, 5 "x"}
"""


def test_arff(write):
    for name in ("t.arff", "t.ARFF", "t.arff.gz", "t.txt"):
        table = read_table(write(ARFF, name))
        found = columns(table)
        assert list(found) == ["a name", "plain", 'with " quote', "colour", "beach", "note"]
        assert found["a name"] == [1, 4, 7]
        np.testing.assert_array_equal(found["plain"], [2.5, np.nan, 0])
        assert found['with " quote'] == [3, 5, 0]
        assert found["colour"] == ["red", "dark blue", "green"]
        assert found["beach"] == [1, 0, 1]
        assert found["note"] == ["hello", "it's, so", "x"]
        assert table.lines.tolist() == [13, 14, 15]


def test_what_a_sparse_row_leaves_out_is_zero_or_the_first_value(write):
    head = "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@attribute c {0,1}\n@data\n"
    assert columns(read_table(write(head + "{}\n{1 y}\n", "t.arff"))) == {"a": [0, 0], "b": ["x", "y"], "c": [0, 0]}


def test_dense_and_sparse_rows_agree_with_scipy(tmp_path):
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(20, 3)), 3) * rng.integers(0, 2, size=(20, 3))
    states = rng.integers(0, 2, size=20)
    head = "@relation r\n" + "".join(f"@attribute a{i} numeric\n" for i in range(3)) + "@attribute s {0,1}\n@data\n"
    dense = "".join(",".join(map(str, [*row, s])) + "\n" for row, s in zip(values, states, strict=True))
    sparse = "".join(
        "{" + ",".join(f"{i} {v}" for i, v in enumerate([*row, s]) if v) + "}\n"
        for row, s in zip(values, states, strict=True)
    )
    (tmp_path / "dense.arff").write_text(head + dense)
    (tmp_path / "sparse.arff").write_text(head + sparse)
    expected, _ = scipy_arff.loadarff(tmp_path / "dense.arff")
    for name in ("dense", "sparse"):
        table = read_table(tmp_path / f"{name}.arff")
        for i in range(3):
            np.testing.assert_array_equal(table.values[i], expected[f"a{i}"])
        np.testing.assert_array_equal(table.values[3], expected["s"].astype(int))


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("1,red,3", 5, "the row has 3 cells; expected 2, one per attribute"),
        ("1,blue", 5, "'colour' is 'blue'; expected one of red, green"),
        ("x,red", 5, "'a' is 'x'; expected a number"),
        ("{0 1, 2 x}", 5, "index 2 is out of range; there are 2 attributes"),
        ("{0 1, 0 2}", 5, "index 0 occurs twice"),
        ("{0}", 5, "cannot read the sparse row at '0'"),
        ("{0 1", 5, "a sparse row must end with }"),
        ("{0 1}, {5}", 5, "cannot have a weight"),
        ("1,'red", 5, "a quote is not closed"),
    ],
)
def test_errors_of_arff_rows(write, body, line, message):
    text = f"@relation r\n@attribute a numeric\n@attribute colour {{red,green}}\n@data\n{body}\n"
    with pytest.raises(DataError) as error:
        read_table(write(text, "t.arff"))
    assert f"t.arff:{line}: " in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation r\n@attribute a numeric\n", "the ARFF file has no @data line"),
        ("@relation r\n@data\n1\n", "t.arff:3: the row has 1 cells; expected 0, one per attribute"),
        ("@relation r\n@attribute a relational\n@data\n", "t.arff:2: the attribute 'a' has the type 'relational'"),
        ("@relation r\n@attribute a\n@data\n", "t.arff:2: cannot read the attribute"),
        ("@relation r\n1,2\n", "t.arff:2: expected @attribute or @data"),
        ("@relation r\n@attribute a {}\n@data\n", "t.arff:2: the nominal attribute 'a' has an empty value"),
    ],
)
def test_errors_of_arff_headers(write, text, message):
    with pytest.raises(DataError) as error:
        read_table(write(text, "t.arff"))
    assert message in str(error.value)


@pytest.mark.parametrize(("text", "column"), [(",a,b\n0,1,2\n1,3,4\n", 1), ("a,b,\n1,2,\n3,4,\n", 3)])
def test_a_header_with_a_gap_is_not_data(tmp_path, text, column):
    """What pandas writes with its index, and lines that end in a comma."""
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"t\.csv:1: column {column} has no name; .*pandas.*index=False"):
        read_table(path)
    path.write_text("?,red,1\n2,blue,3\n")
    assert len(read_table(path)) == 2
