"""Search for the penalty, the frequency cut, the order and the features of a tagger on held-out sentences.

Candidates are drawn at random. Those that share features, cut, order and kind of penalty form a path: they are trained
from the strongest penalty to the weakest, each from the solution before. With successive halving (Jamieson & Talwalkar
2016) all candidates see a part of the training set first, and the best third goes on to three times as much. Where the
best strength is at an end of its range, the search continues beyond it as long as scores rise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from crfkit._threads import count_threads, using_threads
from crfkit._types import Floats, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.attribute_files import encode_held_out
from crfkit.chain.encoding.sequences import TaggedCorpus
from crfkit.chain.losses.candidates import CandidateChain
from crfkit.chain.model.model import ChainModel
from crfkit.chain.training.early_stopping import Development
from crfkit.chain.training.train import ChainTraining
from crfkit.errors import ParameterError
from crfkit.files.columns import ColumnFile
from crfkit.penalties import L1, L2
from crfkit.protocols import Penalty
from crfkit.result import Status

FACTOR = 3  # of successive halving
EDGE = 0.2  # a strength in this outer part of its logarithmic range is at the end of it
MOST_BEYOND = 4  # strengths that are tried beyond an end, each STEP_BEYOND times the last
STEP_BEYOND = 3.0
PENALTIES: Mapping[str, Callable[[float], Penalty]] = {"l2": L2, "l1": L1}


@dataclass(frozen=True, order=True)
class Candidate:
    """Options that are tried out."""

    inputs: str  # the name of a template or of features
    min_frequency: int
    order: int
    penalty: str
    strength: float

    @property
    def group(self) -> tuple[str, int, int, str]:
        """Return the options that candidates along one path share."""
        return self.inputs, self.min_frequency, self.order, self.penalty

    def __str__(self) -> str:
        return f"{self.inputs}, cut {self.min_frequency}, order {self.order}, {self.penalty} {self.strength:.3g}"


@dataclass(frozen=True)
class Trial:
    """A candidate that was trained on a share of the training set, and its score on what was held out."""

    candidate: Candidate
    share: float
    score: float
    seconds: float
    iterations: int
    weights: int  # that are not zero
    measure: str  # of the score: "F1" or "accuracy"


@dataclass(frozen=True)
class Space:
    """The candidates of a search: inputs, frequency cuts and orders, with a range of strengths each."""

    inputs: Mapping[str, Mapping[str, Any]]
    cuts: Sequence[int] = (1, 2, 3)
    orders: Sequence[int] = (1,)
    strengths: Mapping[str, tuple[float, float]] = field(default_factory=lambda: {"l2": (0.03, 10.0)})

    def check(self) -> None:
        """Raise ParameterError if there is nothing to choose from, or a range is not one."""
        for name in ("inputs", "cuts", "orders", "strengths"):
            if not getattr(self, name):
                raise ParameterError(f"there are no {name} to choose from")
        for name, (low, high) in self.strengths.items():
            if name not in PENALTIES:
                raise ParameterError(f"the penalty {name!r} cannot be tuned; choose from {', '.join(PENALTIES)}")
            if not 0 < low <= high < np.inf:
                raise ParameterError(f"the strengths of {name} are {low} to {high}; expected 0 < low <= high")

    def outward(self, candidate: Candidate) -> float | None:
        """Return the factor that leads out of the range of strengths if the candidate is at an end of it, else None."""
        low, high = self.strengths[candidate.penalty]
        if low == high:
            return None
        place = np.log(candidate.strength / low) / np.log(high / low)
        return 1.0 / STEP_BEYOND if place < EDGE else STEP_BEYOND if place > 1.0 - EDGE else None

    def draw(self, n: int, seed: int) -> list[Candidate]:
        """Return n different candidates; strengths are spread evenly over their range on a logarithmic scale."""
        rng = np.random.default_rng(seed)
        groups = [
            (name, int(cut), int(order), penalty)
            for name in self.inputs
            for cut in self.cuts
            for order in self.orders
            for penalty in self.strengths
        ]
        # Each group gets its turn before any gets a second one; strengths of a group are stratified.
        of = [groups[k] for _ in range(-(-n // len(groups))) for k in rng.permutation(len(groups))][:n]
        found = []
        for group, members in groupby(sorted(of)):
            count = len(list(members))
            low, high = self.strengths[group[3]]
            places = (np.arange(count) + rng.random(count)) / count
            name, cut, order, penalty = group
            found += [Candidate(name, cut, order, penalty, float(low * (high / low) ** x)) for x in places]
        return found


@dataclass(frozen=True)
class Tuning:
    """The outcome of a search: every trial, the best candidate, its score and its model."""

    trials: Sequence[Trial]
    best: Trial
    model: ChainModel
    space: Space

    @property
    def measure(self) -> str:
        """Return what the scores are: "F1" or "accuracy"."""
        return self.best.measure

    @property
    def remarks(self) -> list[str]:
        """Return which of the best options lie at the end of what was searched."""
        chosen, found = self.best.candidate, []
        low, high = self.space.strengths[chosen.penalty]
        if (factor := self.space.outward(chosen)) is not None:
            further = [t for t in self.trials if t.candidate.group == chosen.group and t.share == self.best.share]
            extreme = (min if factor < 1 else max)(t.candidate.strength for t in further)
            place = "at an end of" if low <= chosen.strength <= high else "beyond"
            advice = (
                "scores still rose there: search a wider range"
                if extreme == chosen.strength
                else f"{extreme:.3g} was tried, too, and is not better"
            )
            strength = f"{chosen.penalty} {chosen.strength:.3g}"
            found.append(f"the best strength, {strength}, is {place} its range, {low:g} to {high:g}; {advice}")
        if len(self.space.cuts) > 1 and chosen.min_frequency == max(self.space.cuts):
            found.append(f"the best frequency cut, {chosen.min_frequency}, is the largest that was tried")
        return found

    def __str__(self) -> str:
        return trial_table(self.trials)


def trial_table(trials: Sequence[Trial]) -> str:
    """Return trials as a table, the best first."""
    rows = sorted(trials, key=lambda trial: (-trial.share, -trial.score))
    width = max(len(row.candidate.inputs) for row in rows)
    head = f"{rows[0].measure:>8}   share  {'features':<{width}}  cut  order  penalty            weights  seconds"
    lines = [
        f"{100 * row.score:8.2f}  {row.share:6.0%}  {row.candidate.inputs:<{width}}  "
        f"{row.candidate.min_frequency:3d}  {row.candidate.order:5d}  "
        f"{f'{row.candidate.penalty} {row.candidate.strength:.4g}':<16}  {row.weights:8,d}  {row.seconds:7.1f}"
        for row in rows
    ]
    return "\n".join([head, *lines])


@dataclass(frozen=True)
class Tuner:
    """Searches a space for the options of a tagger that does best on held-out sentences."""

    training: ChainTraining  # options that are not searched
    space: Space
    files: Sequence[ColumnFile]
    dev: ColumnFile | None = None  # None: folds of the training set
    folds: int = 5
    method: str = "halving"  # or "random"
    trials: int = 20
    seed: int = 0

    def check(self) -> None:
        self.space.check()
        for name, least in (("trials", 1), ("folds", 2)):
            if getattr(self, name) < least:
                raise ParameterError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if self.method not in ("halving", "random"):
            raise ParameterError(f"the method must be halving or random, not {self.method!r}")
        for name in self.space.inputs:
            for order in self.space.orders:
                self._training(Candidate(name, 1, order, "l2", 1.0)).check()

    def run(self, watch: Callable[[Trial, int, int], None] | None = None) -> Tuning:
        """Return the outcome; `watch` sees each trial, how many there were and how many there will be."""
        self.check()
        search = _Search(self, watch)
        with using_threads(count_threads(self.training.n_threads)):
            candidates = self.space.draw(self.trials, self.seed)
            rungs = _rungs(len(candidates)) if self.method == "halving" else [1.0]
            search.total = _planned(len(candidates), rungs)
            for k, share in enumerate(rungs):
                trials = search.rung(candidates, share)
                if k + 1 < len(rungs):
                    trials.sort(key=lambda trial: -trial.score)
                    candidates = [trial.candidate for trial in trials[: max(1, len(trials) // FACTOR)]]
            best = self._beyond(search, max(trials, key=lambda trial: trial.score))
            model = search.model_of(best.candidate)
        record = {"tuned": {"score": best.score, "measure": best.measure, "trials": len(search.done)}}
        return Tuning(tuple(search.done), best, replace(model, training={**model.training, **record}), self.space)

    def _beyond(self, search: _Search, best: Trial) -> Trial:
        """Return the best trial after strengths beyond the end of the range at which it may be."""
        factor = self.space.outward(best.candidate)
        for _ in range(MOST_BEYOND if factor is not None else 0):
            assert factor is not None
            candidate = replace(best.candidate, strength=best.candidate.strength * factor)
            search.total += 1
            (trial,) = search.rung([candidate], best.share)
            if trial.score <= best.score:
                break
            best = trial
        return best

    def _training(self, candidate: Candidate) -> ChainTraining:
        return replace(
            self.training,
            penalty=PENALTIES[candidate.penalty](candidate.strength),
            min_frequency=candidate.min_frequency,
            order=candidate.order,
            **self.space.inputs[candidate.inputs],
        )


class _Search:
    """The trials of a run, and what they share."""

    def __init__(self, tuner: Tuner, watch: Callable[[Trial, int, int], None] | None) -> None:
        self.tuner, self.watch = tuner, watch
        self.done: list[Trial] = []
        self.total = 0
        self._models: dict[Candidate, ChainModel] = {}
        self._corpus = lru_cache(maxsize=2)(self._encode)

    def rung(self, candidates: Sequence[Candidate], share: float) -> list[Trial]:
        """Train all candidates on a share of the training set."""
        trials = []
        ordered = sorted(candidates, key=lambda c: (c.group, -c.strength))
        for _, members in groupby(ordered, key=lambda c: c.group):
            starts: dict[int, Floats] = {}  # by fold
            for candidate in members:
                trial = self._try(candidate, share, starts)
                trials.append(trial)
                self.done.append(trial)
                if self.watch is not None:
                    self.watch(trial, len(self.done), self.total)
        return trials

    def _encode(self, inputs: str, cut: int) -> tuple[TaggedCorpus, Any, Any]:
        """Return the training set, the weights of its sequences, and the development set with its labels."""
        training = self.tuner._training(Candidate(inputs, cut, 1, "l2", 1.0))
        corpus, weights = training.learn_files(self.tuner.files)
        dev = self.tuner.dev
        return corpus, weights, None if dev is None else encode_held_out(corpus.vocabulary, dev)

    def _splits(self, corpus: TaggedCorpus, held_out: Any, share: float) -> list[tuple[Ints, SequenceData, Any]]:
        """Return (sequences to train on, data to score on, their labels) of every fold."""
        n = len(corpus.data)
        order = np.random.default_rng([self.tuner.seed, 1]).permutation(n)
        if held_out is not None:
            return [(order[: max(1, round(share * n))], *held_out)]
        folds = self.tuner.folds
        if n < folds:
            raise ParameterError(f"{n} sequences cannot be split into {folds} folds; give a development set")
        assert corpus.data.labels is not None
        names = corpus.classes.tolist()
        splits = []
        for k in range(folds):
            inside = np.delete(order, np.s_[k::folds])
            part = corpus.data.take(np.sort(order[k::folds]))
            gold = [[names[j] for j in row] for row in part.split(part.labels)]  # type: ignore[arg-type]
            splits.append((inside[: max(1, round(share * len(inside)))], part, gold))
        return splits

    def _try(self, candidate: Candidate, share: float, starts: dict[int, Floats]) -> Trial:
        begin = time.perf_counter()
        corpus, weights, held_out = self._corpus(candidate.inputs, candidate.min_frequency)
        training = self.tuner._training(candidate)
        scores, iterations, kept, measure = [], 0, 0, "F1"
        for k, (ids, data, gold) in enumerate(self._splits(corpus, held_out, share)):
            part = replace(corpus, data=corpus.data.take(np.sort(ids)))
            own = None if weights is None else np.asarray(weights)[np.sort(ids)]
            problem = training.make_problem(part, own)
            if isinstance(problem.loss, CandidateChain):
                raise ParameterError(f"{problem.solver.name} selects attributes, which tuning cannot do; use auto")
            judge = Development(data, gold, part.classes.tolist(), problem.field, 1, training.n_threads)
            measure = "F1" if judge.name == "dev_f1" else "accuracy"
            w0 = starts.get(k, np.zeros(problem.field.size))
            result = problem.solver.minimize(problem.loss, problem.penalty.bind(problem.loss), w0)
            if result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            starts[k] = result.w
            scores.append(judge.score(result.w))
            iterations += result.iterations
            kept += int(np.count_nonzero(result.w))
            if held_out is not None and share == 1.0:
                self._keep(candidate, scores[-1], training.model_of(problem, result))
        score = float(np.mean(scores))
        return Trial(candidate, share, score, time.perf_counter() - begin, iterations, kept // len(scores), measure)

    def _keep(self, candidate: Candidate, score: float, model: ChainModel) -> None:
        """Keep the model if no other is better: one at a time."""
        if not self._models or score > self._score:
            self._models, self._score = {candidate: model}, score

    def model_of(self, candidate: Candidate) -> ChainModel:
        """Return the model of a candidate, trained on the whole training set."""
        if candidate in self._models:
            return self._models[candidate]
        corpus, weights, _ = self._corpus(candidate.inputs, candidate.min_frequency)
        model, result = self.tuner._training(candidate).run(corpus, weights)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return model

    _score = -1.0


def _rungs(n: int) -> list[float]:
    """Return the shares of the training set that the rounds of successive halving see."""
    rounds = 1
    while FACTOR**rounds <= n and rounds < 4:
        rounds += 1
    return [float(FACTOR) ** (k - rounds + 1) for k in range(rounds)]


def _planned(n: int, rungs: Sequence[float]) -> int:
    total = 0
    for _ in rungs:
        total += n
        n = max(1, n // FACTOR)
    return total
