"""Tag frames of Spark with a trained chain: a function for ``DataFrame.mapInPandas``. It does not need pyspark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from crfkit._values import Frame, Label
from crfkit.distributed.frame_rows import BATCH, FrameOptions, Rows, frame_options, label_type, last_run, tag_rows
from crfkit.distributed.worker_models import Source, model_source
from crfkit.errors import DataError

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

REMEMBERED = 100_000  # sentences, of those that were tagged last


def tag_in_pandas(
    model: object,
    sequence: str | None = None,
    token: str | Sequence[str] | None = None,
    label: str = "predicted",
    probability: bool = False,
    position: str | None = None,
    batch_size: int = BATCH,
) -> Callable[[Iterable[Frame]], Iterator[Frame]]:
    """Return a function for Spark's ``DataFrame.mapInPandas``, which adds a column of labels.

    Rows of a sentence must be in one partition of Spark and lie together; see the how-to page "How do I tag on a
    cluster?". Spark hands over a partition in batches. A sentence that continues in the next batch is held back until
    it is complete. Spark itself is not needed here: the function takes any iterable of pandas frames.

    The parameters are as in :func:`tag_dataframe`.

    >>> import pandas as pd
    >>> from crfkit import ChainCRF
    >>> table = pd.DataFrame({"sentence": [0, 0, 1], "word": ["the", "cat", "cat"], "tag": ["DET", "NOUN", "NOUN"]})
    >>> crf = ChainCRF(features="pos").fit_frame(table, label="tag", token="word")
    >>> function = tag_in_pandas(crf)
    >>> [frame["predicted"].tolist() for frame in function([table[:1], table[1:]])]
    [['DET'], ['NOUN'], ['NOUN']]
    """
    options = frame_options(sequence, token, label, probability, position, batch_size)
    return PandasTagger(model_source(model), options)


@dataclass(frozen=True, eq=False)
class PandasTagger:
    """Tag pandas frames one after the other, as if they were one frame."""

    source: Source
    options: FrameOptions

    def __call__(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Yield the frames with their labels, in parts; rows keep their order."""
        model = self.source.model()
        dtype, seen = label_type(model), Seen()
        for part in self._parts(model, frames):
            pieces = [rows for _, rows in part]
            rows = sum(pieces[1:], pieces[0])
            seen.add(rows.names)
            labels, chances = tag_rows(model, rows, self.options.batch_size, self.options.probability)
            begin = 0
            for frame, own in part:
                mine = slice(begin, begin + len(own))
                yield self.options.tagged(frame, labels[mine], chances and chances[mine], dtype)
                begin += len(own)

    def _parts(self, model: ChainModel, frames: Iterable[Frame]) -> Iterator[list[tuple[Frame, Rows]]]:
        """Yield frames, or parts of them, that have whole sentences when they are taken together."""
        held: list[tuple[Frame, Rows]] = []  # of the sentence that may continue
        for frame in frames:
            if not len(frame):
                continue
            columns = self.options.columns(model, frame)
            rows = self.options.rows(frame, columns, not model.vocabulary.takes_columns)
            end = len(rows) - last_run(rows.names)
            if not end and held and held[-1][1].names[-1] == rows.names[0]:
                held.append((frame, rows))
                continue
            whole = [*held, (frame.iloc[:end], rows.part(0, end))] if end else held
            if whole:
                yield whole
            held = [(frame.iloc[end:], rows.part(end, len(rows)))]
        if held:
            yield held


class Seen:
    """The sentences that were tagged last, to notice rows of a sentence that do not lie together."""

    def __init__(self) -> None:
        self._names: dict[Label, None] = {}

    def add(self, names: Iterable[Label]) -> None:
        new = dict.fromkeys(names)
        if again := [name for name in new if name in self._names]:
            raise DataError(
                f"rows of the sentence {again[0]!r} do not lie together; sort the frame by sentence and position "
                "before it is tagged, as in frame.repartition('sentence').sortWithinPartitions('sentence', 'position')"
            )
        self._names |= new
        for name in list(islice(self._names, max(0, len(self._names) - REMEMBERED))):
            del self._names[name]
