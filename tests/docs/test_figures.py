"""Measured figures of README and documentation are those of benchmarks/results and stand in rendered places."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "figures"))
page_texts, pages = import_module("page_texts"), import_module("write_figures")

TEXTS = page_texts.texts()
PAGES = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in pages.pages()}
WITH_FIGURES = [name for name, text in PAGES.items() if pages.PLACE.search(text)]

NUMBER = r"(?<![\w.×])\d[\d.,]*(?:[–-]\d[\d.,]*)?"
WORD = r"\b(?:two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|hundred|twice)"
SPEED = re.compile(
    rf"(?:{NUMBER}|{WORD}) (?:times|×)? ?(?:(?:faster|slower|as (?:fast|long|much time))\b|the (?:time|seconds)\b)"
    rf"|{NUMBER} ?(?:s|ms|µs|ns|seconds?|minutes?|milliseconds?|microseconds?|[kMG]i?B)\b"
    rf"|{NUMBER} ?(?:[\w]+ ){{0,2}}(?:per|a|each) (?:second|minute|hour)\b"
    rf"|{NUMBER} % (?:of (?:[\w']+ ){{0,3}}time|faster|slower|less time)"
    rf"|(?:half|tenth|quarter|tens|hundreds) of (?:a |micro|milli)?(?:seconds?|minutes?|the time)",
    re.IGNORECASE,
)
READING_TIME = re.compile(r"(?:takes )?about \d+ minutes")  # of a tutorial
# What looks like a measured speed or size and is none: (page, text, what it is).
ALLOWED = (
    ("benchmarks/README.md", "90 minutes", "the time of `make bench`"),
    ("docs/explanation/math.md", "1 GB", "a default"),
    ("docs/explanation/model_file.md", "100 MB", "a limit"),
    ("docs/explanation/promises.md", "1 GB", "a limit"),
    ("docs/explanation/scale.md", "5 ms", "an assumption of the model"),
    ("docs/explanation/scale.md", "10 s", "a limit"),
    ("docs/guides/explaining.md", "1.2 MB", "the size of a file"),
    ("docs/guides/segmentation.md", "2 GB", "what --dry-run prints for a size that the sentence names"),
    ("docs/guides/segmentation.md", "half of the time", "a share of a computation, without seconds"),
)


def prose(text: str) -> str:
    """Return a page without rendered places, code, addresses and comments; lines stay."""
    hidden = r"<!--=[\w.]+-->.*?<!--/-->|```.*?```|<!--.*?-->|`[^`\n]*`|\]\([^)]*\)"
    return re.sub(hidden, lambda m: "\n" * m[0].count("\n") or " ", text, flags=re.DOTALL)


def loose_figures(name: str, text: str) -> list[str]:
    """Return the speed figures of a page that are outside a place."""
    allowed = {what for page, what, _ in ALLOWED if page == name}
    shown = READING_TIME.sub("", prose(text)) if name.startswith("docs/tutorials/") else prose(text)
    found = [found[0] for found in SPEED.finditer(shown) if found[0].strip() not in allowed]
    return found + [row for row in timed_rows(shown) if not any(what in row for what in allowed)]


def timed_rows(text: str) -> Iterator[str]:
    """Yield the rows with numbers of tables whose header, or the paragraph before them, speaks of time."""
    for table in re.finditer(r"([^\n]*\n)?\n((?:\|[^\n]*\n)+)", text):
        before, rows = table[1] or "", table[2].splitlines()
        if re.search(r"\b(?:seconds|CPU time|per second|times? faster)\b", before + rows[0], re.IGNORECASE):
            yield from (row for row in rows[2:] if re.search(r"\|\s*\d", row))


@pytest.mark.parametrize("name", WITH_FIGURES)
def test_a_page_has_the_figures_of_the_results(name: str) -> None:
    assert list(pages.differences(PAGES[name], TEXTS)) == []
    assert pages.render(PAGES[name], TEXTS) == PAGES[name]


@pytest.mark.parametrize("name", WITH_FIGURES)
def test_a_changed_number_of_a_page_is_noticed(name: str) -> None:
    for place in pages.PLACE.finditer(PAGES[name]):
        for number in re.finditer(r"\d+", place[2]):
            at = place.start(2) + number.start()
            changed = PAGES[name][:at] + str(int(number[0]) + 1) + PAGES[name][at + len(number[0]) :]
            assert list(pages.differences(changed, TEXTS)), f"{place[1]}: {number[0]} may be changed"


def holders(found: Any, path: list[str]) -> Iterator[tuple[Any, Any]]:
    """Yield what holds the values at a path of a result file, and their keys there; `*` stands for all of a list."""
    first, *rest = path
    for key in range(len(found)) if first == "*" else [int(first) if isinstance(found, list) else first]:
        if rest:
            yield from holders(found[key], rest)
        else:
            yield found, key


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("speed", "fit|times_faster"),
        ("speed", "fit|times_faster_one_thread"),
        ("speed", "fit|crfsuite|*|seconds"),
        ("speed", "evaluation|times_faster"),
        ("speed", "memory|crfkit"),
        ("speed", "l1|times_faster"),
        ("peers", "wapiti|times_faster"),
        ("peers", "wapiti|crfkit_seconds"),
        ("crfpp_commands", "crfkit-learn chunking|seconds"),
        ("crfpp_commands", "crfkit-learn mira|times faster"),
        ("wapiti_command", "medians|train, cpu|Wapiti"),
        ("crfsuite_switch", "seconds|fit|crfkit"),
        ("packages", "taggers|0|call_ratio"),
        ("packages", "taggers|0|bulk_speedup"),
        ("solvers", "smooth|CoNLL-2000|solvers|auto|to|1 %|seconds"),
        ("solvers", "tron|solvers|lbfgs|seconds"),
        ("solvers", "hessian|ratios|product"),
        ("solvers", "crfsuite|arow|times faster"),
        ("out_of_core", "rows|3|seconds"),
        ("text_features", "speed|runs|0|warm"),
        ("text_features", "hashing|2^20 buckets|file_mb"),
        ("decoding", "results|CoNLL-2000|ratios|nbest_10 / viterbi"),
        ("segment", "rows|0|images_per_second"),
        ("cluster", "workers|2|seconds"),
    ],
)
def test_a_changed_result_is_noticed(file: str, path: str, tmp_path: Path) -> None:
    """With a number of the results tripled, a page must be written again."""
    shutil.copytree(page_texts.RESULTS, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.png", "*.md"))
    copy = tmp_path / f"{file}.json"
    found = json.loads(copy.read_text(encoding="utf-8"))
    for holder, key in holders(found, path.split("|")):
        holder[key] *= 30 if file == "packages" else 3  # pages have the least and the most of its rows
    copy.write_text(json.dumps(found), encoding="utf-8")
    changed = page_texts.texts(tmp_path)
    assert any(list(pages.differences(text, changed)) for text in PAGES.values())


def test_every_text_has_a_place() -> None:
    """A name that no page uses is an oversight, and a page may not name a figure twice in different words."""
    used = {name for text in PAGES.values() for name, _ in pages.PLACE.findall(text)}
    assert used == set(TEXTS)


@pytest.mark.parametrize("name", WITH_FIGURES)
def test_a_place_does_not_end_a_paragraph(name: str) -> None:
    """A line that begins with a comment is not part of a paragraph for Markdown; a block stands between such lines."""
    for place in pages.PLACE.finditer(PAGES[name]):
        before = PAGES[name][: place.start()].rsplit("\n", 1)[-1]
        block = place[2].startswith("\n") and place[2].endswith("\n")
        assert block == (not before.strip()), f"{place[1]}: a block begins a line, any other place does not"


@pytest.mark.parametrize("name", PAGES)
def test_no_speed_figure_stands_outside_a_place(name: str) -> None:
    assert loose_figures(name, PAGES[name]) == []


@pytest.mark.parametrize(("page", "text", "reason"), ALLOWED)
def test_what_is_allowed_is_there(page: str, text: str, reason: str) -> None:
    assert text in prose(PAGES[page]), f"{page} has no {text!r} ({reason}) any more; take it out of ALLOWED"


@pytest.mark.parametrize(
    "sentence",
    [
        "Training takes 6.4 s.",
        "An evaluation takes 41 ms.",
        "It is 22 times faster.",
        "It is 22 times as fast as CRFsuite.",
        "It is 22 × faster.",
        "Training takes four times as long.",
        "It tags 690,000 tokens per second.",
        "It takes 2 GB of memory.",
        "A call takes 20 % of the time.",
        "The optimum is the same, in a tenth of the time.",
        "Seconds of training:\n\n| | crfkit |\n|---|---|\n| all | 5.2 |\n",
    ],
)
def test_the_search_for_figures_finds(sentence: str) -> None:
    assert loose_figures("docs/guides/decoding.md", f"Some words. {sentence} More words.")
    assert not loose_figures("docs/guides/decoding.md", f"Some words. <!--=x.y-->{sentence}<!--/--> More words.")


def test_results_are_of_one_kind_of_machine() -> None:
    """Files of `make bench` that name their sources; those of other runs are listed as such in benchmarks/README.md."""
    kinds = {}
    for file in page_texts.BENCH:
        path = page_texts.RESULTS / f"{file}.json"
        known = json.loads(path.read_text(encoding="utf-8")).get("machine", {}) if path.is_file() else {}
        if "sources" in known:
            kinds[file] = tuple(known[key] for key in ("processor", "cores", "kernels", "threads"))
    assert kinds, "no file of results names its machine"
    assert len(set(kinds.values())) == 1, f"run `make bench` on one machine: {kinds}"


def test_no_phase_is_above_the_peak_of_the_machine() -> None:
    path = page_texts.RESULTS / "phases.json"
    if not path.is_file():
        pytest.skip("no results: run benchmarks/phases.py")
    shares = {
        name: row["arithmetic_share"]
        for name, row in json.loads(path.read_text(encoding="utf-8"))["phases"].items()
        if "arithmetic_share" in row
    }
    assert shares
    assert max(shares.values()) <= 1.0, shares


def test_one_command_measures_what_the_pages_state() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "run_all.py"), "--list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    steps = dict(re.findall(r"^(\w+) +(\d+ (?:min|s))\b", listed, re.MULTILINE))
    total, unit = steps.pop("all").split()
    assert set(steps) == set(page_texts.BENCH)
    assert unit == "min"
    assert int(total) <= 90
    for name in steps:
        assert (ROOT / "benchmarks" / page_texts.BENCH[name]).is_file()


def test_links_of_the_benchmarks_lead_to_files() -> None:
    """Results that are cited are there, or `make bench` writes them."""
    for target in re.findall(r"\]\(([^)#]+)\)", PAGES["benchmarks/README.md"]):
        path = ROOT / "benchmarks" / target
        assert path.exists() or (path.parent.name == "results" and path.stem in page_texts.BENCH), target
