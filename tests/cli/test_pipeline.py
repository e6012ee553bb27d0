"""What a person does: train, tag, eval, inspect."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import stat
from pathlib import Path

import numpy as np
import pytest

from crfkit import ChainCRF, evaluate
from crfkit.files.columns import read_columns

TRAIN = ["train", "train.txt", "--template", "template", "--quiet", "--model"]


def weights(path: str) -> np.ndarray:
    return ChainCRF.load(path).coef_


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.split("\n") if line]


# --- train


def test_train_reports_what_it_did(trained):
    model = ChainCRF.load(trained.folder / "model.crf")
    first, second, status, last = trained.outcome.out.splitlines()
    assert first == f"9 labels, {model.n_attributes_} attributes, {len(model.coef_)} weights"
    assert re.fullmatch(r"chain likelihood \+ L2\(1\) = \d+\.\d+ after \d+ iterations, \d+\.\d\d s", second)
    assert status.startswith("converged")
    assert last == "model written to model.crf"
    progress = trained.outcome.err.splitlines()
    assert all(re.match(r"iteration +\d+  objective +\d+\.\d+ .* s$", line) for line in progress)
    assert len(progress) == len((trained.folder / "log.jsonl").read_text().splitlines())
    assert "\x1b" not in trained.outcome.err


def test_log(trained):
    rows = [json.loads(line) for line in (trained.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["iteration"] for row in rows] == list(range(len(rows)))
    assert all(isinstance(row["value"], float) and row["seconds"] >= 0 for row in rows)
    assert all(a["value"] > b["value"] and a["seconds"] <= b["seconds"] for a, b in itertools.pairwise(rows))
    assert f"= {rows[-1]['value']:.6f} after {rows[-1]['iteration']} iterations" in trained.outcome.out


def test_quiet_and_train_error(call):
    outcome = call(*TRAIN, "m.crf", "--train-error", "--log", "e.jsonl")
    assert (outcome.code, outcome.err) == (0, "")
    last = json.loads(Path("e.jsonl").read_text().splitlines()[-1])
    model = ChainCRF.load("m.crf")
    X, y = read_columns("train.txt")
    wrong = [sum(a != b for a, b in zip(p, g, strict=True)) for p, g in zip(model.predict(X), y, strict=True)]
    assert last["token_error"] == pytest.approx(sum(wrong) / sum(map(len, y)))
    assert last["sequence_error"] == pytest.approx(np.mean(np.array(wrong) > 0))
    assert "token error" in call(*TRAIN[:4], "--model", "m.crf", "--train-error").err


def test_penalties_are_one_penalty_under_three_names(call):
    for name, options in (
        ("a", "--l2 2"),
        ("b", "--C 0.5"),
        ("c", "--c2 1"),
        ("d", "--l2 1"),
        ("e", "--C 1"),
        ("f", ""),
    ):
        assert call(*TRAIN, name, *options.split()).code == 0
    np.testing.assert_array_equal(weights("a"), weights("b"))
    np.testing.assert_array_equal(weights("a"), weights("c"))
    np.testing.assert_array_equal(weights("d"), weights("f"))
    np.testing.assert_array_equal(weights("e"), weights("f"))
    assert np.linalg.norm(weights("a")) < np.linalg.norm(weights("f"))


def test_parameter_sets(call):
    observed = ChainCRF.load("model.crf")
    assert call(*TRAIN, "a.crf", "--all-states").code == 0
    everything = ChainCRF.load("a.crf")
    assert len(everything.coef_) == 9 * everything.n_attributes_ + 81
    assert observed.n_attributes_ == everything.n_attributes_
    assert observed.n_attributes_ <= len(observed.coef_) < len(everything.coef_) / 4
    assert call(*TRAIN, "o.crf", "--observed-states", "--threads", "1").code == 0
    np.testing.assert_allclose(weights("o.crf"), observed.coef_, atol=1e-3)


def test_min_frequency(call):
    names = [ChainCRF.load("model.crf").n_attributes_]
    for n in (2, 5, 10**6):
        assert call(*TRAIN, "m.crf", "--all-states", "--min-frequency", n).code == 0
        names.append(ChainCRF.load("m.crf").n_attributes_)
    assert names == sorted(names, reverse=True)
    assert (names[2] > 0, names[3]) == (True, 0)
    assert len(weights("m.crf")) == 81


def test_iteration_limit(run):
    outcome = run(*TRAIN, "m.crf", "--max-iterations", 2)
    assert outcome.code == 0
    assert "after 2 iterations" in outcome.out
    assert "the iteration limit was reached; raise --max-iterations or --tolerance\n" in outcome.out
    assert ".py" not in outcome.err  # no Python warning with a line of our source


def test_training_again_replaces_the_model(call):
    before = Path("model.crf").read_bytes()
    assert call(*TRAIN, "model.crf", "--l2", 9).code == 0
    assert Path("model.crf").read_bytes() != before
    assert stat.S_IMODE(Path("model.crf").stat().st_mode) == stat.S_IMODE(Path("train.txt").stat().st_mode)


# --- tag


def test_tag_appends_a_column(run):
    text = Path("test.txt").read_text(encoding="utf-8")
    outcome = run("tag", "model.crf", "test.txt")
    assert (outcome.code, outcome.err) == (0, "")
    lines, tagged = text.split("\n"), outcome.out.split("\n")
    assert [line.rpartition("\t")[0] for line in tagged] == lines
    X, _ = read_columns("test.txt")
    labels = [label for row in ChainCRF.load("model.crf").predict(X) for label in row]
    assert [line.rpartition("\t")[2] for line in tagged if line] == labels
    assert run("tag", "model.crf", stdin=text.encode()) == outcome


def test_tag_does_not_need_the_label_column(call):
    bare = "\n".join(line.rpartition("\t")[0] for line in Path("test.txt").read_text().split("\n"))
    full, short = call("tag", "model.crf", "test.txt").out, call("tag", "model.crf", stdin=bare.encode()).out
    assert [row[-1] for row in rows(short)] == [row[-1] for row in rows(full)]
    wide = "\n".join(f"{line}\tmore" if line else "" for line in bare.split("\n"))
    assert [row[-1] for row in rows(call("tag", "model.crf", stdin=wide.encode()).out)] == [r[-1] for r in rows(full)]


def test_marginals(call):
    model = ChainCRF.load("model.crf")
    X, _ = read_columns("test.txt")
    expected = np.concatenate(model.predict_marginals(X))
    plain = rows(call("tag", "model.crf", "test.txt").out)
    best = rows(call("tag", "model.crf", "test.txt", "--marginals").out)
    assert [row[:-1] for row in best] == plain
    column = {label: j for j, label in enumerate(model.classes_)}
    chosen = [p[column[row[-1]]] for p, row in zip(expected, plain, strict=True)]
    np.testing.assert_allclose([float(row[-1]) for row in best], chosen, atol=1e-6)
    every = rows(call("tag", "model.crf", "test.txt", "--all-marginals").out)
    assert [row[:4] for row in every] == plain
    pairs = [[cell.rpartition("=") for cell in row[4:]] for row in every]
    assert all([name for name, _, _ in row] == list(model.classes_) for row in pairs)
    np.testing.assert_allclose([[float(p) for _, _, p in row] for row in pairs], expected, atol=1e-6)


@pytest.mark.parametrize("option", ["--marginals", "--all-marginals"])
def test_columns_of_a_spaced_file_are_spaced(call, option):
    out = call("tag", "model.crf", option, stdin=b"we x\nsaw x\n").out
    assert "\t" not in out
    assert "  " not in out


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\t", "   "),
        lambda text: "\n\n" + text.replace("\n\n", "\n \n\t\n\n"),
        lambda text: text.replace("\n", " \n"),
    ],
    ids=["crlf", "bom", "no-newline-at-end", "spaces", "more-blank-lines", "trailing-space"],
)
def test_forms_of_a_file(call, change):
    text = Path("test.txt").read_text(encoding="utf-8")
    expected = call("tag", "model.crf", "test.txt").out
    outcome = call("tag", "model.crf", stdin=change(text).encode())
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split() for line in outcome.out.split("\n")] == [line.split() for line in expected.split("\n")]
    Path("changed").write_bytes(change(text).encode())
    assert call("eval", "model.crf", "changed") == call("eval", "model.crf", "test.txt")


def test_gzip(call):
    Path("test.gz").write_bytes(gzip.compress(Path("test.txt").read_bytes()))
    Path("train.gz").write_bytes(gzip.compress(Path("train.txt").read_bytes()))
    assert call("tag", "model.crf", "test.gz") == call("tag", "model.crf", "test.txt")
    assert call("train", "train.gz", "-t", "template", "-m", "z.crf", "-q").code == 0
    np.testing.assert_array_equal(weights("z.crf"), weights("model.crf"))


def test_several_files_and_output_file(call):
    once = call("tag", "model.crf", "test.txt").stdout
    assert call("tag", "model.crf", "test.txt", "test.txt").stdout == 2 * once
    outcome = call("tag", "model.crf", "test.txt", "--output", "o.txt")
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, b"", b"")
    assert Path("o.txt").read_bytes() == once
    assert stat.S_IMODE(Path("o.txt").stat().st_mode) == stat.S_IMODE(Path("test.txt").stat().st_mode)


def test_nothing_in_nothing_out(call):
    for text in (b"", b"\n", b" \n\t\n\n"):
        assert call("tag", "model.crf", stdin=text).code == 0
        assert call("tag", "model.crf", stdin=text).out.strip() == ""


def test_unusual_tokens_come_back_as_they_were(call):
    for token in ("#", "###", "a\0z", "\u2028", "Ωμέγα", "\N{NO-BREAK SPACE}", "x" * 100_000, "%x[0,0]", "\x0c"):
        out = call("tag", "model.crf", stdin=f"{token}\tx\n".encode()).out
        assert out.startswith(f"{token}\tx\t"), repr(token[:20])
        assert out.endswith("\n\n")


# --- eval


def test_eval_agrees_with_evaluate_on_the_tagged_file(call):
    Path("tagged").write_bytes(call("tag", "model.crf", "test.txt").stdout)
    X, predicted = read_columns("tagged")
    expected = evaluate([[token[-1] for token in row] for row in X], predicted)
    outcome = call("eval", "model.crf", "test.txt", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out) == expected.as_dict()
    assert 0.5 < expected.overall.f1 < 1
    text = call("eval", "model.crf", "test.txt", "--threads", 1).out
    assert f"{expected.tokens} tokens, accuracy {expected.accuracy:.2%}; {expected.sequences} sequences" in text
    for kind, counts in [("overall", expected.overall), *expected.by_type.items()]:
        numbers = [f"{100 * x:.2f}%" for x in (counts.precision, counts.recall, counts.f1)]
        numbers += [str(n) for n in (counts.gold, counts.predicted, counts.correct)]
        assert [kind, *numbers] in rows(text)


def test_eval_table_is_aligned(call):
    _, scheme, *perfect = call("eval", "model.crf", "train.txt").out.splitlines()
    assert scheme == "tagging scheme IOB2"
    assert "100.00%" in perfect[1]
    assert len({len(line) for line in perfect}) == 1, "\n".join(perfect)


def test_eval_of_labels_that_are_numbers(call):
    crf = ChainCRF("U00:%x[0,0]\nB").fit([["a", "b", "c"]] * 3, [[0, 1, 1]] * 3)
    crf.save("numbers.crf")
    Path("numbers.txt").write_text("a 0\nb 1\n\n")
    assert call("tag", "numbers.crf", "numbers.txt").out == "a 0 0\nb 1 1\n\n"
    assert "accuracy 100.00%" in call("eval", "numbers.crf", "numbers.txt").out


# --- inspect, help


def test_inspect(call):
    out = call("inspect", "model.crf", "--top", 3).out
    model = ChainCRF.load("model.crf")
    assert out.startswith(f"9 labels: {' '.join(model.classes_)}\n{len(model.coef_)} weights: ")
    assert f"{model.n_attributes_} attributes" in out
    assert f"{len(model.transition_features_)} transition" in out
    for name, features in (("state", model.state_features_), ("transition", model.transition_features_)):
        for title, sign in (("largest", -1), ("smallest", 1)):
            block = out.partition(f"{title} {name} weights\n")[2].partition("\n\n")[0].splitlines()
            assert len(block) == 3
            strongest = sorted(features.values(), key=lambda w, sign=sign: sign * w)[:3]
            np.testing.assert_allclose([float(line.split()[0]) for line in block], strongest, atol=1e-4)
            (source, target), _ = min(features.items(), key=lambda item, sign=sign: sign * item[1])
            assert block[0].split()[1:] == [*source.split(), "→", target]
    assert "weights\n" not in call("inspect", "model.crf", "--top", 0).out


def test_inspect_shows_conditioned_transitions(call):
    Path("pairs").write_text("U00:%x[0,0]\nB01:%x[0,1]\n")
    assert call("train", "train.txt", "-t", "pairs", "-m", "p.crf", "-q").code == 0
    out = call("inspect", "p.crf", "--top", 2).out
    assert "largest pair weights" in out
    assert "transition weights" not in out
    assert re.search(r"B01:\S+  \S+  →  \S+", out)


def test_inspect_where_the_output_cannot_show_an_arrow(run):
    outcome = run("inspect", "model.crf", PYTHONIOENCODING="latin-1")  # as a redirected Windows console, in cp1252
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", "train tag eval inspect demo --version"),
        (
            "train",
            "TRAIN --template --model --l2 --C --c2 --min-frequency --all-states --observed-states --threads "
            "--max-iterations --tolerance --log Ctrl-C",
        ),
        ("tag", "MODEL FILE --marginals --threads --output stdin"),
        ("eval", "MODEL FILE --json"),
        ("inspect", "MODEL --top"),
        ("demo", "--sentences --seed --output --data-only --json"),
    ],
)
def test_help(call, monkeypatch, command, words):
    monkeypatch.setenv("COLUMNS", "200")
    outcome = call(*command.split(), "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert [word for word in words.split() if word not in outcome.out] == []


def test_version(call):
    first, *rest = call("--version").out.splitlines()
    assert re.fullmatch(r"crfkit \d+\.\d+\.\d+\S*", first)
    assert [line.split(":")[0] for line in rest] == ["kernels", "threads", "build", "Python"]
