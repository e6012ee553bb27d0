"""Generated text of any length whose vocabulary grows as that of real text does.

A chain of parts of speech (45 of them) makes words: closed classes have a few words, open ones a long tail. With some
probability a word is one of a few that usually follow the one before, as in real collocations. Labels mark phrases that
depend on the parts of speech, with some noise. At the length of CoNLL-2000 (211,727 tokens, 19,122 words, 338,551
attributes of its template) there are about as many words and attributes, and their number grows more slowly than the
text: by 2.4 from there to a million tokens, which are 4.7 times as many.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

N_TAGS = 45
N_OPEN = 15  # tags with a long tail of words
SWITCH = 0.92  # the share of a tag's usual successors
FOLLOW = 0.42  # the share of words that one of the usual followers of the word before takes
NOISE = 0.03  # the share of labels that do not follow from the parts of speech
BLOCK = 4000  # sentences made at once
Ints = NDArray[np.int64]

TEMPLATE = "\n".join(
    [
        *(f"U{k:02}:%x[{k - 2},0]" for k in range(5)),
        "U05:%x[-1,0]/%x[0,0]",
        "U06:%x[0,0]/%x[1,0]",
        *(f"U{10 + k}:%x[{k - 2},1]" for k in range(5)),
        *(f"U{15 + k}:%x[{k - 2},1]/%x[{k - 1},1]" for k in range(4)),
        *(f"U{20 + k}:%x[{k - 2},1]/%x[{k - 1},1]/%x[{k},1]" for k in range(3)),
        "B",
    ]
)


def mixed(*parts: Ints | int) -> Ints:
    """Return hashes of integers, for choices that depend on them alone."""
    h = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        for part in parts:
            h = (h ^ np.asarray(part).astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
            h = h ^ (h >> np.uint64(29))
    return (h >> np.uint64(1)).astype(np.int64)


def ranks(tag: Ints, u: NDArray[np.float64]) -> Ints:
    """Return ranks of words, up to 10⁷ in open classes and to 40 in closed ones, from uniform numbers."""
    most = np.where(tag < N_OPEN, 1e7, 40.0)
    return np.power(most, u**2.2).astype(np.int64)


class Text:
    """Sentences of `n_labels` labels; `extra` adds columns of word properties, each of them one more attribute."""

    def __init__(self, n_labels: int = 22, extra: int = 0, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_labels, self.extra = n_labels, extra

    def blocks(self) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Yield lengths [n], and tags, words and labels [n, longest] of blocks of sentences."""
        rng = self.rng
        while True:
            lengths = np.clip(rng.gamma(4.0, 6.0, BLOCK), 2, 90).astype(np.int64)
            shape = (BLOCK, int(lengths.max()))
            tags, words, labels = (np.zeros(shape, np.int64) for _ in range(3))
            choice, usual, u, noise = (rng.random(shape) for _ in range(4))
            for t in range(shape[1]):
                before = tags[:, t - 1] if t else np.full(BLOCK, N_TAGS)
                likely = mixed(before, (6 * choice[:, t] ** 2).astype(np.int64)) % N_TAGS
                tags[:, t] = np.where(usual[:, t] < SWITCH, likely, (choice[:, t] * N_TAGS).astype(np.int64))
                if t:
                    few = mixed(words[:, t - 1], tags[:, t], (3 * u[:, t] / FOLLOW).astype(np.int64)) % (1 << 30)
                    u[:, t] = np.where(u[:, t] < FOLLOW, few / float(1 << 30), (u[:, t] - FOLLOW) / (1 - FOLLOW))
                words[:, t] = tags[:, t] // 3 * 10**8 + ranks(tags[:, t], u[:, t])  # three tags share their words
                phrase = mixed(tags[:, t], before // 9) % self.n_labels
                stays = (t > 0) & (mixed(tags[:, t], before, 7) % 3 == 0)
                labels[:, t] = np.where(stays, labels[:, t - 1] if t else 0, phrase)
                wrong = noise[:, t] < NOISE
                labels[wrong, t] = (noise[wrong, t] / NOISE * self.n_labels).astype(np.int64)
            yield lengths, tags, words, labels

    def lines(self, n_tokens: int) -> Iterator[str]:
        """Yield the lines of a column file of about this many tokens: word, part of speech, …, label."""
        made = 0
        for lengths, tags, words, labels in self.blocks():
            for n, tag, word, label in zip(lengths.tolist(), tags, words, labels, strict=True):
                if made >= n_tokens:
                    return
                made += n
                for w, p, y in zip(word[:n].tolist(), tag[:n].tolist(), label[:n].tolist(), strict=True):
                    more = "".join(f" {w % (997 + 2 * k)}x" for k in range(self.extra))
                    yield f"w{w} P{p}{more} L{y}\n"
                yield "\n"

    @property
    def template(self) -> str:
        """The template: that of CoNLL-2000, and one attribute for each further column."""
        lines = [f"U{30 + k}:%x[0,{2 + k}]" for k in range(self.extra)]
        return "\n".join([*lines, TEMPLATE]) + "\n"

    def write(self, path: Path, n_tokens: int) -> Path:
        """Write a column file, unless it is there."""
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".part")
            with unfinished.open("w", encoding="utf-8") as file:
                file.writelines(self.lines(n_tokens))
            unfinished.replace(path)
        return path
