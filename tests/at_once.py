"""Run predictions and fits in several threads at once, and compare them with those of one after the other.

`make sanitize` runs this on a core that watches for races; by itself it checks the results.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from crfkit import L1, ChainCRF, GraphCRF, GridCRF, StructureLearner
from crfkit.synthetic import disc_images, entity_words

WORKERS = 4
Job = Callable[[], Any]


def tagging() -> dict[str, Job]:
    """Return what many threads may ask of one tagger."""
    X, y = entity_words(150)
    crf = ChainCRF(features="ner", n_threads=2, max_iterations=10).fit(X, y)
    return {
        "predict": lambda: crf.predict(X),
        "predict one by one": lambda: [crf.predict([x])[0] for x in X[:60]],
        "marginals": lambda: crf.predict_marginals(X[:40]),
        "nbest": lambda: crf.predict_nbest(X[:40], 5),
        "spans": lambda: crf.predict_spans(X[:40]),
        "sample": lambda: crf.sample(X[:20], 3, random_state=0),
        "explain": lambda: str(crf.explain(X[0])),
    }


def training() -> dict[str, Job]:
    """Return fits of chains, tables, grids and structures, each on two threads of its own."""
    X, y = entity_words(60)
    chains: dict[str, dict[str, Any]] = {
        "lbfgs": {"solver": "lbfgs"},
        "the stochastic start": {},
        "tron": {"solver": "tron"},
        "owlqn": {"solver": "owlqn", "penalty": L1(0.5)},
        "order 2": {"order": 2},
        "hinge": {"loss": "hinge", "solver": "sgd"},
    }

    def fit_chain(options: dict[str, Any]) -> Any:
        return ChainCRF(features="ner", n_threads=2, max_iterations=3, **options).fit(X, y).coef_

    rng = np.random.default_rng(0)
    features, binary = rng.normal(size=(60, 3)), rng.integers(0, 2, (60, 5))
    images, masks = disc_images(2, shape=(16, 20))
    pictures = [image / 255.0 for image in images]

    def fit_pairs(estimator: Any, inputs: Any, labels: Any) -> Any:
        found = estimator.fit(inputs, labels)
        return [
            *found.node_weights_.values(),
            *found.edge_weights_.values(),
            np.asarray(found.predict(inputs)).tolist(),
        ]

    jobs: dict[str, Job] = {f"fit {name}": partial(fit_chain, options) for name, options in chains.items()}
    for inference in ("junction", "trw", "bp", "mean-field"):
        table = GraphCRF(inference=inference, n_threads=2, max_iterations=3)
        jobs[f"fit a table, {inference}"] = partial(fit_pairs, table, features, binary)
    for loss in ("likelihood", "pseudo-likelihood", "persistent-contrastive-divergence"):
        grid = GridCRF(inference="trw", sweeps=5, loss=loss, n_threads=2, max_iterations=3)
        jobs[f"fit a grid, {loss}"] = partial(fit_pairs, grid, pictures, masks)
    jobs["fit a structure"] = lambda: StructureLearner(edge_strength=2.0, n_threads=2).fit(binary).edges_
    return jobs


def main() -> int:
    """Run every job alone, then all of them twice in threads; return 1 if a result differs."""
    warnings.simplefilter("ignore")  # three iterations do not converge
    np.set_printoptions(threshold=sys.maxsize, floatmode="unique")  # results are compared as they are printed, in full
    wrong = 0
    for kind in (tagging, training):
        jobs = kind()
        alone = {name: repr(job()) for name, job in jobs.items()}
        with ThreadPoolExecutor(WORKERS) as pool:
            running = [(name, pool.submit(job)) for _ in range(2) for name, job in jobs.items()]
            different = {name for name, done in running if repr(done.result()) != alone[name]}
        print(
            f"{kind.__name__}: {len(jobs)} jobs, twice each in {WORKERS} threads: {len(different)} differ", flush=True
        )
        for name in sorted(different):
            print(f"  {name}")
        wrong += len(different)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
