"""A BiLSTM-CRF with crfkit.torch next to a CRF on hand-made features: F1, seconds and parameters on CoNLL-2000.

    python benchmarks/bilstm_crf.py [--epochs 6] [--threads 2] [--sentences 8936] [--output results/bilstm_crf.json]

The network reads words (lower-cased; those that occur once are unknown), parts of speech and characters of each word,
which a convolution sums up. Nothing is pretrained. Both are trained on all of train.txt and scored once, on test.txt.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from common import RESULTS, SHARED, machine, say
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from crfkit import ChainCRF, Template, evaluate, read_columns
from crfkit.torch import CRF

DATA = SHARED / "data" / "conll2000"
UNKNOWN, PADDING = 1, 0
MOST_CHARACTERS = 20  # of a word that are read
Sentence = list[tuple[str, ...]]


class Ids:
    """Numbers for words, parts of speech, characters and labels that occur often enough."""

    def __init__(self, values: list[str], least: int = 1) -> None:
        counts = Counter(values)
        kept = sorted(value for value, count in counts.items() if count >= least)
        self.number = {value: k for k, value in enumerate(kept, start=2)}

    def __call__(self, value: str) -> int:
        return self.number.get(value, UNKNOWN)

    def __len__(self) -> int:
        return len(self.number) + 2


class Encoder:
    def __init__(self, rows: list[Sentence], labels: list[list[str]]) -> None:
        words = [word for row in rows for word, *_ in row]
        self.words = Ids([word.lower() for word in words], least=2)
        self.tags = Ids([tag for row in rows for _, tag, *_ in row])
        self.characters = Ids([c for word in words for c in word])
        self.labels = sorted({label for row in labels for label in row})

    def encode(self, row: Sentence) -> tuple[Tensor, Tensor]:
        """Return words and parts of speech [time, 2], characters [time, MOST_CHARACTERS]."""
        both = torch.tensor([[self.words(word.lower()), self.tags(tag)] for word, tag, *_ in row])
        spelt = torch.zeros(len(row), MOST_CHARACTERS, dtype=torch.long)
        for t, (word, *_) in enumerate(row):
            found = [self.characters(c) for c in word[:MOST_CHARACTERS]]
            spelt[t, : len(found)] = torch.tensor(found)
        return both, spelt

    def encode_labels(self, row: list[str]) -> Tensor:
        ids = {label: k for k, label in enumerate(self.labels)}
        return torch.tensor([ids[label] for label in row])


class Tagger(nn.Module):
    def __init__(self, encoder: Encoder, hidden: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(len(encoder.words), 100, PADDING)
        self.tags = nn.Embedding(len(encoder.tags), 24, PADDING)
        self.characters = nn.Embedding(len(encoder.characters), 24, PADDING)
        self.spelling = nn.Conv1d(24, 48, 3, padding=1)
        self.dropout = nn.Dropout(0.5)
        self.lstm = nn.LSTM(100 + 24 + 48, hidden, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(2 * hidden, len(encoder.labels))
        self.crf = CRF(len(encoder.labels), batch_first=True, labels=encoder.labels, scheme="iob2")

    def emissions(self, both: Tensor, spelt: Tensor) -> Tensor:
        batch, time_, letters = spelt.shape
        characters = self.characters(spelt).view(batch * time_, letters, -1).transpose(1, 2)
        spelling = self.spelling(characters).amax(2).view(batch, time_, -1)
        words = torch.cat([self.words(both[:, :, 0]), self.tags(both[:, :, 1]), spelling], dim=2)
        return self.scores(self.dropout(self.lstm(self.dropout(words))[0]))


def batches(rows: list[Any], size: int, shuffled: bool) -> list[list[int]]:
    """Return sentences of like length together; the batches in random order."""
    order = sorted(range(len(rows)), key=lambda n: len(rows[n][0]))
    made = [order[k : k + size] for k in range(0, len(order), size)]
    return [made[k] for k in torch.randperm(len(made)).tolist()] if shuffled else made


def padded(rows: list[tuple[Tensor, Tensor]], ids: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    both, spelt = (pad_sequence([rows[n][k] for n in ids], batch_first=True) for k in (0, 1))
    return both, spelt, both[:, :, 0] != PADDING


def train(tagger: Tagger, rows: list[Any], labels: list[Tensor], epochs: int, size: int) -> dict[str, Any]:
    optimiser = torch.optim.Adam(tagger.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.1, epochs)
    begin, in_layer, losses = time.perf_counter(), 0.0, []
    for epoch in range(epochs):
        tagger.train()
        total = 0.0
        for ids in batches(rows, size, shuffled=True):
            both, spelt, mask = padded(rows, ids)
            tags = pad_sequence([labels[n] for n in ids], batch_first=True)
            optimiser.zero_grad()
            emissions = tagger.emissions(both, spelt)
            cut = emissions.detach().requires_grad_()  # so that the layer's share can be timed
            started = time.perf_counter()
            loss = -tagger.crf(cut, tags, mask) / len(ids)
            loss.backward()
            in_layer += time.perf_counter() - started
            emissions.backward(cut.grad)
            nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
            optimiser.step()
            total += float(loss) * len(ids)
        schedule.step()
        losses.append(round(total, 1))
        say(f"epoch {epoch + 1}: loss {total:.1f}")
    return {"seconds": time.perf_counter() - begin, "seconds_in_crf_layer": in_layer, "losses": losses}


@torch.no_grad()
def predict(tagger: Tagger, encoder: Encoder, rows: list[Any]) -> list[list[str]]:
    tagger.eval()
    found: list[list[str]] = [[] for _ in rows]
    for ids in batches(rows, 64, shuffled=False):
        both, spelt, mask = padded(rows, ids)
        for n, tags in zip(ids, tagger.crf.decode(tagger.emissions(both, spelt), mask), strict=True):
            found[n] = [encoder.labels[k] for k in tags]
    return found


def neural(data: tuple[Any, ...], epochs: int, size: int) -> dict[str, Any]:
    X, y, X_test, y_test = data
    torch.manual_seed(0)
    encoder = Encoder(X, y)
    tagger = Tagger(encoder)
    rows, labels = [encoder.encode(row) for row in X], [encoder.encode_labels(row) for row in y]
    found = train(tagger, rows, labels, epochs, size)
    predicted = predict(tagger, encoder, [encoder.encode(row) for row in X_test])
    return {
        "f1": evaluate(y_test, predicted).overall.f1,
        "parameters": sum(p.numel() for p in tagger.parameters()),
        "epochs": epochs,
        **found,
    }


def with_features(data: tuple[Any, ...]) -> dict[str, Any]:
    X, y, X_test, y_test = data
    crf = ChainCRF(Template.read(DATA / "chunking.template"), constraints="iob2")
    begin = time.perf_counter()
    crf.fit([[list(token) for token in row] for row in X], y)
    taken = time.perf_counter() - begin
    predicted = crf.predict([[list(token) for token in row] for row in X_test])
    return {
        "f1": evaluate(y_test, predicted).overall.f1,
        "parameters": int(crf.model_.inference.w.size),
        "seconds": taken,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--sentences", type=int, help="of the training data. Default: all")
    parser.add_argument("--output", type=Path, default=RESULTS / "bilstm_crf.json")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    X, y = read_columns(DATA / "train.txt")
    X_test, y_test = read_columns(DATA / "test.txt")
    data = (X[: given.sentences], y[: given.sentences], X_test, y_test)
    report: dict[str, Any] = {
        "machine": machine(),
        "torch": torch.__version__,
        "torch_threads": given.threads,
        "sentences": len(data[0]),
    }
    for name, run in {
        "features": lambda: with_features(data),
        "bilstm": lambda: neural(data, given.epochs, given.batch),
    }.items():
        report[name] = run()
        say(f"{name}: {report[name]}")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
