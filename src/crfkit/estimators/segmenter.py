"""ImageSegmenter: figure and ground (or more classes) in images, by a field on blocks of pixels."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._types import Floats
from crfkit.encoders.blocks import UPSAMPLING, check_memory
from crfkit.encoders.image_pairs import Pairs, StrengthPoint
from crfkit.errors import ParameterError
from crfkit.estimators.grid import GridCRF
from crfkit.estimators.segmenter_fit import CHECKPOINT_SECONDS, BlockTraining, checkpoints
from crfkit.estimators.segmenter_search import PenaltySearch
from crfkit.features.custom import Function
from crfkit.features.image import Image, ImageFeatures
from crfkit.inference.engines import make_engine
from crfkit.models.graph import GraphModel, cheap_choice
from crfkit.models.segmenter import SegmenterModel, grid, learn_scales, with_options
from crfkit.names import full_name
from crfkit.penalties import L1
from crfkit.pool import in_threads
from crfkit.protocols import Penalty
from crfkit.solvers import StoppingRule
from crfkit.solvers.parts.loop import Callback
from crfkit.training.options import make_seed
from crfkit.training.segmenter_blocks import (
    SUMS_OVER_UNKNOWN,
    BlockEncoder,
    average_difference,
    block_states,
    check_start,
    from_equal_features,
    training_weights,
)

Progress = Callable[[int, int], None]
ITERATIVE = ("bp", "trw", "mean-field")


class ImageSegmenter(PenaltySearch):
    """Segments images: a node per block of pixels, features [1, h_i] of nodes and [1, |h_i − h_j|] of edges.

    Images are a list of arrays (grey (H, W), RGB or RGBA; 8 or 16 bits, or floats from 0 to 1) or of paths, of any
    sizes. Masks are as large as their images, or the same at another scale, and have two values, or integer classes
    with `multiclass`; those of files as :func:`crfkit.readers.images.read_mask` says. Features are standardised, and
    differences |h_i − h_j| centred.

    Parameters
    ----------
    block_size : side of a block in pixels; its label is that of most of its pixels whose class is known
    features : of "sift" (128 per block), "c1" (34) and functions `f(image)` of an image [H, W] or [H, W, 3] with values
        from 0 to 1. A function returns [H, W, F], which is averaged over blocks, or [rows, columns, F] for the blocks.
        Its features are named custom0, custom1, …, or as its attribute `feature_names` says
    colour, position : whether to add the mean colour of a block (6 features), and its row and column
    size : (height, width) that images are resized to before their features are computed; predictions have the size of
        the image given
    sift_cell : side of a SIFT cell in pixels, even; the patch around a block is four times as wide
    multiclass : whether masks may have more than two values
    inference, loss, solver, tolerance, max_iterations, n_threads, random_state, verbose : as for :class:`GridCRF`
    sweeps : the most that iterative inference ("bp", "trw", "mean-field" by name) does at each step of training, from
        where it was at the last; None for the engine's own limit, which takes longer and seldom changes the masks
    penalty : a member of :mod:`crfkit.penalties`; None for L2(1), or L1 where there are strengths. For the
        pseudo-likelihood None is L2(1) of node weights and an L2 of edge weights that is chosen on held-out images
    node_form, edge_form : as for :class:`GridCRF`; None: "ising" for two classes, "full" and "potts" for more
    decode : "marginal" (the most probable label of each block: the fewest wrong pixels), or as for :class:`GridCRF`
    strengths : to try for the penalty, the largest first, each from the weights of the one before; the model with the
        fewest wrong pixels on the validation set is kept
    validation_fraction : share of the images that is held out where strengths are chosen and `fit` was given no set
    cache : a folder that keeps the features of images
    ignore : value, or values, of mask pixels whose class is not known, e.g. 255
    mask_colours : {colour: class} for masks with colours; a colour is a name, "#rrggbb" or (r, g, b), and the class
        None means unknown. Or a text or file as :func:`crfkit.readers.mask_colours.read_colours` reads
    upsample : how block probabilities become pixel probabilities: "bilinear", or "nearest", which shows the blocks.
        Decoders other than "marginal" label whole blocks
    time_limit : seconds after which `fit` ends with the model so far; at least one iteration is done. None: no limit

    Attributes
    ----------
    classes_ : the values of masks, sorted
    selected_features_ : names of the features with weights that are not zero, of nodes ("unary") and edges ("pairwise")
    path_ : a :class:`StrengthPoint` for each strength
    result_ : how training went
    n_images_ : how many images were used, held-out ones included

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
        features: Sequence[str | Function] = ("sift", "c1"),
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
        ignore: int | Sequence[int] | None = None,
        mask_colours: Any = None,
        upsample: str = "bilinear",
        time_limit: float | None = None,
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
        self.ignore = ignore
        self.mask_colours = mask_colours
        self.upsample = upsample
        self.time_limit = time_limit

    # --- training

    def fit(
        self,
        images: Any,
        masks: Any,
        validation: tuple[Any, Any] | None = None,
        callbacks: Sequence[Callback] = (),
        progress: Progress | None = None,
        skip_bad: bool = False,
        start: SegmenterModel | str | Path | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = CHECKPOINT_SECONDS,
    ) -> ImageSegmenter:
        """Learn from images and their masks.

        Pixels whose class is not known are masked (numpy.ma), None or NaN in the arrays of masks, or have a value of
        `ignore`; −1 too, unless the only other value is 1. The likelihood sums over the labels of blocks without a
        known pixel; other losses leave these blocks out.

        `validation` is (images, masks) to choose among strengths. `progress` is called with (images done, of all) as
        features are computed; callbacks see every iteration. Files that cannot be used are all named in one error, or
        left out with a warning if `skip_bad`. `start` is a model, or its file, to begin from: of the same features and
        classes. The model so far is written to the file `checkpoint` every `checkpoint_every` seconds; it is a model
        file, and can be a `start`. On Ctrl-C the model so far is kept and KeyboardInterrupt is raised.
        """
        begin = time.monotonic()
        features, strengths = self.check(validation)
        rules = self._rules()
        given = Pairs.read(images, masks, rules, skip_bad=skip_bad)
        given.warn()
        given = given.known()
        self.n_images_ = len(given.images)
        test = None
        if validation is not None:
            test = Pairs.read(*validation, rules)
        elif strengths:
            given, test = given.draw(self.validation_fraction, make_seed(self.random_state))
        classes = given.classes(rules.multiclass)
        features = features.measured(given.images[0])
        check_memory(sum(math.prod(features.blocks(p.shape)) for p in given.images), len(features.names))
        values = self._compute(features, given.images, progress)
        mean, scale = learn_scales(values)
        X: list[Any] = [(v - mean) / scale for v in values]
        del values
        states = block_states(given, classes, features)
        edge_mean = self._edge_mean(X)
        width = len(features.names)
        known_only = full_name(self.loss) not in SUMS_OVER_UNKNOWN and any((of < 0).any() for of in states)
        encoder = BlockEncoder(classes, width, width, True, True, 4, edge_mean=edge_mean, known_only=known_only)
        forms = self._forms(len(classes))
        crf = self._field(*forms)
        crf.inference = self._training_engine(max((x.shape[:2] for x in X), key=np.prod), len(X), len(classes))
        if start is not None:
            start = start if isinstance(start, SegmenterModel) else SegmenterModel.load_weights(start)
            check_start(start, features, classes, forms)
            w = training_weights(start, mean, scale, edge_mean)
            crf.set_params(warm_start=True)
            crf.model_ = GraphModel(encoder, encoder.field(*forms), w)

        def make(field: GraphModel) -> SegmenterModel:
            field = replace(from_equal_features(field, edge_mean), inference=self.inference, decode=self.decode)
            return SegmenterModel(features, mean, scale, field, rules, self.upsample, edge_mean)

        if checkpoint is not None:
            callbacks = [*callbacks, checkpoints(Path(checkpoint), checkpoint_every, encoder, forms, make)]
        run = BlockTraining(crf, encoder, X, states, given.image_names, make, callbacks, begin + self._limit())
        self.path_: tuple[StrengthPoint, ...] = ()
        if test is not None:
            penalty: Any = L1() if self.penalty is None else self.penalty
            penalties = [(strength, penalty.at(strength)) for strength in strengths]
            self._try_penalties(run, penalties, test, self._compute(features, test.images, None))
        elif full_name(self.loss) == "pseudo-likelihood" and self.penalty is None:
            self._choose_edges(run, given, lambda x: x * scale + mean)
        else:
            self._train(run)
        return self

    def check(self, validation: Any = None) -> tuple[ImageFeatures, list[float]]:
        """(the features, the strengths), where no option is out of range; `fit` asks first of all."""
        if isinstance(self.features, str) or callable(self.features):
            raise ParameterError(f"features must be a tuple such as ({self.features!r},), not {self.features!r}")
        features = ImageFeatures(
            self.block_size, tuple(self.features), self.colour, self.position, self.size, self.sift_cell
        )
        if self.sweeps is not None and (not isinstance(self.sweeps, numbers.Integral) or self.sweeps < 1):
            raise ParameterError(f"sweeps must be None or an integer >= 1, not {self.sweeps!r}")
        if self.upsample not in UPSAMPLING:
            raise ParameterError(f"upsample must be one of {', '.join(UPSAMPLING)}, not {self.upsample!r}")
        self._rules()
        self._limit()
        self._field(*self._forms(2))._training()
        return features, self._strengths(validation)

    def _edge_mean(self, X: list[Any]) -> Floats:
        return average_difference(X)

    def _limit(self) -> float:
        limit = np.inf if self.time_limit is None else self.time_limit
        if isinstance(limit, bool) or not isinstance(limit, numbers.Real) or not limit > 0:
            raise ParameterError(f"time_limit must be None or a positive number of seconds, not {self.time_limit!r}")
        return float(limit)

    def _forms(self, n_classes: int) -> tuple[str, str]:
        node_form, edge_form = ("ising", "ising") if n_classes == 2 else ("full", "potts")
        return self.node_form or node_form, self.edge_form or edge_form

    def _field(self, node_form: str, edge_form: str) -> GridCRF:
        return GridCRF(
            inference=self.inference,
            loss=self.loss,
            penalty=self.penalty,
            solver=self.solver,
            node_form=node_form,
            edge_form=edge_form,
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
        if self.penalty is not None and (not isinstance(self.penalty, Penalty) or self.penalty.strength is None):
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

    # --- files

    @classmethod
    def load(
        cls,
        path: str | Path,
        n_threads: int | None = None,
        cache: str | Path | None = None,
        features: Mapping[str, Function] | None = None,
    ) -> ImageSegmenter:
        """Open a model file. The estimator can predict; its options are those that the file records.

        Files have no code: `features` is {name: function} for a model that was trained with functions as features.
        """
        model = SegmenterModel.load(path, n_threads, features)
        blocks = model.features
        segmenter = cls(
            block_size=blocks.block_size,
            features=(*blocks.kinds, *(part.function for part in blocks.custom if part.function is not None)),
            colour=blocks.colour,
            position=blocks.position,
            size=blocks.size,
            sift_cell=blocks.sift_cell,
            multiclass=model.multiclass,
            ignore=model.masks.ignore or None,
            mask_colours=model.masks.colour_map,
            upsample=model.upsampling,
            inference=model.field.inference,
            node_form=model.field.field.node_form,
            edge_form=model.field.field.edge_form,
            decode=model.field.decode,
            cache=cache,
            n_threads=n_threads,
        )
        segmenter._set_model(model)
        return segmenter
