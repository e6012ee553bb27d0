"""`crfkit-test`: CRF++'s crf_test with crfkit underneath."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crfkit import convert
from crfkit._types import Array, Ids
from crfkit.cli.runtime.running import run
from crfkit.compat.arguments import integer, number
from crfkit.compat.crfpp.options import FAILURE, Parser, version
from crfkit.errors import EncodingError, ParameterError

if TYPE_CHECKING:
    from crfkit import _core
    from crfkit.chain.data import SequenceData
    from crfkit.chain.model.model import ChainModel
    from crfkit.files.columns import ColumnFile


def parser() -> Parser:
    p = Parser(
        "crfkit-test",
        "crfkit-test [options] -m MODEL [FILE]...",
        "Tag column files, or standard input, as crf_test of CRF++ does. MODEL is a crfkit or CRF++ model.",
    )
    p.add_argument("-m", "--model", metavar="FILE", help="model file")
    add = p.add_argument
    add("-n", "--nbest", type=integer, default=0, metavar="INT", help="write the INT most probable labellings")
    add(
        "-v",
        "--verbose",
        type=integer,
        default=0,
        metavar="INT",
        help="1: add the probability of each predicted label; 2: add the probabilities of all labels",
    )
    add(
        "-c",
        "--cost-factor",
        type=number,
        default=1.0,
        metavar="FLOAT",
        help="multiply all weights by this (default: 1.0)",
    )
    add("-o", "--output", metavar="FILE", help="write to this file (default: standard output)")
    add("--version", action="store_true", help="show the version and exit")
    return p


def tag(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    p = parser()
    options = p.parse(arguments)
    if options.help or options.version:
        print(p.format_help() if options.help else version())
        return FAILURE
    model, encoding = open_model(options)
    _tag(model, encoding, options)
    return 0


def open_model(options: argparse.Namespace) -> tuple[ChainModel, str]:
    """Return the model and the encoding of its input; check the options."""
    from crfkit.compat.crfpp.lines import BYTES

    if options.model is None:
        raise ParameterError("no model was given; give -m MODEL")
    if options.nbest < 0:
        raise ParameterError(f"--nbest must be >= 0, not {options.nbest}")
    if not options.cost_factor > 0:
        raise ParameterError(f"--cost-factor must be > 0, not {options.cost_factor}")

    try:
        model = convert.load(options.model, encoding=options.encoding or "utf-8")
    except EncodingError:
        if options.encoding:
            raise
        model = convert.load(options.model, encoding=BYTES)  # a CRF++ model of files in another encoding
    if model.vocabulary.template is None:
        raise ParameterError(f"{options.model} has no template, so it cannot tag column files")
    if options.cost_factor != 1.0:
        model = replace(model, w=options.cost_factor * model.w)
    return model, options.encoding or str(model.training.get("encoding", "utf-8"))


def _tag(model: ChainModel, encoding: str, options: argparse.Namespace) -> None:
    from crfkit.cli.runtime.output import open_input, open_output
    from crfkit.compat.crfpp.lines import column_file

    keep = encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")
    with open_output(Path(options.output) if options.output else None) as out:
        for name in options.files or ["-"]:
            file = column_file(open_input(Path(name)), "<stdin>" if name == "-" else name, encoding)
            for text in tagged(model, file, options.nbest, max(options.verbose, 0)):
                out.write(text if keep else text.decode("utf-8").encode(encoding))
                out.flush()


def tagged(model: ChainModel, file: ColumnFile, nbest: int = 0, verbose: int = 0) -> Iterator[bytes]:
    """Yield what crf_test prints for a file, in UTF-8, as soon as sequences are complete."""
    from crfkit.chain.encoding.sequences import encoded, feed_columns

    encoder = model.vocabulary.encoder(keep_lines=True)
    for _ in feed_columns(encoder, file, keep_lines=True):
        data = encoded(encoder)
        if len(data) == 0:
            continue
        if nbest:
            yield _nbest(model, data, encoder, nbest, verbose)
        elif verbose:
            labels, scores = model.inference.decode(data)
            node = model.inference.node_marginals(data)
            chances = np.exp(scores - model.inference.log_partition(data))
            blocks = encoder.lines_with(_with_marginals(model, labels, node, verbose)).split(b"\n\n")
            yield b"".join(
                b"# %.6f\n%b\n\n" % (p, block) for p, block in zip(chances.tolist(), blocks[:-1], strict=True)
            )
        else:
            names = [str(name) for name in model.class_list]
            yield encoder.lines_with([names[j] for j in model.inference.decode(data)[0].tolist()])


def _nbest(model: ChainModel, data: SequenceData, encoder: _core.Encoder, n: int, verbose: int) -> bytes:
    """Return the n best labellings of each sequence, each with its rank and probability above it."""
    found = model.inference.nbest(data, n)
    log_z = model.inference.log_partition(data).tolist()
    node = list(data.split(model.inference.node_marginals(data))) if verbose else None
    names = [str(name) for name in model.class_list]
    lines = encoder.lines_with([""] * data.n_positions).decode("utf-8").split("\n\n")
    text = []
    for k, labellings in enumerate(found):
        rows = lines[k].split("\n")
        for rank, (labels, score) in enumerate(labellings):
            text.append(f"# {rank} {math.exp(score - log_z[k]):.6f}\n")
            ends = (
                [names[j] for j in labels.tolist()]
                if node is None
                else _with_marginals(model, labels, node[k], verbose)
            )
            text += [f"{row}{end}\n" for row, end in zip(rows, ends, strict=True)]
            text.append("\n")
    return "".join(text).encode("utf-8")


def _with_marginals(model: ChainModel, labels: Ids, node: Array, verbose: int) -> list[str]:
    """Return "label/probability" of every position and, if verbose is 2, of all labels."""
    names = [str(name) for name in model.class_list]
    chosen = node[np.arange(len(labels)), labels].tolist()
    best = [f"{names[j]}/{p:.6f}" for j, p in zip(labels.tolist(), chosen, strict=True)]
    if verbose < 2:
        return best
    form = "\t".join(f"{name.replace('%', '%%')}/%.6f" for name in names)
    return [f"{first}\t{form % tuple(row)}" for first, row in zip(best, node.tolist(), strict=True)]


def main() -> None:
    """Run `crfkit-test`. Errors are one line on stderr and exit code 255, as in CRF++."""
    run(tag, program="crfkit-test", failure=FAILURE)


if __name__ == "__main__":
    main()
