"""Refiner: learned smoothing of another model's probabilities along the edges of images."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from crfkit._types import Floats
from crfkit.data.graph import Graph
from crfkit.encoders.calibrated import CalibratedEncoder
from crfkit.encoders.probability_maps import LAYOUTS, choose_classes, read_probabilities, read_truth, to_class_numbers
from crfkit.errors import DataError, ParameterError
from crfkit.estimators.pairwise import print_row
from crfkit.features.image import Image
from crfkit.inference.engines import make_engine
from crfkit.models.graph import DECODERS, cheap_choice
from crfkit.models.refiner import NodeOptions, RefinerModel, choose_detail
from crfkit.models.segmenter import with_options
from crfkit.names import check_name
from crfkit.pool import in_threads
from crfkit.protocols import Penalty
from crfkit.readers.images import as_list, read_image
from crfkit.result import Status
from crfkit.solvers import StoppingRule
from crfkit.solvers.parts.loop import Callback
from crfkit.training.graph import GraphTraining, concerns
from crfkit.training.options import SolverOptions, make_seed

ITERATIVE = ("bp", "trw", "mean-field")
DETAIL_IMAGES = 20  # images that the share of details is chosen on


class Refiner(BaseEstimator):  # type: ignore[misc]
    """Refines probability maps of a classifier or network with the image they belong to.

    Each pixel (or block, or superpixel) has the score β·log p + bias of its class, and neighbours prefer equal classes,
    the more so the more alike their colours are. The temperature 1/β, the biases and how the preference depends on the
    colours are learned from masks: about ten weights, so that a few dozen images are enough.

    Give `fit` probabilities of images that the classifier was **not** trained on (out of fold, as
    ``cross_val_predict`` makes them, or of a validation set): on its own training images a classifier is
    overconfident, and the refiner would learn to trust it.

    Probabilities are a list of arrays [H, W, K] or [K, H, W], or [H, W] for the second of two classes, or files (.npy,
    .npz, a grey image). Images are as for :class:`ImageSegmenter`. Masks are arrays [H, W] of labels or files; unknown
    pixels are masked, None, NaN, −1, or one of `ignore`.

    Parameters
    ----------
    neighbours : 4 or 8 of a pixel or block
    block_size : side of a block in pixels; 1 is a node per pixel. 2 or 4 is many times faster. How much of the
        differences between pixels of a block is kept is chosen on the training images
    superpixels : about how many superpixels an image has, in place of blocks (needs scikit-image); None for blocks
    edge_features : "contrast" (:func:`crfkit.features.image_edges.contrast_features`), None (the same preference
        everywhere), or a function of the colours of both ends (two arrays [edges, 3], CIE L*a*b* divided by 100) and,
        if it takes a third argument, of the offsets [edges, 2] between them (rows, columns), which returns an array
        [edges] or [edges, features]
    edge_form : "potts" (one preference for all classes), "symmetric" (one per pair of classes)
    classes : the label of each column of the probabilities; None: 0 … K−1 if the masks have no others, else the sorted
        values of the masks
    ignore : label, or labels, of pixels whose class is not known, such as 255
    layout : which axis of a three-dimensional array the classes are: "first", "last" or "auto" (by the image's shape)
    sweeps : the most that iterative inference does at each step of training
    decode : "marginal" (the fewest wrong pixels), or as for :class:`GridCRF`
    inference, loss, penalty, solver, tolerance, max_iterations, n_threads, random_state, verbose : as for
        :class:`GridCRF`

    Attributes
    ----------
    classes_ : the label of each column
    temperature_ : 1/β; above 1, the probabilities given were overconfident
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
        edge_features: Any = "contrast",
        edge_form: str = "potts",
        classes: Sequence[Any] | None = None,
        ignore: Any = None,
        layout: str = "auto",
        inference: Any = "auto",
        sweeps: int | None = 30,
        loss: Any = "likelihood",
        penalty: Penalty | None = None,
        solver: Any = "auto",
        decode: str = "marginal",
        tolerance: float | StoppingRule = 1e-4,
        max_iterations: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.neighbours = neighbours
        self.block_size = block_size
        self.superpixels = superpixels
        self.edge_features = edge_features
        self.edge_form = edge_form
        self.classes = classes
        self.ignore = ignore
        self.layout = layout
        self.inference = inference
        self.sweeps = sweeps
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.decode = decode
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    # --- training

    def fit(self, probabilities: Any, images: Any, masks: Any, callbacks: Sequence[Callback] = ()) -> Refiner:
        """Learns from probability maps, their images and masks.

        Callbacks see every iteration. On Ctrl-C the model so far is kept and KeyboardInterrupt is raised.
        """
        nodes = self._nodes()
        training = self._training(self.inference)
        given = self._pairs(probabilities, images)
        if not given:
            raise DataError("there are no images")
        truth = as_list(masks, "masks")
        if len(truth) != len(given):
            raise DataError(f"{len(truth)} masks for {len(given)} images")
        K = given[0][0].shape[2]
        if odd := [k for k, (p, _) in enumerate(given) if p.shape[2] != K]:
            raise DataError(f"probabilities {odd[0]} have {given[odd[0]][0].shape[2]} classes, the first ones {K}")
        read = [
            read_truth(mask, image.shape, f"mask {k}", self.ignore, K > 2)
            for k, (mask, (_, image)) in enumerate(zip(truth, given, strict=True))
        ]
        classes = choose_classes(read, K, self.classes)
        samples, states, truths = [], [], []
        for k, ((p, image), (values, known)) in enumerate(zip(given, read, strict=True)):
            regions = nodes.regions(image)
            samples.append(nodes.sample(regions, p, image))
            truths.append(to_class_numbers(values, known, classes, f"mask {k}"))
            states.append(regions.majority(truths[-1], K))
        labels = np.concatenate(states)
        if len(found := np.unique(labels[labels >= 0])) < 2:
            shown = f"only the class {classes.tolist()[found[0]]!r}" if len(found) else "no known pixel"
            raise DataError(f"the masks have {shown}; at least two classes are needed to learn from")
        encoder = CalibratedEncoder(np.arange(K), K, nodes.edge_width, True, nodes.edges is not None)
        graph = Graph.join(sample.edges for sample in samples)
        training = self._training(self._training_engine(graph, K))
        rows = [*callbacks, print_row] if self.verbose else callbacks
        model, result, _ = training.run(encoder, samples, labels, None, rows)
        field = replace(model, inference=self.inference, decode=self.decode)
        made = RefinerModel(nodes, field, classes)
        self._set_model(made)
        self.result_ = result
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(str(result.status))
        if nodes.block_size > 1 or nodes.superpixels is not None:
            chosen = range(0, len(given), -(-len(given) // DETAIL_IMAGES))
            detail = choose_detail(made, [given[k] for k in chosen], [truths[k] for k in chosen])
            self._set_model(replace(made, detail=detail))
        for concern in concerns(result, None):
            warnings.warn(concern, ConvergenceWarning, stacklevel=2)
        return self

    def _nodes(self) -> NodeOptions:
        """The options of nodes and edges, checked."""
        if self.neighbours not in (4, 8) or isinstance(self.neighbours, bool):
            raise ParameterError(f"neighbours must be 4 or 8, not {self.neighbours!r}")
        for name in ("block_size", "superpixels", "sweeps"):
            n = getattr(self, name)
            optional = name != "block_size"
            if (n is not None or not optional) and (
                isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 1
            ):
                raise ParameterError(f"{name} must be {'None or ' if optional else ''}an integer >= 1, not {n!r}")
        if self.superpixels is not None and self.block_size != 1:
            raise ParameterError("block_size and superpixels exclude each other")
        edges = self.edge_features
        if edges is not None and not callable(edges) and edges != "contrast":
            raise ParameterError(f"edge_features must be 'contrast', None or a function of both ends, not {edges!r}")
        if self.layout not in LAYOUTS:
            raise ParameterError(f"layout must be one of {', '.join(LAYOUTS)}, not {self.layout!r}")
        check_name("decoder", self.decode, DECODERS)
        superpixels = None if self.superpixels is None else int(self.superpixels)
        return NodeOptions(int(self.block_size), superpixels, int(self.neighbours), edges)

    def _training(self, inference: Any) -> GraphTraining:
        options = SolverOptions(
            self.penalty, self.solver, self.tolerance, self.max_iterations, self.n_threads, make_seed(self.random_state)
        )
        training = GraphTraining(inference, self.loss, edge_form=self.edge_form, decode=self.decode, options=options)
        training.check()
        return training

    def _training_engine(self, graph: Graph, n_classes: int) -> Any:
        """With at most `sweeps` sweeps, if the engine is an iterative one and named."""
        if self.sweeps is None or not isinstance(self.inference, str):
            return self.inference
        name = cheap_choice(graph, n_classes) if self.inference == "auto" else self.inference
        if name not in ITERATIVE:
            return name
        limits = {"max_iterations": int(self.sweeps), "tolerance": 1e-4, "n_threads": self.n_threads}
        return with_options(make_engine(name), **limits)

    def _pairs(self, probabilities: Any, images: Any) -> list[tuple[Floats, Image]]:
        maps, pictures = as_list(probabilities, "probabilities"), as_list(images, "images")
        if len(maps) != len(pictures):
            raise DataError(f"{len(maps)} probability maps for {len(pictures)} images")
        out = []
        for k, (given, picture) in enumerate(zip(maps, pictures, strict=True)):
            image = read_image(picture, f"image {k}")
            out.append((read_probabilities(given, image.shape, f"probabilities {k}", self.layout), image))
        return out

    # --- prediction

    def refine(self, probabilities: Any, images: Any) -> list[tuple[NDArray[Any], Floats]]:
        """(mask [H, W], probabilities [H, W, K]) of each image, from one inference."""
        fitted = self._fitted()
        model = replace(fitted, field=replace(fitted.field, n_threads=1, decode=self.decode, inference=self.inference))
        given = self._pairs(probabilities, images)
        K = len(model.classes)
        for k, (p, _) in enumerate(given):
            if p.shape[2] != K:
                raise DataError(f"probabilities {k} have {p.shape[2]} classes; the model has {K}")
        return list(in_threads(lambda pair: model.refine(*pair), given, self.n_threads))

    def predict(self, probabilities: Any, images: Any) -> list[NDArray[Any]]:
        """A mask [H, W] of labels for each image."""
        return [mask for mask, _ in self.refine(probabilities, images)]

    def predict_proba(self, probabilities: Any, images: Any) -> list[Floats]:
        """Refined probabilities [H, W, K] of each image, in the order of classes_."""
        return [p for _, p in self.refine(probabilities, images)]

    def score(self, probabilities: Any, images: Any, masks: Any) -> float:
        """The share of known pixels of all images that `predict` labels right."""
        found = self.predict(probabilities, images)
        truth = as_list(masks, "masks")
        if len(truth) != len(found):
            raise DataError(f"{len(truth)} masks for {len(found)} images")
        right = total = 0
        for k, (mask, given) in enumerate(zip(found, truth, strict=True)):
            values, known = read_truth(given, mask.shape, f"mask {k}", self.ignore, len(self.classes_) > 2)
            right += int(np.count_nonzero((mask == values) & known))
            total += int(np.count_nonzero(known))
        return right / total if total else 0.0

    # --- files and what was learned

    def save(self, path: str | Path) -> None:
        """Writes a model file (.crf), atomically."""
        model = self._fitted()
        replace(model, field=replace(model.field, inference=self.inference, decode=self.decode)).save(path)

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None, edge_features: Any = None) -> Refiner:
        """Opens a model file. `edge_features` is the function the model was trained with, if it was one."""
        model = RefinerModel.load(path, n_threads)
        nodes = model.nodes
        if edge_features is not None:
            if nodes.edges != "callable" or not callable(edge_features):
                raise ParameterError(f"{path} records its edge features: {nodes.edges!r}")
            nodes = replace(nodes, edges=edge_features)
            model = replace(model, nodes=nodes)
        refiner = cls(
            neighbours=nodes.neighbours,
            block_size=nodes.block_size,
            superpixels=nodes.superpixels,
            edge_features=nodes.edges,
            edge_form=model.field.field.edge_form,
            classes=model.classes.tolist(),
            inference=model.field.inference,
            decode=model.field.decode,
            n_threads=n_threads,
        )
        refiner._set_model(model)
        return refiner

    def _set_model(self, model: RefinerModel) -> None:
        self.model_ = model
        self.classes_ = model.classes

    def _fitted(self) -> RefinerModel:
        check_is_fitted(self, "model_")
        model: RefinerModel = self.model_
        return model

    @property
    def temperature_(self) -> float:
        """1/β: what the log-probabilities given are divided by; above 1, they were overconfident."""
        return self._fitted().temperature

    @property
    def detail_(self) -> float:
        """The share of the differences within a block or superpixel that is kept."""
        return self._fitted().detail

    @property
    def bias_(self) -> Floats:
        """[K] what is added to the score of each class."""
        return self._fitted().bias

    @property
    def edge_weights_(self) -> Mapping[str, Floats]:
        """Edge feature → weights; positive ones join neighbours."""
        return self._fitted().edge_weights()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
