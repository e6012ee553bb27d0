"""crfkit-wapiti: its modes, streams, and what it refuses."""

import io
import os
import shlex
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.chain.model.model import ChainModel
from crfkit.compat.wapiti.command import main
from crfkit.compat.wapiti.data import read_batches
from crfkit.convert import load, wapiti
from crfkit.errors import ParameterError

TRAIN = "The DT B\ncat NN I\nsat VB O\n\nA DT B\ndog NN I\nsat VB O\n\nThe DT B\ndog NN I\nran VB O\n\n"
PATTERN = 'u:%x[0,0]\n*:%x[0,1]\nu:%t[0,0,"^\\u"]\nb\n'


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "pattern").write_text(PATTERN, encoding="utf-8")
    return tmp_path


@pytest.fixture
def model(files, capfdbinary):
    assert run("train -p pattern -1 0.01 train model") == 0
    capfdbinary.readouterr()
    return files / "model"


def run(line: str) -> int:
    return main(line.split())


def command(*arguments):
    program = "from crfkit.compat.wapiti.command import entry; entry()"
    return [sys.executable, "-c", program, *map(str, arguments)]


# --- train


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "-a l-bfgs -1 0 -2 0.5",
        "-a sgd-l1 -i 3 --eta0 0.5",
        "-a bcd",
        "-a rprop -1 0",
        "-a rprop+",
        "-a rprop-",
        "-2 0",
        "-c -d train",
        "-t 2 -j 10 -s --histsz 3 --maxls 10 --kappa 2 --stpmin 1 --cutoff",
        "--type crf --algo l-bfgs --rho1 0.1 --rho2 0.1 --maxiter 9 --stopwin 3 --stopeps 0.1 --objwin 4",
    ],
)
def test_trained_models_label_their_data(files, capfdbinary, flags):
    assert run(f"train {flags} -p pattern train model") == 0
    log = capfdbinary.readouterr().err.decode()
    assert "    nb train:    3\n" in log
    assert "    nb labels:   3\n" in log
    assert log.endswith("* Save the model\n* Done\n")
    assert ("nb devel" in log) == ("-d" in flags.split())
    assert ("observations removed" in log) == ("-c" in flags.split())
    found = load("model")
    assert found.class_list == ["B", "I", "O"]  # in the order in which they appear
    assert found.predict([[["The", "DT"], ["dog", "NN"], ["sat", "VB"]]]) == [["B", "I", "O"]]


def test_iterations_are_limited(files, capfdbinary):
    run("train -p pattern -i 2 -w 0 -o 0 train model")
    log = capfdbinary.readouterr().err.decode()
    assert "[   2] obj=" in log
    assert "[   3]" not in log


def test_the_error_window_stops_training(files, capfdbinary):
    """With a window of 2 and a wide interval, the second line is the last."""
    run("train -p pattern -w 2 -e 1000 -o 0 train model")
    log = capfdbinary.readouterr().err.decode()
    assert "[   2]" in log
    assert "[   3]" not in log


def test_the_objective_window_stops_training(files, capfdbinary):
    run("train -p pattern -w 0 -e 10 -o 3 train model")
    log = capfdbinary.readouterr().err.decode()
    assert "[   4]" in log
    assert "[   5]" not in log


def test_all_observations_are_written_unless_compacted(files, capfdbinary):
    run("train -p pattern -1 1 train all")
    run("train -p pattern -1 1 -c train compact")
    everything, some = (wapiti.read_wapiti(files / name) for name in ("all", "compact"))
    assert len(everything.observations) == 6 + 3 + 2 + 1
    assert set(some.observations) < set(everything.observations)
    assert len(some.weights) > 0
    assert sorted(some.weights) == sorted(everything.weights)


def test_training_goes_on_from_a_model(model, files, capfdbinary):
    (files / "more").write_text("u:w=%x[-1,0]\n", encoding="utf-8")
    assert run("train -m model -1 0.01 train again") == 0
    log = capfdbinary.readouterr().err.decode()
    assert log.startswith("* Load previous model\n* Load training data\n* Resync the model\n")
    assert run("train -m model -p more -1 0.01 train grown") == 0
    assert load("grown").vocabulary.template.text == PATTERN.strip() + "\nu:w=%x[-1,0]"
    assert load("again").vocabulary.template.text == PATTERN.strip()
    (files / "few").write_text("The DT B\ncat NN I\n\n", encoding="utf-8")
    for line in ("train -m model -1 0.01 few again", "train -m model -p more -1 0.01 few again"):
        assert run(line) == 0
        assert load("again").class_list == ["B", "I", "O"]  # labels that the data lack are kept
    (files / "other").write_text("The DT X\n\n", encoding="utf-8")
    assert run("train -m model other again") == 1
    assert "other:1: the label 'X' is not one of the model" in capfdbinary.readouterr().err.decode()


def test_observations_without_patterns(files, capfdbinary):
    rows = ["u:The u:DT b B", "u:cat *:NN b I", "u:sat b b:NN O", ""]
    (files / "raw").write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert run("train -1 0.01 raw model") == 0
    capfdbinary.readouterr()
    assert run("label -m model -c -l raw") == 0
    out, err = capfdbinary.readouterr()
    assert out == b"B\nI\nO\n\n"
    assert b"Token error   :  0.00%" in err
    assert load("model").predict([[["u:The"], ["u:cat", "*:NN", "b"]]]) == [["B", "I"]]
    with pytest.raises(ParameterError, match="crfkit-wapiti label"):
        list(load("model").tag_columns("raw"))
    (files / "bad").write_bytes(b"u:The B\n\nu:a \xe9 B\n\n")
    for line in ("train bad out", "label -m model -c bad"):
        assert run(line) == 1
        assert b"an observation starts with neither u" in capfdbinary.readouterr().err


def test_model_to_stdout_and_data_from_stdin(files):
    done = subprocess.run(
        command("train", "-p", "pattern"), input=TRAIN.encode(), capture_output=True, timeout=60, check=True
    )
    assert wapiti.read(done.stdout).class_list == ["B", "I", "O"]


# --- label and dump


def test_lines_are_kept_and_rows_may_differ(model, files, capfdbinary):
    (files / "odd").write_bytes(b"\n \nThe\t DT x\ncat NN\n\n\n  The DT 1 2 3")
    assert run("label -m model odd") == 0
    assert capfdbinary.readouterr().out == b"The\t DT x\tB\ncat NN\tI\n\n  The DT 1 2 3\tB\n\n"


def test_data_of_any_encoding(files, capfdbinary):
    data = "café NN I\nété NN B\n\n".encode("latin-1") * 3
    (files / "latin").write_bytes(data)
    assert run("train -p pattern -1 0.01 latin model") == 0
    capfdbinary.readouterr()
    assert run("label -m model -c latin") == 0
    out, err = capfdbinary.readouterr()
    assert out == data.replace(b" I\n", b" I\tI\n").replace(b" B\n", b" B\tB\n")
    assert b"Token error   :  0.00%" in err
    for line in ("train latin-labels out", "train -p pattern latin-labels out"):
        (files / "latin-labels").write_bytes("u:a x B\nu:b x é\n\n".encode("latin-1"))
        assert run(line) == 1
        assert b"latin-labels:2: the label is not UTF-8" in capfdbinary.readouterr().err


def test_forced_labels_stay(model, files, capfdbinary):
    (files / "partly").write_text("The DT ?\ncat NN O\nsat VB\n\n", encoding="utf-8")
    assert run("label -m model --force -l partly") == 0
    labels = capfdbinary.readouterr().out.split()
    assert labels[1] == b"O"
    assert run("label -m model --force -l -p -n 2 partly") == 0
    assert [row.split()[1] for row in capfdbinary.readouterr().out.strip().split(b"\n\n")] == [b"O", b"O"]


def test_forced_labellings_are_the_best_of_those_that_keep_them(model, files, capfdbinary):
    """Among all labellings, the best that keeps what is known; by its place in the whole list."""
    (files / "partly").write_text("A DT ?\ncat NN O\nran VB ?\n\n", encoding="utf-8")
    run("label -m model -s -n 27 partly")
    every = [block.split(b"\n") for block in capfdbinary.readouterr().out.strip().split(b"\n\n")]
    assert len(every) == 27
    kept = [(b.split()[2], *rows) for b, *rows in every if rows[1].split(b"\t")[1] == b"O"]
    run("label -m model -s -n 27 --force partly")
    forced = [block.split(b"\n") for block in capfdbinary.readouterr().out.strip().split(b"\n\n")]
    assert len(forced) == len(kept) == 9
    assert [(b.split()[2], *rows) for b, *rows in forced] == kept


def test_scores_of_labels_sum_to_the_score(model, files, capfdbinary):
    run("label -m model -s -n 4 train")
    for block in capfdbinary.readouterr().out.strip().split(b"\n\n"):
        head, *rows = block.split(b"\n")
        assert float(head.split()[2]) == pytest.approx(sum(float(row.rsplit(b"/", 1)[1]) for row in rows), abs=1e-5)


def test_weights_are_updated(model, files, capfdbinary):
    """The dump of a model changes nothing; other weights do, and those of zero vanish."""
    run("dump -p 20 model dumped")
    assert run("update -m model dumped same") == 0
    same, before = (wapiti.read_wapiti(files / name) for name in ("same", "model"))
    assert same.weights.tolist() == before.weights.tolist()
    (files / "patch").write_text(
        "u:cat # B 2.5\n\n*:NN B I -1e-3\nb I O 0.25\nu:The # B 0\nu:A # B 0\n", encoding="utf-8"
    )
    capfdbinary.readouterr()
    assert run("update -m model -c patch changed") == 0
    assert b"observations removed" in capfdbinary.readouterr().err
    run("dump changed")
    lines = capfdbinary.readouterr().out.decode().split("\n")
    assert {"u:cat\t#\tB\t2.50000", "*:NN\tB\tI\t-0.00100", "b\tI\tO\t0.25000"} <= set(lines)
    assert not any(line.startswith("u:The\t#\tB\t") for line in lines)
    for text, reason in (
        ("u:cow # B 1", "no observation 'u:cow'"),
        ("u:cat # X 1", "no label 'X'"),
        ("b X B 1", "no label 'X'"),
        ("b # B 1", "no weights of single labels"),
        ("u:cat B B 1", "no weights of label pairs"),
        ("u:cat # B nan", "not a finite number"),
    ):
        (files / "patch").write_text(f"\n{text}\n", encoding="utf-8")
        assert run("update -m model patch changed") == 1
        error = capfdbinary.readouterr().err.decode()
        assert "patch:2: " in error
        assert reason in error


def test_crfkits_own_models(model, files, capfdbinary):
    load("model").save("own")
    assert isinstance(ChainModel.load("own"), ChainModel)
    run("label -m model -s train")
    expected = capfdbinary.readouterr().out
    run("label -m own -s train")
    assert capfdbinary.readouterr().out == expected
    run("dump model")
    expected = capfdbinary.readouterr().out
    run("dump own")
    assert sorted(capfdbinary.readouterr().out.split(b"\n")) == sorted(expected.split(b"\n"))


def test_sequences_are_labelled_as_they_arrive(model):
    """A server writes one sequence, waits for its labels, and writes the next."""
    with subprocess.Popen(
        command("label", "-l", "-m", model), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        for _ in range(2):
            process.stdin.write(b"The DT\ncat NN\n\n")
            process.stdin.flush()
            assert [process.stdout.readline() for _ in range(3)] == [b"B\n", b"I\n", b"\n"]
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_it_starts_without_scikit_learn(model):
    program = (
        "import sys; from crfkit.compat.wapiti.command import main; "
        f"main(['label', '-m', {str(model)!r}, '/dev/null']); "
        "print([name for name in ('sklearn', 'typer', 'scipy.optimize', 'crfkit.solvers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("", "no mode"),
        ("lable", "unknown mode 'lable'"),
        ("update patch", "update needs a model"),
        ("update -m model train", "train:1: 3 columns; expected 4"),
        ("label", "needs a model"),
        ("label -m nothing", "cannot read nothing"),
        ("label -m pattern train", "not a model"),
        ("label -m model nothing", "nothing: No such file"),
        ("label -m model --check --force train", "cannot be combined"),
        ("label -m model -n 0 train", "-n/--nbest: expected an integer >= 1, not 0"),
        ("label -m model -n few train", "expected an integer, not 'few'"),
        ("label -m model --nonsense", "unknown option --nonsense"),
        ("label -m model --scores train", "unknown option --scores; did you mean --score?"),
        ("label -m model train out more", "there is one argument too many, more"),
        ("label -m model --me train", "--me is not supported"),
        ("label -m model pattern", "pattern:1: 1 feature column, but the template needs 2"),
        ("train -a l-bfsg -p pattern train out", "l-bfgs"),
        ("train -T memm -p pattern train out", "--type memm is not supported"),
        ("train --me -p pattern train out", "--me is not supported"),
        ("train --clip -p pattern train out", "--clip is not supported"),
        ("train --rstate x -p pattern train out", "--rstate is not supported"),
        ("train -1 -1 -p pattern train out", "expected one argument"),
        ("train --rho1=-1 -p pattern train out", "-1/--rho1: expected a number >= 0, not -1"),
        ("train -p latin train out", "latin: the template is not UTF-8 at byte 3 (0xE9); convert it to UTF-8"),
        ("train -p nothing train out", "cannot read the template"),
        ("train -p train train out", "train:1: 'the DT B' starts with neither"),
        ("train -p pattern pattern out", "pattern:1: 0 feature columns"),
        ("train train out", "neither u (unigram), b (bigram) nor * (both)"),
        ("train -p pattern train nowhere/out", "cannot write nowhere"),
        ("dump pattern", "not a Wapiti model"),
        ("dump crfpp", "crfpp is a model of CRF++; expected one of Wapiti or crfkit"),
    ],
)
def test_refusals(model, files, capfdbinary, arguments, reason):
    (files / "latin").write_bytes("u:é\n".encode("latin-1"))
    (files / "crfpp").write_text("version: 100\n")
    assert run(arguments) == 1
    last = capfdbinary.readouterr().err.decode().rstrip("\n").rsplit("\n", 1)[-1]
    assert last.startswith("error: ")
    assert reason in last


@pytest.mark.parametrize("arguments", ["label -m model train", "dump model", "train -p pattern -i 1 train"])
@pytest.mark.parametrize(
    ("where", "reason"),
    [(">&-", "standard output is closed"), (">/dev/full", "cannot write the output: No space")],
)
def test_output_that_cannot_be_written(model, files, arguments, where, reason):
    """Closed, or a full disk."""
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    shell = f"exec {shlex.join(command(*arguments.split()))} {where}"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, cwd=files)
    last = done.stderr.decode().rstrip("\n").rsplit("\n", 1)[-1]
    assert done.returncode == 1
    assert last.startswith(f"error: {reason}")


def test_lists_and_help(capsys):
    for arguments in ("train -a list", "train -T list"):
        assert run(arguments) == 0
    assert "\tl-bfgs\n\tsgd-l1\n" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "crfkit-wapiti label" in capsys.readouterr().out
    assert main(["--version"]) == 0
    with pytest.raises(SystemExit) as ended:
        main(["train", "--help"])
    assert ended.value.code == 0


def test_ctrl_c_leaves_a_model(files):
    """The first Ctrl-C ends training, and the model is written."""
    (files / "many").write_text(TRAIN * 100, encoding="utf-8")
    with subprocess.Popen(
        command("train", "-a", "sgd-l1", "-p", "pattern", "-w", "0", "many", "out"),  # which never ends
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stderr:
            if "[   3]" in line:
                break
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        assert process.wait(timeout=60) == 0
    assert load("out").class_list == ["B", "I", "O"]


# --- how files are split


class Dribble(io.BytesIO):
    """A stream that gives a few bytes at a time."""

    def read1(self, size=-1):
        return self.read(3)


@given(st.text(alphabet="ab \t\v\r\n", max_size=40))
def test_sequences_are_those_between_blank_lines(text):
    data = text.encode()
    expected, lines = [], []
    for line in [*data.split(b"\n"), b""]:
        if line.strip():
            lines.append(line)
        elif lines:
            expected.append(lines)
            lines = []
    for stream in (io.BytesIO(data), Dribble(data)):
        batches = list(read_batches(stream))
        assert [lines for batch in batches for lines in batch.lines] == expected
        for batch in batches:
            for n, sequence in enumerate(batch.lines):
                for t, line in enumerate(sequence):
                    assert data.split(b"\n")[batch.line(n, t) - 1] == line
