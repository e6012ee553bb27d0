"""``crfkit-wapiti``: Wapiti's command line."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from crfkit.errors import CrfkitError, ParameterError

MODES = {"t": "train", "train": "train", "l": "label", "label": "label", "d": "dump", "dump": "dump"}
USAGE = """usage: crfkit-wapiti train [options] [input data] [model file]
       crfkit-wapiti label [options] [input data] [output data]
       crfkit-wapiti dump  [options] [input model] [output text]

Wapiti's commands, on top of crfkit. Input and output are standard input and output by default.
crfkit-wapiti MODE --help lists the options of a mode."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given and given[0] in ("-h", "--help"):
            print(USAGE)
            return 0
        if given and given[0] == "--version":
            from crfkit import __version__

            print(f"crfkit-wapiti {__version__}")
            return 0
        if not given or given[0] not in MODES:
            what = f"unknown mode {given[0]!r}" if given else "no mode"
            raise ParameterError(f"{what}; give train, label or dump (crfkit-wapiti --help)")
        mode = MODES[given[0]]
        options = PARSERS[mode]().parse_intermixed_args(given[1:])
        RUNS[mode](options)
    except CrfkitError as error:
        say(f"error: {error}\n")
        return 1
    except BrokenPipeError:  # the program that reads the output has ended
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        say(f"error: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def say(text: str) -> None:
    """Write progress to standard error."""
    sys.stderr.write(text)
    sys.stderr.flush()


# --- options


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ParameterError(f"{message} ({self.prog} --help)")


def _parser(mode: str, inputs: str, outputs: str) -> _Parser:
    parser = _Parser(prog=f"crfkit-wapiti {mode}", allow_abbrev=False)
    parser.add_argument("input", nargs="?", metavar=inputs, help="default: standard input")
    parser.add_argument("output", nargs="?", metavar=outputs, help="default: standard output")
    return parser


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _strength(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value


def train_parser() -> _Parser:
    """Return the parser of `train`; the help says which options of Wapiti have no effect."""
    parser = _parser("train", "DATA", "MODEL")
    add = parser.add_argument
    add("-T", "--type", default="crf", metavar="NAME", help="type of model: crf")
    add("-a", "--algo", default="l-bfgs", metavar="NAME", help="training algorithm, or list for a list of them")
    add("-p", "--pattern", metavar="FILE", help="patterns; without them the data hold observations")
    add("-m", "--model", metavar="FILE", help="model to start from")
    add("-d", "--devel", metavar="FILE", help="development data, whose error is reported and decides when to stop")
    add("-c", "--compact", action="store_true", help="leave observations without weights out of the model")
    add("-t", "--nthread", type=_positive, default=1, metavar="N", help="number of threads (default: 1)")
    add("-i", "--maxiter", type=_count, default=0, metavar="N", help="maximum number of iterations (0: no limit)")
    add("-1", "--rho1", type=_strength, default=0.5, metavar="X", help="L1 penalty X·‖w‖₁ (default: 0.5)")
    add("-2", "--rho2", type=_strength, default=0.0001, metavar="X", help="L2 penalty X/2·‖w‖² (default: 0.0001)")
    add("-o", "--objwin", type=_count, default=5, metavar="N", help="window of the objective (default: 5)")
    add("-w", "--stopwin", type=_count, default=5, metavar="N", help="window of the token error (default: 5; 0: none)")
    add("-e", "--stopeps", type=_strength, default=0.02, metavar="X", help="stop below this change (default: 0.02)")
    add("--histsz", type=_positive, metavar="N", help="(l-bfgs) number of curvature pairs")
    add("--eta0", type=float, metavar="X", help="(sgd-l1) step size; chosen by trials by default")
    add("-j", "--jobsize", type=_positive, metavar="N", help="no effect")
    add("-s", "--sparse", action="store_true", help="no effect: crfkit always uses what is sparse")
    for name in ("--maxls", "--alpha", "--kappa", "--stpmin", "--stpmax", "--stpinc", "--stpdec"):
        add(name, type=float, metavar="X", help="no effect")
    add("--cutoff", action="store_true", help="no effect")
    for name, metavar in (("--rstate", "FILE"), ("--sstate", "FILE")):
        add(name, metavar=metavar, help="not supported")
    for name in ("--me", "--clip"):
        add(name, action="store_true", help="not supported")
    return parser


def label_parser() -> _Parser:
    """Return the parser of `label`."""
    parser = _parser("label", "DATA", "LABELLED")
    add = parser.add_argument
    add("-m", "--model", metavar="FILE", help="model file of Wapiti or crfkit")
    add("-l", "--label", action="store_true", help="write only the labels")
    add("-c", "--check", action="store_true", help="the last column is the label: report errors")
    add("-s", "--score", action="store_true", help="write the scores of labellings and labels")
    add("-p", "--post", action="store_true", help="choose labels by their marginal probabilities")
    add("-n", "--nbest", type=_positive, default=1, metavar="N", help="write the N best labellings")
    add("--force", action="store_true", help="keep the labels that the last column gives")
    add("-t", "--nthread", type=_positive, metavar="N", help="number of threads (default: all); not in Wapiti")
    add("--me", action="store_true", help="not supported")
    return parser


def dump_parser() -> _Parser:
    """Return the parser of `dump`."""
    parser = _parser("dump", "MODEL", "TEXT")
    parser.add_argument("-p", "--prec", type=_count, default=5, metavar="N", help="digits after the point (default: 5)")
    parser.add_argument("--all", action="store_true", help="write weights that are zero as well")
    return parser


PARSERS = {"train": train_parser, "label": label_parser, "dump": dump_parser}


# --- the modes


def run_train(options: Any) -> None:
    """Train a model from data and patterns."""
    from crfkit.compat.wapiti.train import ALGORITHMS, Source, TrainOptions, train
    from crfkit.modelfile import check_writable
    from crfkit.names import check_name
    from crfkit.readers.wapiti_model import format_wapiti

    if "list" in (options.type, options.algo):
        lists = {"types of models": ["crf"]} if options.type == "list" else {"training algorithms": list(ALGORITHMS)}
        for what, names in lists.items():
            say(f"Available {what}:\n" + "".join(f"\t{name}\n" for name in names))
        return
    _refuse(options)
    check_name("algorithm", options.algo, ALGORITHMS)
    if options.output is not None:
        check_writable(options.output)
    start = None
    if options.model is not None:
        say("* Load previous model\n")
        start = _wapiti_model(Path(options.model))
    if options.algo == "sgd-l1" and options.alpha is not None:
        say("warning: --alpha has no effect: the step size of crfkit's SGD falls by another rule\n")
    wanted = TrainOptions(
        options.algo,
        options.rho1,
        options.rho2,
        options.maxiter,
        options.objwin,
        options.stopwin,
        options.stopeps,
        options.nthread,
        options.histsz,
        options.eta0,
        options.compact,
    )
    with contextlib.ExitStack() as stack:
        data = Source(stack.enter_context(_opened(options.input)), options.input or "stdin")
        devel = Source(stack.enter_context(_opened(options.devel)), options.devel) if options.devel else None
        patterns = Path(options.pattern) if options.pattern is not None else None
        model = train(wanted, data, patterns, devel, start, say)
    say("* Save the model\n")
    contents = format_wapiti(model)
    if options.output is None:
        sys.stdout.buffer.write(contents)
        sys.stdout.flush()
    else:
        from crfkit.convert.sources import write_bytes

        write_bytes(options.output, contents)
    say("* Done\n")


def run_label(options: Any) -> None:
    """Label data with a model."""
    from crfkit.compat.wapiti.label import LabelOptions, label
    from crfkit.convert import load

    if options.me:
        raise ParameterError("--me is not supported: crfkit has chains, and no pure maxent mode")
    if options.model is None:
        raise ParameterError("label needs a model; give -m FILE")
    if options.check and options.force:
        raise ParameterError("--check and --force cannot be combined: both are about the last column")
    say("* Load model\n")
    model = load(options.model, options.nthread)
    if model.vocabulary.kind not in ("template", "observations"):
        raise ParameterError(f"{options.model} takes no columns; label needs a model with patterns or observations")
    say("* Label sequences\n")
    wanted = LabelOptions(options.label, options.check, options.score, options.post, options.nbest, options.force)
    with _opened(options.input) as source, _output(options.output) as target:
        label(model, source, target, wanted, say, options.input or "stdin")
    say("* Done\n")


def run_dump(options: Any) -> None:
    """Write the weights of a model as text."""
    from crfkit.compat.wapiti.dump import dump

    say("* Load model\n")
    model = _wapiti_model(sys.stdin.buffer.read() if options.input is None else Path(options.input))
    say("* Dump model\n")
    with _output(options.output) as target:
        for lines in dump(model, options.prec, options.all):
            target.write(lines)


RUNS = {"train": run_train, "label": run_label, "dump": run_dump}


def _refuse(options: Any) -> None:
    """Raise ParameterError if an option asks for what crfkit does not do."""
    if options.type != "crf" or options.me:
        kind = "--me" if options.me else f"--type {options.type}"
        raise ParameterError(f"{kind} is not supported: crfkit-wapiti trains models of type crf")
    if options.clip:
        raise ParameterError("--clip is not supported; start from the sparse model with -m and an L1 penalty instead")
    for name in ("rstate", "sstate"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name} is not supported; start from a model with -m, or use crfkit train --resume")


def _wapiti_model(source: Path | bytes) -> Any:
    """Return the contents of a Wapiti model, or those of a crfkit model in this form."""
    from crfkit.convert import kinds, load
    from crfkit.convert.wapiti import to_wapiti
    from crfkit.readers.wapiti_model import read_wapiti

    if isinstance(source, bytes):
        return read_wapiti(source)
    with open(source, "rb") as stream:
        kind = kinds.recognise(stream.read(64))
    return to_wapiti(load(source)) if kind == kinds.CRFKIT else read_wapiti(source)


@contextlib.contextmanager
def _opened(path: str | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdin.buffer
        return
    with open(path, "rb") as stream:
        yield stream


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    with open(path, "wb") as stream:
        yield stream


def entry() -> NoReturn:
    """Run the command and end the program."""
    sys.exit(main())
