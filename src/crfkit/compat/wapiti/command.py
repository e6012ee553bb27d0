"""``crfkit-wapiti``: Wapiti's command line."""

from __future__ import annotations

import contextlib
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from crfkit.cli.runtime import signals, streams
from crfkit.cli.runtime.output import open_output
from crfkit.cli.runtime.running import BROKEN_PIPE, described, discard_output
from crfkit.compat.wapiti.options import PARSERS
from crfkit.errors import CrfkitError, DataError, ParameterError
from crfkit.wording import printable

MODES = {letter: mode for mode in ("train", "label", "dump", "update") for letter in (mode[0], mode)}
USAGE = """usage: crfkit-wapiti train [options] [input data] [model file]
       crfkit-wapiti label [options] [input data] [output data]
       crfkit-wapiti dump  [options] [input model] [output text]
       crfkit-wapiti update [options] [patch file] [output model]

Wapiti's commands, on top of crfkit. Input and output are standard input and output by default.
crfkit-wapiti MODE --help lists the options of a mode."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with streams.dependable(), signals.Interrupts() as interrupts:
        code = _main(given)
        if code == 130:
            say(f"error: {interrupts.word}\n")
            return interrupts.code
        return code


def _main(given: Sequence[str]) -> int:
    try:
        if given and given[0] in ("-h", "--help"):
            print(USAGE)
            return 0
        if given and given[0] == "--version":
            from crfkit import __version__

            print(f"crfkit-wapiti {__version__}")
            return 0
        if not given or given[0] not in MODES:
            what = f"unknown mode {given[0]!r}" if given else "no mode was given"
            raise ParameterError(f"{what}; give train, label, dump or update (crfkit-wapiti --help)")
        mode = MODES[given[0]]
        options = PARSERS[mode]().parse_intermixed_args(given[1:])
        signals.load_native()
        RUNS[mode](options)
        sys.stdout.flush()
    except CrfkitError as error:
        say(f"error: {error}\n")
        return 1
    except (BrokenPipeError, streams.NoReaderError):
        discard_output()
        return BROKEN_PIPE
    except OSError as error:
        discard_output()
        say(f"error: {described(error)}\n")
        return 1
    except MemoryError:
        say("error: out of memory; use fewer patterns or less data\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def say(text: str) -> None:
    """Write progress to standard error, with control characters of names shown as escapes."""
    sys.stderr.write(printable(text))
    sys.stderr.flush()


# --- the modes


def run_train(options: Namespace) -> None:
    """Train a model from data and patterns."""
    from crfkit.compat.wapiti.train import ALGORITHMS, Source, TrainOptions, train
    from crfkit.files.modelfile import check_writable
    from crfkit.names import check_name

    if "list" in (options.type, options.algo):
        lists = {"types of models": ["crf"]} if options.type == "list" else {"training algorithms": list(ALGORITHMS)}
        for what, names in lists.items():
            say(f"Available {what}:\n" + "".join(f"\t{name}\n" for name in names))
        return
    _refuse(options)
    check_name("algorithm", options.algo, ALGORITHMS)
    if options.output is not None:
        check_writable(options.output)
    else:
        sys.stdout.buffer  # noqa: B018 - if it is closed, better say so before training than after it
    start = None
    if options.model is not None:
        say("* Load previous model\n")
        start = _wapiti_model(Path(options.model))
    if options.algo == "sgd-l1" and options.alpha is not None:
        say("warning: --alpha has no effect: the step size of crfkit's SGD falls by another rule\n")
    wanted = TrainOptions(
        algorithm=options.algo,
        rho1=options.rho1,
        rho2=options.rho2,
        max_iterations=options.maxiter,
        objective_window=options.objwin,
        error_window=options.stopwin,
        eps=options.stopeps,
        threads=options.nthread,
        history=options.histsz,
        step_size=options.eta0,
        compact=options.compact,
    )
    with contextlib.ExitStack() as stack:
        data = Source(stack.enter_context(_opened(options.input)), options.input or "stdin")
        devel = Source(stack.enter_context(_opened(options.devel)), options.devel) if options.devel else None
        patterns = Path(options.pattern) if options.pattern is not None else None
        model = train(wanted, data, patterns, devel, start, say)
    _save(model, options.output)


def run_label(options: Namespace) -> None:
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


def run_dump(options: Namespace) -> None:
    """Write the weights of a model as text."""
    from crfkit.compat.wapiti.dump import dump

    say("* Load model\n")
    if options.input is None:
        with _opened(None) as source:
            model = _wapiti_model(source.read())
    else:
        model = _wapiti_model(Path(options.input))
    say("* Dump model\n")
    with _output(options.output) as target:
        for lines in dump(model, options.prec, options.all):
            target.write(lines)


def run_update(options: Namespace) -> None:
    """Change weights of a model."""
    from crfkit.compat.wapiti.update import compact, update

    if options.model is None:
        raise ParameterError("update needs a model; give -m FILE")
    say("* Load model\n")
    model = _wapiti_model(Path(options.model))
    say("* Update model\n")
    with _opened(options.input) as patch:
        model = update(model, patch, options.input or "stdin")
    _save(compact(model, say) if options.compact else model, options.output)


RUNS = {"train": run_train, "label": run_label, "dump": run_dump, "update": run_update}


def _save(model: Any, path: str | None) -> None:
    """Write a model to a file or to standard output."""
    from crfkit.convert.sources import write_bytes
    from crfkit.convert.wapiti_model import format_wapiti

    say("* Save the model\n")
    contents = format_wapiti(model)
    if path is None:
        with _output(None) as target:
            target.write(contents)
    else:
        write_bytes(path, contents)
    say("* Done\n")


def _refuse(options: Namespace) -> None:
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
    """Return the contents of a Wapiti model, or of a crfkit model in this form."""
    from crfkit.convert import kinds, load
    from crfkit.convert.wapiti import to_wapiti
    from crfkit.convert.wapiti_model import read_wapiti
    from crfkit.files.atomic import read_head

    if isinstance(source, bytes):
        return read_wapiti(source)
    kind = kinds.recognise(read_head(source))
    if kind is not None and kind not in (kinds.CRFKIT, kinds.WAPITI):
        raise ParameterError(f"{source} is a model of {kind.split()[0]}; expected one of Wapiti or crfkit")
    return to_wapiti(load(source)) if kind == kinds.CRFKIT else read_wapiti(source)


@contextlib.contextmanager
def _opened(path: str | None) -> Iterator[BinaryIO]:
    if path is None:
        if sys.stdin is None:
            raise DataError("standard input is closed; give a file")
        yield sys.stdin.buffer
        return
    with open(path, "rb") as stream:
        yield stream


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[BinaryIO]:
    with open_output(None if path is None else Path(path)) as stream:
        yield stream
    if path is None:
        sys.stdout.flush()


def entry() -> NoReturn:
    """Run the command and end the program."""
    sys.exit(main())
