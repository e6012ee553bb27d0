"""Runs that are broken off, saved, and go on as if nothing had happened; and files that are no such thing."""

import os
import pickle
from functools import cache

import numpy as np
import pytest
from oracle import make_problem
from sklearn.exceptions import ConvergenceWarning

from crfkit import L1, L2, ChainCRF, NoPenalty, Template
from crfkit.errors import CheckpointWarning, CrfkitError, ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.files.checkpoint import Checkpoint, Checkpoints, interval
from crfkit.losses import ChainLikelihood
from crfkit.result import Status
from crfkit.solvers import SOLVERS, GradientNorm, make_solver
from crfkit.solvers.parts.past import Past
from crfkit.synthetic import entity_words

ROWS = [[("the", "D"), ("cat", "N"), ("runs", "V")], [("a", "D"), ("dog", "N")], [("sleep", "V"), ("cat", "N")]] * 3
LABELS = [["DET", "NOUN", "VERB"], ["DET", "NOUN"], ["VERB", "NOUN"]] * 3
LABELS[4] = ["NOUN", "VERB"]
TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,1]/%x[0,1]\nB\nB1:%x[0,1]")
NEVER = GradientNorm(0.0)
SEQUENCES = sorted(  # take chain losses; test_selection.py has those that select
    name for name, solver in SOLVERS.items() if not solver.needs & {"gradient", "candidates"}
)


@cache
def problem():
    lengths = tuple(np.random.default_rng(0).integers(1, 5, 20).tolist())
    return make_problem(2, 3, lengths, 6, states="observed")


def penalty_for(solver):
    takes = getattr(solver, "handles_smooth", None)
    return NoPenalty() if takes is not None and not takes else L2(1.0)


def crf(solver="lbfgs", k=None, **options):
    tight = {"tolerance": NEVER} if k is not None else {}
    return ChainCRF(**{"template": TEMPLATE, "n_threads": 1, "solver": solver, "max_iterations": k} | tight | options)


def fitted(solver, k, resume=None, **options):
    made = crf(solver, k, **options)
    if k is None:
        return made.fit(ROWS, LABELS, resume=resume)
    with pytest.warns(ConvergenceWarning):
        return made.fit(ROWS, LABELS, resume=resume)


# --- every solver's state survives a file


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("k", [0, 2])
def test_a_state_comes_back_as_it_was(name, k, tmp_path):
    loss = ChainLikelihood(problem().data, problem().field, 1)
    solver = make_solver(name, stopping=NEVER, max_iterations=k)
    penalty = penalty_for(solver) if name != "owlqn" else L1(0.5)
    result = solver.minimize(loss, penalty, np.zeros(loss.size))
    Checkpoint.of(result).save(tmp_path / "c")
    saved = Checkpoint.load(tmp_path / "c")
    assert (saved.w == result.w).all()
    assert saved.state.keys() == result.state.keys()
    for key, value in result.state.items():
        assert np.array_equal(saved.state[key], value), key
        assert isinstance(saved.state[key], np.ndarray) == isinstance(value, np.ndarray), key
    # and it goes on, though its arrays are read-only
    ends = [
        solver.minimize(ChainLikelihood(problem().data, problem().field, 1), penalty, w, resume=state)
        for w, state in ((result.w, result.state), (saved.w, saved.state))
    ]
    assert (ends[0].w == ends[1].w).all()
    assert ends[0].status is ends[1].status


ESTIMATED = [name for name in SEQUENCES if name not in ("newton", "iis")]


@pytest.mark.parametrize("name", ESTIMATED)
def test_a_fit_in_two_parts_gives_the_same_model(name, tmp_path):
    part, whole = fitted(name, 3), fitted(name, 6)
    part.checkpoint().save(tmp_path / "c")
    for resume in (part.checkpoint(), Checkpoint.load(tmp_path / "c")):
        rest = fitted(name, 3, resume)
        assert (rest.coef_ == whole.coef_).all()
        assert rest.predict(ROWS) == whole.predict(ROWS)


@pytest.mark.parametrize(
    "options", [{"order": 2}, {"label_classes": {"DET": "x"}}, {"constraints": "observed"}], ids=str
)
def test_in_every_kind_of_field(options):
    part, whole = fitted("lbfgs", 2, **options), fitted("lbfgs", 4, **options)
    assert (fitted("lbfgs", 2, part.checkpoint(), **options).coef_ == whole.coef_).all()


@pytest.mark.parametrize("name", ["auto", "sgd"])
def test_sparse_models_go_on_with_their_zeros(name, tmp_path):
    """The model has none, the checkpoint has all of them."""
    part, whole = (fitted(name, k, penalty=L1(0.5)) for k in (2, 4))
    checkpoint = part.checkpoint()
    assert len(checkpoint.w) > len(part.coef_)
    checkpoint.save(tmp_path / "c")
    rest = fitted(name, 2, Checkpoint.load(tmp_path / "c"), penalty=L1(0.5))
    assert (rest.result_.w == whole.result_.w).all()
    assert rest.state_features_ == whole.state_features_


def test_a_finished_run_has_nothing_left_to_do():
    done = ChainCRF(template=TEMPLATE, n_threads=1, solver="lbfgs", tolerance=GradientNorm(1e-6)).fit(ROWS, LABELS)
    again = ChainCRF(template=TEMPLATE, n_threads=1, solver="lbfgs", tolerance=GradientNorm(1e-6))
    again.fit(ROWS, LABELS, resume=done.checkpoint())
    assert again.result_.iterations == 0
    assert (again.coef_ == done.coef_).all()


def test_an_interrupted_fit_goes_on(tmp_path):
    def callback(iteration):
        if iteration.row.iteration == 3:
            raise KeyboardInterrupt

    for name in ("auto", "sgd", "averaged-perceptron", "arow"):
        broken = crf(name, 6)
        with pytest.raises(KeyboardInterrupt):
            broken.fit(ROWS, LABELS, callbacks=[callback])
        assert broken.result_.status is Status.INTERRUPTED
        broken.checkpoint().save(tmp_path / "c")
        rest = fitted(name, 6, Checkpoint.load(tmp_path / "c"))  # the limit counts the whole run, which was cut off
        assert (rest.coef_ == fitted(name, 6).coef_).all()
        assert [row.iteration for row in rest.result_.trace] == [3, 4, 5, 6]


@pytest.mark.parametrize("name", ["lbfgs", "sgd", "averaged-perceptron"])
def test_after_early_stopping_weights_and_state_belong_together(name):
    """Whichever iterate the checkpoint is of: going on from it is going on from there in an unbroken run."""
    options = {"tolerance": NEVER, "max_iterations": 12}
    seen = []
    stopped = crf(name, 12)
    dev = {"X_dev": ROWS, "y_dev": [["DET"] * len(row) for row in LABELS], "patience": 3}
    with_dev = stopped.fit(ROWS, LABELS, callbacks=[lambda it: seen.append(it.w.copy())], **dev)
    assert with_dev.result_.status is Status.NO_IMPROVEMENT
    checkpoint = stopped.checkpoint()
    whole = crf(name, 12)
    iterates = []
    with pytest.warns(ConvergenceWarning):
        whole.fit(ROWS, LABELS, callbacks=[lambda it: iterates.append(it.w.copy())])
    next_ = ChainCRF(template=TEMPLATE, n_threads=1, solver=name, **options | {"max_iterations": 1})
    with pytest.warns(ConvergenceWarning):
        next_.fit(ROWS, LABELS, resume=checkpoint)
    places = [k for k, w in enumerate(iterates) if (w == checkpoint.w).all()]
    assert places, "the checkpoint's weights are no iterate"
    assert any((next_.result_.w == iterates[k + 1]).all() for k in places)


def test_the_start_of_a_warm_start_gives_way_to_a_checkpoint():
    part, whole = fitted("lbfgs", 2), fitted("lbfgs", 4)
    warm = crf("lbfgs", 2, warm_start=True)
    with pytest.warns(ConvergenceWarning):
        warm.fit(ROWS, LABELS)
    with pytest.warns(ConvergenceWarning):
        warm.fit(ROWS, LABELS, resume=part.checkpoint())
    assert (warm.coef_ == whole.coef_).all()


# --- what cannot go on


def test_checkpoints_of_other_runs_are_refused():
    part = fitted("lbfgs", 3).checkpoint()
    with pytest.raises(ParameterError, match="saved state is of the solver 'lbfgs', not of 'sgd'"):
        crf("sgd", 3).fit(ROWS, LABELS, resume=part)
    with pytest.raises(CrfkitError, match="weights"):
        crf("lbfgs", 3).fit(ROWS[:2], LABELS[:2], resume=part)
    with pytest.raises(CrfkitError, match="weights"):
        crf("lbfgs", 3, all_possible_states=True).fit(ROWS, LABELS, resume=part)


def test_what_is_no_checkpoint_is_refused():
    for bad in ({"w": np.zeros(3)}, "file.ckpt", 3, fitted("lbfgs", 2)):
        with pytest.raises(CrfkitError, match=r"[Cc]heckpoint"):
            crf("lbfgs").fit(ROWS, LABELS, resume=bad)


def test_a_model_that_was_not_trained_here_has_no_checkpoint(tmp_path):
    crf("lbfgs").fit(ROWS, LABELS).save(tmp_path / "m.crf")
    loaded = ChainCRF.load(tmp_path / "m.crf")
    with pytest.raises(CrfkitError, match=r"train|fit"):
        loaded.checkpoint()
    with pytest.raises(ValueError, match="not fitted"):
        ChainCRF().checkpoint()


def test_pickled_with_its_checkpoint():
    part, whole = fitted("lbfgs", 2), fitted("lbfgs", 4)
    again = pickle.loads(pickle.dumps(part))
    assert (fitted("lbfgs", 2, again.checkpoint()).coef_ == whole.coef_).all()


# --- files


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ckpt"


def test_models_and_checkpoints_are_not_mistaken_for_each_other(path):
    done = crf("lbfgs").fit(ROWS, LABELS)
    done.save(path)
    with pytest.raises(ModelFileError, match="kind 'chain'; expected 'checkpoint'"):
        Checkpoint.load(path)
    done.checkpoint().save(path)
    with pytest.raises(ModelFileError, match="kind 'checkpoint'; expected 'chain'"):
        ChainCRF.load(path)


def test_damaged_checkpoints_are_refused(path):
    fitted("lbfgs", 4).checkpoint().save(path)
    blob = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in [0, 4, 8, 100, len(blob) // 2, len(blob) - 1]:
        path.write_bytes(blob[:cut])
        with pytest.raises(ModelFileError, match=str(path)):
            Checkpoint.load(path)
    start = 8 + int.from_bytes(blob[:8], "little")
    for at in rng.integers(start, len(blob), 40):
        path.write_bytes(blob[:at] + bytes([blob[at] ^ 16]) + blob[at + 1 :])
        with pytest.raises(ModelFileError, match=str(path)):
            Checkpoint.load(path)


@pytest.mark.parametrize(
    ("metadata", "tensors"),
    [
        ({"state": None}, {}),
        ({"state": [1]}, {}),
        ({}, {"w": None}),
        ({}, {"w": np.zeros((2, 2))}),
        ({}, {"w": np.zeros(3, dtype=np.int64)}),
    ],
    ids=str,
)
def test_checkpoints_whose_parts_do_not_belong_together(path, metadata, tensors):
    parts = {"state": {"solver": "lbfgs"}} | metadata, {"w": np.zeros(3)} | tensors
    modelfile.write(path, "checkpoint", parts[0], {k: v for k, v in parts[1].items() if v is not None})
    with pytest.raises(ModelFileError, match=str(path)):
        Checkpoint.load(path)


DAMAGED = ["lbfgs", "cg", "bfgs", "tron", "sgd", "averaged-perceptron", "arow", "mira", "smd", "fista", "ogm", "rda"]


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("change", ["missing", "shorter"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_state_that_lacks_something_is_refused_in_words(name, change):
    """As from another version: an error of crfkit or a run without that part, never a KeyError."""
    part = fitted(name, 3).checkpoint()
    for key, value in part.state.items():
        if not isinstance(value, np.ndarray):
            continue
        rest = {k: v for k, v in part.state.items() if k != key}
        broken = Checkpoint(part.w, rest if change == "missing" else {**rest, key: value[..., :-1]})
        try:
            crf(name, 1).fit(ROWS, LABELS, resume=broken)
        except CrfkitError:
            continue
        except Exception as error:
            pytest.fail(f"without {key}: {error!r}")


def test_writing_over_a_checkpoint_is_atomic(path, monkeypatch):
    fitted("lbfgs", 2).checkpoint().save(path)
    before = path.read_bytes()

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(ModelFileError, match="No space left"):
        fitted("lbfgs", 3).checkpoint().save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_checkpoint_can_be_saved_onto_itself(path):
    part = fitted("lbfgs", 2).checkpoint()
    part.save(path)
    Checkpoint.load(path).save(path)
    again = Checkpoint.load(path)
    assert (again.w == part.w).all()
    assert again.state.keys() == part.state.keys()


def test_missing_files(tmp_path):
    with pytest.raises(ModelFileError, match="No such file"):
        Checkpoint.load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="cannot write"):
        fitted("lbfgs", 2).checkpoint().save(tmp_path / "no" / "where")


# --- while training


def kept(iteration):
    """The checkpoint of an iteration, as a file would have it."""
    state = {name: np.array(v) if isinstance(v, np.ndarray) else v for name, v in iteration.saved().items()}
    return Checkpoint(iteration.w.copy(), state)


@pytest.mark.parametrize("name", ESTIMATED)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_run_that_was_cut_off_ends_as_if_it_had_not_been(name):
    """By its own stopping rule, which looks at more iterations than those after the cut."""
    seen = []
    whole = crf(name, None).fit(ROWS, LABELS, callbacks=[lambda it: seen.append(kept(it))]).result_
    for checkpoint in {1: seen[1], 2: seen[len(seen) // 2], 3: seen[-2]}.values():
        rest = crf(name, None).fit(ROWS, LABELS, resume=checkpoint).result_
        assert (rest.w == whole.w).all()
        assert (rest.iterations, rest.status) == (whole.iterations, whole.status)


def test_interrupted_in_the_stochastic_start(monkeypatch):
    """The model has the weights in the middle of the epoch; the checkpoint makes the epoch again."""
    from crfkit.solvers.parts import stochastic_start

    solver = make_solver("auto", epochs=2, least_sequences=1)
    whole = crf(solver, None).fit(ROWS, LABELS)
    epoch, calls = stochastic_start.run_epoch, []

    def interrupted(*arguments):
        epoch(*arguments)
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(stochastic_start, "run_epoch", interrupted)
    broken = crf(solver, None)
    with pytest.raises(KeyboardInterrupt):
        broken.fit(ROWS, LABELS)
    assert broken.coef_.any()
    assert not broken.checkpoint().w.any()
    rest = crf(solver, None).fit(ROWS, LABELS, resume=broken.checkpoint())
    assert (rest.coef_ == whole.coef_).all()
    assert rest.result_.iterations == whole.result_.iterations


def test_checkpoints_are_written_every_few_iterations(path):
    seen = []

    def look(iteration):
        seen.append(Checkpoint.load(path).state["iterations"] if path.exists() else None)

    made = crf("lbfgs", 6)
    with pytest.warns(ConvergenceWarning):
        made.fit(ROWS, LABELS, callbacks=[Checkpoints(path, "2it"), look])
    assert seen == [None, None, 2, 2, 4, 4, 6]


def test_checkpoints_are_written_from_time_to_time(path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("crfkit.files.checkpoint.time.monotonic", lambda: now[0])
    written = []
    monkeypatch.setattr(Checkpoint, "save", lambda self, path: written.append(self.state["iterations"]))

    def tick(iteration):
        now[0] += 20

    with pytest.warns(ConvergenceWarning):
        crf("lbfgs", 8).fit(ROWS, LABELS, callbacks=[Checkpoints(path, "1m"), tick])
    assert written == [3, 6]


def test_a_checkpoint_that_cannot_be_written_does_not_end_training(tmp_path):
    made = crf("lbfgs", None)
    with pytest.warns(CheckpointWarning, match="cannot write .* training continues"):
        made.fit(ROWS, LABELS, callbacks=[Checkpoints(tmp_path / "missing" / "c", "3it")])
    assert made.result_.status.converged


@pytest.mark.parametrize("every", ["", "10", 2.5, "0", -1, "10 minutes", "2.5it", "1e3m3", "∞", "nan"])
def test_times_between_checkpoints(every):
    if every in ("10", 2.5):
        Checkpoints("c", every)
        return
    with pytest.raises(ParameterError, match="time between checkpoints"):
        Checkpoints("c", every)


@pytest.mark.parametrize(
    "change", [{"past": np.zeros(3)}, {"past": np.zeros((2, 3))}, {"iterations": -1}, {"iterations": "x"}], ids=str
)
def test_a_past_that_cannot_be(change):
    part = fitted("lbfgs", 3).checkpoint()
    with pytest.raises(ParameterError, match="cannot be resumed"):
        crf("lbfgs", 3).fit(ROWS, LABELS, resume=Checkpoint(part.w, {**part.state, **change}))


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "fista"])
def test_a_damaged_past_is_refused(solver):
    state = fitted(solver, 6).result_.state
    rows = state["past"].copy()
    assert len(rows) > 2
    assert state["past_rows"] == len(rows)

    def resumed(**changes):
        return Past.of({**state, **changes}, float(rows[-1, 0]))

    assert len(resumed().rows) == len(rows) - 1
    for place in ((0, 0), (1, 0), (0, 1), (len(rows) - 1, 1)):
        for value in (np.nan, np.inf, -np.inf, 1e308):
            damaged = rows.copy()
            damaged[place] = value
            with pytest.raises(ParameterError, match="past has numbers that no run has"):
                resumed(past=damaged)
    for some in (rows[1:], rows[:1], rows[:0]):
        with pytest.raises(ParameterError, match="its past has"):
            resumed(past=some)


@pytest.mark.parametrize(("solver", "name"), [("sgd", "w"), ("arow", "w"), ("arow", "variances_by_weight")])
def test_weights_of_another_size_are_refused(solver, name):
    part = crf(solver, tolerance=1e-3).fit(ROWS, LABELS).checkpoint()
    for damaged in (part.state[name][:-1], np.zeros((2, 2)), "x"):
        with pytest.raises(ParameterError, match="the saved state"):
            crf(solver, 2).fit(ROWS, LABELS, resume=Checkpoint(part.w, {**part.state, name: damaged}))


def test_one_callback_serves_several_runs(tmp_path):
    X, y = entity_words(30)
    keeper = Checkpoints(tmp_path / "run.ckpt", every="2it")
    for _ in range(2):
        with pytest.warns(ConvergenceWarning):
            ChainCRF(features="ner", max_iterations=8).fit(X, y, callbacks=[keeper])
        assert Checkpoint.load(tmp_path / "run.ckpt").state["iterations"] == 8
        (tmp_path / "run.ckpt").unlink()


@pytest.mark.parametrize("every", [1e20, 1e-6])
def test_any_number_of_seconds_will_do(every):
    assert interval(every) == (every, 0)
