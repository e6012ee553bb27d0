"""The cost of an epoch of stochastic gradients in evaluations of value and gradient, measured and as the model has it.

    python benchmarks/online_cost.py [--rounds 3]

Processor seconds of one thread, the least of some rounds that take turns, on generated chains of 2 to 300 labels with 3
to 21 attributes a token. Below the table are the constants that fit best: those of `crfkit.chain.losses.online_cost`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import nnls

from crfkit.chain.encoding.sequences import learn
from crfkit.chain.losses.online_cost import counts, epoch_cost
from crfkit.chain.training.train import ChainTraining
from crfkit.synthetic import labelled_words

# labels, sequences, (least, most) tokens, words to each side, all transitions, order
CASES = [
    (2, 4000, (5, 25), 1, False, 1),
    (2, 4000, (5, 25), 10, False, 1),
    (9, 4000, (5, 25), 1, False, 1),
    (9, 4000, (15, 35), 10, False, 1),
    (22, 3000, (2, 6), 1, False, 1),
    (22, 3000, (15, 35), 5, True, 1),
    (22, 2000, (15, 35), 10, False, 1),
    (50, 1000, (5, 25), 1, True, 1),
    (50, 1000, (5, 25), 10, False, 1),
    (100, 1000, (2, 6), 3, False, 1),
    (100, 500, (15, 35), 1, True, 1),
    (300, 300, (5, 25), 1, False, 1),
    (300, 300, (5, 25), 1, True, 1),
    (300, 300, (2, 6), 10, False, 1),
    (9, 1000, (5, 25), 3, False, 2),
    (22, 300, (5, 25), 3, False, 2),
]


def least(works: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The least processor seconds of each; they take turns, after a round that is not counted."""
    best = [np.inf] * len(works)
    for turn in range(rounds + 1):
        for k, work in enumerate(works):
            begin = time.process_time()
            work()
            taken = time.process_time() - begin
            best[k] = min(best[k], taken) if turn else np.inf
    return best


def measured(rounds: int) -> Iterator[tuple[Any, float, float]]:
    """(the loss, seconds of an evaluation, seconds of an epoch) of every case."""
    for n_labels, n, length, context, every, order in CASES:
        corpus = learn(*labelled_words(n, n_labels, length, context), None, 1)
        training = ChainTraining(n_threads=1, all_possible_transitions=every, order=order)
        field, _ = training.make_field(corpus.data, corpus.vocabulary, corpus.classes.tolist())
        loss = training.make_loss(corpus.data, field)
        online, w = loss.online(), np.full(field.size, 0.01)
        online.start(w)
        batch, epoch = least(
            [
                lambda loss=loss, w=w: loss.at(w).value,
                lambda online=online, n=n: online.sgd(np.arange(n), np.full(n, 1e-3), 1.0, 0.0, False),
            ],
            rounds,
        )
        yield loss, batch, epoch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rows = []
    print("labels  order  tokens/sequence  attributes/token   evaluation ms   epoch ms   ratio   model")
    for loss, batch, epoch in measured(parser.parse_args().rounds):
        data, field = loss.data, loss.field
        size = data.n_positions, len(data.attributes), len(data)
        rows.append((counts(*size, field), batch, epoch))
        print(
            f"{field.n_labels:6d} {field.order:6d} {data.n_positions / len(data):16.1f} "
            f"{len(data.attributes) / data.n_positions:17.1f} {1e3 * batch:15.2f} {1e3 * epoch:10.2f} "
            f"{epoch / batch:7.2f} {epoch_cost(*size, field, 1):7.2f}",
            flush=True,
        )
    table, batch, epoch = (np.array(column) for column in zip(*rows, strict=True))
    for name, seconds in (("evaluation", batch), ("epoch", epoch)):
        used = table if name == "epoch" else table * [1, 1, 1, 0]
        fitted, _ = nnls(used / seconds[:, None], np.ones(len(seconds)))  # relative errors count alike
        off = np.abs(used @ fitted / seconds - 1)
        constants = ", ".join(f"{1e9 * x:.3f}" for x in fitted)
        print(f"{name}: {constants} ns each; off by {off.mean():.0%}, at most {off.max():.0%}")


if __name__ == "__main__":
    main()
