"""Refiner: learned smoothing of another model's probabilities along the edges of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Array, Floats, Label, Samples, Tabular
from crfkit.errors import DataError
from crfkit.graph.encoding.grids import EdgeFeatures
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.training.problem import LossChoice
from crfkit.graph.training.train import concerns
from crfkit.images.model.refiner import RefinerModel
from crfkit.images.probability_maps import pixel_accuracy, read_maps
from crfkit.images.training.refiner import RefinerTraining
from crfkit.pool import in_threads
from crfkit.protocols import Penalty, Solver
from crfkit.solvers import StoppingRule
from crfkit.solvers.parts.loop import Callback
from crfkit.training.estimator import Estimator


class Refiner(Estimator):
    """Refine probability maps of a classifier or network with the image they belong to.

    Each pixel (or block, or superpixel) has the score β·log p + bias of its class, and neighbours prefer equal classes,
    the more so the more alike their colours are. The temperature 1/β, the biases and how the preference depends on the
    colours are learned from masks: about ten weights, so a few dozen images are enough.

    Give `fit` probabilities of images that the classifier was **not** trained on (out of fold, as
    ``cross_val_predict`` makes them, or of a validation set): on its own training images a classifier is
    overconfident, and the refiner would learn to trust it.

    Probabilities are a list of arrays [H, W, K] or [K, H, W], or [H, W] for the second of two classes, or files (.npy,
    .npz, a grey image). Images are as for :class:`ImageSegmenter`. Masks are arrays [H, W] of labels or files; unknown
    pixels are masked, None, NaN, −1, or one of `ignore`.

    Parameters
    ----------
    neighbours : 4 or 8 neighbours of a pixel or block
    block_size : side of a block in pixels; 1 is a node per pixel. 2 or 4 is many times faster. How much of the
        differences between pixels of a block is kept is chosen on the training images
    superpixels : about how many superpixels an image has, instead of blocks (needs scikit-image); None for blocks
    edge_features : "contrast" (:func:`crfkit.graph.encoding.grid_edges.contrast_features`), None (the same preference
        everywhere), or a function of the colours of both ends (two arrays [edges, 3], CIE L*a*b* divided by 100) and,
        if it takes a third argument, of the offsets [edges, 2] between them (rows, columns), which returns an array
        [edges] or [edges, features]
    edge_form : "potts" (one preference for all classes), "symmetric" (one per pair of classes)
    classes : the label of each column of the probabilities; None for 0 … K−1 if the masks have no others, otherwise
        for the sorted values of the masks
    ignore : label, or labels, of pixels whose class is not known, such as 255
    layout : which axis of a three-dimensional array the classes are: "first", "last" or "auto" (by the image's shape)
    sweeps : maximum number of sweeps of iterative inference per training step; None for the engine's own limit
    decode : "marginal" (the fewest wrong pixels), or as for :class:`GridCRF`
    inference, loss, penalty, solver, tolerance, max_iterations, n_threads, random_state, verbose : as for
        :class:`GridCRF`

    Attributes
    ----------
    classes_ : the label of each column
    temperature_ : 1/β; above 1, the given probabilities were overconfident
    bias_, edge_weights_ : the other weights
    detail_ : the share of the differences within a block or superpixel that is kept
    result_ : how training went

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit import Refiner
    >>> rng = np.random.default_rng(0)
    >>> mask = np.zeros((20, 24), dtype=int)
    >>> mask[5:15, 6:18] = 1
    >>> images = [0.3 + 0.4 * mask + rng.normal(0, 0.05, mask.shape) for _ in range(3)]
    >>> noisy = [0.3 + 0.4 * mask + rng.normal(0, 0.2, mask.shape) for _ in images]
    >>> probabilities = [np.clip(p, 0.01, 0.99) for p in noisy]
    >>> refiner = Refiner().fit(probabilities[:2], images[:2], [mask, mask])
    >>> before = np.mean((probabilities[2] > 0.5) == mask)
    >>> bool(refiner.score(probabilities[2:], images[2:], [mask]) > before)
    True
    """

    def __init__(
        self,
        neighbours: int = 4,
        block_size: int = 1,
        superpixels: int | None = None,
        edge_features: EdgeFeatures = "contrast",
        edge_form: str = "potts",
        classes: Sequence[Label] | None = None,
        ignore: ArrayLike | None = None,
        layout: str = "auto",
        inference: str | Engine = "auto",
        sweeps: int | None = 30,
        loss: LossChoice = "likelihood",
        penalty: Penalty | None = None,
        solver: str | Solver = "auto",
        decode: str = "marginal",
        tolerance: float | StoppingRule = 1e-4,
        max_iterations: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.neighbours, self.block_size, self.superpixels = neighbours, block_size, superpixels
        self.edge_features, self.edge_form = edge_features, edge_form
        self.classes, self.ignore, self.layout = classes, ignore, layout
        self.inference, self.sweeps, self.loss, self.decode = inference, sweeps, loss, decode
        self.penalty, self.solver, self.tolerance = penalty, solver, tolerance
        self.max_iterations, self.n_threads = max_iterations, n_threads
        self.random_state, self.verbose = random_state, verbose

    def fit(self, probabilities: object, images: Samples, masks: object, callbacks: Sequence[Callback] = ()) -> Refiner:
        """Learn from probability maps, their images and masks.

        Callbacks see every iteration. On Ctrl-C the model so far is kept and KeyboardInterrupt is raised.
        """
        training = RefinerTraining(
            neighbours=self.neighbours,
            block_size=self.block_size,
            superpixels=self.superpixels,
            edge_features=self.edge_features,
            edge_form=self.edge_form,
            classes=self.classes,
            ignore=self.ignore,
            layout=self.layout,
            inference=self.inference,
            sweeps=self.sweeps,
            loss=self.loss,
            decode=self.decode,
            options=self._solver_options(),
        )
        done = training.run(probabilities, images, masks, self._with_progress(callbacks))
        self._keep(done.model, done.result, concerns(done.result, None), done.interrupted)
        return self

    # --- prediction

    def refine(self, probabilities: object, images: object) -> list[tuple[Array, Floats]]:
        """Return the mask [H, W] and the probabilities [H, W, K] of each image, from one inference."""
        model = self._model_to_save()
        model = replace(model, field=replace(model.field, n_threads=1))
        given = read_maps(probabilities, images, self.layout)
        for k, (p, _) in enumerate(given):
            if p.shape[2] != len(model.classes):
                raise DataError(f"probabilities {k} have {p.shape[2]} classes; the model has {len(model.classes)}")
        return list(in_threads(lambda pair: model.refine(*pair), given, self.n_threads))

    def predict(self, probabilities: object, images: object) -> list[Array]:
        """Return a mask [H, W] of labels for each image."""
        return [mask for mask, _ in self.refine(probabilities, images)]

    def predict_proba(self, probabilities: object, images: object) -> list[Floats]:
        """Return the refined probabilities [H, W, K] of each image, in the order of classes_."""
        return [p for _, p in self.refine(probabilities, images)]

    def score(self, probabilities: Tabular, images: Tabular, masks: Tabular) -> float:
        """Return the share of known pixels of all images that `predict` labels right."""
        found = self.predict(probabilities, images)
        return pixel_accuracy(found, masks, self.ignore, len(self.classes_) > 2)

    # --- model files, and what was learned

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None, edge_features: EdgeFeatures = None) -> Refiner:
        """Open a model file. `edge_features` is the function that the model was trained with, if it was one."""
        model = RefinerModel.load(path, n_threads, edge_features)
        refiner = cls(n_threads=n_threads, **model.options())
        refiner._set_model(model)
        return refiner

    def _model_to_save(self) -> RefinerModel:
        model: RefinerModel = self._fitted()
        return replace(model, field=replace(model.field, inference=self.inference, decode=self.decode))

    @property
    def temperature_(self) -> float:
        """Return 1/β, by which the given log-probabilities are divided; above 1, they were overconfident."""
        return float(self._fitted().temperature)

    @property
    def detail_(self) -> float:
        """Return the share of the differences within a block or superpixel that is kept."""
        return float(self._fitted().detail)

    @property
    def bias_(self) -> Floats:
        """Return [K], what is added to the score of each class."""
        bias: Floats = self._fitted().bias
        return bias

    @property
    def edge_weights_(self) -> Mapping[str, Floats]:
        """Return edge feature → weights; positive weights join neighbours."""
        weights: Mapping[str, Floats] = self._fitted().edge_weights()
        return weights
