"""ChainCRF: linear-chain conditional random fields as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._values import Label, Sequences
from crfkit.chain.estimator.base import ChainEstimator
from crfkit.chain.estimator.cluster import ClusterInputs, is_collection
from crfkit.chain.estimator.frames import FrameInputs
from crfkit.chain.model.model import ChainModel
from crfkit.errors import ParameterError
from crfkit.files.checkpoint import Checkpoint
from crfkit.files.columns import ColumnSource, column_files
from crfkit.protocols import Penalty, Solver
from crfkit.text.template import Template
from crfkit.text.words import TextFeatures
from crfkit.training.tags import StructuredInputs

if TYPE_CHECKING:  # training loads all solvers, which tagging does not need
    from crfkit.chain.training.problem import LossMaker
    from crfkit.solvers import StoppingRule
    from crfkit.solvers.parts.loop import Callback
    from crfkit.training.path import Callback as PathCallback
    from crfkit.training.path import PathPoint


class ChainCRF(StructuredInputs, ClusterInputs, FrameInputs, ChainEstimator):
    """Linear-chain conditional random field.

    Parameters
    ----------
    template : None, a path, a text or a :class:`Template`. With a CRF++ template or Wapiti's patterns, tokens are lists
    of column strings. Without a template, they are lists of attribute strings or dicts
        (``{"w": "the", "cap": True, "x": 0.5}``, which may be nested), or each sequence is a matrix (NumPy or
        scipy.sparse) with a row per position.
    penalty : a member of :mod:`crfkit.penalties`. None is L2(1), but L1(1) for solvers that select attributes
        (grafting-light, grafting, gauss-seidel), and no penalty for solvers that take none (averaged-perceptron,
        passive-aggressive, arow, mira)
    solver : a name of :data:`crfkit.solvers.SOLVERS`, or a solver, which keeps its own stopping rule, limit and seed
        whatever the options below are; docs/guides/choose_a_solver.md compares them
    min_frequency : attributes that occur less often than this in the training set are dropped
    all_possible_states, all_possible_transitions : give weights to all (attribute, label) and (label, label) pairs, as
        CRF++ does. By default only pairs that occur in the training set have weights, as in CRFsuite, which is about as
        accurate with a fraction of the time and memory (docs/explanation/math.md has figures)
    tolerance : stop when the objective decreases by less than this, relatively, over ten iterations, or when
        ``‖g‖ ≤ tolerance·max(1, ‖w‖)``; or a rule of :mod:`crfkit.solvers.parts.stopping`
    max_iterations : maximum number of iterations (online solvers: of epochs); None for the solver's own limit
    n_threads : number of threads; None for all cores. Workers of a cluster use the threads that they were started with
    random_state : random seed of solvers that shuffle the sequences; None is 0, so that runs can be repeated
    verbose : 1 prints a line per iteration
    loss : "likelihood", "softmax-margin" or "hinge"; or a function of (data, field) that returns a
        :class:`crfkit.protocols.Loss`, to use a loss of your own
    cost : cost of each mistake, for the margin losses: a matrix [true label, label] in the order of the sorted labels;
        None counts mistakes
    order : 1, or 2 for weights on label triples
    constraints : a tagging scheme ("iob1", "iob2", "ioe1", "ioe2", "iobes", "bilou"), "observed", or a collection of
        (label, next label) pairs that must not occur. They have probability 0 in training and in prediction
    label_classes : a mapping from labels to class names; attributes then also score classes of labels, e.g.
        ``{"B-PER": "PER", "I-PER": "PER"}``
    warm_start : begin at the weights of the last fit, as far as they have the same names
    class_weight : weights of labels, e.g. ``{"O": 0.2}`` (1 for labels that are not named), or "balanced": inversely
        proportional to how often they occur. A mistake at a position counts as much as its label's weight; the
        objective is then no longer convex (:mod:`crfkit.chain.losses.weak`)
    features : None, a :class:`TextFeatures` or the name of a preset ("ner", "chunking", "pos", "segmentation"), instead
        of a template: tokens are plain words, or lists of columns that begin with the word
    hash_bits : hash the names of attributes to 2^hash_bits buckets: memory is bounded and names are not kept;
        None keeps names
    precision : of scores and messages in training: "double", "single", or "auto": single floats on 32,768 positions and
        more, which takes less time, and doubles when a solver sees rounding errors; the optimum is the same
    cluster : None to train in this process; or a Dask cluster on which to train: an address ("tcp://host:8786"),
        "local:4" for four processes on this machine, a Dask client or cluster, or a
        :class:`crfkit.distributed.Cluster` with options. Lists are sent to the workers; files, Dask bags and Dask
        frames are read there. The optimum is the same. Needs ``pip install 'crfkit[distributed]'``
    device : None to train with the compiled core; "cuda" or "cuda:1" to train on a GPU; "torch:cpu" for the same code
        on the CPU, which is slower than the core. The optimum and the model file are the same. For the loss
        "likelihood" and order 1, and solvers that do not need the compiled core. Needs ``pip install 'crfkit[torch]'``

    Attributes
    ----------
    classes_ : the labels, sorted
    result_ : how training went (:class:`crfkit.result.Result`)
    state_features_, transition_features_, n_attributes_ : weights by name; number of attributes that have weights

    Examples
    --------
    >>> from crfkit import ChainCRF
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> crf = ChainCRF().fit(X, y)
    >>> crf.predict([[["w=the"], ["w=dog"], ["w=sleeps"]]])
    [['DET', 'NOUN', 'VERB']]
    """

    def __init__(
        self,
        template: Template | str | Path | None = None,
        penalty: Penalty | None = None,
        solver: str | Solver = "auto",
        min_frequency: int = 1,
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        tolerance: float | StoppingRule = 1e-5,
        max_iterations: int | None = None,
        n_threads: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        verbose: int = 0,
        loss: str | LossMaker = "likelihood",
        cost: ArrayLike | None = None,
        order: int = 1,
        constraints: str | Collection[tuple[Label, Label]] | None = None,
        label_classes: Mapping[Label, str] | None = None,
        warm_start: bool = False,
        class_weight: Mapping[Label, float] | str | None = None,
        features: TextFeatures | str | None = None,
        hash_bits: int | None = None,
        precision: str = "auto",
        cluster: object = None,
        device: str | None = None,
    ) -> None:
        self.template = template
        self.penalty = penalty
        self.solver = solver
        self.min_frequency = min_frequency
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose
        self.loss = loss
        self.cost = cost
        self.order = order
        self.constraints = constraints
        self.label_classes = label_classes
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.features = features
        self.hash_bits = hash_bits
        self.precision = precision
        self.cluster = cluster
        self.device = device

    def fit(
        self,
        X: Sequences,
        y: Iterable[Label],
        sample_weight: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
        X_dev: Sequences | None = None,
        y_dev: Iterable[Iterable[Label]] | None = None,
        patience: int = 10,
        resume: Checkpoint | None = None,
        token_weight: Iterable[Iterable[float]] | None = None,
    ) -> ChainCRF:
        """Learn from sequences X with labels y. `sample_weight` has one weight per sequence.

        A label may be None, if it is not known, or a set of labels, if it is one of these; the labels of a sequence may
        be :class:`crfkit.Annotations` of several people. `token_weight` has a weight for every position.

        With a development set `X_dev`, `y_dev`, training ends when its score (F1 of phrases, or accuracy) has not
        improved for `patience` iterations, and the best weights are kept. `resume` continues from a checkpoint
        (:meth:`checkpoint`) of a run on the same data. Callbacks see every iteration and may add to ``result_.trace``;
        `training_error` adds the share of positions and of sequences that the current weights decode wrongly. On
        Ctrl-C the estimator keeps the model so far, and KeyboardInterrupt is raised.
        """
        seen, start, dev = self._with_progress(callbacks), self._start(), (X_dev, y_dev, patience)
        if is_collection(X):
            given = (sample_weight, X_dev, y_dev, token_weight, training_error or None)
            if any(option is not None for option in given):
                raise ParameterError(
                    "a Dask bag cannot be combined with sample_weight, token_weight, X_dev or training_error"
                )
            return self._done(*self._fit_bags(X, y, seen, start, resume))
        with self._placed() as training:
            seen = [*training.placement.callbacks, *seen]
            return self._done(
                *training.fit(X, y, sample_weight, seen, training_error, *dev, start, resume, token_weight)
            )

    def fit_file(
        self,
        path: ColumnSource | Sequence[ColumnSource],
        callbacks: Sequence[Callback] = (),
        training_error: bool = False,
        encoding: str = "utf-8",
        format: str = "auto",
        label_column: str | int | None = None,
        unknown_label: str | None = None,
        label_separator: str | None = None,
        weight_column: int | None = None,
        out_of_core: bool = False,
        resume: Checkpoint | None = None,
    ) -> ChainCRF:
        """Learn from one or several column files whose last column is the label, reading them as a stream.

        This needs a template or features, except for CRFsuite's data files (format="crfsuite"), which have attributes
        instead of columns. `encoding`, `format` ("auto", "columns", "conllu" or "crfsuite") and `label_column` (for
        CoNLL-U) are as in :class:`crfkit.files.columns.ColumnFile`.
        The model is the same as from ``crfkit train`` on these files.

        The label `unknown_label` marks unlabelled tokens; a label with `label_separator` in it is one of
        several; `weight_column` is the column (1 is the first) with the weights of the tokens.

        With `out_of_core`, the sequences need not fit into memory: they are encoded into a temporary folder, and each
        pass reads them again (:func:`crfkit.chain.training.stored.fit_stored`).

        `resume` continues from a checkpoint of a run on the same files.

        On a `cluster`, the workers read the files, which may be globs or URLs of any file system that fsspec knows.
        """
        from crfkit.chain.encoding.weak_labels import LabelColumn

        labels = LabelColumn(unknown_label, label_separator, weight_column)
        shown, start = self._with_progress(callbacks), self._start()
        if self.cluster is not None:
            self._refuse_device("a cluster")
            if labels != LabelColumn() or training_error or out_of_core:
                raise ParameterError(
                    "files on a cluster cannot be combined with unknown_label, label_separator, weight_column, "
                    "training_error or out_of_core"
                )
            from crfkit.distributed.training import fit_urls

            paths: Any = path if isinstance(path, (list, tuple)) else [path]
            options = (encoding, format, label_column)
            made = fit_urls(self._training(), self.cluster, paths, shown, *options, start=start, resume=resume)
            return self._done(*made)
        files = column_files(path, encoding, format, label_column)
        if out_of_core:
            from crfkit.chain.training.stored import fit_stored

            self._refuse_device("out_of_core")
            if labels != LabelColumn() or training_error or start is not None or resume is not None:
                raise ParameterError(
                    "out_of_core cannot be combined with unknown_label, label_separator, weight_column, "
                    "training_error, warm_start or resume"
                )
            return self._done(*fit_stored(self._training(), files, shown))
        with self._placed() as training:
            return self._done(*training.fit_file(files, shown, training_error, start, labels, resume))

    def partial_fit(
        self,
        X: Sequences,
        y: Iterable[Iterable[Label]],
        classes: Iterable[Label] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ChainCRF:
        """Run one epoch of an online solver over these sequences, from the current weights.

        New attributes and labels are added. `classes` lists labels that may come later, which constraints need to know.
        """
        from crfkit.chain.training.batches import PartialFit, learn_batch

        self._refuse_device("partial_fit")
        if self.cluster is not None:
            raise ParameterError("partial_fit does not use a cluster; set cluster=None, or call fit with all sequences")
        before = self._partial or (PartialFit.after(self.model_) if hasattr(self, "model_") else None)
        model, self.result_, self._partial = learn_batch(self._training(), X, y, before, classes, sample_weight)
        self._set_model(model)
        return self

    def update(
        self,
        X: Sequences,
        y: Iterable[Iterable[Label]],
        sample_weight: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> ChainCRF:
        """Continue training on further sequences without the earlier ones; the result is close to training on all.

        The model records how often each attribute occurred. Weights that many earlier sequences support change little;
        weights of new and rare attributes change freely. New attributes and labels are added. With `penalty=None`, the
        penalty of the earlier training is used.

        >>> from crfkit import ChainCRF
        >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]]] * 9, [["DET", "NOUN"]] * 9)
        >>> crf = crf.update([[["w=an"], ["w=owl"]]], [["DET", "NOUN"]])
        >>> crf.predict([[["w=an"], ["w=cat"]], [["w=the"], ["w=owl"]]])
        [['DET', 'NOUN'], ['DET', 'NOUN']]
        """
        from crfkit.chain.training.update import learn_further

        self._refuse_device("update")
        before = self._fitted()
        return self._done(*learn_further(self._training(), X, y, before, sample_weight, callbacks))

    def path(
        self,
        X: Sequences,
        y: Iterable[Iterable[Label]],
        strengths: Iterable[float] | None = None,
        *,
        n: int = 20,
        ratio: float = 1e-3,
        sample_weight: ArrayLike | None = None,
        X_dev: Sequences | None = None,
        y_dev: Iterable[Iterable[Label]] | None = None,
        callback: PathCallback | None = None,
    ) -> tuple[PathPoint[ChainModel], ...]:
        """Return a model for each strength of the penalty, the largest first; each run starts from the last solution.

        `strengths`, `n`, `ratio` and `callback` are as in :func:`crfkit.regularisation_path`; an L2 penalty needs
        `strengths`. With a development set each point has its `score`. The estimator itself does not change.

        >>> from crfkit import ChainCRF, L1
        >>> X, y = [[["w=the"], ["w=cat"]], [["w=a"], ["w=dog"]]], [["DET", "NOUN"], ["DET", "NOUN"]]
        >>> path = ChainCRF(penalty=L1()).path(X, y, n=3, ratio=0.1, X_dev=X, y_dev=y)
        >>> [(round(point.strength, 2), point.nonzeros, point.score) for point in path]
        [(1.5, 0, 0.5), (0.47, 1, 1.0), (0.15, 1, 1.0)]
        """
        from crfkit.training.path import PathOptions
        from crfkit.training.progress import print_point

        self._refuse_device("path")
        shown = print_point if callback is None and self.verbose else callback
        with self._placed() as training:
            return training.path(X, y, PathOptions(strengths, n, ratio, shown), sample_weight, X_dev, y_dev)
