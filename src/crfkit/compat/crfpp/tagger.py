"""`Tagger` and `Model` of CRF++'s Python module: ``import crfkit.compat.crfpp as CRFPP``."""

from __future__ import annotations

import io
import math
import re
import shlex
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from crfkit._types import Floats, Ids
from crfkit.chain.model.model import ChainModel
from crfkit.compat.crfpp.sums import restricted
from crfkit.compat.crfpp.tag import open_model, parser, tagged
from crfkit.errors import CrfkitError


class Model:
    """A model that several taggers share.

    `arguments` are the options of crf_test as one string: "-m MODEL", "-n N" (n-best), "-v N" (probabilities).
    """

    def __init__(self, arguments: str) -> None:
        try:
            options = parser().parse(shlex.split(arguments))
            self._model, self._encoding = open_model(options)
        except CrfkitError as error:
            raise RuntimeError(str(error)) from error  # as the module of CRF++ does
        self._nbest, self._verbose = options.nbest, options.verbose

    def createTagger(self) -> Tagger:  # noqa: N802 - CRF++'s name
        """Return a tagger with this model and its options."""
        tagger = Tagger.__new__(Tagger)
        tagger._start(self)
        return tagger


class _Parsed:
    """One sequence with all that can be asked about it; what is asked for is computed then."""

    def __init__(self, model: ChainModel, rows: list[list[str]]) -> None:
        width = min(map(len, rows))  # lines may have further columns
        self.model, self.data = model, model.encode([[row[:width] for row in rows]])
        self._sums: dict[tuple[int, int, int], Floats] = {}

    @cached_property
    def best(self) -> tuple[Ids, float]:
        labels, scores = self.model.inference.decode(self.data)
        return labels, float(scores[0])

    @cached_property
    def marginals(self) -> Floats:
        return self.model.inference.node_marginals(self.data)

    @cached_property
    def log_partition(self) -> float:
        return float(self.model.inference.log_partition(self.data)[0])

    def sums(self, begin: int, end: int, at: int) -> Floats:
        """Return log Z of a part of the sequence with each label at one position."""
        if (begin, end, at) not in self._sums:
            self._sums[begin, end, at] = restricted(self.model.inference, self.data, begin, end, at)
        return self._sums[begin, end, at]

    def ranked(self, n: int) -> Iterator[tuple[Ids, float]]:
        return iter(self.model.inference.nbest(self.data, n)[0])


class Tagger:
    """CRF++'s tagger of one sequence: `add` its lines, `parse`, then ask for labels and probabilities.

    >>> import tempfile
    >>> from crfkit import ChainCRF
    >>> path = tempfile.mkdtemp() + "/model"
    >>> X, y = [[("the", "DT"), ("cat", "NN")]], [["B-NP", "I-NP"]]
    >>> ChainCRF(template="U1:%x[0,0]\\nU2:%x[0,1]\\nB").fit(X, y).save(path)
    >>> tagger = Tagger(f"-m {path} -v 1 -n 2")
    >>> tagger.add("a DT"), tagger.add("cat NN"), tagger.parse()
    (True, True, True)
    >>> [tagger.y2(i) for i in range(tagger.size())]
    ['B-NP', 'I-NP']
    >>> round(sum(tagger.prob(0, j) for j in range(tagger.ysize())), 6)
    1.0
    """

    def __init__(self, arguments: str) -> None:
        self._start(Model(arguments))

    def _start(self, shared: Model) -> None:
        self._model, self._encoding = shared._model, shared._encoding
        self._nbest, self._verbose = shared._nbest, shared._verbose
        self._names = [str(name) for name in self._model.class_list]
        self.clear()

    # --- input

    def clear(self) -> bool:
        """Forget the sequence."""
        self._lines: list[list[str]] = []
        self._parsed: _Parsed | None = None
        self._labels: Ids = np.zeros(0, dtype=np.int32)
        self._score = 0.0
        self._more: Iterator[tuple[Ids, float]] = iter(())
        return True

    def add(self, line: str | list[str]) -> bool:
        """Add a token: its columns between blanks or tabs, or as a list."""
        cells = [cell for cell in re.split(r"[ \t]+", line.rstrip("\r\n")) if cell] if isinstance(line, str) else line
        if len(cells) < self.xsize():
            raise RuntimeError(f"the line {line!r} has fewer columns than the model needs, {self.xsize()}")
        self._lines.append(list(cells))
        self._parsed = None
        return True

    def parse(self, text: str | None = None) -> bool | str:
        """Find the labels of the lines that were added; with a text, return what crf_test prints for it."""
        if text is not None:
            self.clear()
            for line in text.split("\n"):
                if not line.strip(" \t\r"):
                    break
                self.add(line)
            self.parse()
            return self.toString()
        if not self._lines:
            return True
        try:
            self._parsed = _Parsed(self._model, self._lines)
            self._labels, self._score = self._parsed.best
            self._more = self._parsed.ranked(self._nbest) if self._nbest else iter(())
        except CrfkitError as error:
            raise RuntimeError(str(error)) from error
        return True

    def next(self) -> bool:
        """Go to the best, the second-best … labelling; return whether there is another one."""
        found = next(self._more, None)
        if found is None:
            return False
        self._labels, self._score = found
        return True

    # --- the result

    def size(self) -> int:
        """Return the number of tokens."""
        return len(self._lines)

    def empty(self) -> bool:
        return not self._lines

    def xsize(self) -> int:
        """Return the number of columns that the model needs."""
        return int(self._model.vocabulary.n_features or 0)

    def ysize(self) -> int:
        """Return the number of labels."""
        return len(self._names)

    def dsize(self) -> int:
        """Return the number of weights."""
        return int(self._model.field.size)

    def x(self, i: int, j: int) -> str:
        """Return column j of token i."""
        return self._lines[i][j]

    def y(self, i: int) -> int:
        """Return the number of token i's label."""
        return int(self._labels[i])

    result = y

    def y2(self, i: int) -> str:
        """Return the label of token i."""
        return self._names[self.y(i)]

    def yname(self, j: int) -> str:
        """Return label j."""
        return self._names[j]

    def prob(self, i: int | None = None, j: int | None = None) -> float:
        """Return the probability of the labelling, of token i's label, or of label j at token i."""
        if i is None:
            return math.exp(self._score - self._of().log_partition)
        return float(self._of().marginals[i, self.y(i) if j is None else j])

    def alpha(self, i: int, j: int) -> float:
        """Return the forward sum of label j at token i: log Z of the tokens up to it."""
        return float(self._of().sums(0, i + 1, i)[j])

    def beta(self, i: int, j: int) -> float:
        """Return the backward sum of label j at token i: log Z of the tokens from it on."""
        return float(self._of().sums(i, self.size(), i)[j])

    def emission_cost(self, i: int, j: int) -> float:
        """Return the score of token i's attributes for label j."""
        return float(self._of().sums(i, i + 1, i)[j])

    def Z(self) -> float:  # noqa: N802 - CRF++'s name
        """Return log Z."""
        return self._of().log_partition

    def cost(self) -> float:
        """Return minus the score of the labelling."""
        return -self._score

    def nbest(self) -> int:
        return int(self._nbest)

    def set_nbest(self, n: int) -> None:
        """Set how many labellings `next` gives after the next `parse`."""
        self._nbest = int(n)

    def vlevel(self) -> int:
        return int(self._verbose)

    def set_vlevel(self, level: int) -> None:
        """Set what `toString` writes: labels (0), their probabilities (1), the probabilities of all labels (2)."""
        self._verbose = int(level)

    def toString(self) -> str:  # noqa: N802 - CRF++'s name
        """Return what crf_test prints for the sequence."""
        from crfkit.compat.crfpp.lines import column_file

        text = "".join("\t".join(row) + "\n" for row in self._lines) + "\n"
        file = column_file(io.BytesIO(text.encode("utf-8")), "the sequence", "utf-8")
        return b"".join(tagged(self._model, file, self._nbest, max(self._verbose, 0))).decode("utf-8")

    def what(self) -> str:
        """Return the last error; here errors are raised, so there is none."""
        return ""

    def _of(self) -> _Parsed:
        if self._parsed is None:
            raise RuntimeError("there is no result yet; add lines and call parse first")
        return self._parsed
