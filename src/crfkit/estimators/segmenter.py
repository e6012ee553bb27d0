"""ImageSegmenter: figure and ground (or more classes) in images, by a field on blocks of pixels."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crfkit.data.sequences import Floats
from crfkit.errors import DataError, ParameterError
from crfkit.estimators.graph_model import cheap_choice
from crfkit.estimators.grid import GridCRF
from crfkit.estimators.pool import in_threads
from crfkit.estimators.segmenter_blocks import block_labels, check_memory
from crfkit.estimators.segmenter_data import Pairs, StrengthPoint
from crfkit.estimators.segmenter_model import Segmentation, SegmenterModel, grid, learn_scales, with_options
from crfkit.estimators.solver_options import make_seed
from crfkit.features.image import Image, ImageFeatures
from crfkit.inference.engines import make_engine
from crfkit.penalties import L1
from crfkit.protocols import Penalty
from crfkit.readers.images import as_list, read_image
from crfkit.solvers import StoppingRule
from crfkit.solvers.loop import Callback

Progress = Callable[[int, int], None]
ITERATIVE = ("bp", "trw", "mean-field")


class ImageSegmenter(BaseEstimator):  # type: ignore[misc]
    """Segments images: a node per block of pixels, features [1, h_i] of nodes and [1, |h_i − h_j|] of edges.

    Images are a list of arrays (grey (H, W), RGB or RGBA; 8 or 16 bits, or floats from 0 to 1) or of paths, of any
    sizes. Masks are as large as their images and have two values, or integer classes with `multiclass`; those of files
    as :func:`crfkit.readers.images.read_mask` says. Features are standardised.

    Parameters
    ----------
    block_size : side of a block in pixels; its label is that of most of its pixels
    features : of "sift" (128 per block) and "c1" (34)
    colour, position : whether to add the mean colour of a block (6 features), and its row and column
    size : (height, width) that images are resized to before their features are computed; predictions have the size of
        the image given
    sift_cell : side of a SIFT cell in pixels, even; the patch around a block is four times as wide
    multiclass : whether masks may have more than two values
    inference, loss, solver, tolerance, max_iterations, n_threads, random_state, verbose : as for :class:`GridCRF`
    sweeps : the most that iterative inference ("bp", "trw", "mean-field" by name) does at each step of training, from
        where it was at the last; None for the engine's own limit, which takes longer and seldom changes the masks
    penalty : a member of :mod:`crfkit.penalties`; None for L2(1), or L1 where there are strengths
    node_form, edge_form : as for :class:`GridCRF`; None: "ising" for two classes, "full" and "potts" for more
    decode : "marginal" (the most probable label of each block: the fewest wrong pixels), or as for :class:`GridCRF`
    strengths : to try for the penalty, the largest first, each from the weights of the one before; the model with the
        fewest wrong pixels on the validation set is kept
    validation_fraction : of the images, drawn for validation where there are strengths and `fit` was given no set
    cache : a folder that keeps the features of images

    Attributes
    ----------
    classes_ : the values of masks, sorted
    selected_features_ : names of the features with weights that are not zero, of nodes ("unary") and edges ("pairwise")
    path_ : a :class:`StrengthPoint` for each strength
    result_ : how training went

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit import ImageSegmenter
    >>> rng = np.random.default_rng(0)
    >>> mask = np.zeros((24, 32), dtype=int)
    >>> mask[6:18, 8:24] = 1
    >>> images = [np.clip(0.3 + 0.4 * mask + rng.normal(0, 0.05, mask.shape), 0, 1) for _ in range(2)]
    >>> segmenter = ImageSegmenter(colour=True, loss="pseudo-likelihood").fit(images, [mask, mask])
    >>> segmenter.predict(images[:1])[0].shape, segmenter.score(images, [mask, mask]) > 0.95
    ((24, 32), True)
    """

    def __init__(
        self,
        block_size: int = 2,
        features: Sequence[str] = ("sift", "c1"),
        colour: bool = False,
        position: bool = False,
        size: tuple[int, int] | None = None,
        multiclass: bool = False,
        inference: Any = "auto",
        sweeps: int | None = 50,
        loss: Any = "likelihood",
        penalty: Penalty | None = None,
        solver: Any = "auto",
        node_form: str | None = None,
        edge_form: str | None = None,
        decode: str = "marginal",
        strengths: Iterable[float] | None = None,
        validation_fraction: float = 0.2,
        cache: str | Path | None = None,
        tolerance: float | StoppingRule = 1e-5,
        max_iterations: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        verbose: int = 0,
        sift_cell: int = 4,
    ) -> None:
        self.block_size = block_size
        self.features = features
        self.colour = colour
        self.position = position
        self.size = size
        self.multiclass = multiclass
        self.inference = inference
        self.sweeps = sweeps
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.node_form = node_form
        self.edge_form = edge_form
        self.decode = decode
        self.strengths = strengths
        self.validation_fraction = validation_fraction
        self.cache = cache
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose
        self.sift_cell = sift_cell

    # --- training

    def fit(
        self,
        images: Any,
        masks: Any,
        validation: tuple[Any, Any] | None = None,
        callbacks: Sequence[Callback] = (),
        progress: Progress | None = None,
    ) -> ImageSegmenter:
        """Learns from images and their masks.

        `validation` is (images, masks) to choose among strengths. `progress` is called with (images done, of all) as
        features are computed; callbacks see every iteration. On Ctrl-C the model so far is kept and KeyboardInterrupt
        is raised.
        """
        features, strengths = self.check(validation)
        given = Pairs.read(images, masks, self.multiclass)
        test = None
        if validation is not None:
            test = Pairs.read(*validation, self.multiclass)
        elif strengths:
            given, test = given.draw(self.validation_fraction, make_seed(self.random_state))
        classes = given.classes(self.multiclass)
        check_memory(sum(math.prod(features.blocks(p.shape)) for p in given.images), len(features.names))
        values = self._compute(features, given.images, progress)
        mean, scale = learn_scales(values)
        X: list[Any] = [(v - mean) / scale for v in values]
        del values
        Y = [block_labels(mask, classes, features) for mask in given.masks]
        missing = set(classes.tolist()) - {label for y in Y for label in np.unique(y).tolist()}
        if missing:
            raise DataError(f"no block has mostly the label {missing.pop()}: take smaller blocks, or a larger size")
        crf = self._field(*(("ising", "ising") if len(classes) == 2 else ("full", "potts")))
        crf.inference = self._training_engine(max((x.shape[:2] for x in X), key=np.prod), len(X), len(classes))
        self.path_: tuple[StrengthPoint, ...] = ()

        def made() -> SegmenterModel:
            field = replace(crf.model_, inference=self.inference, decode=self.decode)
            return SegmenterModel(features, mean, scale, field, bool(self.multiclass))

        def keep() -> None:
            self._set_model(made())
            self.result_ = crf.result_

        if test is None:
            _fit(crf, X, Y, callbacks, keep)
            return self
        tested = self._compute(features, test.images, None)
        best = np.inf
        for strength in strengths:
            penalty: Any = L1() if self.penalty is None else self.penalty
            crf.set_params(penalty=penalty.at(strength))
            begin = time.perf_counter()
            _fit(crf, X, Y, callbacks, keep if not self.path_ else lambda: None)
            seconds = time.perf_counter() - begin
            error = test.error(made(), tested)
            nonzeros, result = int(np.count_nonzero(crf.coef_)), crf.result_
            point = StrengthPoint(strength, error, nonzeros, result.value, result.iterations, seconds)
            self.path_ = (*self.path_, point)
            if error < best:
                best = error
                keep()
        return self

    def check(self, validation: Any = None) -> tuple[ImageFeatures, list[float]]:
        """(the features, the strengths), where no option is out of range; `fit` asks first of all."""
        if isinstance(self.features, str):
            raise ParameterError(f"features must be a tuple such as ({self.features!r},), not {self.features!r}")
        features = ImageFeatures(
            self.block_size, tuple(self.features), self.colour, self.position, self.size, self.sift_cell
        )
        if self.sweeps is not None and (not isinstance(self.sweeps, numbers.Integral) or self.sweeps < 1):
            raise ParameterError(f"sweeps must be None or an integer >= 1, not {self.sweeps!r}")
        self._field("ising", "ising")._training()
        return features, self._strengths(validation)

    def _field(self, node_form: str, edge_form: str) -> GridCRF:
        return GridCRF(
            inference=self.inference,
            loss=self.loss,
            penalty=self.penalty,
            solver=self.solver,
            node_form=self.node_form or node_form,
            edge_form=self.edge_form or edge_form,
            decode=self.decode,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            n_threads=self.n_threads,
            random_state=make_seed(self.random_state),
            verbose=self.verbose,
            warm_start=self.strengths is not None,
            standardize=False,  # they are already
        )

    def _training_engine(self, largest: tuple[int, int], n_images: int, n_classes: int) -> Any:
        """With at most `sweeps` sweeps, if the engine is an iterative one and named."""
        if self.sweeps is None or not isinstance(self.inference, str):
            return self.inference
        name = cheap_choice(grid(*largest).repeat(n_images), n_classes) if self.inference == "auto" else self.inference
        if name not in ITERATIVE:
            return self.inference
        return with_options(
            make_engine(name), max_iterations=int(self.sweeps), tolerance=1e-4, n_threads=self.n_threads
        )

    def _strengths(self, validation: Any) -> list[float]:
        """The largest first."""
        if self.strengths is None:
            if validation is not None:
                raise ParameterError("a validation set is for choosing among strengths; there are none")
            return []
        if self.penalty is not None and not hasattr(self.penalty, "at"):
            raise ParameterError(f"strengths are for penalties that have one, not {self.penalty!r}")
        strengths = sorted({float(strength) for strength in self.strengths}, reverse=True)
        if not strengths or not all(np.isfinite(s) and s >= 0 for s in strengths):
            raise ParameterError(f"strengths must be finite numbers >= 0, not {strengths!r}")
        return strengths

    def _compute(self, features: ImageFeatures, pictures: Sequence[Image], progress: Progress | None) -> list[Image]:
        out = []
        for values in in_threads(
            lambda picture: features.compute_cached(picture, self.cache), pictures, self.n_threads
        ):
            out.append(values)
            if progress is not None:
                progress(len(out), len(pictures))
        return out

    # --- prediction

    def segment(self, images: Any, probabilities: bool = True) -> list[Segmentation]:
        """Masks and probability maps, from one inference each."""
        model = replace(self._fitted(), field=replace(self._fitted().field, n_threads=1))
        given = as_list(images, "images")

        def one(k: int) -> Segmentation:
            return model.segment(read_image(given[k], f"image {k}"), probabilities, self.cache)

        return list(in_threads(one, range(len(given)), self.n_threads))

    def predict(self, images: Any) -> list[NDArray[Any]]:
        """A mask [H, W] for each image, with the values of the masks of `fit`."""
        return [found.mask for found in self.segment(images, probabilities=False)]

    def predict_marginals(self, images: Any) -> list[Floats]:
        """Probabilities [H, W, classes] for each image, in the order of classes_."""
        return [found.probabilities for found in self.segment(images) if found.probabilities is not None]

    def errors(self, images: Any, masks: Any) -> Floats:
        """[images] the share of wrong pixels of each."""
        given = Pairs.read(images, masks, self.multiclass)
        pairs = zip(self.predict(given.images), given.masks, strict=True)
        return np.array([np.mean(found != mask) for found, mask in pairs])

    def score(self, images: Any, masks: Any) -> float:
        """Pixel accuracy: the share of right pixels of all images."""
        given = Pairs.read(images, masks, self.multiclass)
        sizes = [mask.size for mask in given.masks]
        return float(1 - np.average(self.errors(given.images, given.masks), weights=sizes))

    # --- files and what was learned

    def save(self, path: str | Path) -> None:
        """Writes a model file (.crf), atomically."""
        self._fitted().save(path)

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None, cache: str | Path | None = None) -> ImageSegmenter:
        """Opens a model file. The estimator can predict; its options are those that the file records."""
        model = SegmenterModel.load(path, n_threads)
        blocks = model.features
        segmenter = cls(
            block_size=blocks.block_size,
            features=blocks.kinds,
            colour=blocks.colour,
            position=blocks.position,
            size=blocks.size,
            sift_cell=blocks.sift_cell,
            multiclass=model.multiclass,
            inference=model.field.inference,
            node_form=model.field.field.node_form,
            edge_form=model.field.field.edge_form,
            decode=model.field.decode,
            cache=cache,
            n_threads=n_threads,
        )
        segmenter._set_model(model)
        return segmenter

    def _set_model(self, model: SegmenterModel) -> None:
        self.model_ = model
        self.classes_ = model.classes

    def _fitted(self) -> SegmenterModel:
        check_is_fitted(self, "model_")
        model: SegmenterModel = self.model_
        return model

    @property
    def selected_features_(self) -> dict[str, tuple[str, ...]]:
        return self._fitted().selected()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _fit(crf: GridCRF, X: list[Any], Y: list[Any], callbacks: Sequence[Callback], keep: Callable[[], None]) -> None:
    try:
        crf.fit(X, Y, callbacks=callbacks)
    except KeyboardInterrupt:
        if hasattr(crf, "model_"):
            keep()
        raise
    keep()
