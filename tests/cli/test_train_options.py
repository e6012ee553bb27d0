"""`crfkit train` with every option that changes how or what is learned; and the models it writes, in use."""

from __future__ import annotations

import itertools
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from crfkit import ChainCRF, Template
from crfkit.errors import ModelFileError
from crfkit.files.checkpoint import Checkpoint
from crfkit.files.columns import read_columns
from crfkit.solvers import SOLVERS, SuccessiveChanges
from crfkit.synthetic import entity_corpus
from crfkit.training.resources import peak_memory

TINY = "U0:%x[0,0]\nU1:%x[0,1]\nB\n"
SEQUENCES = sorted(  # take chain losses; test_selection.py has those that select
    name for name, solver in SOLVERS.items() if not solver.needs & {"gradient", "candidates"}
)
LEARNERS = ("averaged-perceptron", "passive-aggressive", "arow", "mira")
TRAIN = ["train", "tiny.txt", "-t", "tiny.t", "-q", "--threads", "1", "-m"]


@pytest.fixture(autouse=True)
def tiny_files(workspace):
    """Two kinds of phrases, few words; a file for development; some that do not suit."""
    sentences = [
        [token for token in row if token[2] == "O" or token[2].endswith(("-PER", "-LOC"))][:7]
        for row in entity_corpus(40, 3)
    ]
    sentences = [row for row in sentences if len(row) > 1]
    for name, part in (("tiny.txt", sentences[:24]), ("dev.txt", sentences[24:])):
        Path(name).write_text("\n".join("".join("\t".join(token) + "\n" for token in row) for row in part), "utf-8")
    Path("tiny.t").write_text(TINY, "utf-8")
    Path("bad.txt").write_text("Anna\tXx\tB-PER\nruns\tx\tO\n\nruns\tx\tO\nAnna\tXx\tI-PER\n", "utf-8")
    Path("narrow.txt").write_text("Anna\tB-PER\nruns\tO\n", "utf-8")
    Path("empty.txt").write_text("", "utf-8")


def weights(path: str) -> np.ndarray:
    return ChainCRF.load(path).coef_


def labels_of(text: str) -> list[list[str]]:
    return [[line.split()[-1] for line in block.split("\n") if line] for block in text.strip().split("\n\n")]


def use(call, model: str) -> tuple[list[list[str]], float]:
    """Tags, scores and inspects; (predicted labels, accuracy)."""
    tagged = call("tag", model, "dev.txt")
    assert (tagged.code, tagged.err) == (0, "")
    scored = call("eval", model, "dev.txt", "--json")
    assert (scored.code, scored.err) == (0, "")
    inspected = call("inspect", model)
    assert (inspected.code, inspected.err) == (0, "")
    assert "None" not in inspected.out
    X, gold = read_columns("dev.txt")
    predicted = labels_of(tagged.out)
    assert predicted == ChainCRF.load(model).predict(X)
    hits = sum(a == b for p, g in zip(predicted, gold, strict=True) for a, b in zip(p, g, strict=True))
    accuracy = json.loads(scored.out)["accuracy"]
    assert accuracy == pytest.approx(hits / sum(map(len, gold)))
    return predicted, accuracy


# --- every solver


@pytest.mark.parametrize("solver", SEQUENCES)
def test_solver(call, solver):
    outcome = call(*TRAIN, "m.crf", "--solver", solver, "--observed-states", "-i", 40, "-e", "1e-2")
    assert (outcome.code, outcome.err) == (0, ""), outcome.err
    sizes, objective, status, written = outcome.out.splitlines()
    assert re.fullmatch(r"\d+ labels, \d+ attributes, \d+ weights", sizes)
    what = f"mistakes of {solver}" if solver in LEARNERS else r"chain likelihood \+ L2\(1\)"
    assert re.match(rf"{what} = -?\d+\.\d+ after \d+ iterations", objective)
    assert status.startswith(("converged", "not converged: the iteration limit"))
    assert written == "model written to m.crf"
    _, accuracy = use(call, "m.crf")
    assert accuracy > 0.6
    assert ("mistakes of" in call("inspect", "m.crf").out) == (solver in LEARNERS)


def test_every_solver_is_named_in_the_help(call):
    """In full: a name that ends in … cannot be typed."""
    text = " ".join(re.sub(r"[^\w\-.]+", " ", call("train", "--help").out).split())
    assert all(name in text for name in SEQUENCES)


def test_solvers_agree_about_the_optimum(call):
    values = {}
    for solver in ("auto", "lbfgs", "tron", "bfgs", "dfp", "cg", "newton", "owlqn"):
        outcome = call(*TRAIN, "m.crf", "--solver", solver, "--observed-states", "-e", "1e-6")
        assert outcome.code == 0
        values[solver] = float(re.search(r"= (\d+\.\d+) after", outcome.out)[1])
    assert max(values.values()) == pytest.approx(min(values.values()), rel=1e-4), values


# --- penalties


def test_l1_makes_small_models(call):
    assert call(*TRAIN, "l2.crf", "--l2", 0.5).code == 0
    sizes = [Path("l2.crf").stat().st_size]
    for strength in (0.1, 0.5, 2.0):
        outcome = call(*TRAIN, "l1.crf", "--l1", strength)
        assert outcome.code == 0
        assert f"chain likelihood + L1({strength:g})" in outcome.out
        w = weights("l1.crf")
        assert (w != 0).all()
        assert f", {len(w)} weights" in outcome.out
        sizes.append(Path("l1.crf").stat().st_size)
        use(call, "l1.crf")
    assert sizes == sorted(sizes, reverse=True)


def test_both_penalties(call):
    found = {}
    for name, options in (
        ("l1", "--l1 0.5"),
        ("both", "--l1 0.5 --l2 0.5"),
        ("C", "--l1 0.5 --C 2"),
        ("c2", "--l1 0.5 --c2 0.25"),
    ):
        outcome = call(*TRAIN, f"{name}.crf", *options.split())
        assert outcome.code == 0
        found[name] = (weights(f"{name}.crf"), outcome.out)
        use(call, f"{name}.crf")
    assert "ElasticNet(0.5, 0.5)" in found["both"][1]
    for name in ("C", "c2"):
        np.testing.assert_array_equal(found[name][0], found["both"][0])
    assert np.abs(found["both"][0]).sum() < np.abs(found["l1"][0]).sum()


@pytest.mark.parametrize("options", ["--l1 0.5", "--l1 0.5 --l2 0.1"])
def test_stochastic_gradients_under_l1(call, options):
    assert call(*TRAIN, "m.crf", "--solver", "sgd", "-e", "1e-2", *options.split()).code == 0
    assert (weights("m.crf") != 0).all()
    assert use(call, "m.crf")[1] > 0.6


def test_a_penalty_that_leaves_nothing(call):
    outcome = call(*TRAIN, "m.crf", "--l1", 10000)
    assert outcome.code == 0
    assert "0 attributes, 0 weights" in outcome.out
    use(call, "m.crf")


# --- the field


def test_order_two(call):
    for order in (1, 2):
        outcome = call(*TRAIN, f"{order}.crf", "--order", order, "--observed-states")
        assert outcome.code == 0
        use(call, f"{order}.crf")
    assert len(weights("2.crf")) > len(weights("1.crf"))
    assert ChainCRF.load("2.crf").order == 2


def test_inspect_accounts_for_every_weight(call):
    """The numbers add up to the total, and what is strong among label triples is shown."""
    assert call(*TRAIN, "m.crf", "--order", 2, "--observed-states").code == 0
    text = call("inspect", "m.crf").out
    total, parts = re.search(r"^(\d+) weights: (.*)$", text, re.MULTILINE).groups()
    assert sum(map(int, re.findall(r"\d+", parts))) == int(total) == len(weights("m.crf"))
    assert "triple" in text


@pytest.mark.parametrize("order", [1, 2])
def test_constraints(call, order):
    assert call(*TRAIN, "m.crf", "--constraints", "iob2", "--order", order, "-i", 2).code == 0
    predicted, _ = use(call, "m.crf")
    for row in predicted:
        for before, label in zip(["O", *row], row, strict=False):
            assert not label.startswith("I-") or before[2:] == label[2:]


def test_observed_constraints_and_all_at_once(call):
    options = "--constraints observed --order 2 --l1 0.1 --loss softmax-margin --seed 3"
    outcome = call(*TRAIN, "m.crf", *options.split())
    assert outcome.code == 0
    assert "softmax margin + L1(0.1)" in outcome.out
    use(call, "m.crf")


# --- losses


@pytest.mark.parametrize(("loss", "name"), [("softmax-margin", "softmax margin"), ("hinge", "structured hinge")])
def test_margins(call, loss, name):
    outcome = call(*TRAIN, "m.crf", "--loss", loss, "--solver", "sgd", "-e", "1e-2")
    assert outcome.code == 0
    assert f"{name} + L2(1)" in outcome.out
    assert use(call, "m.crf")[1] > 0.6


# --- development sets


def test_development_set(call):
    outcome = call(*TRAIN, "m.crf", "--dev", "dev.txt", "--patience", 2, "--log", "l.jsonl", "--solver", "lbfgs")
    assert outcome.code == 0
    rows = [json.loads(line) for line in Path("l.jsonl").read_text().splitlines()]
    scores = [row["dev_f1"] for row in rows]
    best = int(np.argmax(scores))
    assert "stopped early" in outcome.out
    scored = json.loads(call("eval", "m.crf", "dev.txt", "--json").out)
    assert scored["overall"]["f1"] == pytest.approx(max(scores))
    assert rows[-1]["iteration"] == best + 2, "the log lacks the last iteration"
    assert f"after {rows[-1]['iteration']} iterations" in outcome.out
    use(call, "m.crf")


def test_development_scores_are_shown(call):
    outcome = call("train", "tiny.txt", "-t", "tiny.t", "-m", "m.crf", "--dev", "dev.txt", "--train-error")
    assert outcome.code == 0
    lines = outcome.err.splitlines()
    assert all("dev f1" in line and "token error" in line for line in lines)


# --- seeds


@pytest.mark.parametrize("solver", ["sgd", "averaged-perceptron", "smd"])
def test_seeds(call, solver):
    found = []
    for seed in ([], ["--seed", 0], ["--seed", 7]):
        assert call(*TRAIN, "m.crf", "--solver", solver, "-i", 2, *seed).code == 0
        found.append(weights("m.crf"))
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


# --- checkpoints


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "sgd", "averaged-perceptron", "arow"])
def test_a_run_in_two_parts_writes_the_same_model(call, solver):
    options = ["--solver", solver, "-e", "0"]
    assert call(*TRAIN, "whole.crf", "-i", 6, *options).code == 0
    assert call(*TRAIN, "part.crf", "-i", 3, "--checkpoint", "c", *options).code == 0
    assert call(*TRAIN, "rest.crf", "-i", 3, "--resume", "c", "--checkpoint", "c", *options).code == 0
    np.testing.assert_array_equal(weights("rest.crf"), weights("whole.crf"))
    # the file has been replaced by the later state
    assert call(*TRAIN, "more.crf", "-i", 1, "--resume", "c", *options).code == 0
    assert call(*TRAIN, "seven.crf", "-i", 7, *options).code == 0
    np.testing.assert_array_equal(weights("more.crf"), weights("seven.crf"))


def test_a_sparse_run_in_two_parts(call):
    options = ["--l1", 0.5, "-e", "0", "--order", 2]
    assert call(*TRAIN, "whole.crf", "-i", 6, *options).code == 0
    assert call(*TRAIN, "part.crf", "-i", 3, "--checkpoint", "c", *options).code == 0
    assert call(*TRAIN, "rest.crf", "-i", 3, "--resume", "c", *options).code == 0
    np.testing.assert_array_equal(weights("rest.crf"), weights("whole.crf"))


def test_a_checkpoint_of_the_command_line_is_one_of_the_estimator(call):
    assert call(*TRAIN, "part.crf", "-i", 3, "--checkpoint", "c", "-e", "0", "--solver", "lbfgs").code == 0
    assert call(*TRAIN, "whole.crf", "--solver", "lbfgs").code == 0
    crf = ChainCRF(Template(TINY), solver="lbfgs", n_threads=1)
    X, y = read_columns("tiny.txt")
    crf.fit(X, y, resume=Checkpoint.load("c"))
    np.testing.assert_allclose(crf.result_.value, ChainCRF.load("whole.crf").model_.training["value"], rtol=1e-4)


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "averaged-perceptron"])
def test_an_interrupted_run_goes_on(call, monkeypatch, solver):
    def interrupt(iteration):
        if iteration.row.iteration == 3:
            raise KeyboardInterrupt

    options = ["--solver", solver, "-e", "0"]
    loud = [argument for argument in TRAIN if argument != "-q"]
    with monkeypatch.context() as patch:
        patch.setattr("crfkit.cli.runtime.progress.plain_lines", interrupt)
        outcome = call(*loud, "part.crf", "-i", 6, "--checkpoint", "c", *options)
    assert outcome.code == 130
    assert "model written to part.crf" in outcome.out
    use(call, "part.crf")
    assert call(*TRAIN, "rest.crf", "-i", 6, "--resume", "c", *options).code == 0
    assert call(*TRAIN, "whole.crf", "-i", 6, *options).code == 0
    np.testing.assert_array_equal(weights("rest.crf"), weights("whole.crf"))


def test_models_learned_in_batches_can_be_used(call):
    X, y = read_columns("tiny.txt")
    crf = ChainCRF(Template(TINY), solver="averaged-perceptron", n_threads=1)
    for k in range(0, len(X), 8):
        crf.partial_fit(X[k : k + 8], y[k : k + 8])
    crf.save("m.crf")
    use(call, "m.crf")


# --- what goes wrong


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--l1 -1", r"L1 must be .*>= 0, not -1"),
        ("--l1 nan", r"L1 must be .*finite"),
        ("--l1 1 --l2 -1", r"L2 must be .*>= 0, not -1"),
        ("--l1 1 --l2 1 --C 1", r"--l2 and --C"),
        ("--l1 1 --solver lbfgs", r"lbfgs .*L1\(1\) is not smooth; these can: .*owlqn"),
        ("--l1 1 --l2 1 --solver tron", r"tron .*not smooth; these can: .*owlqn"),
        ("--l1 1 --solver mira", r"mira .*L1\(1\)"),
        ("--l2 1 --solver averaged-perceptron", r"averaged-perceptron does not support L2\(1\)"),
        ("--C 1 --solver arow", r"arow does not support L2\(1\)"),
        ("--loss perceptron", r"unknown loss 'perceptron'; expected one of likelihood, softmax-margin, hinge"),
        ("--loss hinge", r"auto needs smooth, which the structured hinge does not have; .*these can: sgd"),
        ("--loss hinge --solver lbfgs", r"lbfgs needs smooth, .*these can: sgd"),
        ("--order 0", r"order must be 1 or 2, not 0"),
        ("--order 3", r"order must be 1 or 2, not 3"),
        (
            "--constraints bio",
            r"unknown constraints 'bio' \(did you mean 'iob2'\?\); "
            r"expected one of iob1, iob2, ioe1, ioe2, iobes, bilou, observed",
        ),
        ("--constraints iobes", r"sequence \d+ .*constraints forbid"),
        ("--seed -1", r"seed must be an integer >= 0, not -1"),
        ("--seed -1 --solver sgd", r"seed must be an integer >= 0, not -1"),
        ("--solver SGD", r"unknown solver 'SGD' \(did you mean 'sgd'\?\); expected one of .*sgd"),
        ("--dev missing.txt", r"missing\.txt: .*No such file"),
        ("--dev empty.txt", r"empty\.txt: the file has no sequences"),
        ("--dev narrow.txt", r"narrow\.txt:1: .*column"),
        ("--dev tiny.txt", r"TRAIN and --dev are the same file"),
        ("--dev dev.txt --patience 0", r"patience must be an integer >= 1, not 0"),
        ("--dev dev.txt --patience -2", r"patience must be an integer >= 1, not -2"),
        ("--checkpoint missing/c", r"cannot write missing/c: No such"),
        ("--checkpoint m.crf", r"--model and --checkpoint are the same file"),
        ("--checkpoint tiny.txt", r"TRAIN and --checkpoint are the same file"),
        ("--checkpoint dev.txt --dev dev.txt", r"--dev and --checkpoint are the same file"),
        ("--resume missing", r"missing: No such file"),
        ("--resume model.crf", r"model\.crf: .*kind 'chain'; expected 'checkpoint'"),
        ("--resume tiny.txt", r"tiny\.txt: not a crfkit model"),
    ],
)
def test_options_that_cannot_be(fails, options, message):
    assert re.search(message, fails(*TRAIN, "m.crf", *options.split()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--order two", r"--order"),
        ("--seed many", r"--seed"),
        ("--l1 strong", r"--l1"),
        ("--patience some --dev dev.txt", r"--patience"),
    ],
)
def test_options_that_are_no_numbers(call, options, message):
    outcome = call(*TRAIN, "m.crf", *options.split())
    assert outcome.code == 2
    (line,) = [line for line in outcome.err.splitlines() if line.startswith("crfkit: error: ")]
    assert message in line


def test_data_that_break_the_constraints_are_found_in_their_file(fails):
    message = fails("train", "bad.txt", "-t", "tiny.t", "-m", "m.crf", "-q", "--constraints", "iob2")
    assert re.search(r"sequence 1 .*constraints forbid", message)
    assert message.startswith("bad.txt:5: sequence 1 has I-PER after O")


@pytest.mark.parametrize("option", ["--model", "--log"])
def test_a_checkpoint_that_is_read_is_not_written_over(call, fails, option):
    assert call(*TRAIN, "m.crf", "-i", 2, "--checkpoint", "c").code == 0
    arguments = [*TRAIN, "c"] if option == "--model" else [*TRAIN, "n.crf", "--log", "c"]
    assert "same file" in fails(*arguments, "-i", 2, "--resume", "c")


def test_checkpoints_of_other_runs_are_refused(call, fails):
    assert call(*TRAIN, "m.crf", "-i", 2, "--checkpoint", "c", "--solver", "lbfgs").code == 0
    assert "solver 'lbfgs', not of 'sgd'" in fails(*TRAIN, "n.crf", "--resume", "c", "--solver", "sgd")
    message = fails(*TRAIN, "n.crf", "--resume", "c", "--solver", "lbfgs", "--all-states")
    assert "weights" in message
    assert "checkpoint" in message or "c:" in message, "a person who gave --resume knows of no start vector"


def test_patience_without_a_development_set_is_noticed(fails):
    """It would do nothing."""
    assert "--dev" in fails(*TRAIN, "m.crf", "--patience", 3)


def test_constraints_that_no_labelling_keeps(call, fails):
    """Tagging a sequence that is longer than any observed labelling: an error that names it, and no output."""
    Path("short.txt").write_text("a\tx\tA\n\nb\tx\tB\n\n", "utf-8")
    assert call("train", "short.txt", "-t", "tiny.t", "-m", "s.crf", "-q", "--constraints", "observed").code == 0
    for command in ("tag", "eval"):
        message = fails(command, "s.crf", "dev.txt")
        assert "allow no labelling of sequence 0" in message
        assert "dev.txt" in message


def test_a_dry_run_says_what_training_would_take_and_writes_nothing(call):
    before = sorted(Path().iterdir())
    said = call(*TRAIN, "dry.crf", "--dry-run", "--checkpoint", "dry.state", "--log", "dry.log").out
    peak = peak_memory()
    assert sorted(Path().iterdir()) == before
    made = call(*TRAIN, "made.crf").out
    weights = re.search(r"\d+ weights", made)[0]
    assert weights in said
    assert re.search(r"one pass over the data takes .* s; most trainings take 30 to 150 passes", said)
    size, unit = re.search(r"memory at the peak: about ([\d.]+) ([MG]B)", said).groups()
    assert float(size) * {"MB": 1e6, "GB": 1e9}[unit] == pytest.approx(peak, rel=0.1)  # of this process


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_a_template_may_be_a_pipe(call):
    """It can be read only once, as in `-t <(…)`."""
    os.mkfifo("pipe.t")
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(Path("pipe.t").write_text, TINY, "utf-8")
        call("train", "tiny.txt", "-t", "pipe.t", "-q", "-m", "piped.crf")
        written.result()
    call(*TRAIN, "plain.crf")
    assert ChainCRF.load("piped.crf").classes_.tolist() == ChainCRF.load("plain.crf").classes_.tolist()


def test_a_checkpoint_that_cannot_be_written_does_not_cost_the_model(call, monkeypatch):
    def refuse(self, path):
        raise ModelFileError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr(Checkpoint, "save", refuse)
    outcome = call(*TRAIN, "kept.crf", "--checkpoint", "run.ckpt")
    assert (outcome.code, outcome.err) == (2, "crfkit: error: cannot write run.ckpt: No space left on device\n")
    assert ChainCRF.load("kept.crf").classes_.size


def test_a_dry_run_refuses_what_training_refuses(call, fails):
    assert "not smooth" in fails(*TRAIN, "m.crf", "--dry-run", "--l1", "1", "--solver", "tron")
    assert "take 3 to 3 passes" in call(*TRAIN, "m.crf", "--dry-run", "-i", "3").out


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_eta_is_the_stopping_rule_of_crfpp(call, solver):
    """Three successive changes below eta, and none of the triples before: the run ends at the first."""
    eta = 1e-3
    options = ("--solver", solver, "--eta", eta, "--log", "eta.jsonl")
    assert call(*TRAIN, "eta.crf", *options).code == 0
    values = [json.loads(line)["value"] for line in Path("eta.jsonl").read_text().splitlines() if '"value"' in line]
    small = [abs(old - new) < eta * old for old, new in itertools.pairwise(values)]
    assert small[-3:] == [True] * 3
    assert not any(all(small[k : k + 3]) for k in range(len(small) - 3))
    crf = ChainCRF("tiny.t", solver=solver, tolerance=SuccessiveChanges(eta), n_threads=1).fit_file("tiny.txt")
    np.testing.assert_array_equal(weights("eta.crf"), crf.coef_)


def test_a_smaller_eta_goes_further(call):
    found = []
    for eta in ("1e-2", "1e-6"):
        assert call(*TRAIN, "eta.crf", "--solver", "lbfgs", "--eta", eta, "--log", "eta.jsonl").code == 0
        found.append([json.loads(line) for line in Path("eta.jsonl").read_text().splitlines()])
    assert len(found[0]) < len(found[1])


def test_ctrl_c_keeps_the_trials_of_a_search(call, workspace, monkeypatch):
    """The trials of an hour were lost."""
    from crfkit.chain.training import tuning

    search = tuning._Search._try

    def interrupted(self, *args):
        if len(self.done) == 3:
            raise KeyboardInterrupt
        return search(self, *args)

    monkeypatch.setattr(tuning._Search, "_try", interrupted)
    arguments = ("tune", "train.txt", "-t", "template", "-m", "m.crf", "--dev", "test.txt", "--table", "t.json")
    outcome = call(*arguments)
    assert outcome.code == 130
    assert "interrupted; no model was written" in outcome.err
    assert len(json.loads(Path("t.json").read_text())["trials"]) == 3
    assert outcome.out.count(" l2 ") == 3
    assert not Path("m.crf").exists()
