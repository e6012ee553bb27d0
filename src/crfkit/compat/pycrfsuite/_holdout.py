"""The evaluation on the holdout group that CRFsuite reports after every iteration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crfkit._types import Floats
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.compat.pycrfsuite._limits import thread_limit


@dataclass(frozen=True)
class Holdout:
    """Labelled sequences that are tagged with the weights of an iteration."""

    data: SequenceData
    field: ChainField
    labels: Sequence[str]

    def report(self, w: Floats) -> Iterator[str]:
        """Yield the lines of the report: counts and scores by label, their averages, and the share that is right."""
        data, n = self.data, len(self.labels)
        gold = data.labels
        assert gold is not None
        found = ChainInference(self.field, w, thread_limit()).decode(data)[0]
        right = gold == found
        match, model, reference = (np.bincount(ids, minlength=n) for ids in (gold[right], found, gold))
        precision = match / np.maximum(model, 1)
        recall = match / np.maximum(reference, 1)
        total = precision + recall
        f1 = np.divide(2 * precision * recall, total, out=np.zeros(n), where=total > 0)
        yield "Performance by label (#match, #model, #ref) (precision, recall, F1):\n"
        for k, label in enumerate(self.labels):
            counts = f"    {label}: ({match[k]}, {model[k]}, {reference[k]})"
            if reference[k] == 0:
                yield f"{counts} (******, ******, ******)\n"
            else:
                yield f"{counts} ({precision[k]:.4f}, {recall[k]:.4f}, {f1[k]:.4f})\n"
        known = reference > 0
        averages = ", ".join(f"{score[known].sum() / max(n, 1):f}" for score in (precision, recall, f1))
        yield f"Macro-average precision, recall, F1: ({averages})\n"
        wrong = np.concatenate([[0], np.cumsum(~right)])
        whole = int((np.diff(wrong[data.starts]) == 0).sum())
        yield _share("Item", int(right.sum()), len(gold))
        yield _share("Instance", whole, len(data))


def _share(what: str, right: int, total: int) -> str:
    return f"{what} accuracy: {right} / {total} ({right / max(total, 1):.4f})\n"
