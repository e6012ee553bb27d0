"""ImageSegmenter: figure and ground (or more classes) in images, by a field on blocks of pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from crfkit._values import Samples
from crfkit.errors import ParameterError
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.training.problem import LossChoice
from crfkit.images.custom import Function
from crfkit.images.estimator.prediction import SegmenterPrediction
from crfkit.images.features import ImageFeatures
from crfkit.images.model.segmenter import SegmenterModel
from crfkit.images.training.segmenter import CHECKPOINT_SECONDS, Progress, SegmenterTraining
from crfkit.images.training.size import SMALLEST_BLOCK, SegmenterEstimate
from crfkit.protocols import Penalty, Solver
from crfkit.solvers import StoppingRule
from crfkit.solvers.parts.loop import Callback
from crfkit.warn import warn_caller


class ImageSegmenter(SegmenterPrediction):
    """Segment images: a node per block of pixels, features [1, h_i] of nodes and [1, |h_i − h_j|] of edges.

    Images are a list of arrays (grey (H, W), RGB or RGBA; 8 or 16 bits, or floats from 0 to 1) or of paths, of any
    sizes. Masks are as large as their images, or the same at another scale, and have two values, or integer classes
    with `multiclass`; mask files are read by :func:`crfkit.files.images.read_mask`. Features are standardised, and
    differences |h_i − h_j| centred.

    Parameters
    ----------
    block_size : side of a block in pixels; its label is the class of most of its known pixels. None for 2,
        or the next larger side for which training fits into memory; a warning then names it
    features : any of "sift" (128 per block), "c1" (34) and functions `f(image)` of an image [H, W] or [H, W, 3] with
    values
        from 0 to 1. A function returns [H, W, F], which is averaged over blocks, or [rows, columns, F] for the blocks.
        Its features are named custom0, custom1, …, or as in its attribute `feature_names`
    colour, position : whether to add the mean colour of a block (6 features), and its row and column
    size : (height, width) that images are resized to before their features are computed; predictions have the size of
        the image given
    sift_cell : side of a SIFT cell in pixels, even; the patch around a block is four times as wide
    multiclass : whether masks may have more than two values
    inference, loss, solver, tolerance, max_iterations, n_threads, random_state, verbose : as for :class:`GridCRF`
    sweeps : maximum number of sweeps of iterative inference ("bp", "trw", "mean-field" by name) per training step,
        beginning where the last one ended; None for the engine's own limit, which is slower and rarely changes masks
    penalty : a member of :mod:`crfkit.penalties`. With None, groups of more than 16 features (SIFT, C1, functions) get
        L2 penalties, of their node and edge weights, that are chosen on folds of the images, and all other weights
        L2(1). For the pseudo-likelihood the L2 of all edge weights is chosen on held-out images. None is L1 if there
        are strengths
    node_form, edge_form : as for :class:`GridCRF`; None for "ising" with two classes, "full" and "potts" with more
    decode : "marginal" (the most probable label of each block: the fewest wrong pixels), or as for :class:`GridCRF`
    strengths : strengths of the penalty to try, the largest first, each from the weights of the one before; the model
        with the fewest wrong pixels on the validation set is kept
    validation_fraction : share of the images that is held out to choose strengths if `fit` was given no validation set
    cache : a folder that keeps the features of images
    ignore : value, or values, of mask pixels whose class is not known, e.g. 255
    mask_colours : {colour: class} for masks with colours; a colour is a name, "#rrggbb" or (r, g, b), and the class
        None means unknown. Or a text or file as :func:`crfkit.files.mask_colours.read_colours` reads
    upsample : how block probabilities become pixel probabilities: "bilinear", or "nearest", which shows the blocks.
        Decoders other than "marginal" label whole blocks
    time_limit : seconds after which `fit` ends with the model so far, after at least one iteration; None for no limit

    Attributes
    ----------
    classes_ : the values of masks, sorted
    selected_features_ : names of the features with weights that are not zero, of nodes ("unary") and edges ("pairwise")
    path_ : a :class:`crfkit.PathPoint` for each strength; its score is the share of wrong pixels of the validation set,
        or of wrong blocks in folds if the penalties of groups of features were chosen
    penalty_choice_ : None, or how these penalties were chosen: their errors on images held out and on those learned
        from; `result_.objective` names the penalties
    result_, n_images_ : how training went; how many images were used, held-out ones included

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
        block_size: int | None = None,
        features: Sequence[str | Function] = ("sift", "c1"),
        colour: bool = False,
        position: bool = False,
        size: tuple[int, int] | None = None,
        multiclass: bool = False,
        inference: str | Engine = "auto",
        sweeps: int | None = 50,
        loss: LossChoice = "likelihood",
        penalty: Penalty | None = None,
        solver: str | Solver = "auto",
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
        mask_colours: object = None,
        upsample: str = "bilinear",
        time_limit: float | None = None,
    ) -> None:
        self.block_size, self.features, self.size, self.sift_cell = block_size, features, size, sift_cell
        self.colour, self.position, self.cache, self.upsample = colour, position, cache, upsample
        self.multiclass, self.ignore, self.mask_colours = multiclass, ignore, mask_colours
        self.inference, self.sweeps, self.decode, self.loss = inference, sweeps, decode, loss
        self.node_form, self.edge_form, self.penalty, self.solver = node_form, edge_form, penalty, solver
        self.strengths, self.validation_fraction = strengths, validation_fraction
        self.tolerance, self.max_iterations, self.time_limit = tolerance, max_iterations, time_limit
        self.n_threads, self.random_state, self.verbose = n_threads, random_state, verbose

    def fit(
        self,
        images: Samples,
        masks: object,
        validation: tuple[object, object] | None = None,
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

        `validation` is (images, masks) to choose among strengths. `progress` is called with (images done, all images)
        as features are computed; callbacks see every iteration. Files that cannot be used are all named in one error,
        or skipped with a warning if `skip_bad`. `start` is a model, or its file, to begin from; it needs the same
        features and classes. The model so far is written to the file `checkpoint` every `checkpoint_every` seconds; it
        is a model file, and can be a `start`. On Ctrl-C the model so far is kept and KeyboardInterrupt is raised.
        """
        done = self._training().run(
            images,
            masks,
            validation,
            callbacks=self._with_progress(callbacks),
            progress=progress,
            skip_bad=skip_bad,
            start=start,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        self.path_, self.n_images_ = done.path, done.n_images
        self.penalty_choice_ = None if done.choice is None else done.choice.record()
        for note in done.notes:
            warn_caller(note, UserWarning)
        self._keep(done.model, done.result, done.concerns, done.interrupted)
        return self

    def check(self, validation: tuple[Samples, Samples] | None = None) -> None:
        """Raise ParameterError if an option is out of range; `fit` checks them before anything else."""
        self._training().check(validation)

    def estimate(self, images: object, masks: object, skip_bad: bool = False) -> SegmenterEstimate:
        """Estimate the size, the memory and the time of training on these images; ``str`` gives a summary.

        The time is measured in a few iterations on some of the images.
        """
        return self._training().estimate(images, masks, skip_bad=skip_bad)

    def _training(self) -> SegmenterTraining:
        """Return the options as training takes them."""
        if isinstance(self.features, str) or callable(self.features):
            raise ParameterError(f"features must be a tuple such as ({self.features!r},), not {self.features!r}")
        kinds, side = tuple(self.features), SMALLEST_BLOCK if self.block_size is None else self.block_size
        return SegmenterTraining(
            features=ImageFeatures(side, kinds, self.colour, self.position, self.size, self.sift_cell),
            masks=self.mask_rules(),
            upsample=self.upsample,
            inference=self.inference,
            sweeps=self.sweeps,
            loss=self.loss,
            node_form=self.node_form,
            edge_form=self.edge_form,
            decode=self.decode,
            strengths=None if self.strengths is None else tuple(self.strengths),
            validation_fraction=self.validation_fraction,
            cache=self.cache,
            time_limit=self.time_limit,
            auto_block=self.block_size is None,
            options=self._solver_options(),
        )

    @classmethod
    def load(
        cls,
        path: str | Path,
        n_threads: int | None = None,
        cache: str | Path | None = None,
        features: Mapping[str, Function] | None = None,
    ) -> ImageSegmenter:
        """Open a model file. The estimator can predict; its options are those that the file records.

        Model files contain no code: `features` is {name: function} for a model that was trained with functions as
        features.
        """
        model = SegmenterModel.load(path, n_threads, features)
        segmenter = cls(n_threads=n_threads, cache=cache, **model.options())
        segmenter._set_model(model)
        return segmenter
