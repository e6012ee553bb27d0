"""`crfkit report` and `crfkit compare`: a person's path, hostile texts, and the page in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from crfkit import ChainCRF, read_columns
from crfkit.cli.demo.data import TEMPLATE
from crfkit.explain.report.data import make_report
from crfkit.schemes import convert_tags
from crfkit.synthetic import entity_corpus, write_columns

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt install chromium")
HOSTILE = [
    "שלום",
    "</script><script>document.title='broken'</script>",
    '"><img src=x onerror=alert(1)>',
    "a&b'c",
    "<!--",
]


def test_report_writes_one_page_that_needs_nothing_else(call, workspace):
    outcome = call("report", "model.crf", "test.txt", "--output", "report.html")
    assert outcome.code == 0, outcome.err
    assert "F1 " in outcome.err
    assert "wrote report.html" in outcome.err
    page = (workspace / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert not re.search(r"(src|href)\s*=\s*['\"]?(https?:)?//", page)
    assert "url(" not in page
    for name in ("scores", "types", "errors", "calibration", "transitions", "weights"):
        assert f"<section id='{name}'" in page
    evaluated = json.loads(call("eval", "model.crf", "test.txt", "--json").out)
    assert f"<b>{100 * evaluated['overall']['f1']:.2f}</b>" in page
    assert call("report", "model.crf", "test.txt", "-o", "again.html", "--quiet").err == ""
    assert (workspace / "again.html").read_text(encoding="utf-8") == page


def test_report_refuses_what_cannot_work(fails, workspace):
    assert "same file" in fails("report", "model.crf", "test.txt", "--output", "test.txt")
    (workspace / "empty.txt").write_text("")
    assert "no sequences" in fails("report", "model.crf", "empty.txt", "-o", "page.html")
    (workspace / "other.txt").write_text("in X DET\n")
    assert "none of the model's labels" in fails("report", "model.crf", "other.txt", "-o", "page.html")
    assert "confidence must be" in fails("report", "model.crf", "test.txt", "-o", "page.html", "--confidence", 2)


def test_compare(call, workspace):
    call("train", "train.txt", "--template", "template", "--model", "weak.crf", "--l2", "200")
    outcome = call("compare", "weak.crf", "model.crf", "test.txt", "--samples", "300", "--show", "1")
    assert outcome.code == 0, outcome.err
    assert "F1 of phrases" in outcome.out
    assert "paired bootstrap" in outcome.out
    assert "sentence " in outcome.out
    told = json.loads(call("compare", "weak.crf", "model.crf", "test.txt", "--samples", "300", "--json").out)
    for name, path in (("a", "weak.crf"), ("b", "model.crf")):
        scores = json.loads(call("eval", path, "test.txt", "--json").out)
        assert told["differences"]["F1 of phrases"][name] == pytest.approx(scores["overall"]["f1"])
        assert told["differences"]["accuracy"][name] == pytest.approx(scores["accuracy"])
    assert all(row["a"] != row["b"] for row in told["differing"])
    given = (workspace / "test.txt").read_bytes()
    again = call("compare", "weak.crf", "model.crf", "-", "--samples", "300", "--json", stdin=given)
    assert json.loads(again.out) == told


def test_compare_shows_labels_in_the_scheme_in_which_they_are_counted(call, workspace):
    (workspace / "train1.txt").write_bytes(call("convert-tags", "train.txt", "--to", "iob1").stdout)
    call("train", "train1.txt", "--template", "template", "--model", "iob1.crf", "--l2", "20")
    told = json.loads(call("compare", "iob1.crf", "model.crf", "test.txt", "--samples", "300", "--json").out)
    assert told["notes"] == ["the labels of A are IOB1; they were converted to IOB2, the scheme of the gold labels"]
    assert told["differing"]
    for row in told["differing"]:
        assert row["a"] != row["b"]
        assert convert_tags([row["a"]], "iobes", source="iob2")  # a label that is not IOB2 would be an error


# --- texts from data


def hostile_report(folder: Path) -> Path:
    """A page about a model and a set in which every text is an attempt to break it."""
    labels = ["O", "B-</script>", "I-</script>", 'B-"<b>']
    X = [[[f"w={word}", f"<{k}>"] for k, word in enumerate(HOSTILE)] for _ in range(6)]
    y = [["O", labels[1], labels[2], "O", labels[3]] for _ in X]
    crf = ChainCRF().fit(X, y)
    wrong = [[labels[3], *row[1:]] for row in y[:3]] + [["O", *labels[1:3], "O", "B-new"]]
    report = make_report(crf, X[:4], wrong, [HOSTILE] * 4, title=HOSTILE[1], names=(HOSTILE[2], HOSTILE[1]), samples=50)
    path = folder / "hostile.html"
    path.write_text(report.to_html(), encoding="utf-8")
    return path


class Reader(HTMLParser):
    """The elements of a page, and what its scripts contain."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script":
            self.scripts[-1] += data

    def handle_endtag(self, tag):
        self.tags.append(("/" + tag, {}))


def test_texts_from_data_cannot_become_markup(tmp_path):
    page = hostile_report(tmp_path).read_text(encoding="utf-8")
    found = Reader()
    found.feed(page)
    assert len(found.scripts) == 2
    assert not any(tag == "img" or any(name.startswith("on") for name in attrs) for tag, attrs in found.tags)
    data = json.loads(found.scripts[0])
    assert data["errors"][0]["w"] == HOSTILE
    assert "&lt;/script&gt;&lt;script&gt;document.title=" in page


def test_labels_that_are_no_phrases(tmp_path):
    X, y = [[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]]
    report = make_report(ChainCRF().fit(X, y), X, [["DET", "NOUN"], ["NOUN", "NOUN"]], samples=50)
    page = report.to_html()
    assert "Labels</h2>" in page
    assert report.mistakes is None
    assert report.errors[0].why[0].runner_up == "NOUN"
    perfect = make_report(ChainCRF().fit(X, y), X, y, samples=50)
    assert "There are none" in perfect.to_html()


@pytest.mark.parametrize("options", [{"order": 2}, {"constraints": "iob2"}, {"hash_bits": 8}])
def test_other_chains(options):
    """The gold labels break the constraints, and one of them is unknown: the page says what it can."""
    X = [[[f"w={word}"] for word in ("in", "New", "York")] for _ in range(4)]
    crf = ChainCRF(**options).fit(X, [["O", "B-LOC", "I-LOC"]] * 4)
    report = make_report(crf, X[:2], [["I-LOC", "B-LOC", "O"], ["O", "B-ORG", "I-LOC"]], samples=20)
    assert [error.sequence for error in report.errors] == [0, 1]
    assert report.errors[1].log_probability == float("-inf")
    assert "<section id='errors'" in report.to_html()


def test_matrices_and_plain_words():
    matrices = [np.eye(3), np.ones((2, 3))]
    crf = ChainCRF().fit(matrices, [["A", "B", "C"], ["A", "C"]])
    report = make_report(crf, matrices, [["B", "B", "C"], ["A", "A"]], samples=20)
    assert report.errors[0].tokens == ["0", "1", "2"]  # positions, for want of words
    words = [["in", "New", "York"], ["rain", "in", "Rome"]]
    crf = ChainCRF(features="ner").fit(words, [["O", "B-LOC", "I-LOC"], ["O", "O", "B-LOC"]])
    report = make_report(crf, words, [["O", "O", "O"], ["O", "O", "B-LOC"]], samples=20)
    assert report.errors[0].tokens == words[0]


# --- in a browser


def dom(page: Path, width: int = 1200, script: str = "") -> str:
    """The page after its scripts ran; `script` is one more, run at the end, in a copy that allows it."""
    shown = page
    if script:
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", text)
        shown = page.with_name("probed.html")
        shown.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={page.parent / f'profile {width}'}",
    ]
    command += [f"--window-size={width},1000", "--virtual-time-budget=2000", "--dump-dom", shown.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    return done.stdout.decode("utf-8")


PROBE = """
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const place = () => document.getElementById("place").textContent;
const told = {title: document.title, first: place()};
press("j"); told.second = place(); press("k"); told.back = place();
press("ArrowRight"); told.right = place(); press("ArrowLeft"); press("ArrowLeft"); told.left = place();
const wrong = [...document.querySelectorAll("#sentence button.wrong")];
wrong.at(-1).click();
told.pressed = [...document.querySelectorAll("#sentence button.wrong")].map((b) => b.getAttribute("aria-pressed"));
told.why = document.getElementById("why").textContent;
told.wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
document.getElementById("theme").click();
told.theme = document.documentElement.dataset.theme;
told.light = getComputedStyle(document.body).backgroundColor;
document.getElementById("theme").click();
told.dark = getComputedStyle(document.body).backgroundColor;
const search = document.getElementById("text");
search.value = "no such word"; search.dispatchEvent(new Event("input"));
told.none = place();
const out = document.createElement("pre"); out.id = "told"; out.textContent = JSON.stringify(told);
document.body.append(out);
"""


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_columns(str(folder / "train.txt"), entity_corpus(60, 1))
    write_columns(str(folder / "test.txt"), entity_corpus(60, 2))
    crf = ChainCRF(TEMPLATE, max_iterations=6, solver="lbfgs")
    with pytest.warns(UserWarning, match="iterations"):
        crf.fit_file(folder / "train.txt")
    X, y = read_columns(folder / "test.txt")
    page = folder / "report.html"
    page.write_text(make_report(crf, X, y, samples=50).to_html(), encoding="utf-8")
    return page


def told(page: Path, width: int) -> dict:
    found = re.search(r'<pre id="told">(.*?)</pre>', dom(page, width, PROBE), re.S)
    assert found, "the script of the page failed"
    return json.loads(html.unescape(found[1]))


@in_a_browser
@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_works_from_the_keyboard(probed, width):
    found = told(probed, width)
    assert found["first"].startswith("1 of ")
    assert found["second"].startswith("2 of ")
    assert found["back"] == found["left"] == found["first"]
    assert found["right"] == found["second"]
    assert found["pressed"][-1] == "true"
    assert found["pressed"].count("true") == 1
    assert "Why" in found["why"]
    assert not found["wide"]  # only tables scroll sideways
    assert found["theme"] == "light"
    assert found["light"] != found["dark"]
    assert found["none"] == "no sentence fits"


@in_a_browser
def test_hostile_texts_stay_texts_in_a_browser(tmp_path):
    shown = dom(hostile_report(tmp_path))  # with its own policy: only its own script runs
    assert "<title>&lt;/script&gt;" in shown
    assert "<img" not in shown
    sentence = shown[shown.index('id="sentence"') :]
    assert 'dir="rtl"' in sentence  # as the first letter is
    assert "שלום" in sentence
    assert "1 of 4" in shown
