"""crfkit-learn and crfkit-test: flags, output, encodings, errors."""

import re
import subprocess
import sys

import numpy as np
import pytest
from crfpp_cases import binary_model, text_model

from crfkit import L2, ChainModel, Template
from crfkit.chain.encoding.sequences import learn_file
from crfkit.chain.training.problem import FEW_POSITIONS
from crfkit.compat.crfpp import learn, tag
from crfkit.compat.crfpp.lines import Columns
from crfkit.convert import crfpp
from crfkit.losses import ChainLikelihood
from crfkit.synthetic import news_corpus, write_columns

TRAIN = "the DT B\nold JJ I\nman NN I\nsleeps VB O\n\nold JJ B\nmen NN I\nsleep VB O\n\n" * 3
TEMPLATE = "# words \nU01:%x[0,0] \r\nU02:%x[-1,1]/%x[0,1]\n\nB\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").write_text(TRAIN)
    (tmp_path / "template").write_text(TEMPLATE)
    return tmp_path


def run(command, *arguments):
    return command([str(argument) for argument in arguments])


def tagged(capfdbinary, *arguments):
    assert run(tag.tag, *arguments) == 0
    sys.stdout.flush()
    return capfdbinary.readouterr().out


LINE = re.compile(r"iter=\d+ terr=\d\.\d{5} serr=\d\.\d{5} act=\d+ obj=\d+\.\d{5} diff=\d\.\d{5}")


def test_learning_prints_what_crf_learn_prints(files, capsys):
    assert run(learn.learn, "-t", "-f", 2, "-c1.5", "--eta=0.001", "-p", 1, "template", "train", "model") == 0
    out = capsys.readouterr().out.split("\n")
    assert out[3:5] == ["reading training data: ", out[4]]
    assert re.fullmatch(r"Done!\d+\.\d\d s", out[4])
    assert out[6:13] == [
        "Number of sentences: 6",
        f"Number of features:  {ChainModel.load('model').field.size}",
        "Number of thread(s): 1",
        "Freq:                2",
        "eta:                 0.00100",
        "C:                   1.50000",
        "shrinking size:      20",
    ]
    lines = [line for line in out if line.startswith("iter=")]
    assert out[13 : 13 + len(lines)] == lines
    assert all(LINE.fullmatch(line) for line in lines)
    assert lines[0].endswith(" diff=1.00000")
    changes = [float(line.rsplit("=", 1)[1]) for line in lines]
    assert all(change < 0.001 for change in changes[-3:])
    assert not any(all(c < 0.001 for c in changes[k : k + 3]) for k in range(len(changes) - 3))
    assert out[13 + len(lines)] == ""
    assert re.fullmatch(r"Done!\d+\.\d\d s", out[14 + len(lines)])


def test_large_data_are_trained_in_double_precision_as_well(files, capsys):
    """From 32,768 positions on, ChainCRF begins in single floats, which have fewer digits than crf_learn prints."""
    write_columns("large", news_corpus(4000, seed=0))
    assert run(learn.learn, "-e", 0.1, "-p", 1, "template", "large", "model") == 0
    printed = re.findall(r" obj=(\S+) ", capsys.readouterr().out)
    model = ChainModel.load("model")
    corpus = learn_file("large", Template.read("template", "crf++"), 1)
    assert corpus.data.n_positions > FEW_POSITIONS
    value = ChainLikelihood(corpus.data, model.field, 1).at(model.w).value + L2.from_crfpp(1.0).value(model.w)
    assert abs(float(printed[-1]) - value) < 1.1e-5


def test_the_text_model_is_the_model(files, capsys):
    run(learn.learn, "-t", "template", "train", "model")
    ours, theirs = ChainModel.load("model"), crfpp.read("model.txt")
    assert len(ours.w) == len(theirs.w)
    assert np.array_equal(np.sort(ours.w), np.sort(theirs.w))
    assert run(learn.learn, "-C", "model.txt", "converted") == 0
    rows = [[("the", "DT"), ("men", "NN")]]
    for model in (theirs, ChainModel.load("converted")):
        assert np.allclose(model.predict_marginals(rows)[0], ours.predict_marginals(rows)[0], atol=1e-12)


@pytest.mark.parametrize("algorithm", ["CRF", "crf-l2", "CRF-L1", "MIRA"])
def test_every_algorithm_learns(files, capfdbinary, algorithm):
    assert run(learn.learn, "-a", algorithm, "-c", 10, "template", "train", "model") == 0
    capfdbinary.readouterr()
    out = tagged(capfdbinary, "-m", "model", "train").decode()
    rows = [line.split("\t") for line in out.split("\n") if line]
    assert all(row[2] == row[3] for row in rows)


def test_maxiter_counts_evaluations(files, capsys):
    assert run(learn.learn, "-m", 4, "template", "train", "model") == 0
    assert capsys.readouterr().out.count("iter=") == 4
    assert ChainModel.load("model").training["status"] == "MAX_ITERATIONS"
    assert run(learn.learn, "-m", 2, "-a", "MIRA", "template", "train", "model") == 0
    assert capsys.readouterr().out.count("iter=") == 2


# --- tagging


def test_the_output_of_each_level(files, capfdbinary):
    (files / "model").write_bytes(binary_model())
    (files / "test").write_text("a   n gold\nbé\tv gold\n  \nbé v gold\n\n\n", encoding="utf-8")
    model = crfpp.read("model")
    rows = [[("a", "n"), ("bé", "v")], [("bé", "v")]]
    best, node = model.predict(rows), model.predict_marginals(rows)
    data = model.encode(rows)
    chance = np.exp(model.inference.decode(data)[1] - model.inference.log_partition(data))

    def expected(level):
        text = ""
        for n, sequence in enumerate(rows):
            text += f"# {chance[n]:.6f}\n" if level else ""
            for t, cells in enumerate(sequence):
                text += "\t".join([*cells, "gold", best[n][t]])
                text += f"/{node[n][t].max():.6f}" if level and node[n][t].argmax() == "BIO".index(best[n][t]) else ""
                if level == 2:
                    text += "".join(f"\t{name}/{p:.6f}" for name, p in zip("BIO", node[n][t], strict=True))
                text += "\n"
            text += "\n"
        return text.encode()

    assert all(node[n][t].argmax() == "BIO".index(best[n][t]) for n in range(2) for t in range(len(best[n])))
    for level, flags in ((0, []), (0, ["-v0"]), (1, ["-v", 1]), (1, ["--verbose=1"]), (2, ["-v2"])):
        assert tagged(capfdbinary, "-m", "model", *flags, "test") == expected(level)
    assert tagged(capfdbinary, "test", "-o", "out", "--model", "model") == b""
    assert (files / "out").read_bytes() == expected(0)
    assert tagged(capfdbinary, "-m", "model", "test", "test") == 2 * expected(0)


def test_a_cost_factor_scales_all_weights(files, capfdbinary):
    (files / "model").write_bytes(text_model())
    (files / "test").write_text("a n\na n\n\n")
    assert tagged(capfdbinary, "-m", "model", "-c", 1e-9, "-v1", "test").startswith(b"# 0.111111\n")


def test_standard_input_is_tagged_as_it_comes(files):
    (files / "model").write_bytes(binary_model())
    command = [sys.executable, "-m", "crfkit.compat.crfpp.tag", "-m", "model"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for _ in range(2):
            process.stdin.write(b"a n\nb v\n\n")
            process.stdin.flush()
            lines = [process.stdout.readline() for _ in range(3)]
            assert lines[0].startswith(b"a\tn\t")
            assert lines[2] == b"\n"
        process.stdin.close()
        assert process.wait() == 0


def test_neither_scikit_learn_nor_solvers_are_loaded_to_tag(files):
    (files / "model").write_bytes(binary_model())
    code = (
        "import sys; from crfkit.compat.crfpp.tag import tag; tag(['-m', 'model', 'train']);"
        "print([name for name in ('sklearn', 'scipy', 'typer', 'crfkit.solvers') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code]).endswith(b"\n[]\n")


# --- encodings


@pytest.mark.parametrize("flags", [(), ("--encoding", "euc-jp")])
def test_files_in_another_encoding_keep_their_bytes(files, capfdbinary, flags):
    train = "日本 名詞 固有\nは 助詞 その他\n\n".encode("euc-jp") * 3
    (files / "train").write_bytes(train)
    (files / "template").write_bytes("U単語:%x[0,0]\nB\n".encode("euc-jp"))
    assert run(learn.learn, "-t", *flags, "template", "train", "model") == 0
    assert ("template is not UTF-8" in capfdbinary.readouterr().err.decode()) == (not flags)
    expected = b"".join(
        line.replace(b" ", b"\t") + b"\t" + line.split(b" ")[-1] + b"\n" if line else b"\n"
        for line in train[:-1].split(b"\n")
    )
    for model in ("model", "model.txt"):  # the second is CRF++'s format, in the encoding of the files
        assert tagged(capfdbinary, "-m", model, *flags, "train") == expected
    assert "U単語:日本".encode("euc-jp") in (files / "model.txt").read_bytes()


def test_a_file_in_another_encoding_than_the_model(files, capfdbinary):
    (files / "model").write_bytes(binary_model())
    (files / "test").write_bytes("日本 n\n\n".encode("euc-jp"))
    with pytest.raises(Exception, match=r"test:1: not UTF-8 at byte 1"):
        run(tag.tag, "-m", "model", "test")
    assert tagged(capfdbinary, "-m", "model", "--encoding", "euc-jp", "test").startswith("日本\tn\t".encode("euc-jp"))


class Pieces:
    """A stream that gives these pieces, one per read."""

    def __init__(self, pieces):
        self._pieces = iter(pieces)

    def read(self, size=-1):
        return next(self._pieces, b"")


def test_lines_are_as_crfpp_reads_them():
    text = b"a  b\tc\t\n \t\nd e f\r\n\tx y z\ng\th\ti"
    for size in (1, 2, 3, 100):
        pieces = [text[k : k + size] for k in range(0, len(text), size)]
        columns = Columns(Pieces(pieces), "x")
        assert b"".join(iter(columns.read, b"")) == b"a\tb\tc\n\nd\te\tf\r\n\ng\th\ti\n"


# --- errors


@pytest.mark.parametrize(
    ("command", "arguments", "why"),
    [
        ("learn", "-a LDA template train model", "unknown algorithm 'LDA'"),
        ("learn", "-c 0 template train model", "--cost must be > 0"),
        ("learn", "-e -1 template train model", "--eta must be > 0, not -1"),
        ("learn", "-H 0 template train model", "--shrinking-size must be >= 1"),
        ("learn", "--nosuch template train model", "unknown option --nosuch (crfkit-learn --help)"),
        ("learn", "--frq=3 template train model", "unknown option --frq=3; did you mean --freq?"),
        ("learn", "junk train model", "'\\x00\\x1b[2J' starts with neither U"),
        ("learn", "-f x template train model", "-f/--freq: expected an integer, not 'x'"),
        ("learn", "-c x template train model", "-c/--cost: expected a number, not 'x'"),
        ("learn", "template train", "expected 3 files, TEMPLATE TRAIN MODEL, but got 2"),
        ("learn", "template train model more", "but got 4"),
        ("learn", "-C model", "expected 2 files, TEXTMODEL MODEL, but got 1"),
        ("learn", "-C wapiti model", "wapiti is a model of Wapiti, but -C converts CRF++ models"),
        ("learn", "long train model", "starts with neither U (unigram) nor B (bigram)"),
        ("learn", "nosuch train model", "nosuch: cannot read the template"),
        ("learn", "template nosuch model", "nosuch: cannot read the file"),
        ("learn", "template train nowhere/model", "cannot write nowhere/model"),
        ("learn", "-C train model", "train: this is not a CRF++ model: it has neither"),
        ("learn", "--encoding utf-16 wide wide model", "do not read utf-16"),
        ("learn", "--encoding klingon template train model", "unknown encoding 'klingon'"),
        ("tag", "train", "give -m MODEL"),
        ("tag", "-m nosuch train", "nosuch"),
        ("tag", "-m train train", "train"),
        ("tag", "-m model nosuch", "nosuch"),
        ("tag", "-m model -n -1 train", "--nbest must be >= 0, not -1"),
        ("tag", "-m model -c 0 train", "--cost-factor must be > 0"),
        ("tag", "-m model one", "one:1: line 2 of the template names column 1"),
    ],
)
def test_an_error_is_one_line_and_exit_code_255(files, monkeypatch, capsys, command, arguments, why):
    (files / "model").write_bytes(binary_model())
    (files / "one").write_text("a\nb\n")
    (files / "wapiti").write_text("#mdl#2#1\n")
    (files / "junk").write_bytes(b"\0\x1b[2J")
    (files / "long").write_text("x" * 10_000)
    (files / "wide").write_text("U%x[0,0]\n", "utf-16")
    module = {"learn": learn, "tag": tag}[command]
    monkeypatch.setattr(sys, "argv", ["x", *arguments.split()])
    with pytest.raises(SystemExit) as end:
        module.main()
    assert end.value.code == 255
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1
    assert len(err) < 600
    assert err.startswith({"learn": "crfkit-learn: error: ", "tag": "crfkit-test: error: "}[command])


def test_help_and_version(capsys):
    assert run(learn.learn, "-h") == run(learn.learn, "-v") == run(learn.learn) == 0
    assert run(tag.tag, "-h") == run(tag.tag, "--version") == 255  # as crf_test
    out = capsys.readouterr().out
    assert "usage: crfkit-learn [options] TEMPLATE TRAIN MODEL" in out
    assert "usage: crfkit-test [options] -m MODEL [FILE]..." in out
