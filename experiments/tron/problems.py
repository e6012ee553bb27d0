"""The two tasks of the comparison: chunking and Spanish named entities, with weights for observed pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crfkit import Template, read_columns
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.fields.field import ChainField
from crfkit.losses import ChainLikelihood

TEMPLATE = "conll2000/chunking.template"  # words and parts of speech around a position; both tasks have these columns
FILES = {"chunking": "conll2000/train.txt", "Spanish NER": "conll2002_spanish/esp.train"}


@dataclass(frozen=True)
class Problem:
    """A likelihood without its penalty, and what a reader wants to know of its size."""

    loss: ChainLikelihood
    sequences: int
    tokens: int
    labels: int

    @classmethod
    def read(cls, task: str, data: Path, sequences: int | None = None) -> Problem:
        """Read a task from the data folder, the first so many sequences of it or all."""
        rows, labels = (part[:sequences] for part in read_columns(data / FILES[task]))
        corpus = learn(rows, labels, Template.read(data / TEMPLATE), 1)
        n_labels, n_attributes = len(corpus.classes), len(corpus.vocabulary.attributes)
        field = ChainField.from_data(corpus.data, n_labels, n_attributes, all_states=False, all_transitions=False)
        loss = ChainLikelihood(corpus.data, field, 1)
        return cls(loss, len(corpus.data), corpus.data.n_positions, n_labels)

    def another_loss(self) -> ChainLikelihood:
        """Return the same loss, with a memory of its own for what products need."""
        return ChainLikelihood(self.loss.data, self.loss.field, 1)

    def sizes(self) -> dict[str, int]:
        """Return the numbers that describe the problem."""
        return {
            "weights": self.loss.size,
            "sequences": self.sequences,
            "tokens": self.tokens,
            "labels": self.labels,
        }
