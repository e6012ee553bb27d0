"""A training set that the workers read and encode: the same attributes, numbers and weights as on one machine.

source → raw piece → counts ┐                    ┌ numbered piece → field ┐
source → raw piece → counts ┴ tree → numbering ──┴ numbered piece → field ┴ tree → field of the whole → shards

Every arrow is a Dask task, so Dask computes again what a lost worker had. The client sees names and counts, never
sequences.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from crfkit._types import Client, Future, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.pieces import Numbering, RawPiece, count, joined, numbered
from crfkit.chain.encoding.sequences import TaggedCorpus
from crfkit.chain.encoding.vocabulary import Inputs
from crfkit.chain.fields.constraints import ConstraintError
from crfkit.chain.fields.field import ChainField
from crfkit.chain.fields.united import united
from crfkit.chain.training.position_weights import weighted
from crfkit.chain.training.problem import Problem
from crfkit.chain.training.train import ChainTraining
from crfkit.distributed.chains import ChainParts, chain_part, shard_precision
from crfkit.distributed.cluster import Cluster, bounded, short
from crfkit.distributed.loss import ShardedLoss
from crfkit.distributed.shards import TIMED_OUT, Recipe, Shards
from crfkit.errors import ClusterError, CrfkitError, DataError, ParameterError
from crfkit.protocols import Loss

WATCH, PAUSE = 5.0, 0.01  # seconds between looks whether there are workers, and whether a task is done


@dataclass(frozen=True, eq=False)
class SourceParts:
    """The data that all shards share when workers read the sequences."""

    parts: ChainParts
    inputs: Inputs
    numbering: Numbering
    class_weight: object


def source_part(own: Any, shared: SourceParts, n_threads: int) -> tuple[Loss, Ints]:
    """Return the loss of a shard: of encoded sequences or, when it is made again, of the source that they came from."""
    if not isinstance(own, (SequenceData, RawPiece)):
        own = own.read(shared.inputs)
    data = numbered(own, shared.numbering) if isinstance(own, RawPiece) else own
    data = weighted(data, shared.class_weight, shared.numbering.classes.tolist())
    return chain_part(data, shared.parts, n_threads)


def encode(client: Client, cluster: Cluster, training: ChainTraining, sources: Sequence[Any], columns: bool) -> Problem:
    """Return the training problem of sources, whose loss lives on the workers. `columns` if they are column files."""
    _check(training)
    inputs = training.make_inputs()
    if inputs.template is not None:
        inputs.template.warn_of_clashes()
    workers = list(client.nthreads())

    def submit(function: Callable[..., object], *args: object, near: int | None = None) -> Future:
        where = {} if near is None else {"workers": [workers[near % len(workers)]], "allow_other_workers": True}
        return client.submit(function, *args, pure=False, **where)

    # partitions of Dask collections are Delayed, files are read by name
    own = [source.delayed(inputs) if hasattr(source, "delayed") else source for source in sources]
    raws = [
        submit(raw_piece, source, inputs, near=k) if own[k] is source else client.compute(own[k])
        for k, source in enumerate(sources)
    ]
    counts = _result(client, _tree(submit, joined, [submit(count, raw) for raw in raws]), cluster.timeout)
    try:
        numbering = Numbering.of(counts, inputs, training.min_frequency, columns)
    except DataError as error:
        raise error if error.path else DataError(str(error), counts.name or None) from None
    classes = numbering.classes.tolist()
    training.check_label_classes(classes)
    (everywhere,) = bounded(lambda: client.scatter([numbering], broadcast=True, hash=False), cluster.timeout)
    data = [submit(numbered, raw, everywhere) for raw in raws]
    del raws  # Dask makes them again if need be
    options = replace(training, penalty=None, solver="auto", template=None, features=None)
    named = [getattr(source, "name", "") for source in sources]
    some = [k for k, n in enumerate(np.diff([0, *counts.ends])) if n]  # a piece may be empty
    parts = [submit(_field, options, data[k], everywhere, named[k]) for k in some]
    field: ChainField = _result(client, _tree(submit, _both, parts), cluster.timeout)
    if field.size == 0:
        raise ParameterError("no attribute is left and there are no transitions; lower min_frequency")
    precision = shard_precision(training, counts.n_positions)
    shared = SourceParts(ChainParts.of(training, field, precision), inputs, numbering, training.class_weight)
    ends = (0, *counts.ends)
    recipes = [Recipe(source_part, own[k], ends[k], ends[k + 1], sources[k].name, ready=data[k]) for k in some]
    loss = ShardedLoss(Shards(client, recipes, shared, field.size, cluster), field, cluster.transport)
    solver = training.make_solver()
    corpus = TaggedCorpus(numbering.vocabulary, _nothing(), numbering.classes, record=counts.record)
    names, _ = training.classes_of(classes)
    return Problem(corpus, corpus.data, field, names, loss, training.options.make_penalty(solver), solver)


def raw_piece(source: Any, inputs: Inputs) -> RawPiece:
    """Read and encode a source, on a worker."""
    piece: RawPiece = source.read(inputs)
    return piece


def _field(options: ChainTraining, data: SequenceData, numbering: Numbering, name: str) -> ChainField:
    """Return the field of a piece, with the numbers of the whole."""
    try:
        return options.make_field(data, numbering.vocabulary, numbering.classes.tolist())[0]
    except ConstraintError as error:
        raise DataError(str(error), name) from None


def _both(first: ChainField, second: ChainField) -> ChainField:
    return united([first, second])


def _tree(submit: Callable[..., Future], join: Callable[[Any, Any], object], futures: list[Future]) -> Future:
    """Return the future of all joined, neighbours first."""
    while len(futures) > 1:
        futures = [
            first if second is None else submit(join, first, second)
            for first, second in zip_longest(futures[::2], futures[1::2])
        ]
    return futures[0]


def _result(client: Client, future: Future, timeout: float) -> Any:
    """Return the result of a task; crfkit errors unchanged, others as a ClusterError.

    A task may take as long as it needs while there are workers.
    """
    seen = time.monotonic()
    while not future.done():
        time.sleep(PAUSE)
        if time.monotonic() - seen > WATCH and _has_workers(client):
            seen = time.monotonic()
        elif time.monotonic() - seen > timeout:
            raise ClusterError(f"there have been no workers for {timeout:g} s; start some")
    try:
        return future.result(timeout=timeout)
    except CrfkitError:
        raise
    except Exception as error:
        memory = isinstance(error, MemoryError) or type(error).__name__ == "KilledWorker"
        hint = "; the workers may have too little memory" if memory else ""
        raise ClusterError(
            f"encoding failed on a worker: {type(error).__name__}: {short(error)}{hint}; see its log"
        ) from error


def _has_workers(client: Client) -> bool:
    try:
        return bool(bounded(client.nthreads, WATCH))
    except (OSError, *TIMED_OUT):
        return False


def _nothing() -> SequenceData:
    """Return data without sequences: they are on the workers."""
    none = np.zeros(1, dtype=np.int64)
    return SequenceData(none, none, np.zeros(0, dtype=np.int32), labels=np.zeros(0, dtype=np.int32))


def _check(training: ChainTraining) -> None:
    training.check()
    wrong = {
        "class_weight='balanced'": training.class_weight == "balanced",
        "constraints='observed'": training.constraints == "observed",
    }
    refused = [name for name, given in wrong.items() if given]
    if refused:
        raise ParameterError(
            f"training from files on a cluster does not support {refused[0]}; give the weights or pairs themselves, or "
            "train from lists"
        )
