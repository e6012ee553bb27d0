"""What goes wrong: one line that says what and where, a non-zero exit, and nothing lost."""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from commands import replacing

from crfkit import ChainCRF
from crfkit.files import modelfile

FILES = {
    "empty": b"",
    "blank": b"\n \n\t\n\n",
    "ragged": b"a b O\nc d X\n\ne f\n",
    "wider": b"a b O\nc d e X\n",
    "one": b"a\nb\n\n",
    "two": b"a O\nb X\n\n",
    "latin": "a b O\nc\xe9 d X\n".encode("latin-1"),
    "utf16": "a b O\nc d X\n".encode("utf-16"),
    "single": b"a b O\nc d O\n\n",
    "cut.gz": gzip.compress(bytes(range(256)) * 40)[:200],
    "plain.gz": b"a b O\nc d X\n",
    "t-empty": b"",
    "t-comments": b"# U00:%x[0,0]\n\n# B\n",
    "t-macro": b"# words\nU00:%y[0,0]\nB\n",
    "t-form": b"U00:%x[0;0]\nB\n",
    "t-negative": b"U00:%x[0,-1]\n",
    "t-column": b"# words\nU00:%x[0,0]\nU01:%x[0,7]\nB\n",
    "t-letter": b"U00:%x[0,0]\nX00:%x[0,0]\n",
    "t-latin": "U\xe9:%x[0,0]\n".encode("latin-1"),
    "t-states": b"U00:%x[0,0]\n",
}


@pytest.fixture(autouse=True)
def bad_files(workspace):
    for name, text in FILES.items():
        (workspace / name).write_bytes(text)
    (workspace / "folder").mkdir()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("missing", r"missing: .*No such file"),
        ("folder", r"folder: .*directory"),
        ("empty", r"empty: .*no sequences"),
        ("blank", r"blank: .*no sequences"),
        ("ragged", r"ragged:4: 2 columns, but the lines before have 3"),
        ("wider", r"wider:2: 4 columns, but the lines before have 3"),
        ("one", r"one:1: 1 column.* label"),
        ("two", r"two:1: line 9 of the template names column 1, .*only 1 feature column"),
        ("latin", r"latin:2: not UTF-8 at byte 2"),
        ("utf16", r"utf16:1: not UTF-8 at byte 1"),
        ("single", r"single: every position has the label 'O'"),
        ("cut.gz", r"cut\.gz: .*ended before"),
        ("plain.gz", r"plain\.gz: .*[Nn]ot a gzip"),
    ],
)
def test_training_file(fails, file, message):
    assert re.match(message, fails("train", file, "-t", "template", "-m", "model.crf"))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("missing", r"missing: .*No such file"),
        ("folder", r"folder: .*directory"),
        ("t-empty", r"t-empty: .*no U or B line"),
        ("t-comments", r"t-comments: .*no U or B line"),
        ("t-macro", r"t-macro:2: unknown macro '%y'"),
        ("t-form", r"t-form:1: malformed macro"),
        ("t-negative", r"t-negative:1: malformed column"),
        ("t-column", r"train.txt:1: line 3 of the template names column 7, .*only 2 feature column"),
        ("t-letter", r"t-letter:2: 'X00:%x\[0,0\]' starts with neither U .* nor B"),
        ("t-latin", r"t-latin: .*not UTF-8"),
    ],
)
def test_template(fails, file, message):
    assert re.match(message, fails("train", "train.txt", "-t", file, "-m", "model.crf"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--l2 -1", r"L2 must be .*>= 0, not -1"),
        ("--l2 nan", r"L2 must be .*finite"),
        ("--l2 inf", r"L2 must be .*finite"),
        ("--C 0", r"C must be > 0, not 0"),
        ("--C -2", r"C must be > 0, not -2"),
        ("--c2 -1", r"--c2 must be .*not -1"),
        ("--l2 1 --C 1", r"--l2 and --C"),
        ("--C 1 --c2 1", r"--C and --c2"),
        ("--l2 1 --C 1 --c2 1", r"--l2 and --C and --c2"),
        ("--min-frequency 0", r"--min-frequency must be .*>= 1, not 0"),
        ("--template t-states --min-frequency 1000000", r"no attribute is left .*min.frequency"),
        ("--threads 0", r"--threads must be .*>= 1, not 0"),
        ("--max-iterations 0", r"--max-iterations must be .*>= 1, not 0"),
        ("--tolerance -1", r"--tolerance must be >= 0, not -1"),
        ("--tolerance nan", r"tolerance must be >= 0, not nan"),
        ("--eta 0", r"--eta must be > 0, not 0"),
        ("--eta -1e-3", r"--eta must be > 0, not -0.001"),
        ("--eta nan", r"--eta must be > 0, not nan"),
        ("--eta 1e-4 --tolerance 1e-5", r"--eta and --tolerance .*give one of them"),
        ("-e 1e-3 --eta 1e-4", r"--eta and --tolerance .*give one of them"),
        ("--solver nosuch", r"solver 'nosuch'.* lbfgs"),
        ("--log missing/log.jsonl", r"missing/log\.jsonl: cannot write"),
        ("--log folder", r"folder: cannot write"),
        ("--model missing/m.crf", r"cannot write missing/m\.crf: No such"),
        ("--model folder", r"cannot write folder: .*directory"),
        ("--model train.txt/m.crf", r"cannot write train\.txt/m\.crf: Not a directory"),
    ],
)
def test_training_options(fails, options, message):
    command = ["train", "train.txt", "--template", "template", "--model", "model.crf"]
    assert re.search(message, fails(*replacing(command, *options.split())))


@pytest.mark.parametrize("file", ["train.txt", "template"])
@pytest.mark.parametrize("option", ["--model", "--log"])
def test_an_input_is_not_overwritten(fails, option, file):
    assert file in fails(
        *replacing(["train", "train.txt", "-t", "template", "--model", "model.crf", "-q"], option, file)
    )


def test_failed_training_keeps_the_log(fails):
    fails("train", "ragged", "-t", "template", "-m", "model.crf", "--log", "log.jsonl")
    assert Path("log.jsonl").stat().st_size > 0


@pytest.mark.parametrize("command", ["tag", "eval"])
@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("missing", r"missing: .*No such file"),
        ("folder", r"folder: .*directory"),
        ("ragged", r"ragged:4: 2 columns, but the lines before have 3"),
        ("one", r"one:1: .*1 (feature )?column"),
        ("latin", r"latin:2: not UTF-8"),
        ("cut.gz", r"cut\.gz: .*ended before"),
        ("plain.gz", r"plain\.gz: .*[Nn]ot a gzip"),
    ],
)
def test_file_to_tag(fails, command, file, message):
    assert re.match(message, fails(command, "model.crf", file))


@pytest.mark.parametrize("file", ["empty", "blank"])
def test_nothing_to_score(fails, file):
    assert fails("eval", "model.crf", file) == f"{file}: the file has no sequences"


def test_columns_that_no_line_of_the_template_names(call, fails):
    """The model knows how many feature columns it was trained on, even if its template uses only the first."""
    assert call("train", "train.txt", "-t", "t-states", "-m", "s.crf", "-q").code == 0
    assert re.match(r"one: 1 column, but .* 2 feature columns", fails("tag", "s.crf", "one"))


def test_standard_input_has_a_name(fails):
    assert fails("tag", "model.crf", stdin=FILES["ragged"]).startswith("<stdin>:4: 2 columns, but")


@pytest.mark.parametrize("command", ["tag", "eval"])
@pytest.mark.parametrize("threads", [0, -1])
def test_threads(fails, command, threads):
    assert re.search(rf"threads must be .*>= 1, not {threads}", fails(command, "model.crf", "test.txt", "-p", threads))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("missing/o", r"missing/o: cannot write the output: No such"),
        ("test.txt/o", r"test\.txt/o: cannot write the output: Not a dir"),
        ("folder", r"folder: cannot write the output: .*directory"),
    ],
)
def test_output_that_cannot_be_written(fails, output, message):
    assert re.match(message, fails("tag", "model.crf", "test.txt", "-o", output))


@pytest.mark.parametrize("files", [["ragged"], ["test.txt", "ragged"], ["test.txt", "missing"]])
def test_failed_tagging_keeps_the_output_file(fails, files):
    Path("o.txt").write_text("precious")
    fails("tag", "model.crf", *files, "-o", "o.txt")


def test_an_output_that_is_not_a_regular_file_is_written_to_not_replaced(call):
    """As /dev/stdout and /dev/null must be."""
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert call("tag", "model.crf", "test.txt", "-o", "pipe").code == 0
        assert stat.S_ISFIFO(os.stat("pipe").st_mode)
        assert os.read(reader, 1 << 16) == call("tag", "model.crf", "test.txt").stdout
    finally:
        os.close(reader)


def test_the_output_may_be_named_dev_stdout(run):
    """Where it is a pipe, no other path leads to it."""
    plain = run("tag", "model.crf", "test.txt")
    named = run("tag", "model.crf", "test.txt", "--output", "/dev/stdout")
    assert (named.code, named.err, named.stdout) == (0, "", plain.stdout)


def test_demo_into_a_file(fails):
    assert "test.txt" in fails("demo", "--output", "test.txt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nosuch", r"nosuch"),
        ("train", r"TRAIN"),
        ("train train.txt -m m.crf", r"--template"),
        ("train train.txt -t template", r"--model"),
        ("train train.txt -t template -m m.crf --l2 strong", r"--l2"),
        ("train train.txt -t template -m m.crf --bogus", r"--bogus"),
        ("tag", r"MODEL"),
        ("eval model.crf", r"FILE"),
        ("eval model.crf test.txt test.txt", r"test\.txt"),
        ("inspect model.crf --top -1", r"--top"),
        ("demo --sentences many", r"--sentences"),
    ],
)
def test_usage(call, workspace, arguments, message):
    before = sorted(os.listdir())
    outcome = call(*arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    errors = [line for line in outcome.err.splitlines() if line.startswith("crfkit: error: ")]
    assert len(errors) == 1, outcome.err
    assert re.search(message, errors[0])
    assert sorted(os.listdir()) == before


# --- model files


def split_model(blob: bytes) -> tuple[dict, dict, bytes]:
    """(tensor entries, crfkit's metadata, data)."""
    length = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8 : 8 + length])
    return header, json.loads(header.pop("__metadata__")["crfkit"][16:]), blob[8 + length :]


def join_model(header: dict, metadata: object, data: bytes, honest: bool = True) -> bytes:
    """A model file; with honest, the checksum of the metadata is made to fit."""
    inner = json.dumps(metadata)
    entry = (modelfile._text_checksum(inner) if honest else "0" * 16) + inner
    text = json.dumps({**header, "__metadata__": {"crfkit": entry}}).encode()
    return struct.pack("<Q", len(text)) + text + data


def metadata_with(honest=True, **changes):
    def alter(blob):
        header, metadata, data = split_model(blob)
        return join_model(header, {**metadata, **changes}, data, honest)

    return alter


def weights_entry(**changes):
    def alter(blob):
        header, metadata, data = split_model(blob)
        header["weights"] = {**header["weights"], **changes}
        return join_model(header, metadata, data)

    return alter


def flip(text: bytes, bit: int = 1):
    """Flips a bit of the byte after `text`."""

    def alter(blob):
        k = blob.index(text) + len(text)
        return blob[:k] + bytes([blob[k] ^ bit]) + blob[k + 1 :]

    return alter


DAMAGE = {
    "empty": lambda blob: b"",
    "seven bytes": lambda blob: blob[:7],
    "cut in the header": lambda blob: blob[:300],
    "cut after the header": lambda blob: blob[: 8 + struct.unpack("<Q", blob[:8])[0]],
    "half": lambda blob: blob[: len(blob) // 2],
    "last byte lost": lambda blob: blob[:-1],
    "a byte more": lambda blob: blob + b"\0",
    "text": lambda blob: b"The quick brown fox jumps over the lazy dog\n" * 50,
    "zeros": lambda blob: bytes(1000),
    "other safetensors": lambda blob: safetensors.numpy.save({"weights": np.zeros(3)}),
    "bit of the data": lambda blob: blob[:-9] + bytes([blob[-9] ^ 4]) + blob[-8:],
    "bit of a label": flip(b'labels\\": [\\"'),
    "bit of the template": flip(b"U02:%x["),
    "number of columns": flip(b'n_features\\": ', 1),
    "metadata is a list": lambda blob: join_model(split_model(blob)[0], [1], split_model(blob)[2]),
    "newer version": metadata_with(version=99),
    "other kind": metadata_with(kind="grid"),
    "one label": metadata_with(labels=["O"]),
    "labels missing": metadata_with(labels=None),
    "labels of another number": metadata_with(labels=["A", "B"]),
    "labels that are numbers": metadata_with(honest=False, labels=list(range(9))),
    "template missing": metadata_with(template=None),
    "template unusable": metadata_with(template="# nothing"),
    "template with half a character": metadata_with(template="U\udc80\nB"),
    "transitions of another number": metadata_with(n_transition=80),
    "no checksums": metadata_with(checksums={}),
    "shape without end": weights_entry(shape=[float("inf")]),
    "shape NaN": weights_entry(shape=[float("nan")]),
    "shape negative": weights_entry(shape=[-1]),
    "dtype unknown": weights_entry(dtype="F17"),
    "offsets missing": weights_entry(data_offsets=[]),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_model(fails, damage):
    blob = Path("model.crf").read_bytes()
    Path("bad.crf").write_bytes(damage(blob))
    assert fails("inspect", "bad.crf").startswith("bad.crf: ")


def write_with_weight(weight: float) -> None:
    contents = modelfile.read("model.crf")
    tensors = {name: np.array(array) for name, array in contents.tensors.items()}
    tensors["weights"][3] = weight
    own = ("version", "kind", "checksums")
    modelfile.write("bad.crf", "chain", {k: v for k, v in contents.metadata.items() if k not in own}, tensors)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_that_are_not_finite(fails, weight):
    write_with_weight(weight)
    assert fails("tag", "bad.crf", "test.txt").startswith("bad.crf: ")


def test_huge_weight_is_no_reason_for_a_warning(call):
    write_with_weight(1e300)
    outcome = call("tag", "bad.crf", "test.txt", "--marginals")
    assert outcome.code in (0, 2)
    assert outcome.err.count("\n") == (outcome.code != 0)


@pytest.mark.parametrize("arguments", ["tag {} test.txt", "eval {} test.txt", "inspect {}"])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("missing", r"(cannot read )?missing: .*No such"),
        ("folder", r"(cannot read )?folder: .*directory"),
        ("test.txt", r"test\.txt: this is not a model that crfkit knows"),
    ],
)
def test_model_that_is_none(fails, arguments, model, message):
    assert re.match(message, fails(*arguments.format(model).split()))


@pytest.mark.parametrize("command", ["tag", "eval"])
def test_models_and_files_that_do_not_go_together(fails, command):
    ChainCRF().fit([[["a"], ["b"]]], [["A", "B"]]).save("items.crf")
    ChainCRF().fit([np.eye(2)], [["A", "B"]]).save("matrix.crf")
    assert "matrix.crf was trained on matrices" in fails(command, "matrix.crf", "test.txt")
    message = fails(command, "items.crf", "test.txt", "--format", "columns")
    assert "trained on attributes, so it reads CRFsuite's files, not files of format columns" in message
    message = fails(command, "model.crf", "test.txt", "--format", "crfsuite")
    assert "trained on columns with a template, so it cannot read CRFsuite's files" in message
