"""A training run: features, algorithm, log and model, in CRFsuite's order."""

from __future__ import annotations

import time
from collections.abc import Callable
from os import PathLike

import numpy as np

from crfkit._threads import count_threads, using_threads
from crfkit.chain.fields.field import ChainField
from crfkit.chain.model.model import ChainModel
from crfkit.compat.pycrfsuite._algorithms import MAKERS, NOTHING_TO_DO, Algorithm, LBFGSAlgorithm, SGDAlgorithm
from crfkit.compat.pycrfsuite._epochs import Say
from crfkit.compat.pycrfsuite._field import FeatureRules, active_model
from crfkit.compat.pycrfsuite._files import check_target, write_model
from crfkit.compat.pycrfsuite._holdout import Holdout
from crfkit.compat.pycrfsuite._instances import Instances, TrainingSet
from crfkit.compat.pycrfsuite._limits import thread_limit
from crfkit.compat.pycrfsuite._parameters import FEATURES, Parameters
from crfkit.result import Result, Status
from crfkit.solvers.parts.loop import Iteration


def train(instances: Instances, given: Parameters, path: str | PathLike[str], holdout: int, say: Say) -> None:
    """Train on the instances outside the group `holdout` and write the model to `path`, unless that is empty."""
    check_target(path)
    if holdout >= 0:
        say(f"Holdout group: {holdout + 1}\n")
        say("\n")
    begun = time.perf_counter()
    say("Feature generation\n")
    say("type: CRF1d\n")
    for parameter in FEATURES:
        value = given[parameter.name]
        say(f"{parameter.name}: {value:f}\n" if isinstance(value, float) else f"{parameter.name}: {int(value)}\n")
    for percent in range(0, 101, 2):
        say("." if percent % 10 else str(percent // 10))
    say("\n")
    training_set, field = _features(instances, given, holdout)
    say(f"Number of features: {0 if field is None else field.size}\n")
    say(f"Seconds required: {time.perf_counter() - begun:.3f}\n")
    say("\n")
    algorithm = MAKERS[given.algorithm](given, say)
    if training_set is None or field is None or field.size == 0:
        model = _untrained(algorithm, training_set, field)
    else:
        model = _run(algorithm, training_set, field)
    if not str(path):
        return
    begun = time.perf_counter()
    n_weights, n_attributes = (0, 0) if model is None else (len(model.w), len(model.vocabulary.attributes))
    n_labels = len(instances.labels)
    say("Storing the model\n")
    say(f"Number of active features: {n_weights} ({0 if field is None else field.size})\n")
    say(f"Number of active attributes: {n_attributes} ({0 if training_set is None else training_set.n_attributes})\n")
    say(f"Number of active labels: {n_labels} ({n_labels})\n")
    write_model(model, path)
    for part in ("labels", "attributes", "feature references for transitions", "feature references for attributes"):
        say(f"Writing {part}\n")
    say(f"Seconds required: {time.perf_counter() - begun:.3f}\n")
    say("\n")


def _features(instances: Instances, given: Parameters, holdout: int) -> tuple[TrainingSet | None, ChainField | None]:
    """Return the training set and its features; None where there are no labels."""
    if not instances.labels:
        return None, None
    training_set = instances.training_set(holdout)
    rules = FeatureRules(
        all_possible_states=given["feature.possible_states"],
        all_possible_transitions=given["feature.possible_transitions"],
        min_feature_frequency=given["feature.minfreq"],
    )
    corpus = training_set.corpus
    return training_set, rules.make_field(corpus.data, corpus.vocabulary, corpus.classes.tolist())[0]


def _untrained(algorithm: Algorithm, training_set: TrainingSet | None, field: ChainField | None) -> ChainModel | None:
    """Say that there is nothing to train; return the model without weights."""
    say = algorithm.say
    n = 0 if training_set is None else len(training_set.corpus.data)
    for line in algorithm.introduction(n):
        say(line)
    if isinstance(algorithm, LBFGSAlgorithm):
        say(f"L-BFGS terminated with error code ({NOTHING_TO_DO})\n")
    elif isinstance(algorithm, SGDAlgorithm):
        say("Seconds required: 0.000\n")
        say("\n")
        say(f"SGD terminated with error code ({NOTHING_TO_DO})\n")
    else:
        say(f"Training terminated with error code ({NOTHING_TO_DO})\n")
    say("Total seconds required for training: 0.000\n")
    say("\n")
    if training_set is None or field is None:
        return None
    return active_model(training_set, field, np.zeros(field.size), {})


def _run(algorithm: Algorithm, training_set: TrainingSet, field: ChainField) -> ChainModel:
    """Train, with the messages of the algorithm."""
    say, corpus = algorithm.say, training_set.corpus
    rules = FeatureRules(n_threads=thread_limit(), precision="double")  # single floats would change steps and log lines
    loss = rules.make_loss(corpus.data, field)
    penalty = algorithm.penalty().bind(loss)
    solver = algorithm.solver(len(corpus.data))
    holdout = None
    if training_set.holdout is not None:
        holdout = Holdout(training_set.holdout, field, corpus.classes.tolist())
    for line in algorithm.introduction(len(corpus.data)):
        say(line)
    begun = time.perf_counter()
    with using_threads(count_threads(thread_limit())):
        result = solver.minimize(loss, penalty, np.zeros(field.size), [_reporter(algorithm, holdout)])
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    for line in algorithm.end(result):
        say(line)
    w = algorithm.weights(result)
    say(f"Total seconds required for training: {time.perf_counter() - begun:.3f}\n")
    say("\n")
    return active_model(training_set, field, w, _record(algorithm, result))


def _reporter(algorithm: Algorithm, holdout: Holdout | None) -> Callable[[Iteration], None]:
    """Return the callback that sends the messages of each iteration."""
    say = algorithm.say
    last = [0.0]  # seconds at the iteration before

    def report(iteration: Iteration) -> None:
        row = iteration.row
        if row.iteration == 0:
            if isinstance(algorithm, SGDAlgorithm):
                say(f"Seconds required: {time.perf_counter() - algorithm.begun:.3f}\n")
                say("\n")
            last[0] = row.seconds
            return
        say(f"***** {algorithm.heading} #{row.iteration} *****\n")
        for line in algorithm.progress(row, iteration.w):
            say(line)
        say(f"Seconds required for this iteration: {row.seconds - last[0]:.3f}\n")
        last[0] = row.seconds
        if holdout is not None:
            for line in holdout.report(iteration.w):
                say(line)
        say("\n")

    return report


def _record(algorithm: Algorithm, result: Result) -> dict[str, object]:
    return {
        "objective": result.objective,
        "value": result.value,
        "status": result.status.name,
        "iterations": result.iterations,
        "solver": algorithm.given.algorithm,
    }
