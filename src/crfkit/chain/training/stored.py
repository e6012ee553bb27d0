"""Training from files that do not fit into memory: encoded into blocks on disk, which every pass reads again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from crfkit._threads import count_threads, using_threads
from crfkit.chain.encoding.stored import BLOCK, store_files
from crfkit.chain.fields.united import united
from crfkit.chain.losses.stored import StoredChain
from crfkit.chain.model.model import ChainModel
from crfkit.chain.model.seen import Seen
from crfkit.chain.training.train import ChainTraining
from crfkit.chain.training.transfer import pruned
from crfkit.errors import ParameterError
from crfkit.files.columns import ColumnFile
from crfkit.protocols import Penalty
from crfkit.result import Result
from crfkit.solvers.auto import Auto
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.stochastic_start import sample_size
from crfkit.solvers.sgd import SGD, calibrate
from crfkit.training.defaults import chosen_solver
from crfkit.training.options import penalty_record

if TYPE_CHECKING:
    from crfkit.solvers.parts.loop import Callback


def fit_stored(
    training: ChainTraining,
    files: Sequence[ColumnFile],
    callbacks: Sequence[Callback] = (),
    block_bytes: int = BLOCK,
) -> tuple[ChainModel, Result]:
    """Return a model of files whose sequences need not fit into memory, and how training went.

    The solver is that of data in memory: by default stochastic epochs, then L-BFGS, whose evaluations read all blocks.
    The blocks lie in a temporary folder (TMPDIR names another place) and are removed at the end.
    """
    _check(training, block_bytes)
    with TemporaryDirectory(prefix="crfkit-") as folder, using_threads(count_threads(training.n_threads)):
        corpus = store_files(files, training.make_inputs(), training.min_frequency, Path(folder), block_bytes)
        classes = corpus.classes.tolist()
        v, seen, made = corpus.vocabulary, None, []
        for block in corpus.blocks:
            data = block.read()
            made.append(training.make_field(data, v, classes))
            own = Seen.of(data, len(v.attributes), len(v.pair_attributes))
            seen = own if seen is None else seen.plus(own)
            del data  # before the next block is read
        field, names = united(field for field, _ in made), made[0][1]
        if field.size == 0:
            raise ParameterError("no attribute is left and there are no transitions; lower min_frequency")
        precision = training.precision_of(sum(block.n_positions for block in corpus.blocks))
        loss = StoredChain(corpus.blocks, field, training.n_threads, precision)
        solver = training.make_solver()
        penalty = training.options.make_penalty(solver).bind(loss)
        if isinstance(solver, (SGD, Auto)) and solver.step_size is None:
            solver = replace(solver, step_size=_step_size(loss, penalty, solver))
        result = solver.minimize(loss, penalty, np.zeros(field.size), callbacks)
    record = {
        "objective": result.objective,
        "penalty": penalty_record(penalty),
        "value": result.value,
        "status": result.status.name,
        "iterations": result.iterations,
        "min_frequency": int(training.min_frequency),
        "solver": solver.name,
        "auto": dict(chosen_solver(solver, loss, penalty, result)),
        "precision": loss.used,
        **corpus.record,
    }
    threads = training.n_threads
    model = ChainModel(corpus.vocabulary, corpus.classes, field, result.w, record, threads, names, seen=seen)
    return (model if penalty.split()[1] is None else pruned(model)), result


def _check(training: ChainTraining, block_bytes: int) -> None:
    training.check()
    if block_bytes < 1:
        raise ParameterError(f"a block must have at least 1 byte, not {block_bytes}")
    wrong = {
        "loss": training.loss != "likelihood",
        "class_weight": training.class_weight is not None,
        "constraints='observed'": training.constraints == "observed",
    }
    refused = [name for name, given in wrong.items() if given]
    if refused:
        raise ParameterError(f"training from disk does not support {refused[0]}; use fit, or leave it out")


def _step_size(loss: StoredChain, penalty: Penalty, solver: SGD | Auto) -> float:
    """Return the step size that suits the first block, with its share of the penalty: trials read no other."""
    from crfkit.penalties import L2, ElasticNet

    block = loss.data.blocks[0]
    part = loss.part(block)
    share = len(block) / len(loss.data)
    whole = Objective(loss, penalty)
    own = Objective(part, L2(whole.l2 * share) if not whole.l1 else ElasticNet(whole.l1 * share, whole.l2 * share))
    sample = solver.sample if isinstance(solver, SGD) else sample_size(len(loss.data))
    return calibrate(part.online(), own, np.zeros(loss.size), sample, solver.seed)
