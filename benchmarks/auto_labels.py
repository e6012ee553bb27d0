"""`auto` beside `lbfgs` on generated chains of 2 to 300 labels: seconds, evaluations, epochs.

    python benchmarks/auto_labels.py [--labels 2,10,30,100,300] [--sequences 1000] [--strength 1] [--threads 2]
        [--rounds 2] [--seed 1]

The solvers take turns; the least wall-clock seconds of the rounds are printed. `first row` is when callbacks see the
first iteration after the start.
"""

from __future__ import annotations

import argparse
import os

import numpy as np

from crfkit.chain.encoding.sequences import learn
from crfkit.chain.training.train import ChainTraining
from crfkit.penalties import L2
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.stochastic_start import epochs_that_pay
from crfkit.synthetic import labelled_words
from crfkit.training.options import SolverOptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", default="2,10,30,100,300")
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--strength", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("labels  solver   seconds  first row  evaluations  epochs   objective")
    for n_labels in map(int, options.labels.split(",")):
        corpus = learn(*labelled_words(options.sequences, n_labels, seed=options.seed), None, 1)
        training = ChainTraining(n_threads=options.threads)
        field, _ = training.make_field(corpus.data, corpus.vocabulary, corpus.classes.tolist())
        loss = training.make_loss(corpus.data, field)
        found = {"auto": [], "lbfgs": []}
        for _ in range(options.rounds):
            for name, results in found.items():
                solver = SolverOptions(solver=name).make_solver()
                results.append(solver.minimize(loss, L2(options.strength), np.zeros(field.size)))
        for name, results in found.items():
            best = min(results, key=lambda result: result.seconds)
            epochs = epochs_that_pay(Objective(loss, L2(options.strength))) if name == "auto" else 0
            print(
                f"{n_labels:6d}  {name:6s} {best.seconds:9.2f} {best.trace[1].seconds:10.2f} {best.evaluations:12d} "
                f"{epochs:7d} {best.value:11.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
