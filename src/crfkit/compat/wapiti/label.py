"""``crfkit-wapiti label``: sequences from a stream to a stream, with the predicted label as a further column."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.model.model import ChainModel
from crfkit.compat.wapiti.data import Encoding, read_batches
from crfkit.compat.wapiti.lattice import Lattice, best_paths

Say = Callable[[str], None]
Path = tuple[Ids, float, list[float]]  # a labelling, its score, and the score of each of its labels


@dataclass(frozen=True)
class LabelOptions:
    """The options of `label`; the comments have Wapiti's names."""

    labels_only: bool = False  # -l
    check: bool = False  # -c
    scores: bool = False  # -s
    posterior: bool = False  # -p
    n_best: int = 1  # -n
    forced: bool = False  # --force


def label(
    model: ChainModel, source: BinaryIO, target: BinaryIO, options: LabelOptions, say: Say, name: str = "input"
) -> None:
    """Label the sequences of a stream as they arrive; report progress and, with `check`, errors."""
    labelled = options.check or options.forced
    encode = Encoding(model.vocabulary, name, labelled)
    template = model.vocabulary.template
    needed = template.n_columns if template is not None else 0
    statistics = _Statistics(len(model.classes))
    find = _Finder(model, options)
    names = [str(text).encode("utf-8", "surrogatepass") for text in model.class_list]
    number = {text: i for i, text in enumerate(names)}
    count = 0
    for batch in read_batches(source):
        data = encode(batch)
        gold = [np.array(row, np.int32) for row in batch.labels(number, needed)] if labelled else None
        found = find(data, gold)
        target.write(b"".join(_written(*pair, names, options) for pair in zip(batch.lines, found, strict=True)))
        target.flush()
        for n, paths in enumerate(found):
            if options.check and gold is not None:
                statistics.add(gold[n], paths[0][0])
            count += 1
            if count % 1000 == 0:
                rates = "\t{:5.2f}%/{:5.2f}%".format(*statistics.rates(count)) if options.check else ""
                say(f"{count:10d} sequences labeled{rates}\n")
    if options.check:
        say(statistics.report(count, [str(text) for text in model.class_list]))


class _Finder:
    """Finds the best labellings with their scores."""

    def __init__(self, model: ChainModel, options: LabelOptions) -> None:
        self._inference, self._options = model.inference, options
        self._lattice = Lattice(model) if options.scores and not options.posterior else None

    def __call__(self, data: SequenceData, gold: list[Ids] | None) -> list[list[Path]]:
        known = gold if self._options.forced else None
        if self._options.posterior:
            return self._posterior(data, known)
        allowed = None if known is None else _allowed(known, self._inference.field.n_labels)
        if self._options.n_best > 1:
            found = self._inference.nbest(data, self._options.n_best, allowed)
        else:
            best, scores = self._inference.decode(data, allowed)
            rows = [best[a:b] for a, b in zip(data.starts[:-1], data.starts[1:], strict=True)]
            found = [[(row, score)] for row, score in zip(rows, scores.tolist(), strict=True)]
        return self._with_scores(data, found)

    def _with_scores(self, data: SequenceData, found: list[list[tuple[Ids, float]]]) -> list[list[Path]]:
        if self._lattice is None or not self._options.scores:
            return [[(row, score, []) for row, score in paths] for paths in found]
        order = [n for n, paths in enumerate(found) for _ in paths]
        repeated = data.take(order)
        labels = np.concatenate([row for paths in found for row, _ in paths]) if order else np.empty(0, np.int32)
        local = self._lattice.along(repeated, labels).tolist()
        begin = iter(repeated.starts.tolist())
        return [[(row, score, local[(a := next(begin)) : a + len(row)]) for row, score in paths] for paths in found]

    def _posterior(self, data: SequenceData, known: list[Ids] | None) -> list[list[Path]]:
        """Return the labellings with the greatest products of marginal probabilities."""
        marginals = self._inference.node_marginals(data)
        result: list[list[Path]] = []
        for n, (a, b) in enumerate(zip(data.starts[:-1].tolist(), data.starts[1:].tolist(), strict=True)):
            here = marginals[a:b]
            with np.errstate(divide="ignore"):
                logs = np.log(here)
            if known is not None:
                logs = np.where(_allowed([known[n]], logs.shape[1]), logs, -np.inf)
            if self._options.n_best == 1:
                best = logs.argmax(axis=1).astype(np.int32)
                found = [(best, float(np.take_along_axis(logs, best[:, None], 1).sum()))]
            else:
                found = best_paths(logs, self._options.n_best)
            result.append([(path, math.exp(score), here[np.arange(len(path)), path].tolist()) for path, score in found])
        return result


def _allowed(known: list[Ids], n_labels: int) -> NDArray[np.bool_]:
    """Return which labels known ones leave to every position: the known one, or all where it is −1."""
    labels = np.concatenate(known) if known else np.empty(0, np.int32)
    flags: NDArray[np.bool_] = (labels[:, None] == np.arange(n_labels)) | (labels[:, None] < 0)
    return flags


def _written(lines: list[bytes], paths: list[Path], names: list[bytes], options: LabelOptions) -> bytes:
    out = []
    for n, (labels, score, local) in enumerate(paths):
        if options.scores:
            out.append(b"# %d %.6f\n" % (n, score))
        for t, j in enumerate(labels.tolist()):
            line = names[j] if options.labels_only else b"%s\t%s" % (lines[t], names[j])
            out.append(b"%s\t%s/%.6f\n" % (line, names[j], local[t]) if options.scores else line + b"\n")
        out.append(b"\n")
    return b"".join(out)


@dataclass
class _Statistics:
    """Counts of `-c`. Labels that the model does not know are passed over, but their positions are counted."""

    n_labels: int
    positions: int = 0
    wrong: int = 0
    wrong_sequences: int = 0
    counts: Ints = field(init=False)  # [3, labels]: in the data, predicted, both

    def __post_init__(self) -> None:
        self.counts = np.zeros((3, self.n_labels), dtype=np.int64)

    def add(self, gold: Ids, best: Ids) -> None:
        self.positions += len(gold)
        gold, best = gold[gold >= 0], best[gold >= 0]
        same = gold == best
        for row, labels in enumerate((gold, best, gold[same])):
            self.counts[row] += np.bincount(labels, minlength=self.n_labels)
        self.wrong += int((~same).sum())
        self.wrong_sequences += bool((~same).any())

    def rates(self, sequences: int) -> tuple[float, float]:
        """Return the percentages of positions and of sequences that are wrong."""
        return _ratio(self.wrong, self.positions) * 100.0, _ratio(self.wrong_sequences, sequences) * 100.0

    def report(self, sequences: int, names: list[str]) -> str:
        tokens, whole = self.rates(sequences)
        lines = [
            f"    Nb sequences  : {sequences}",
            f"    Token error   : {_number(tokens, '5.2f')}%",
            f"    Sequence error: {_number(whole, '5.2f')}%",
            "* Per label statistics",
        ]
        for name, given, predicted, both in zip(names, *self.counts.tolist(), strict=True):
            recall, precision = _ratio(both, given), _ratio(both, predicted)
            f1 = _ratio(2.0 * (precision * recall), precision + recall)
            shown = [_number(value, ".2f") for value in (precision, recall, f1)]
            lines.append("    {:<6}  Pr={}  Rc={}  F1={}".format(name, *shown))
        return "\n".join(lines) + "\n"


def _ratio(a: float, b: float) -> float:
    return a / b if b else math.nan


def _number(value: float, form: str) -> str:
    """Return the number as C prints it, where 0/0 is -nan."""
    return "-nan".rjust(5 if form.startswith("5") else 0) if math.isnan(value) else format(value, form)
