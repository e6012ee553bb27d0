"""`crfkit structure learn | show | score`."""

import csv

import numpy as np
import pytest
from optional import optional
from structure_cases import planted

from crfkit import StructureLearner


@pytest.fixture
def table(tmp_path):
    Y, true = planted(0)
    path = tmp_path / "t.csv"
    names = [f"v{i}" for i in range(Y.shape[1])]
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in Y.tolist())]) + "\n")
    return path, {(f"v{i}", f"v{j}") for i, j in true}


def test_learn_and_show(call, table, tmp_path):
    optional("matplotlib")
    networkx = optional("networkx")
    path, true = table
    model, graph, plot = tmp_path / "m.crf", tmp_path / "g.graphml", tmp_path / "g.png"
    learnt = call("structure", "learn", path, "--model", model, "--graph", graph, "--plot", plot, "--threads", 1)
    assert learnt.code == 0, learnt.err
    assert "8 variables, 8 edges" in learnt.out
    read = networkx.read_graphml(graph)
    assert {tuple(sorted(edge)) for edge in read.edges} == true
    assert plot.read_bytes().startswith(b"\x89PNG")
    shown = call("structure", "show", model, "--graph", tmp_path / "g.csv", "--top", 2)
    assert shown.code == 0, shown.err
    assert "chosen by ebic" in shown.out
    assert "and 6 more" in shown.out
    assert (tmp_path / "g.csv").read_text().count("\n") == 9
    assert "structure by newton" in call("inspect", model).out


def test_score(call, fails, table, tmp_path):
    path, _ = table
    model, rows = tmp_path / "m.crf", tmp_path / "rows.csv"
    call("structure", "learn", path, "-m", model, "-q")
    lines = path.read_text().splitlines()
    some = tmp_path / "some.csv"
    some.write_text("\n".join(["id," + lines[0], *(f"{k},{line}" for k, line in enumerate(lines[1:50]))]) + "\n")
    scored = call("structure", "score", model, some, "--rows", rows)
    assert scored.code == 0, scored.err
    assert "49 rows, log-likelihood per row: -" in scored.out
    assert "(exact)" in scored.out
    with rows.open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert [row["line"] for row in found] == [str(k) for k in range(2, 51)]
    learner = StructureLearner.load(model)
    Y = np.array([[int(cell) for cell in line.split(",")] for line in lines[1:50]])
    np.testing.assert_allclose([float(row["log_likelihood"]) for row in found], learner.log_likelihood(Y))
    mean = float(scored.out.split("per row: ")[1].split()[0])
    apart = float(scored.out.split("in this table: ")[1].split()[0])
    assert mean == pytest.approx(learner.score(Y), abs=1e-4)
    shares = np.array([np.bincount(column, minlength=2) / 49 for column in Y.T])
    assert apart == pytest.approx(float((shares * np.log(shares)).sum()), abs=1e-4)
    whole = some.read_text()
    some.write_text(whole.replace("v7", "w7"))
    assert "the table has no column 'v7'" in fails("structure", "score", model, some)
    some.write_text(whole.replace(f"\n3,{lines[4][0]}", "\n3,?"))
    assert "1 of 49 rows have missing labels" in call("structure", "score", model, some).err


def test_features_and_candidates(call, table, tmp_path):
    path, _ = table
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("v0,v1\nv1,v2\n")
    learnt = call(
        "structure", "learn", path, "-m", tmp_path / "m.crf", "--features", "v7", "--candidates", pairs, "-s", "5"
    )
    assert learnt.code == 0, learnt.err
    assert "7 variables, 2 edges, 1 features" in learnt.out


def test_nothing_selected_is_said(call, table, tmp_path):
    learnt = call("structure", "learn", table[0], "-m", tmp_path / "m.crf", "--strength", "1e9")
    assert learnt.code == 0
    assert "no edge was selected" in learnt.err
    assert "0 edges" in learnt.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--strength", "best"], "edge_strength"),
        (["--method", "magic"], "method"),
        (["--graph", "g.doc"], "graphml"),
        (["--plot", "g.doc"], ".png"),
        (["--features", "nose"], "nose"),
        (["--features", "1-8"], "all columns are features"),
    ],
)
def test_bad_options(fails, table, tmp_path, options, message):
    assert message in fails("structure", "learn", table[0], "-m", tmp_path / "m.crf", *options)
    assert not (tmp_path / "m.crf").exists()


def test_missing_values_name_the_line(fails, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n0,1\n1,\n0,0\n")
    assert "no label at row 1, column b" in fails(
        "structure", "learn", path, "-m", tmp_path / "m.crf", "--missing", "error"
    )


def test_show_needs_such_a_model(call, fails, table, tmp_path):
    model = tmp_path / "m.crf"
    assert call("graph", "train", table[0], "--labels", "v0,v1", "-m", model, "-q").code == 0
    assert "not a model of learnt structure" in fails("structure", "show", model)


def test_plot_graph():
    plt = optional("matplotlib.pyplot")
    from crfkit.errors import ParameterError
    from crfkit.plots import plot_graph

    edges = [("a", "b", 0.5), ("b", "c", -1.0)]
    ax = plot_graph(edges, ["a", "b", "c", "d"])
    assert ax.get_title() == "4 variables, 2 edges"
    widths = ax.collections[0].get_linewidths()
    assert len(widths) == 2
    assert widths[0] < widths[1]
    plot_graph([], ["a"], "circular")
    records = [{"first": a, "second": b, "weight": w, "kind": "coupling"} for a, b, w in edges]
    records.append({"first": "a", "second": "c", "weight": 2.0, "kind": "table"})  # no sign, so neither blue nor red
    marked = plot_graph(records)
    assert [text.get_text() for text in marked.get_legend().get_texts()] == ["positive", "negative", "without a sign"]
    assert len({tuple(colour[:3]) for colour in marked.collections[0].get_colors()}) == 3
    grid = plot_graph(edges, layout={"a": (0, 0), "b": (0, 1), "c": (1, 1)})
    assert np.array_equal(grid.collections[1].get_offsets(), [[0, 0], [0, 1], [1, 1]])
    for bad in ({"layout": "magic"}, {"layout": {"a": (0, 0)}}, {"nodes": ["a"]}):
        with pytest.raises(ParameterError):
            plot_graph(edges, **bad)
    plt.close("all")


def test_missing_cells_are_not_a_label(call, tmp_path):
    Y, _ = planted(0, rows=400)
    cells = Y.astype(object)
    cells[::40, 1] = "NA"
    path = tmp_path / "t.csv"
    names = ",".join(f"v{i}" for i in range(8))
    path.write_text("\n".join([names, *(",".join(map(str, row)) for row in cells.tolist())]) + "\n")
    learnt = call("structure", "learn", path, "-m", tmp_path / "m.crf", "-q")
    assert learnt.code == 0, learnt.err
    assert "10 of 3,200 labels are missing, in 10 rows" in learnt.err
    dropped = call("structure", "learn", path, "-m", tmp_path / "m.crf", "-q", "--missing", "drop")
    assert "10 of 400 rows have missing labels and were dropped" in dropped.err
    assert "v1: 0 1" in call("inspect", tmp_path / "m.crf").out
    other = call("structure", "learn", path, "-m", tmp_path / "n.crf", "-q", "--na", "none")
    assert "v1: 0 1 NA" in call("inspect", tmp_path / "n.crf").out, other.err


def test_edges_come_first_and_the_path_on_request(call, table, tmp_path):
    path, _ = table
    learnt = call("structure", "learn", path, "-m", tmp_path / "m.crf", "-q")
    lines = learnt.out.splitlines()
    assert lines[1].strip()[0] in "-0123456789"
    assert "weights by exact likelihood" in learnt.out
    assert "eBIC" not in learnt.out
    shown = call("structure", "show", tmp_path / "m.crf", "--path", "--parameters", "--top", 1).out
    assert "eBIC: lower is better" in shown
    assert "penalty λ" in shown
    assert shown.count("0, 1") >= 1
    help_text = call("structure", "learn", "--help").out
    for panel in ("Input", "Model", "Optimisation", "Output"):
        assert f"─ {panel} ─" in help_text


def test_graph_predict_uses_the_table(call, table, tmp_path):
    path, _ = table
    model = tmp_path / "m.crf"
    call("structure", "learn", path, "-m", model, "-q")
    rows = path.read_text().splitlines()
    whole = call("graph", "predict", model, path)
    assert "every cell was predicted from the other cells" in whole.err
    assert len(set(whole.out.splitlines()[1:])) > 20  # not the same row for all
    holes = tmp_path / "h.csv"
    holes.write_text("\n".join([rows[0], *(",".join(["NA", *row.split(",")[1:]]) for row in rows[1:50])]) + "\n")
    filled = call("graph", "predict", model, holes, "--marginals")
    assert "missing cells were filled in" in filled.err
    got = [line.split(",") for line in filled.out.splitlines()[1:]]
    assert [line[1:8] for line in got] == [row.split(",")[1:] for row in rows[1:50]]
    assert {line[0] for line in got} == {"0", "1"}
    part = tmp_path / "p.csv"
    part.write_text("v2,v3\n0,1\n1,1\n")
    assert len(call("graph", "predict", model, part).out.splitlines()) == 3


def test_options_of_rules(call, table, tmp_path):
    path, true = table
    model = tmp_path / "m.crf"
    learn = ("structure", "learn", path, "-m", model, "--threads", 1)
    few = call(*learn, "--gamma", 1000)
    assert few.code == 0, few.err
    assert "0 edges" in few.out
    tables = call(*learn, "--form", "full", "--group-norm", "2", "-s", "stability", "--threshold", 0.9)
    assert tables.code == 0, tables.err
    assert f"{len(true)} edges" in tables.out
    assert "unknown group_norm" in call(*learn, "--group-norm", "3").err


def test_tables_without_the_last_pair_of_labels(call, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, size=(300, 3))
    rows[:, 1] = np.where(rng.random(300) < 0.6, rows[:, 0], rows[:, 1])
    path, model = tmp_path / "table.csv", tmp_path / "m.crf"
    path.write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in rows.tolist())]) + "\n")
    learnt = call("structure", "learn", path, "-m", model, "--form", "reference")
    assert learnt.code == 0, learnt.err
    assert "3 variables, 1 edges" in learnt.out
    assert "14 weights: 6 node (reference), 8 edge (reference)" in call("inspect", model).out
    assert call("graph", "predict", model, path).code == 0


def test_ratings(call, tmp_path):
    rng = np.random.default_rng(0)
    mood = rng.normal(size=400)
    raw = np.stack([mood, -mood, np.zeros(400)], axis=1) + 1.3 * rng.normal(size=(400, 3))
    rows = np.clip(np.round(raw), -2, 2).astype(int) + 3
    path, model = tmp_path / "ratings.csv", tmp_path / "m.crf"
    path.write_text("\n".join(["a,b,c", *(",".join(map(str, row)) for row in rows.tolist())]) + "\n")
    learnt = call("structure", "learn", path, "-m", model, "--form", "ordinal")
    assert learnt.code == 0, learnt.err
    assert "3 variables, 1 edges" in learnt.out
    shown = call("structure", "show", model)
    assert "-" in next(line for line in shown.out.splitlines() if "a" in line.split() and "b" in line.split())
    assert "no sign" not in shown.out
    assert call("graph", "predict", model, path).code == 0
    assert "ordinal" in call("inspect", model).out
    names = path.read_text().replace("3", "maybe")
    path.write_text(names)
    refused = call("structure", "learn", path, "-m", model, "--form", "ordinal")
    assert refused.code != 0
    assert "these have none: a, b, c" in refused.err
