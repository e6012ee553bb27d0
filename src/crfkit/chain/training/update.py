"""Further training of a chain model without the data that it was trained on.

The old data are represented by the old weights, which minimise their penalised loss, and by the curvature of that loss.
The curvature of a weight is estimated on the new data and multiplied by how much more often the old data have its
attribute, which the model records. Weights that many old sentences support therefore move little, and those of new or
rare attributes are free (Laplace's approximation with a diagonal Hessian; Kirkpatrick et al. 2017).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._threads import count_threads, using_threads
from crfkit._types import Flags, Floats, Ids
from crfkit.chain.encoding.sequences import TaggedCorpus, learn
from crfkit.chain.encoding.weak_labels import Supervision
from crfkit.chain.fields.part import FieldPart
from crfkit.chain.losses.anchored import Anchored
from crfkit.chain.losses.likelihood import ChainLikelihood
from crfkit.chain.model.model import ChainModel
from crfkit.chain.model.seen import Seen
from crfkit.chain.training.batches import merged_batch
from crfkit.chain.training.screening import l1_strengths
from crfkit.chain.training.train import ChainTraining
from crfkit.chain.training.transfer import pruned, transfer
from crfkit.errors import DataError, ParameterError
from crfkit.protocols import Penalty
from crfkit.result import Result
from crfkit.solvers.parts.loop import Callback
from crfkit.training.options import penalty_record, recorded_penalty

# L-BFGS from the old weights: by this power of the diagonal, a quarter of the iterations on two corpora (12 pairs each)
MEMORY, POWER = 12, 0.8

ONE_LABEL = (
    "an update needs the likelihood and one known label at each position; for None, sets or other losses, use fit"
)


def learn_further(
    training: ChainTraining,
    X: Iterable[Any],
    y: Iterable[Iterable[Any]],
    old: ChainModel,
    sample_weight: ArrayLike | None = None,
    callbacks: Sequence[Callback] = (),
) -> tuple[ChainModel, Result]:
    """Return :func:`update` of sequences that are not encoded."""
    training.check()
    known = Supervision.of_labels(y)
    if known.partial or known.shares is not None:
        raise DataError(ONE_LABEL)
    corpus = learn(X, known.rows, training.make_inputs(), training.min_frequency, least_labels=1)
    return update(training, corpus, old, sample_weight, callbacks)


def update(
    training: ChainTraining,
    corpus: TaggedCorpus,
    old: ChainModel,
    sample_weight: ArrayLike | None = None,
    callbacks: Sequence[Callback] = (),
) -> tuple[ChainModel, Result]:
    """Return the old model, trained further on these sequences, and how training went.

    Without a penalty in the options, it is the one that the old model was trained with.
    """
    problem = update_problem(training, corpus, old, sample_weight)
    solver = training.make_solver()
    if solver.name == "auto":  # it may begin with stochastic epochs, which know nothing of the old data
        if problem.penalty.split()[1] is None:
            options = {"memory": MEMORY, "preconditioned": True, "power": POWER}
            solver = replace(training, solver="lbfgs").make_solver(**options)
        else:
            solver = replace(training, solver="owlqn").make_solver()
    with using_threads(count_threads(training.n_threads)):
        result = solver.minimize(problem.loss, problem.penalty, problem.loss.anchor, callbacks)
    w = problem.w0.copy()
    w[problem.part.places] = result.w
    record = {
        "objective": f"update of {old.training.get('objective', 'a model')}"[:1000],
        "penalty": problem.recorded,
        "value": result.value,
        "status": result.status.name,
        "iterations": result.iterations,
        "solver": solver.name,
    }
    corpus, field, seen = problem.corpus, problem.part.whole, problem.seen
    names, threads = problem.class_names, training.n_threads
    model = ChainModel(corpus.vocabulary, corpus.classes, field, w, record, threads, names, seen=seen)
    return (model if problem.penalty.split()[1] is None else pruned(model)), result


@dataclass(frozen=True, eq=False)
class UpdateProblem:
    """The loss and penalty of an update, over the weights of the attributes that the new sequences have."""

    corpus: TaggedCorpus  # the new sequences, in the vocabulary of both
    class_names: tuple[str, ...]
    w0: Floats  # the old weights, in the field of both
    part: FieldPart  # the weights that can change, of the field of both
    loss: Anchored
    penalty: Penalty
    recorded: dict[str, float] | None  # the penalty in the record of the model
    seen: Seen  # in old and new sequences


def update_problem(
    training: ChainTraining, corpus: TaggedCorpus, old: ChainModel, sample_weight: ArrayLike | None = None
) -> UpdateProblem:
    """Return the loss and the penalty whose minimum is the updated model."""
    if old.seen is None:
        raise ParameterError(
            "the model does not record how often its attributes occurred, so an update cannot weigh old against new "
            "sequences; give an online solver such as asgd, or train again on all data"
        )
    if training.loss != "likelihood":
        raise ParameterError(ONE_LABEL)
    if training.penalty is None:
        training = replace(training, penalty=recorded_penalty(old.training))
    corpus, data, field, names = merged_batch(training, corpus, old, (), sample_weight)
    labels = corpus.classes.tolist()
    w0 = transfer(old, corpus.vocabulary, labels, field, names)
    before = old.seen.extended(field.n_attributes, field.n_pair_attributes)
    now = Seen.of(data, field.n_attributes, field.n_pair_attributes)
    # Weights of other attributes have no gradient, so they keep their values.
    part = FieldPart.of_attributes(field, now.attributes > 0, now.pair_attributes > 0)
    loss = training.make_loss(part.data(data), part.field)
    if type(loss) is not ChainLikelihood:
        raise ParameterError(ONE_LABEL)
    anchor, old_labels = w0[part.places], set(old.class_list)
    fresh = np.array([label not in old_labels for label in labels])
    ratios = _ratios(before, now, part, fresh)
    here = loss.at(anchor)
    penalty = training.options.make_penalty(training.make_solver())
    bound = penalty.bind(loss)
    pull = _gradient(penalty, bound, part.field.layout, anchor)
    anchored = Anchored(loss, anchor, np.asarray(here.hess_diag()) * ratios, pull)
    return UpdateProblem(corpus, names, w0, part, anchored, bound, penalty_record(penalty), before.plus(now))


def _ratios(before: Seen, now: Seen, part: FieldPart, fresh: Flags) -> Floats:
    """Return how many times more often the old data have the attribute of each weight; 0 for weights of new labels."""
    field = part.field
    own = before.attributes[part.attributes] / now.attributes[part.attributes]
    pair = before.pair_attributes[part.pair_attributes] / now.pair_attributes[part.pair_attributes]
    found = np.full(field.size, before.positions / now.positions)
    attributes, labels = field.state_ids()
    found[field.layout["state"]] = own[attributes] * _of_old_labels([labels], fresh)
    pairs, previous, following = field.pair_ids()
    found[field.layout["pair"]] = pair[pairs] * _of_old_labels([previous, following], fresh)
    if field.n_class:
        found[field.layout["class"]] = own[field.class_ids()[0]]
    for block, named in (("transition", field.transition_ids()), ("triple", field.triple_ids())):
        found[field.layout[block]] *= _of_old_labels(named, fresh)
    return found


def _of_old_labels(labels: Sequence[Ids], fresh: Flags) -> Flags:
    """Return which weights, named by labels, are of labels that the old data had."""
    found: Flags = ~np.any([fresh[label] for label in labels], axis=0)
    return found


def _gradient(given: Penalty, bound: Penalty, layout: Mapping[str, slice], w: Floats) -> Floats:
    """Return a subgradient of the penalty at w: that of its smooth part, and of L1 where w is not zero."""
    found = np.zeros(len(w))
    smooth = bound.split()[0]
    if smooth is not None:
        smooth.add_gradient(w, found)
    for block, strength in l1_strengths(given, layout).items():
        found[layout[block]] += strength * np.sign(w[layout[block]])
    return found
