"""ImageSegmenter: figure and ground (or more classes) in images, by a field on blocks of pixels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crfkit.data.sequences import Floats
from crfkit.errors import DataError, ParameterError
from crfkit.estimators.grid import GridCRF
from crfkit.estimators.segmenter_blocks import block_labels, check_size
from crfkit.estimators.segmenter_model import Segmentation, SegmenterModel, learn_scales
from crfkit.estimators.solver_options import make_seed
from crfkit.features.image import Image, ImageFeatures
from crfkit.inference.chain import count_threads
from crfkit.penalties import L1
from crfkit.protocols import Penalty
from crfkit.readers.images import Mask, as_list, read_image, read_mask
from crfkit.solvers import StoppingRule
from crfkit.solvers.loop import Callback

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class StrengthPoint:
    """One strength of the search: how its model did."""

    strength: float
    error: float  # share of wrong pixels of the validation set
    nonzeros: int  # weights that are not zero
    value: float  # of the objective
    iterations: int
    seconds: float


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
    multiclass : whether masks may have more than two values
    inference, loss, solver, tolerance, max_iterations, n_threads, random_state, verbose : as for :class:`GridCRF`
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
    ) -> None:
        self.block_size = block_size
        self.features = features
        self.colour = colour
        self.position = position
        self.size = size
        self.multiclass = multiclass
        self.inference = inference
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
        pictures, labels = self._read(images, masks)
        seed = make_seed(self.random_state)
        if strengths and validation is None:
            held_out = _draw(len(pictures), self.validation_fraction, seed)
            chosen = sorted(set(range(len(pictures))) - set(held_out))
            test = [pictures[k] for k in held_out], [labels[k] for k in held_out]
            pictures, labels = [pictures[k] for k in chosen], [labels[k] for k in chosen]
        elif validation is not None:
            test = self._read(*validation)
        classes = self._learn_classes(labels)
        values = self._compute(features, pictures, progress)
        mean, scale = learn_scales(values)
        X: list[Any] = [(v - mean) / scale for v in values]
        Y = [block_labels(mask, classes, features) for mask in labels]
        missing = set(classes.tolist()) - {label for y in Y for label in np.unique(y).tolist()}
        if missing:
            raise DataError(f"no block has mostly the label {missing.pop()}: take smaller blocks, or a larger size")
        crf = self._field(*(("ising", "ising") if len(classes) == 2 else ("full", "potts")))
        self.path_: tuple[StrengthPoint, ...] = ()

        def keep() -> None:
            field = replace(crf.model_, inference=self.inference, decode=self.decode)
            self._set_model(SegmenterModel(features, mean, scale, field, bool(self.multiclass)))
            self.result_ = crf.result_

        if not strengths:
            _fit(crf, X, Y, callbacks, keep)
            return self
        tested = self._compute(features, test[0], None)
        best = np.inf
        for strength in strengths:
            penalty: Any = L1() if self.penalty is None else self.penalty
            crf.set_params(penalty=penalty.at(strength))
            begin = time.perf_counter()
            _fit(crf, X, Y, callbacks, keep if not self.path_ else lambda: None)
            seconds = time.perf_counter() - begin
            model = SegmenterModel(features, mean, scale, crf.model_, bool(self.multiclass))
            error = 1 - _accuracy(model, test[0], test[1], tested)
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
        features = ImageFeatures(self.block_size, tuple(self.features), self.colour, self.position, self.size)
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
        )

    def _strengths(self, validation: Any) -> list[float]:
        """The largest first."""
        if self.strengths is None:
            if validation is not None:
                raise ParameterError("a validation set is for choosing among strengths; there are none")
            return []
        if self.penalty is not None and not hasattr(self.penalty, "at"):
            raise ParameterError(f"strengths are for L1, L2 and ElasticNet, not {self.penalty!r}")
        strengths = sorted({float(strength) for strength in self.strengths}, reverse=True)
        if not strengths or not all(np.isfinite(s) and s >= 0 for s in strengths):
            raise ParameterError(f"strengths must be finite numbers >= 0, not {strengths!r}")
        return strengths

    def _read(self, images: Any, masks: Any) -> tuple[list[Image], list[Mask]]:
        given, of = as_list(images, "images"), as_list(masks, "masks")
        if len(given) != len(of):
            raise DataError(f"{len(of)} masks for {len(given)} images")
        if not given:
            raise DataError("there are no images")
        pictures = [read_image(image, f"image {k}") for k, image in enumerate(given)]
        labels = [read_mask(mask, f"mask {k}", self.multiclass) for k, mask in enumerate(of)]
        self._names = [str(m) if isinstance(m, (str, Path)) else f"mask {k}" for k, m in enumerate(of)]
        for k, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
            where = str(given[k]) if isinstance(given[k], (str, Path)) else f"image {k}"
            check_size(picture, label, where, self._names[k])
        return pictures, labels

    def _learn_classes(self, masks: Sequence[Mask]) -> NDArray[Any]:
        classes = np.unique(np.concatenate([np.unique(mask) for mask in masks]))
        if len(classes) == 1:
            raise DataError(f"every pixel of the masks is {classes[0]}; expected two classes or more")
        if len(classes) > 2 and not self.multiclass:
            seen: set[int] = set()
            for mask, name in zip(masks, self._names, strict=False):
                seen |= set(np.unique(mask).tolist())
                if len(seen) > 2:
                    raise DataError(f"{name} makes it {len(seen)} values in all masks {sorted(seen)}; expected two")
        return classes

    def _compute(self, features: ImageFeatures, pictures: Sequence[Image], progress: Progress | None) -> list[Image]:
        out = []
        with ThreadPoolExecutor(count_threads(self.n_threads)) as pool:
            for values in pool.map(lambda picture: features.compute_cached(picture, self.cache), pictures):
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

        with ThreadPoolExecutor(count_threads(self.n_threads)) as pool:
            return list(pool.map(one, range(len(given))))

    def predict(self, images: Any) -> list[NDArray[Any]]:
        """A mask [H, W] for each image, with the values of the masks of `fit`."""
        return [found.mask for found in self.segment(images, probabilities=False)]

    def predict_marginals(self, images: Any) -> list[Floats]:
        """Probabilities [H, W, classes] for each image, in the order of classes_."""
        return [found.probabilities for found in self.segment(images) if found.probabilities is not None]

    def errors(self, images: Any, masks: Any) -> Floats:
        """[images] the share of wrong pixels of each."""
        pictures, labels = self._read(images, masks)
        pairs = zip(self.predict(pictures), labels, strict=True)
        return np.array([np.mean(found != mask) for found, mask in pairs])

    def score(self, images: Any, masks: Any) -> float:
        """Pixel accuracy: the share of right pixels of all images."""
        pictures, labels = self._read(images, masks)
        sizes = [mask.size for mask in labels]
        return float(1 - np.average(self.errors(pictures, labels), weights=sizes))

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


def _accuracy(
    model: SegmenterModel, pictures: Sequence[Image], masks: Sequence[Mask], values: Sequence[Image]
) -> float:
    """The share of right pixels, from features that are there."""
    right = sum(
        int((model.segment_features(v, image.shape, False).mask == mask).sum())
        for v, image, mask in zip(values, pictures, masks, strict=True)
    )
    return right / sum(mask.size for mask in masks)


def _draw(n: int, fraction: float, seed: int) -> list[int]:
    if not 0 < fraction < 1:
        raise ParameterError(f"validation_fraction must be between 0 and 1, not {fraction!r}")
    count = max(1, round(fraction * n))
    if count >= n:
        raise DataError(f"{n} images are too few to keep {count} for validation; give a validation set")
    drawn: list[int] = np.random.default_rng(seed).permutation(n)[:count].tolist()
    return sorted(drawn)
