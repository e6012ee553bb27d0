"""`crfkit-learn`: CRF++'s crf_learn with crfkit underneath."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crfkit.cli.runtime.running import run
from crfkit.cli.runtime.signals import load_native
from crfkit.compat.arguments import integer, number
from crfkit.compat.crfpp.options import FAILURE, Parser, banner, version
from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.chain.encoding.sequences import TaggedCorpus
    from crfkit.chain.model.model import ChainModel
    from crfkit.protocols import Penalty, Solver
    from crfkit.result import Status

ALGORITHMS = ("crf", "crf-l2", "crf-l1", "mira")


def parser() -> Parser:
    p = Parser(
        "crfkit-learn",
        "crfkit-learn [options] TEMPLATE TRAIN MODEL\n       crfkit-learn -C TEXTMODEL MODEL",
        "Train a sequence tagger as crf_learn of CRF++ does. MODEL is a model file of crfkit.",
    )
    add = p.add_argument
    add(
        "-f",
        "--freq",
        type=integer,
        default=1,
        metavar="INT",
        help="use features that occur at least INT times (default: 1)",
    )
    add(
        "-m",
        "--maxiter",
        type=integer,
        default=100_000,
        metavar="INT",
        help="maximum number of evaluations (default: 100000)",
    )
    add(
        "-c",
        "--cost",
        type=number,
        default=1.0,
        metavar="FLOAT",
        help="cost C: the L2 penalty is ‖w‖²/(2C) (default: 1.0)",
    )
    add(
        "-e",
        "--eta",
        type=number,
        default=1e-4,
        metavar="FLOAT",
        help="stop below this relative change (default: 0.0001)",
    )
    p.add_argument("-C", "--convert", action="store_true", help="convert a CRF++ text model to a crfkit model")
    p.add_argument("-t", "--textmodel", action="store_true", help="also write MODEL.txt, a CRF++ text model")
    p.add_argument("-a", "--algorithm", default="CRF", metavar="NAME", help="CRF-L2 (the default), CRF-L1 or MIRA")
    add("-p", "--thread", type=integer, default=0, metavar="INT", help="number of threads (default: all cores)")
    add("-H", "--shrinking-size", type=integer, default=20, metavar="INT", help="shrinking size of MIRA (default: 20)")
    p.add_argument("-R", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("-v", "--version", action="store_true", help="show the version and exit")
    return p


def learn(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    p = parser()
    given = sys.argv[1:] if arguments is None else arguments
    options = p.parse(given)
    if options.version:
        print(version())
        return 0
    if options.help or not given:
        print(p.format_help())
        return 0
    needed = ("TEXTMODEL", "MODEL") if options.convert else ("TEMPLATE", "TRAIN", "MODEL")
    if len(options.files) != len(needed):
        raise ParameterError(
            f"expected {len(needed)} files, {' '.join(needed)}, but got {len(options.files)} ({p.prog} --help)"
        )
    load_native()
    return _convert(options) if options.convert else _train(options)


def _convert(options: argparse.Namespace) -> int:
    from crfkit.compat.crfpp.lines import BYTES
    from crfkit.convert import crfpp, kinds, model_kind
    from crfkit.errors import EncodingError

    source, target = options.files
    kind = model_kind(source)
    if kind is not None and kind not in (kinds.CRFPP, kinds.CRFPP_TEXT):
        raise ParameterError(
            f"{source} is a model of {kind}, but -C converts CRF++ models; crfkit convert converts all kinds"
        )
    try:
        model = crfpp.read(source, encoding=options.encoding or "utf-8")
    except EncodingError:
        if options.encoding:
            raise
        model = crfpp.read(source, encoding=BYTES)
    model.save(target)
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.algorithm.lower() not in ALGORITHMS:
        raise ParameterError(f"unknown algorithm '{options.algorithm}'; there are CRF-L2, CRF-L1 and MIRA")
    for name, value in (("--freq", options.freq), ("--maxiter", options.maxiter), ("--thread", options.thread)):
        if value < 0:
            raise ParameterError(f"{name} must be >= 0, not {value}")
    if not options.eta > 0:
        raise ParameterError(f"--eta must be > 0, not {options.eta}")
    if not options.cost > 0:
        raise ParameterError(f"--cost must be > 0, not {options.cost}")
    if options.shrinking_size < 1:
        raise ParameterError(f"--shrinking-size must be >= 1, not {options.shrinking_size}")


def _train(options: argparse.Namespace) -> int:
    from crfkit.convert import crfpp
    from crfkit.files import modelfile
    from crfkit.result import Status

    _check(options)
    if options.R:
        _note("-R is ignored; crf_learn 0.58 has no such option")
    target = options.files[2]
    print(banner())
    modelfile.check_writable(target)
    corpus, encoding = _read(options)
    clock = time.process_time()
    model, status = _learn(options, corpus, encoding)
    model.save(target)
    if options.textmodel:
        crfpp.write(model, f"{target}.txt", encoding)
    print(f"\nDone!{time.process_time() - clock:.2f} s\n")
    if status is Status.INTERRUPTED:
        return 130
    if not (status.converged or status is Status.MAX_ITERATIONS):
        _note(str(status))
    return 0


def _read(options: argparse.Namespace) -> tuple[TaggedCorpus, str]:
    """Return the training set and the encoding of its file."""
    from crfkit.chain.encoding.sequences import learn_file
    from crfkit.compat.crfpp.lines import column_file, common_encoding
    from crfkit.text.template import Template

    template, train, _ = options.files
    encoding, odd = common_encoding([template, train], options.encoding)
    if odd is not None:
        _note(f"{odd} is not UTF-8, so the files are read as bytes; give --encoding NAME if you know their encoding")
    clock = time.process_time()
    print("reading training data: ", end="", flush=True)
    rules = Template.read(template, "crf++", encoding)
    corpus = learn_file(column_file(Path(train), train, encoding), rules, max(options.freq, 1))
    for n in range(100, len(corpus.data) + 1, 100):
        print(f"{n}.. ", end="")
    print(f"\nDone!{time.process_time() - clock:.2f} s\n")
    return corpus, encoding


def _learn(options: argparse.Namespace, corpus: TaggedCorpus, encoding: str) -> tuple[ChainModel, Status]:
    """Return the model, and why training ended."""
    import numpy as np

    from crfkit._threads import count_threads, using_threads
    from crfkit.chain.model.model import ChainModel
    from crfkit.chain.training.train import ChainTraining
    from crfkit.compat.crfpp import training
    from crfkit.penalties import L1, L2, NoPenalty

    C, eta = float(np.float32(options.cost)), float(np.float32(options.eta))  # CRF++ reads single floats
    solver: Solver = training.smooth_solver()
    penalty: Penalty = L2.from_crfpp(C)
    algorithm, threads = options.algorithm.lower(), options.thread or None
    if algorithm == "crf-l1":
        solver, penalty = training.sparse_solver(), L1.from_crfpp(C)
    elif algorithm == "mira":
        solver = training.SequentialMIRA(max_iterations=options.maxiter, c=C, shrinking=options.shrinking_size)
        penalty = NoPenalty()
    # In doubles: the watched loss has no precision that a solver could raise, and its lines are to be those of CRF++.
    trainer = ChainTraining(penalty, solver, max(options.freq, 1), True, True, n_threads=threads, precision="double")
    problem = trainer.make_problem(corpus)
    print(
        f"Number of sentences: {len(corpus.data)}\nNumber of features:  {problem.field.size}\n"
        f"Number of thread(s): {count_threads(threads)}\nFreq:                {options.freq}\n"
        f"eta:                 {eta:.5f}\nC:                   {C:.5f}\nshrinking size:      {options.shrinking_size}",
        flush=True,
    )
    with using_threads(count_threads(threads)):
        if algorithm == "mira":
            result = solver.minimize(problem.loss, penalty, np.zeros(problem.field.size))
            w, status = result.w, result.status
        else:
            w, status = training.watched_training(problem.loss, penalty, solver, eta, options.maxiter)
    record = {
        "objective": f"{problem.loss.name} + {penalty.name}",
        "status": status.name,
        "min_frequency": options.freq,
        "solver": solver.name,
        "auto": {},
        "encoding": encoding,
    }
    return ChainModel(corpus.vocabulary, corpus.classes, problem.field, np.array(w), record, threads), status


def _note(text: str) -> None:
    print(f"crfkit-learn: note: {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Run `crfkit-learn`. Errors are one line on stderr and exit code 255, as in CRF++."""
    run(learn, program="crfkit-learn", failure=FAILURE)


if __name__ == "__main__":
    main()
