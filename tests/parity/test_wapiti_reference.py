"""What Wapiti 1.5 itself printed: labels, probabilities, n-best lists, weights, and the size of what it trained."""

import gzip
import re
import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit import convert
from crfkit.compat.wapiti.command import main
from crfkit.readers.columns import read_columns
from crfkit.readers.wapiti_model import format_wapiti, parse_wapiti


def first_sentences(source, n: int) -> str:
    return "\n\n".join(source.read_text(encoding="utf-8").split("\n\n")[:n]) + "\n\n"


@pytest.fixture(scope="module")
def files(shared_data, shared_reference, tmp_path_factory):
    """A folder with what Wapiti read and wrote, unpacked."""
    folder = tmp_path_factory.mktemp("wapiti")
    for path in (shared_reference / "wapiti").iterdir():
        data = path.read_bytes()
        (folder / path.name.removesuffix(".gz")).write_bytes(gzip.decompress(data) if path.suffix == ".gz" else data)
    conll = shared_data / "conll2000"
    (folder / "train.txt").write_text(first_sentences(conll / "train.txt", 500), encoding="utf-8")
    (folder / "test.txt").write_text(first_sentences(conll / "test.txt", 200), encoding="utf-8")
    return folder


def run(capfdbinary, *arguments) -> tuple[bytes, bytes]:
    assert main([str(argument) for argument in arguments]) == 0
    return capfdbinary.readouterr()


NUMBER = re.compile(rb"-?\d+\.\d{6}")


def assert_same_text(ours: bytes, theirs: bytes) -> None:
    """The same bytes, but for the last digit of numbers."""
    if ours != theirs:
        assert NUMBER.sub(b"", ours) == NUMBER.sub(b"", theirs)
        pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
        assert all(abs(float(a) - float(b)) < 1.5e-6 for a, b in pairs)


@pytest.mark.parametrize(("name", "flags"), [("rich.out", []), ("rich.post", ["-s", "-p", "-n", "1"])])
def test_label_prints_what_wapiti_printed(files, capfdbinary, name, flags):
    out, _ = run(capfdbinary, "label", "-m", files / "rich.model", *flags, files / "test.txt")
    assert_same_text(out, (files / name).read_bytes())


def test_n_best_lists_are_those_that_wapiti_printed(files, capfdbinary):
    """One sentence says "such as" three times, so that labellings have equal scores: they may come in any order."""
    out, _ = run(capfdbinary, "label", "-m", files / "rich.model", "-s", "-n", "5", files / "test.txt")
    ours, theirs = (text.split(b"\n\n") for text in (out, (files / "rich.n5").read_bytes()))
    assert len(ours) == len(theirs) == 5 * 200 + 1
    for begin in range(0, 1000, 5):
        several = [sorted(ours[begin : begin + 5]), sorted(theirs[begin : begin + 5])]
        scores = [[float(block.split()[2]) for block in blocks[begin : begin + 5]] for blocks in (ours, theirs)]
        assert_allclose(scores[0], scores[1], atol=1.5e-6)
        if len(set(scores[1])) == 5:
            several = [ours[begin : begin + 5], theirs[begin : begin + 5]]
        else:  # of those with equal scores, the rank is anything
            several = [sorted(re.sub(rb"^# \d ", b"", block) for block in blocks) for blocks in several]
        for mine, other in zip(*several, strict=True):
            assert_same_text(mine, other)


def test_dump_prints_what_wapiti_printed(files, capfdbinary):
    out, _ = run(capfdbinary, "dump", files / "rich.model")
    assert out == (files / "rich.dump").read_bytes()


def test_the_model_is_written_as_wapiti_wrote_it(files):
    data = (files / "rich.model").read_bytes()
    assert format_wapiti(parse_wapiti(data)) == data


def test_the_model_in_python(files):
    """Labels, marginals and probabilities of the library are those of the file that `-s -p` made."""
    model = convert.load(files / "rich.model")
    X, _ = read_columns(files / "test.txt")
    blocks = (files / "rich.post").read_text().strip().split("\n\n")
    assert len(model.w) == 16876
    for marginals, block in zip(model.predict_marginals(X), blocks, strict=True):
        head, *lines = block.split("\n")
        labels, probabilities = zip(*(line.split("\t")[-1].rsplit("/", 1) for line in lines), strict=True)
        chosen = marginals.argmax(axis=1)
        assert [model.class_list[j] for j in chosen] == list(labels)
        assert_allclose(marginals.max(axis=1), np.array(probabilities, dtype=float), atol=6e-7)
        assert_allclose(np.prod(marginals.max(axis=1)), float(head.split()[2]), atol=6e-7)


def test_training_is_of_the_same_size_and_ends_lower(files, capfdbinary, tmp_path):
    """The same data, blocks and features; the objective where our solver stops is below Wapiti's."""
    flags = ["-a", "l-bfgs", "-t", "1", "-1", "0.1", "-2", "0.5", "-i", "80"]
    _, log = run(
        capfdbinary, "train", *flags, "-p", files / "rich.pattern", files / "train.txt", tmp_path / "ours.model"
    )
    expected = (files / "rich.log").read_text()
    until = expected.index("  [   1]")
    assert log.decode()[:until] == expected[:until]
    ours, theirs = (float(re.findall(r"obj=([\d.]+)", text)[-1]) for text in (log.decode(), expected))
    assert theirs == 973.53
    assert 900 < ours < theirs
    assert log.decode().endswith("* Save the model\n* Done\n")
    assert convert.load(tmp_path / "ours.model").class_list == convert.load(files / "rich.model").class_list


# --- Wapiti itself, if it is installed


@pytest.fixture(scope="module")
def wapiti():
    """The program, which shares its name with a scanner of web sites."""
    found = shutil.which("wapiti")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=20) if found else None
    if version is None or "Wapiti v1." not in version.stderr:
        pytest.skip("Wapiti 1.x is not installed")
    return found


@pytest.mark.parametrize(
    "flags",
    ["-l", "-c", "-s", "-s -n 2", "-s -p", "-s -p -n 3", "-s --force", "-s --force -n 2", "-s -p --force"],
)
def test_label_against_the_program(wapiti, files, capfdbinary, flags):
    command = ["label", "-m", str(files / "rich.model"), *flags.split(), str(files / "test.txt")]
    if "--force" in flags:
        lines = (files / "test.txt").read_text().split("\n")
        partly = [line if n % 3 == 0 or not line else f"{line.rsplit(' ', 1)[0]} ?" for n, line in enumerate(lines)]
        (files / "partly.txt").write_text("\n".join(partly))
        command[-1] = str(files / "partly.txt")
    theirs = subprocess.run([wapiti, *command], capture_output=True, timeout=60)
    out, err = run(capfdbinary, *command)
    assert err == theirs.stderr
    assert out == theirs.stdout


def test_our_model_in_the_program(wapiti, files, capfdbinary, tmp_path):
    model = tmp_path / "model"
    run(capfdbinary, "train", "-i", "5", "-c", "-p", files / "rich.pattern", files / "train.txt", model)
    for command in (["dump", str(model)], ["label", "-s", "-m", str(model), str(files / "test.txt")]):
        theirs = subprocess.run([wapiti, *command], capture_output=True, timeout=60)
        assert run(capfdbinary, *command)[0] == theirs.stdout
