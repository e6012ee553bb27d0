"""``crfkit-wapiti train``: data and patterns to a Wapiti model, with crfkit's solvers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from crfkit._types import Ids
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import TaggedCorpus, learn, learn_file
from crfkit.chain.model.model import ChainModel
from crfkit.compat.wapiti.data import Encoding, read_whole
from crfkit.compat.wapiti.progress import Progress
from crfkit.compat.wapiti.update import compact
from crfkit.convert.wapiti import from_wapiti, to_wapiti
from crfkit.convert.wapiti_model import WapitiModel
from crfkit.errors import DataError, TemplateWarning
from crfkit.files.columns import ColumnFile
from crfkit.penalties import L1, L2, ElasticNet
from crfkit.result import Result, Status
from crfkit.text.template import Template

Say = Callable[[str], None]
ALGORITHMS = ("l-bfgs", "sgd-l1", "bcd", "rprop", "rprop+", "rprop-")
UNLIMITED = 2**31 - 1


@dataclass(frozen=True)
class TrainOptions:
    """The options of `train`; the comments have Wapiti's names."""

    algorithm: str = "l-bfgs"  # -a
    rho1: float = 0.5  # -1
    rho2: float = 0.0001  # -2
    max_iterations: int = 0  # -i; 0: no limit
    objective_window: int = 5  # -o
    error_window: int = 5  # -w
    eps: float = 0.02  # -e
    threads: int = 1  # -t
    history: int | None = None  # --histsz
    step_size: float | None = None  # --eta0
    compact: bool = False  # -c


@dataclass(frozen=True)
class Source:
    """An open file and its name."""

    stream: BinaryIO
    name: str


def train(
    options: TrainOptions,
    data: Source,
    patterns: Path | None,
    devel: Source | None,
    start: WapitiModel | None,
    say: Say,
) -> WapitiModel:
    """Train a model and return it; report progress as Wapiti does."""
    from crfkit.chain.training.train import ChainTraining

    before = from_wapiti(start, keep_all=True) if start is not None else None
    template = before.vocabulary.template if before is not None else None
    if patterns is not None:
        say("* Load patterns\n")
        added = _patterns(patterns)
        template = added if template is None else Template(f"{template.text}\n{added.text}", None, "wapiti")
    say("* Load training data\n")
    corpus = _corpus(data, template, before if patterns is None else None)
    _say_loaded(len(corpus.data), say)
    if before is not None:
        corpus = _with_labels_of(corpus, before)
    assert corpus.data.labels is not None
    judged, gold = corpus.data, corpus.data.labels
    if devel is not None:
        say("* Load development data\n")
        judged, gold = _encoded(corpus, devel)
        _say_loaded(len(judged), say)
    say("* Initialize the model\n" if before is None else "* Resync the model\n")
    observations = to_wapiti(_empty(corpus))
    _summarise(corpus, judged if devel is not None else None, observations, say)
    _say_solver(options, say)
    training = ChainTraining(
        _penalty(options),
        _solver(options),
        all_possible_states=True,
        all_possible_transitions=True,
        n_threads=options.threads,
    )
    window = 0 if options.algorithm == "sgd-l1" else options.objective_window
    progress = Progress(judged, gold, options.threads, say, options.error_window, window, options.eps)
    # with all attributes, as Wapiti has them: its progress and its model files count those without a weight as well
    problem = training.make_problem(corpus, known_labels=() if before is None else before.class_list)
    model, result = training.solve(problem, [progress], start=before)
    _warn(result, say)
    return _finished(model, observations, say if options.compact else None)


# --- data


def _patterns(path: Path) -> Template:
    return Template.read(path, "wapiti", advice="convert it to UTF-8")


def _corpus(source: Source, template: Template | None, frozen: ChainModel | None) -> TaggedCorpus:
    """Return the training set: with the observations of `frozen`, or with all that occur; labels as they appear."""
    if frozen is not None:
        empty = TaggedCorpus(frozen.vocabulary, _no_data(), frozen.classes)
        data, gold = _encoded(empty, source, strict=True)
        return replace(empty, data=replace(data, labels=gold))
    if template is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TemplateWarning)  # Wapiti's patterns share observations on purpose
            file = ColumnFile(source.stream, format="columns")
            file.carriage_returns = False
            return _as_they_appear(learn_file(file, template, 1, loose=True))
    batch = read_whole(source.stream)
    X = [[row[:-1] for row in rows] for rows in batch.cells]
    y = batch.label_texts(source.name)
    try:
        return _as_they_appear(learn(X, y, None, 1, prefixed=True))
    except DataError as error:
        raise DataError(str(error), source.name) from None


def _as_they_appear(corpus: TaggedCorpus) -> TaggedCorpus:
    """Return the corpus with labels numbered in the order of their first occurrence, as in Wapiti."""
    labels = corpus.data.labels
    assert labels is not None
    present, first = np.unique(labels, return_index=True)
    order = present[np.argsort(first)]
    rank = np.empty(len(corpus.classes), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return replace(corpus, data=replace(corpus.data, labels=rank[labels]), classes=corpus.classes[order])


def _encoded(corpus: TaggedCorpus, source: Source, strict: bool = False) -> tuple[SequenceData, Ids]:
    """Return a file encoded with the corpus's observations, and its labels (−1: unknown; an error if `strict`)."""
    batch = read_whole(source.stream)
    if not batch.lines:
        raise DataError("the file has no sequences", source.name)
    rows = batch.labels({str(label).encode(): i for i, label in enumerate(corpus.classes.tolist())})
    for n, row in enumerate(rows if strict else []):
        if -1 in row:
            t = row.index(-1)
            label = batch.cells[n][t][-1].decode("utf-8", "replace")
            raise DataError(
                f"the label {label!r} is not one of the model that training starts from", source.name, batch.line(n, t)
            )
    labels = np.array(list(chain.from_iterable(rows)), dtype=np.int32)
    return Encoding(corpus.vocabulary, source.name, True)(batch), labels


def _no_data() -> SequenceData:
    return SequenceData(np.zeros(1, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32))


def _with_labels_of(corpus: TaggedCorpus, before: ChainModel) -> TaggedCorpus:
    """Return the corpus with the labels of an earlier model, also those that the data lack; none may be new."""
    new = set(corpus.classes.tolist()) - set(before.class_list)
    if new:
        raise DataError(f"the label {min(new)!r} is not one of the model that training starts from")
    labels = corpus.data.labels
    assert labels is not None
    rank = np.array([before.class_list.index(label) for label in corpus.classes.tolist()], dtype=np.int32)
    return replace(corpus, data=replace(corpus.data, labels=rank[labels]), classes=before.classes)


# --- what is minimised, and how


def _penalty(options: TrainOptions) -> L1 | L2 | ElasticNet:
    if options.algorithm == "sgd-l1":  # as in Wapiti, without the L2 part
        return L1(options.rho1)
    return ElasticNet.from_wapiti(options.rho1, options.rho2) if options.rho1 else L2(options.rho2)


def _solver(options: TrainOptions) -> Any:
    from crfkit.solvers import LBFGS, OWLQN, SGD, GradientNorm

    limit = options.max_iterations or UNLIMITED
    if options.algorithm == "sgd-l1":
        return SGD(GradientNorm(0.0), limit, step_size=options.step_size)
    kind: Any = OWLQN if options.rho1 else LBFGS
    memory = {} if options.history is None else {"memory": options.history}
    return kind(stopping=GradientNorm(1e-5), max_iterations=limit, **memory)


def _say_solver(options: TrainOptions, say: Say) -> None:
    say(f"* Train the model with {options.algorithm}\n")
    if options.algorithm in ("bcd", "rprop", "rprop+", "rprop-"):
        name = "OWL-QN" if options.rho1 else "L-BFGS"
        say(f"    - {name} minimises the same objective in place of {options.algorithm}\n")


def _warn(result: Result, say: Say) -> None:
    if result.status not in (Status.CONVERGED, Status.ROUNDING, Status.STOPPED_BY_CALLBACK, Status.MAX_ITERATIONS):
        say(f"warning: {result.status}\n")


# --- what is reported, and the model


def _say_loaded(n: int, say: Say) -> None:
    for count in range(1000, n + 1, 1000):
        say(f"{count:7d} sequences loaded\n")


def _summarise(corpus: TaggedCorpus, devel: SequenceData | None, observations: WapitiModel, say: Say) -> None:
    say(f"* Summary\n    nb train:    {len(corpus.data)}\n")
    if devel is not None:
        say(f"    nb devel:    {len(devel)}\n")
    say(
        f"    nb labels:   {len(corpus.classes)}\n"
        f"    nb blocks:   {len(observations.observations)}\n"
        f"    nb features: {int(observations.starts()[-1])}\n"
    )


def _empty(corpus: TaggedCorpus) -> ChainModel:
    """Return a model that has all observations and no weights."""
    from crfkit.chain.fields.field import ChainField

    v, none = corpus.vocabulary, np.empty(0, np.int32)
    n, pairs = len(v.attributes), len(v.pair_attributes)
    field = ChainField(
        len(corpus.classes),
        n,
        pairs,
        state_offsets=np.zeros(n + 1, np.int64),
        state_labels=none,
        transition_codes=none,
        pair_offsets=np.zeros(pairs + 1, np.int64),
        pair_codes=none,
    )
    return ChainModel(v, corpus.classes, field, np.empty(0))


def _finished(model: ChainModel, observations: WapitiModel, say: Say | None) -> WapitiModel:
    """Return the model with all observations, or without those that have no weights if there is one to tell."""
    from crfkit.chain.training.transfer import pruned

    small = to_wapiti(pruned(model))
    number = {name: i for i, name in enumerate(observations.observations)}
    owner = np.searchsorted(small.starts(), small.index, side="right") - 1
    place = np.array([number[name] for name in small.observations], dtype=np.int64)
    index = observations.starts()[place[owner]] + small.index - small.starts()[owner]
    order = np.argsort(index)
    whole = replace(observations, index=index[order], weights=small.weights[order])
    return whole if say is None else compact(whole, say)
