"""The experiments of AGPM: exact inference by halves, and what is made of the results."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.junction import Junction

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments" / "agpm"))
import pages
from agpm_statistics import ratio
from agpm_store import Store, dumps
from halves import Halves

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "agpm"


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_halves_are_exact(nodes, scale):
    rng = np.random.default_rng(nodes)
    graph = Graph.complete(nodes).repeat(7)
    potentials = Potentials.from_tables(
        graph, scale * rng.normal(size=(graph.n_nodes, 2)), scale * rng.normal(size=(graph.n_edges, 2, 2))
    )
    exact, found = Junction(n_threads=1).run(potentials), Halves().run(potentials)
    assert_allclose(found.log_z, exact.log_z, rtol=1e-12)
    assert_allclose(found.nodes, exact.nodes, atol=1e-10)
    assert_allclose(found.edges, exact.edges, atol=1e-10)


def test_edges_may_point_either_way_and_must_be_the_same_in_every_sample():
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(2, 2, 2))
    graph = Graph(3, [(2, 0), (1, 2)])
    potentials = Potentials.from_tables(graph, rng.normal(size=(3, 2)), tables)
    assert_allclose(Halves().run(potentials).edges, Junction(n_threads=1).run(potentials).edges, atol=1e-12)
    with pytest.raises(ValueError, match="no label is fixed"):
        Halves().run(potentials.clamp([0, -1, -1]))
    with pytest.raises(ValueError, match="two states"):
        Halves().run(Potentials.from_tables(graph, np.zeros((3, 3))))


# --- what is made of results


def test_the_interval_of_a_ratio():
    scipy = pytest.importorskip("scipy.stats")
    values = [0.5, 0.7, 0.6, 1.1, 0.9]
    found = ratio([values])
    low, high = scipy.ttest_1samp(np.log(values), 0.0).confidence_interval(0.95)
    assert_allclose([found["low"], found["high"]], np.exp([low, high]))
    assert_allclose(found["ratio"], np.exp(np.log(values).mean()))
    assert ratio([[0.5], values])["low"] is None
    assert_allclose(ratio([[0.5], [2.0]])["ratio"], 1.0)  # settings count alike, whatever their draws
    assert_allclose(ratio([[0.5, 0.5], [2.0]])["ratio"], 1.0)


def test_results_are_merged_and_read_back(tmp_path):
    path = tmp_path / "results.json"
    store = Store(path)
    store.at("a", "b")["c"] = {"x": [1.5, 2], "status": "–"}
    store.spent("part", 0.0)
    again = Store(path)
    assert again.at("a", "b") == {"c": {"x": [1.5, 2], "status": "–"}}
    assert again.results["cpu"]["part"] > 0
    assert json.loads(dumps(again.results)) == again.results
    assert Store(path, again=True).at("a", "b") == {}


def row(evaluations, status="CONVERGED"):
    numbers = {"evaluations": evaluations, "iterations": evaluations, "cpu": [0.1 * evaluations], "objective": 1.0}
    return numbers | {"error": 0.25, "edges": 9, "true": 5, "candidates": 10, "hits": 5, "status": status}


def test_pages_of_few_results_say_what_was_not_measured(tmp_path):
    draw = {"M-[14]": row(20), "M-[23]": row(30), "AGPM": row(25)}
    results = {"Table 1": {"pl": {"5/10": {"0": draw}, "5/5": {"0": draw, "1": draw}}}, "cpu": {"table": 6.0}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    written = pages.render(FOLDER, tmp_path, lenient=True)
    assert "not measured in this run" in written["README.md"]
    found = pages.facts_of(FOLDER, tmp_path)
    assert found["table"]["not_first_evaluations"] == ["5/5", "5/10"]
    assert found["table"]["by_name"]["5/5"]["spg_first_always"]
    assert {row["item"]: row["outcome"] for row in found["coverage"]}["Table 1"] == "not reproduced"


def test_every_claim_of_the_page_is_measured():
    used = set(re.findall(r"claim\(claims\.(\w+)\)", (FOLDER / "README.md.j2").read_text()))
    assert used <= set(pages.facts_of(FOLDER, FOLDER)["claims"])
