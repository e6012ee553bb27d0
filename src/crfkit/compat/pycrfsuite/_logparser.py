"""A parser of the messages that training sends, one line (or a part of one) at a time."""

from __future__ import annotations

import re
from collections import namedtuple
from fractions import Fraction

from crfkit._values import Entries

LabelScore = namedtuple("LabelScore", "match model ref precision recall f1")

_HEAD = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}\n")
_SECONDS = re.compile(r"Seconds required: (\d+\.\d+)")
_NUMBERS: tuple[tuple[str, re.Pattern[str], type], ...] = (
    ("loss", re.compile(r"Loss: (\d+\.\d+)"), float),
    ("feature_norm", re.compile(r"Feature norm: (\d+\.\d+)"), float),
    ("error_norm", re.compile(r"Error norm: (\d+\.\d+)"), float),
    ("active_features", re.compile(r"Active features: (\d+)"), int),
    ("linesearch_trials", re.compile(r"Line search trials: (\d+)"), int),
    ("linesearch_step", re.compile(r"Line search step: (\d+\.\d+)"), float),
    ("time", re.compile(r"Seconds required for this iteration: (\d+\.\d+)"), float),
)
_AVERAGE = re.compile(r"Macro-average precision, recall, F1: \((\d\.\d+), (\d\.\d+), (\d\.\d+)\)")
_ACCURACY = re.compile(r"(Item|Instance) accuracy: (\d+) / (\d+)")
_LABEL = re.compile(r"\s{4}(.+): \((\d+), (\d+), (\d+)\) \((\d\.\d+), (\d\.\d+), (\d\.\d+)\)")
_ABSENT = re.compile(r"\s{4}(.+): \((\d+), (\d+), 0\) \(\*{6}, \*{6}, \*{6}\)")


class TrainLogParser:
    """Collect the messages of a training so far.

    `feed` returns an event when a message completes one: "start", "featgen_progress", "featgen_end", "prepared",
    "prepare_error", "iteration", "optimization_end" or "end"; `last_log` is the text of the last event. `iterations`
    has a dict for each iteration, `last_iteration` is the last of them.

    >>> parser = TrainLogParser()
    >>> for line in ["Feature generation\\n", "Number of features: 7\\n", "Seconds required: 0.1\\n"]:
    ...     print(parser.feed(line))
    start
    None
    featgen_end
    >>> parser.featgen_num_features
    7
    """

    def __init__(self) -> None:
        self.state: str | None = None
        self.featgen_percent = -2
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[dict[str, object]] = []
        self.last_iteration: Entries | None = None
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []  # name, first line, line after the last

    def feed(self, line: str) -> str | None:
        """Take a message; return the event that it completes, if any."""
        self.log.append(line)
        if self.state is None:
            self.state = "STARTING"
            self._starting(line)
            self.events.append(("start", 0, len(self.log)))
            return "start"
        event: str | None = getattr(self, f"_{self.state.lower()}")(line)
        if event is not None:
            # these two are known only from the first line of what follows
            end = len(self.log) - (event in ("prepared", "optimization_end"))
            self.events.append((event, self.events[-1][2], end))
        return event

    @property
    def last_log(self) -> str:
        _, first, end = self.events[-1]
        return "".join(self.log[first:end])

    def _starting(self, line: str) -> None:
        if line.startswith("Feature generation"):
            self.state = "FEATGEN"

    def _featgen(self, line: str) -> str | None:
        if line == "." or line.isdecimal():
            self.featgen_percent += 2
            return "featgen_progress"
        if found := re.match(r"Number of features: (\d+)", line):
            self.featgen_num_features = int(found[1])
        elif found := _SECONDS.match(line):
            self.featgen_seconds = float(found[1])
            self.state = "AFTER_FEATGEN"
            return "featgen_end"
        return None

    def _after_featgen(self, line: str) -> str | None:
        if _HEAD.match(line):
            self.state = "ITERATION"
            self._iteration(line)
            return "prepared"
        if "terminated with error" in line:
            self.state = "AFTER_ITERATION"
            return "prepare_error"
        if line.startswith("Storing the model"):  # there was nothing to do
            self.state = "STORING"
            return "optimization_end"
        return None

    def _iteration(self, line: str) -> str | None:
        if found := _HEAD.match(line):
            self.last_iteration = {"num": int(found[1]), "scores": {}}
            self.iterations.append(self.last_iteration)
            return None
        if line == "\n":
            self.state = "AFTER_ITERATION"
            return "iteration"
        assert self.last_iteration is not None
        for key, pattern, kind in _NUMBERS:
            if found := pattern.match(line):
                self.last_iteration[key] = kind(found[1])
                return None
        self._score(line, self.last_iteration)
        return None

    def _score(self, line: str, iteration: Entries) -> None:
        """Take a line of the evaluation on the holdout group."""
        if found := _AVERAGE.match(line):
            iteration.update(zip(("avg_precision", "avg_recall", "avg_f1"), map(float, found.groups()), strict=True))
        elif found := _ACCURACY.match(line):
            share = Fraction(int(found[2]), int(found[3])) if int(found[3]) else Fraction(0)
            key = f"{found[1].lower()}_accuracy"
            iteration[key], iteration[f"{key}_float"] = share, float(share)
        elif found := _LABEL.match(line):
            counts, scores = map(int, found.groups()[1:4]), map(float, found.groups()[4:])
            iteration["scores"][found[1]] = LabelScore(*counts, *scores)
        elif found := _ABSENT.match(line):
            iteration["scores"][found[1]] = LabelScore(int(found[2]), int(found[3]), 0, None, None, None)

    def _after_iteration(self, line: str) -> str | None:
        if _HEAD.match(line):
            self.state = "ITERATION"
            return self._iteration(line)
        if found := re.match(r"Total seconds required for training: (\d+\.\d+)", line):
            self.training_seconds = float(found[1])
        elif line.startswith("Storing the model"):
            self.state = "STORING"
            return "optimization_end"
        return None

    def _storing(self, line: str) -> str | None:
        if line == "\n":
            return "end"
        if found := _SECONDS.match(line):
            self.storing_seconds = float(found[1])
        return None
