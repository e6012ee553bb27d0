"""CRF++ the slow and obvious way: features by name, every labelling of every sentence, sums over all of them.

The objective of C is Σ log Z − score(gold) + ‖w‖²/(2C), or + ‖w‖₁/C. A feature U… has a weight for each label, B… one
for each pair of labels. Features that occur at least `freq` times are numbered in the order of their bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from itertools import product

import numpy as np
from scipy.special import logsumexp

from crfkit.synthetic import entity_corpus

KIND = {"O": "O", "DATE": "T"}  # all others are names


def short_sentences(n, seed, length=4):
    """The beginnings of generated sentences: word, shape and one of the labels N (of names), O, T (of times)."""
    return [
        [(word, shape, KIND.get(label.split("-")[-1], "N")) for word, shape, label in sentence[:length]]
        for sentence in entity_corpus(n, seed)
    ]


def expand(line, rows, t):
    """The feature of a template line at position t."""

    def cell(match):
        row, column = t + int(match[1]), int(match[2])
        if row < 0:
            return f"_B{row}"
        return f"_B+{row - len(rows) + 1}" if row >= len(rows) else rows[row][column]

    return re.sub(r"%x\[(-?\d+),(\d+)\]", cell, line)


class Twin:
    """The features and all labellings of a training set."""

    def __init__(self, sentences, template, freq=1):
        self.lines = [line for line in template.split("\n") if line and not line.startswith("#")]
        self.labels = sorted({label for sentence in sentences for _, _, label in sentence})
        self.sentences, L = sentences, len(self.labels)
        seen = Counter(name for s in sentences for t in range(len(s)) for name in self.features(s, t))
        self.starts, self.size = {}, 0
        for name in sorted((name for name, n in seen.items() if n >= freq), key=str.encode):
            self.starts[name] = self.size
            self.size += L if name[0] == "U" else L * L

    def features(self, rows, t):
        """Those of transitions are for positions that have a label before them."""
        return [expand(line, rows, t) for line in self.lines if t or line[0] == "U"]

    def labellings(self, rows):
        """All of them; of those with equal scores, Viterbi's algorithm finds the first."""
        return [y[::-1] for y in product(range(len(self.labels)), repeat=len(rows))]

    def counts(self, rows):
        """[labelling, weight]: how often it uses each weight."""
        L, found = len(self.labels), np.zeros((len(self.labels) ** len(rows), self.size))
        starts = [[(self.starts.get(name), name[0]) for name in self.features(rows, t)] for t in range(len(rows))]
        for k, y in enumerate(self.labellings(rows)):
            for t, here in enumerate(starts):
                for start, kind in here:
                    if start is not None:
                        found[k, start + (y[t] if kind == "U" else y[t - 1] * L + y[t])] += 1
        return found

    @cached_property
    def training(self):
        """Per sentence: (counts, the number of its gold labelling, wrong labels of each labelling)."""
        found = []
        for rows in self.sentences:
            gold = tuple(self.labels.index(label) for _, _, label in rows)
            ys = self.labellings(rows)
            wrong = np.array([sum(a != b for a, b in zip(y, gold, strict=True)) for y in ys])
            found.append((self.counts(rows), ys.index(gold), wrong))
        return found

    def likelihood(self, w):
        """(negative log-likelihood, its gradient)"""
        value, gradient = 0.0, np.zeros(self.size)
        for counts, gold, _ in self.training:
            scores = counts @ w
            log_z = logsumexp(scores)
            value += log_z - scores[gold]
            gradient += np.exp(scores - log_z) @ counts - counts[gold]
        return value, gradient

    def errors(self, w):
        """(least, most) of [share of tokens, share of sentences] that best labellings have wrong.

        They differ where labellings have equal scores, which rounding then decides."""
        tied = [wrong[scores >= scores.max() - 1e-9] for scores, wrong in ((c @ w, m) for c, _, m in self.training)]
        tokens = sum(map(len, self.sentences))
        for wrong in (np.array([least(some) for some in tied]) for least in (np.min, np.max)):
            yield wrong.sum() / tokens, np.mean(wrong > 0)

    def text_model(self, w):
        """What `crf_learn -t` writes."""
        parts = [
            ["version: 100", "cost-factor: 1", f"maxid: {self.size}", "xsize: 2"],
            self.labels,
            self.lines,
            [f"{start} {name}" for name, start in self.starts.items()],
            [f"{x:.16f}" for x in w],
        ]
        return "\n\n".join("\n".join(part) for part in parts) + "\n"

    def printed(self, sentences, w, verbose=0, nbest=0):
        """What `crf_test -v` or `-n` prints."""
        text = ""
        for rows in sentences:
            scores, ys = self.counts(rows) @ w, np.array(self.labellings(rows))
            p = np.exp(scores - logsumexp(scores))
            node = [[p[ys[:, t] == j].sum() for j in range(len(self.labels))] for t in range(len(rows))]
            for rank, k in enumerate(np.argsort(-p, kind="stable")[: nbest or 1]):
                text += f"# {rank} {p[k]:.6f}\n" if nbest else f"# {p[k]:.6f}\n" if verbose else ""
                for t, row in enumerate(rows):
                    text += "\t".join([*row, self.labels[ys[k, t]]])
                    text += f"/{node[t][ys[k, t]]:.6f}" if verbose else ""
                    if verbose == 2:
                        pairs = zip(self.labels, node[t], strict=True)
                        text += "".join(f"\t{name}/{chance:.6f}" for name, chance in pairs)
                    text += "\n"
                text += "\n"
        return text


def best(scores):
    """The first of the largest, whatever the last bits of sums."""
    return int(np.argmax(np.round(scores, 9)))


def lbfgs_trace(twin, C, eta, memory=5):
    """Every point that Nocedal's L-BFGS evaluates, where each line search takes its first trial: [(w, objective)]."""

    def at(w):
        value, gradient = twin.likelihood(w)
        return value + w @ w / (2 * C), gradient + w / C

    w, trace, pairs, small = np.zeros(twin.size), [], [], 0
    value, gradient = at(w)
    trace.append((w, value))
    step, direction = 1 / np.linalg.norm(gradient), -gradient
    while small < 3:
        following = w + step * direction
        ahead, slope = at(following)
        change = abs(ahead - value) / value
        small = small + 1 if change < eta else 0
        trace.append((following, ahead))
        # What Moré and Thuente ask of a step: less than the start, and a slope that is less steep.
        assert ahead <= value + 1e-4 * step * (gradient @ direction)
        assert abs(slope @ direction) <= 0.9 * abs(gradient @ direction)
        pairs = [*pairs, (following - w, slope - gradient)][-memory:]
        w, value, gradient, step = following, ahead, slope, 1.0
        direction, inner = -gradient, []
        for s, y in reversed(pairs):
            inner.append(s @ direction / (s @ y))
            direction = direction - inner[-1] * y
        s, y = pairs[-1]
        direction = direction * (s @ y) / (y @ y)
        for (s, y), a in zip(pairs, reversed(inner), strict=True):
            direction = direction + (a - y @ direction / (s @ y)) * s
    return trace


def mira_trace(twin, C, shrinking=20):
    """(lines of `crf_learn -a MIRA`, its weights)"""
    n, lines = len(twin.sentences), []
    w, used, right, all_right = np.zeros(twin.size), np.zeros(n), np.zeros(n, dtype=int), 0
    tokens = sum(map(len, twin.sentences))
    while all_right < 2:
        active = np.flatnonzero(right < shrinking)
        wrong, sentences, full, violation = 0, 0, 0, 0.0
        for k in active:
            counts, gold, mistakes = twin.training[k]
            scores = counts @ w
            found = best(scores)
            if mistakes[found] == 0:
                right[k] += 1
                continue
            right[k], wrong, sentences = 0, wrong + mistakes[found], sentences + 1
            change = counts[gold] - counts[found]
            lack = mistakes[found] - (scores[found] - scores[gold])
            step = max(0.0, lack / (change @ change))
            if used[k] + step > C:
                step, full = C - used[k], full + 1
            else:
                violation = max(violation, lack)
            used[k] += step
            w = w + step * change
        lines.append(
            f"iter={len(lines)} terr={wrong / tokens:.5f} serr={sentences / n:.5f} act={len(active)} uact={full} "
            f"obj={w @ w:.5f} kkt={violation:.5f}"
        )
        all_right = all_right + 1 if violation <= 0 else 0
        if violation <= 0:
            right[:] = 0
    return lines, w
