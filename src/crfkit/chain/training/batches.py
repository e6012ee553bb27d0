"""Learning from batches that arrive one after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._threads import count_threads, using_threads
from crfkit._types import Floats
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import TaggedCorpus, learn, sorted_data
from crfkit.chain.encoding.vocabulary import joined_names
from crfkit.chain.encoding.weak_labels import Supervision
from crfkit.chain.fields.block import WeightBlock
from crfkit.chain.fields.field import ChainField
from crfkit.chain.model.model import ChainModel
from crfkit.chain.training.train import ChainTraining
from crfkit.chain.training.transfer import transfer, weight_codes
from crfkit.errors import DataError, ParameterError
from crfkit.labels import label_array, sort_labels
from crfkit.protocols import Capability
from crfkit.result import Result, Status
from crfkit.warn import warn_caller


@dataclass(frozen=True)
class PartialFit:
    """Between two batches: the weights that learning goes on from, and how far it has come."""

    current: ChainModel
    mean: ChainModel  # of the weights after each sequence, for solvers that average
    batches: int = 0
    sequences: int = 0
    step_size: float | None = None
    variances: Floats | None = None  # AROW's, of the current weights

    @classmethod
    def after(cls, model: ChainModel) -> PartialFit:
        """Return the state that continues from a model that was trained in another way."""
        return cls(model, model)


def learn_batch(
    training: ChainTraining,
    X: Iterable[Any],
    y: Iterable[Iterable[Any]],
    before: PartialFit | None,
    classes: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[ChainModel, Result, PartialFit]:
    """Return the model after one more batch of sequences, how learning went, and what the next batch needs.

    A batch on which learning diverges is left out, with a warning. Raise KeyboardInterrupt if Ctrl-C ended it.
    """
    training.check()
    check_online_solver(training)
    known = Supervision.of_labels(y)
    if known.partial or known.shares is not None:
        raise DataError("partial_fit needs one known label at each position; for None, sets or Annotations, use fit")
    corpus = learn(X, known.rows, training.make_inputs(), training.min_frequency, least_labels=1)
    model, result, after = partial_fit(training, corpus, before, list(classes or ()), sample_weight)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt(str(result.status))
    if result.status not in (Status.DIVERGED, Status.NON_FINITE):
        return model, result, after
    from sklearn.exceptions import ConvergenceWarning

    warn_caller(f"{result.status}; the batch is left out", ConvergenceWarning)
    kept = PartialFit.after(replace(model, w=np.zeros(len(model.w)))) if before is None else before
    return kept.mean, result, kept


def check_online_solver(training: ChainTraining) -> None:
    """Raise ParameterError if the solver cannot learn from one sequence at a time."""
    if not is_online(training):
        from crfkit.solvers import SOLVERS

        online = sorted(name for name, other in SOLVERS.items() if Capability.ONLINE in other.needs)
        name = training.make_solver().name
        raise ParameterError(f"partial_fit needs an online solver ({', '.join(online)}), not {name!r}")


def is_online(training: ChainTraining) -> bool:
    """Return whether the solver learns from one sequence at a time."""
    return Capability.ONLINE in training.make_solver(max_iterations=1).needs


def partial_fit(
    training: ChainTraining,
    corpus: TaggedCorpus,
    before: PartialFit | None,
    classes: Sequence[Any],
    sample_weight: ArrayLike | None,
) -> tuple[ChainModel, Result, PartialFit]:
    """Return the model after one epoch over the batch, how it went, and what the next batch needs."""
    old = before.current if before is not None else None
    corpus, data, field, names = merged_batch(training, corpus, old, classes, sample_weight)
    vocabulary = corpus.vocabulary
    loss = training.make_loss(data, field)
    solver = replace(training.make_solver(), max_iterations=1)
    labels = corpus.classes.tolist()

    def carried(model: ChainModel, values: Floats | None = None, default: float = 0.0) -> Floats:
        return transfer(model, vocabulary, labels, field, names, values, default)

    before = before if before is not None else PartialFit.after(_empty(corpus, field, names))
    seen = before.sequences + len(data)
    variances = None
    if before.variances is not None:
        variances = carried(before.current, before.variances, solver.variance)
    resume = {"solver": solver.name, "epoch": before.batches, "updates": before.sequences}
    if before.step_size is not None:
        resume["step_size"] = before.step_size
    if variances is not None:
        resume["variances"] = variances
    # The penalty belongs to all sequences seen so far; the batch takes its share of it.
    penalty = training.options.make_penalty(solver)
    with using_threads(count_threads(training.n_threads)):
        result = solver.minimize(loss, _share(penalty, len(data) / seen), carried(before.current), (), resume)
    record = {
        "objective": result.objective,
        "value": result.value,
        "status": result.status.name,
        "iterations": before.batches + 1,
        "solver": solver.name,
    }
    current = ChainModel(vocabulary, corpus.classes, field, result.state["w"], record, training.n_threads, names)
    w = result.w
    if solver.averaged and before.sequences:
        w = (before.sequences * carried(before.mean) + len(data) * w) / seen
    model = replace(current, w=w)
    kept = result.state.get("variances_by_weight")
    return model, result, PartialFit(current, model, before.batches + 1, seen, result.state.get("step_size"), kept)


def merged_batch(
    training: ChainTraining,
    corpus: TaggedCorpus,
    old: ChainModel | None,
    classes: Sequence[Any],
    sample_weight: ArrayLike | None,
) -> tuple[TaggedCorpus, SequenceData, ChainField, tuple[str, ...]]:
    """Return the batch, and the field with its names of classes, in the vocabulary of the old model and the batch."""
    if training.constraints == "observed":
        raise ParameterError(
            "constraints='observed' needs all data at once, as a batch does not show every transition that occurs: "
            "name the constraints, or use fit"
        )
    corpus = _in_company(corpus, old, classes)
    if len(corpus.classes) < 2:
        raise DataError("only one label so far; name the others in `classes`")
    data = corpus.data.with_weights(sample_weight)
    field, names = training.make_field(data, corpus.vocabulary, corpus.classes.tolist())
    if old is not None:
        field = _united(field, old, corpus.classes.tolist(), names)
    return corpus, data, field, names


def _empty(corpus: TaggedCorpus, field: ChainField, names: tuple[str, ...]) -> ChainModel:
    return ChainModel(corpus.vocabulary, corpus.classes, field, np.zeros(field.size), {}, None, names)


def _share(penalty: Any, part: float) -> Any:
    """Return the penalty multiplied by a number."""
    from crfkit.penalties import L2, ElasticNet

    smooth, rest = penalty.split()
    if smooth is None and rest is None:
        return penalty
    if any(other.strength is None for other in (smooth, rest) if other is not None):
        return penalty  # the solver will refuse it
    l2 = smooth.strength * part if smooth is not None else 0.0
    return L2(l2) if rest is None else ElasticNet(rest.strength * part, l2)


def _in_company(corpus: TaggedCorpus, old: ChainModel | None, classes: Sequence[Any]) -> TaggedCorpus:
    """Return the batch in the vocabulary of all batches so far: the old attributes first, then the new ones."""
    names = [*(old.class_list if old is not None else ()), *corpus.classes.tolist(), *classes]
    try:
        united = label_array(sort_labels(names))
    except DataError as error:
        raise ParameterError(f"the labels of all batches must be of one type: {error}") from None
    place = {label: i for i, label in enumerate(united.tolist())}
    data, v = corpus.data, corpus.vocabulary
    assert data.labels is not None
    labels = np.array([place[label] for label in corpus.classes.tolist()], dtype=np.int32)[data.labels]
    if old is None:
        return TaggedCorpus(v, data.with_labels(labels), united)
    widths = {width for width in (v.n_features, old.vocabulary.n_features) if width is not None}
    if v.hash_bits != old.vocabulary.hash_bits:
        raise ParameterError(
            f"hash_bits is {v.hash_bits}, but it was {old.vocabulary.hash_bits} in earlier batches; do not change it"
        )
    if v.kind != old.vocabulary.kind or len(widths) > 1:
        raise DataError(
            f"the batch has inputs of kind {v.kind!r} ({v.n_features} columns), but earlier ones had "
            f"{old.vocabulary.kind!r} ({old.vocabulary.n_features} columns)"
        )
    if v.text is not None and old.vocabulary.text is not None and not v.text.same_attributes(old.vocabulary.text):
        raise ParameterError("the text features differ from those of earlier batches; do not change them")
    attributes, rank = joined_names(old.vocabulary.attributes, v.attributes)
    pair_attributes, pair_rank = joined_names(old.vocabulary.pair_attributes, v.pair_attributes)
    arrays = (
        data.starts,
        data.offsets.copy(),
        data.attributes.copy(),
        None if data.values is None else data.values.copy(),
        None if data.pair_offsets is None else data.pair_offsets.copy(),
        None if data.pair_attributes is None else pair_rank[data.pair_attributes],
        labels,
    )
    merged = replace(v, attributes=attributes, pair_attributes=pair_attributes)
    return TaggedCorpus(merged, sorted_data(arrays, rank), united)


def _united(field: ChainField, old: ChainModel, classes: Sequence[Any], names: Sequence[str]) -> ChainField:
    """Return the field with the weights of the old model added; attributes keep their ids, labels their names."""
    L, before = field.n_labels, old.field
    label = np.array([classes.index(name) for name in old.class_list], dtype=np.int64)
    a, y = before.state_ids()
    b, i, j = before.pair_ids()
    earlier = {
        "state": weight_codes((a, label[y]), (L,)),
        "transition": weight_codes([label[of] for of in before.transition_ids()], (L,)),
        "pair": weight_codes((b, label[i], label[j]), (L, L)),
        "triple": weight_codes([label[of] for of in before.triple_ids()], (L, L)),
    }
    if before.n_class:
        place = np.array([names.index(name) if name in names else -1 for name in old.class_names], dtype=np.int64)
        of, c = before.class_ids()
        known = place[c] >= 0
        earlier["class"] = of[known].astype(np.int64) * field.n_classes + place[c[known]]
    blocks = {}
    for name, keys in earlier.items():
        block = field.blocks[name]
        if not block.complete:
            blocks[name] = WeightBlock.of_keys(block.n, block.width, np.union1d(block.keys, keys))
    return field.with_blocks(**blocks)
