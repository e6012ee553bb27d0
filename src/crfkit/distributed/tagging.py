"""Tag bags and frames of Dask with a trained chain.

What is sent of a model is the name of its file, or the arrays in it; a worker process loads it once. A task tags with
one thread, because Dask runs a task for each core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice

from crfkit._checks import check_count
from crfkit._values import Delayed, Frame
from crfkit.chain.encoding.frames import FrameColumns
from crfkit.distributed.frame_rows import (
    BATCH,
    FrameOptions,
    Rows,
    first_run,
    frame_options,
    label_type,
    last_run,
    names_of,
    tag_rows,
)
from crfkit.distributed.worker_models import ModelParts, Source, local_model, model_source
from crfkit.errors import DataError, ParameterError
from crfkit.extras import load
from crfkit.names import check_name

# what can be asked for: the method of the model, and the options that it takes
QUESTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "labels": ("predict", ()),
    "spans": ("predict_spans", ("min_probability",)),
    "marginals": ("predict_marginals", ()),
    "nbest": ("predict_nbest", ("n",)),
    "decoded": (
        "decode",
        ("n", "method", "constraints", "contiguous", "min_confidence", "abstain", "entropy", "search_limit"),
    ),
}


# --- bags


def tag_bag(model: object, bag: object, what: str = "labels", batch_size: int = BATCH, **options: object) -> Delayed:
    """Return a Dask bag with the prediction of each sequence of a bag, in the same order and partitions.

    Nothing is computed yet; the bag may be written, reduced or computed with any scheduler of Dask.

    Parameters
    ----------
    model : the path of a model file that every worker can read, an address such as "s3://bucket/model.crf", or a
        ChainModel or fitted ChainCRF, which is sent to each worker once
    bag : a ``dask.bag.Bag`` of sequences in the form that `ChainCRF.predict` takes
    what : "labels", or "spans", "marginals", "nbest", "decoded": what `predict_spans`, `predict_marginals`,
        `predict_nbest` and `decode` return for a sequence
    batch_size : sequences that are encoded at a time; fewer take less memory
    options : options of the method: `min_probability` of spans, `n` of nbest and decoded, and so on

    >>> import dask.bag
    >>> from crfkit import ChainCRF
    >>> X = [[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"], ["w=sat"]]]
    >>> crf = ChainCRF().fit(X, [["DET", "NOUN"], ["DET", "NOUN", "VERB"]])
    >>> tag_bag(crf, dask.bag.from_sequence(X, npartitions=2)).compute(scheduler="synchronous")
    [['DET', 'NOUN'], ['DET', 'NOUN', 'VERB']]
    """
    check_name("prediction", what, QUESTIONS)
    check_count(batch_size=batch_size)
    known = QUESTIONS[what][1]
    if wrong := [name for name in options if name not in known]:
        raise ParameterError(
            f"{what} of a bag have no option {wrong[0]!r}; they have {', '.join(known) if known else 'none'}"
        )
    bags = load("dask.bag", "tag_bag needs")
    if not isinstance(bag, bags.Bag):
        raise ParameterError(
            f"bag must be a dask.bag.Bag, not {type(bag).__name__}; make one with dask.bag.from_sequence"
        )
    source = _sent(model_source(model))
    return bag.map_partitions(_tag_partition, source, what, batch_size, options, token="crfkit-tag-bag")


def _tag_partition(
    sequences: Iterable[object], source: Source, what: str, batch_size: int, options: dict[str, object]
) -> list[object]:
    answer = getattr(source.model(), QUESTIONS[what][0])
    remaining, found = iter(sequences), []
    for begin in count(0, batch_size):
        batch = list(islice(remaining, batch_size))
        if not batch:
            break
        for k, sequence in enumerate(batch):
            if isinstance(sequence, (str, bytes, dict)) or not hasattr(sequence, "__len__"):
                raise DataError(
                    f"item {begin + k} of a partition of the bag is a {type(sequence).__name__}; expected a sequence: "
                    "a list of tokens or of their features"
                )
        with _in(f"a partition of the bag, from item {begin} on"):
            found += answer(batch, **options)
    return found


# --- frames of Dask


def tag_dataframe(
    model: object,
    frame: Frame,
    sequence: str | None = None,
    token: str | Sequence[str] | None = None,
    label: str = "predicted",
    probability: bool = False,
    position: str | None = None,
    borders: bool = True,
    batch_size: int = BATCH,
) -> Frame:
    """Return a Dask DataFrame with a further column of labels; it has a row per token, as `ChainCRF.predict_frame`.

    Nothing is computed yet. Rows, index, partitions and divisions stay unchanged. The rows of a sentence must be in
    one partition, or at the end of one and the beginning of the next. See the how-to page "How do I tag on a cluster?"
    for frames in any other order.

    Parameters
    ----------
    model : the path of a model file that this process and every worker can read, an address such as
        "s3://bucket/model.crf", or a ChainModel or fitted ChainCRF, which is sent to each worker once
    frame : a ``dask.dataframe.DataFrame``
    sequence, token : columns of the sentence and of the token, by default as in `ChainCRF.fit_frame`. The sentence
        may also be the index
    label : name of the new column
    probability : whether to add a column "probability" with the label's marginal probability
    position : column of the place of the token in its sentence, by which its rows are sorted. Needed after a shuffle;
        without it, rows are in order
    borders : whether a sentence may continue in the next partition. False avoids reading neighbours, and is needed if
        different sentences that meet at a border have the same name
    batch_size : sentences that are encoded at a time; fewer take less memory

    >>> import dask.dataframe, pandas as pd
    >>> from crfkit import ChainCRF
    >>> table = pd.DataFrame({"sentence": [0, 0, 1], "word": ["the", "cat", "cat"], "tag": ["DET", "NOUN", "NOUN"]})
    >>> crf = ChainCRF(features="pos").fit_frame(table, label="tag", token="word")
    >>> found = tag_dataframe(crf, dask.dataframe.from_pandas(table, npartitions=2))
    >>> found.compute(scheduler="synchronous")["predicted"].tolist()
    ['DET', 'NOUN', 'NOUN']
    """
    options = frame_options(sequence, token, label, probability, position, batch_size)
    frames = load("dask.dataframe", "tag_dataframe needs")
    if not isinstance(frame, frames.DataFrame):
        raise ParameterError(
            f"frame must be a dask.dataframe.DataFrame, not {type(frame).__name__}; make one with "
            "dask.dataframe.from_pandas, or use predict_frame"
        )
    source = model_source(model)
    trained = local_model(source)
    columns = options.columns(trained, frame._meta)
    meta = options.tagged(frame._meta, [], [] if probability else None, label_type(trained))
    apart = frame.known_divisions and frame.index.name == columns.sequence  # an index value is in one partition only
    work = FrameWork(options, columns, not trained.vocabulary.takes_columns)
    return frames.from_delayed(
        _tagged_parts(frame, _sent(source), work, borders and not apart), meta=meta, divisions=frame.divisions
    )


def _tagged_parts(frame: Frame, source: object, work: FrameWork, borders: bool) -> list[Delayed]:
    """Return the tagged partitions, as delayed objects; each reads the borders of its neighbours."""
    delayed = load("dask", "tag_dataframe needs").delayed
    tag, end, begin = (delayed(part, pure=True) for part in (work.tag, work.end, work.begin))
    parts = frame.to_delayed()
    ends: list[object] = [None] * len(parts)
    begins = list(ends)
    if borders and len(parts) > 1:
        ends[1:] = [end(part, k == 0) for k, part in enumerate(parts[:-1])]
        begins[:-1] = [begin(part, k == len(parts) - 1) for k, part in enumerate(parts) if k]
    return [tag(part, source, ends[k], begins[k], k) for k, part in enumerate(parts)]


@dataclass(frozen=True)
class Border:
    """The rows of a neighbouring partition that are next to this one and of one sentence.

    With `whole` they are the whole partition, so the sentence may have begun, or continue, beyond it.
    """

    rows: Rows
    whole: bool


@dataclass(frozen=True)
class FrameWork:
    """A function of partitions of a frame, which tags them."""

    options: FrameOptions
    columns: FrameColumns
    attributes: bool  # whether columns are attributes

    def end(self, frame: Frame, outermost: bool) -> Border:
        """Return the rows of the last sentence."""
        n = last_run(names_of(frame, self.columns.sequence))
        return self._border(frame, slice(len(frame) - n, None), outermost)

    def begin(self, frame: Frame, outermost: bool) -> Border:
        """Return the rows of the first sentence."""
        n = first_run(names_of(frame, self.columns.sequence))
        return self._border(frame, slice(n), outermost)

    def _border(self, frame: Frame, place: slice, outermost: bool) -> Border:
        part = frame.iloc[place]
        return Border(self._rows(part), len(part) == len(frame) and not outermost)

    def _rows(self, frame: Frame) -> Rows:
        return self.options.rows(frame, self.columns, self.attributes)

    def tag(self, frame: Frame, source: Source, before: Border | None, after: Border | None, number: int) -> Frame:
        """Return a partition with its labels. Sentences at its borders are tagged whole."""
        model = source.model()
        with _in(f"partition {number} of the frame"):
            own = rows = self._rows(frame)
            if len(own) and before is not None and before.rows.names[-1:] == own.names[:1]:
                rows = self._joined(before, before.rows + rows)
            begin = len(rows) - len(own)
            if len(own) and after is not None and after.rows.names[:1] == own.names[-1:]:
                rows = self._joined(after, rows + after.rows)
            labels, chances = tag_rows(model, rows, self.options.batch_size, self.options.probability)
        mine = slice(begin, begin + len(own))
        return self.options.tagged(frame, labels[mine], chances and chances[mine], label_type(model))

    def _joined(self, border: Border, rows: Rows) -> Rows:
        if border.whole:
            raise DataError(
                f"{self.columns.sequence} {border.rows.names[0]!r} takes more than two partitions; make them larger, "
                "with frame.repartition(npartitions=…), or pass borders=False if these are different sentences with "
                "the same name"
            )
        return rows


# --- what they share


def _sent(source: Source) -> Delayed:
    """Return what tasks are given of a model. Arrays are a task of their own, so that a worker gets them once."""
    if not isinstance(source, ModelParts):
        return source
    delayed = load("dask", "a model on a cluster needs").delayed
    return delayed(source, name=f"crfkit-model-{source.digest}", pure=True, traverse=False)


@contextmanager
def _in(where: str) -> Iterator[None]:
    """Add to errors about data where they are."""
    try:
        yield
    except DataError as error:
        raise DataError(f"in {where}: {error}") from None
