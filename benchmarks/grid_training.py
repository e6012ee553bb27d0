"""Training of GridCRF by tree-reweighted inference: CPU seconds by how precise every evaluation of the loss is.

    python benchmarks/grid_training.py [--data ../shared/data/weizmann_horse] [--images 30] [--rounds 1]

Horses of 80×100 pixels in blocks of 2×2 (grids of 40×50 nodes, 162 features), half as many images again for the error.
Three ways take turns: 1000 sweeps to 1e-10 for every evaluation, the default (a tolerance that tightens with the
solver's progress), and 30 sweeps to 1e-3. Features are computed before the clock starts; one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from crfkit import L2, GridCRF
from crfkit.files.images import pair_folders
from crfkit.files.masks import MaskRules
from crfkit.graph.inference.tree_reweighted import TreeReweighted
from crfkit.images.blocks import block_labels
from crfkit.images.features import ImageFeatures
from crfkit.images.pairs import Pairs

WAYS: dict[str, dict[str, Any]] = {
    "1000 sweeps to 1e-10": {"inference": TreeReweighted(n_threads=1)},
    "default": {"inference": "trw"},
    "30 sweeps to 1e-3": {"inference": TreeReweighted(max_iterations=30, tolerance=1e-3, n_threads=1)},
}


def load(folder: Path, count: int) -> tuple[list[Any], list[Any]]:
    pairs = pair_folders(folder / "gray", folder / "figure_ground")
    np.random.default_rng(0).shuffle(pairs)
    features = ImageFeatures(2, ("sift", "c1"), False, False, (80, 100), 4)
    given = Pairs.read([image for image, _ in pairs[:count]], [mask for _, mask in pairs[:count]], MaskRules())
    X = [features.compute(image) for image in given.images]
    rows = np.concatenate([x.reshape(-1, x.shape[-1]) for x in X])
    mean, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-12)
    classes = given.classes(False)
    return [(x - mean) / scale for x in X], [block_labels(mask, classes, features) for mask in given.masks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/weizmann_horse"))
    parser.add_argument("--images", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ways", default=",".join(WAYS))
    options = parser.parse_args()
    n = options.images
    X, Y = load(options.data, n + n // 2)
    for _ in range(options.rounds):
        for name in options.ways.split(","):
            crf = GridCRF(node_form="ising", edge_form="ising", penalty=L2(10.0), n_threads=1, **WAYS[name])
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                crf.fit(X[:n], Y[:n])
                seconds = time.process_time() - begin
                crf.set_params(inference=TreeReweighted(max_iterations=200, tolerance=1e-4), decode="marginal")
                error = 1 - crf.score(X[n:], Y[n:])
            result = crf.result_
            print(
                f"{name:22} {seconds:7.1f} CPU s  {result.evaluations} evaluations  "
                f"objective {result.value:.4f}  error {100 * error:.2f} %",
                flush=True,
            )


if __name__ == "__main__":
    main()
