"""StructureLearner: which variables depend on each other, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from crfkit._values import Label, Samples
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.model import GraphModel
from crfkit.solvers.parts.loop import Callback
from crfkit.solvers.parts.stopping import StoppingRule
from crfkit.structure.estimator.base import StructureEstimator
from crfkit.structure.estimator.prediction import given_inputs
from crfkit.training.path import Callback as PathCallback
from crfkit.training.path import PathOptions, PathPoint
from crfkit.training.progress import print_point


class StructureLearner(StructureEstimator):
    """Learn which variables of a table depend on each other, given all others.

    The variables are the columns of Y; with inputs X the field is conditional, p(Y | X): node i has the features
    [1, g, f_i], an edge [1, g, f_i, f_j], of features g of the row, f_i of the variable, or both. The objective is
    ``loss + node_strength/2·‖node weights‖² + edge_strength·Σ_edges ‖weights of the edge‖``: whole edges become zero.
    Binary variables have one coupling per edge and one bias each in ±1 coding (Ising); variables of more labels a table
    of K_i × K_j weights per edge; the penalty removes the redundancy with the biases.

    Parameters
    ----------
    method : "newton" (proximal Newton steps on the edges selected so far; for the pseudo-likelihood of binary columns
        without inputs), "grafting-light", "grafting" (edges are switched on as needed: one step, or a whole
        minimisation, between selections), "agpm" (projected gradients on all candidates), "full" (FISTA on all
        candidates); "auto" is "newton" where possible, otherwise "grafting-light". All have the same optimum, except
        for a likelihood by "trw": that bound depends on which edges are in the graph, zero or not.
    loss : "pseudo-likelihood" ("pl" for short), or "likelihood", as `inference` computes it
    inference : the engine of the likelihood and of predictions, as in :class:`GraphCRF`. With "auto", the likelihood is
        exact if the graph of all candidates allows that (about 20 binary columns); if it does not, edges are chosen by
        pseudo-likelihood instead, with a warning. Predictions are exact if the learned graph allows that, otherwise by
        "trw"
    group_norm : norm of the weights of an edge in the penalty: "inf", "2" or "1"
    node_strength : strength of the L2 penalty on node weights; keeps biases finite
    edge_strength : a number, or how to choose it. "path": solutions for `n_strengths` strengths, the weakest last,
        which is kept. "cv": the edges at each strength, refitted without the edge penalty, are scored on `n_folds`
        held-out folds; the fewest edges within one standard error of the best. "ebic": the least extended BIC of
        refitted edges. "stability": of the edges at the strength of "ebic", those that at least `threshold` of
        `n_subsamples` random halves of the rows select. With these three the model is the refitted one, without
        shrinkage and, except for "stability", without edges that do not lower the extended BIC.
    select_unit : how many edges Grafting switches on at a time
    candidates : pairs of columns (numbers or names) that may become edges; None: all
    form : "ising", "full" tables, "reference", "ordinal", or "auto": Ising where all variables are binary, otherwise
        full. "reference" is full without weights for the last label of a variable and the last pair of labels of an
        edge (Xue & Zhang 2016): K_i − 1 per variable and K_i·K_j − 1 per edge, three where both are binary. "ordinal"
        is for ratings: one coupling per edge, times the scores of both labels, equally spaced from −1 to 1 in
        their order (of numbers, of ordered categories); a bias for every label. Columns of more than two labels without
        an order have a weight for each label instead of a score
    edge_features : whether edges have weights on the features of X, too
    refit : how the weights of the edges that "ebic", "cv" and "stability" choose are made. "auto": by exact likelihood
        if the junction tree allows that within a minute, otherwise by a likelihood that particles estimate (without
        inputs, up to 150 variables); otherwise the weights of the loss are kept, with a warning if marginals differ
        from the data's. "likelihood": exact if memory allows it, otherwise by particles, for any `edge_strength`.
        "pseudo-likelihood" " "(or "pl"): keeps the weights of the loss, which predict one variable well from the
        others, but may be far off as " "a distribution.
    n_strengths, ebic_gamma, n_folds, n_subsamples, threshold : parameters of the rules above. Paths end early once they
        have all edges that lower the extended BIC, and continue while scores fall. A larger `ebic_gamma` selects fewer
        edges.
    tolerance, max_iterations : stopping rule of solvers, as in :class:`GraphCRF`
    n_threads, random_state : None for all cores; the seed of folds and random halves, None is 0
    verbose : 1 prints a line per strength, 2 a line per iteration
    missing : what to do with missing labels (None, NaN). "impute" draws them several times from the learned graph,
        given the known labels of the row, and gives such rows less weight; missing inputs are replaced by their means.
        "drop" drops rows with missing cells. Both warn with the number of rows. "error" raises an error
    bins : number of groups of about equal size into which columns of numbers are cut. An integer is for all columns
        with more different numbers than that, except scales (at most 11 different whole numbers, such as 0 to 10); a
        dict such as ``{"age": 5}`` names the columns. None raises an error for numbers with more than 24 values. Whole
        numbers and texts with a different value in every row are treated as identifiers and dropped with a warning,
        unless the dict names them
    standardize : whether edge strengths are in units of the columns' standard deviations, which gives rare labels more
        influence
    cluster : where to run the random halves of "stability" and the folds of "cv": None for this process; the address of
        a Dask scheduler ("tcp://host:8786"), "local:4" for four processes on this machine, a Dask client or cluster
        object, or a :class:`crfkit.distributed.Cluster`. The edges are the same. It needs
        ``pip install 'crfkit[distributed]'`` here and on every worker. Other strengths do not use it, with a warning.
        Callbacks do not see what happens on the cluster.

    Attributes
    ----------
    edges_ : (column, column, weight) of every edge, the strongest first: the coupling with its sign where both columns
        have two labels or the form is ordinal, otherwise the root mean square of the edge's centred table. Columns have
        the names of Y, if it has any, otherwise numbers.
    edge_weights_, node_weights_ : all parameters by the names of columns, inputs and labels
    weight_matrix_ : [variables, variables] the weights of edges_
    edge_records_ : a dict for each edge; :meth:`edges_frame` has them as a data frame
    graph_ : the same as a weighted networkx graph
    refit_ : how the weights were made, {"by": …}, and how far marginals differ from the data's where that is estimated
    score_error_ : standard error of the last score, where it was sampled
    strength_ : the edge strength
    strength_path_ : strengths, edges and scores along the path (:class:`crfkit.training.path.PathPoint`)
    stability_ : (column, column) → share of random halves that select the edge
    entry_order_ : (column, column, strength) of every edge of the path, in the order in which they entered
    classes_ : the labels of each variable
    model_ : a :class:`GraphModel`
    result_ : how the last minimisation went

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit import StructureLearner
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.random(500) < 0.3
    >>> wet = rain ^ (rng.random(500) < 0.1)
    >>> late = wet ^ (rng.random(500) < 0.2)  # depends on the weather by way of the streets
    >>> learner = StructureLearner().fit(np.stack([rain, wet, late], axis=1))
    >>> [(i, j) for i, j, weight in learner.edges_]
    [(0, 1), (1, 2)]
    """

    def __init__(
        self,
        method: str = "auto",
        loss: str = "pseudo-likelihood",
        inference: str | Engine = "auto",
        group_norm: str = "inf",
        node_strength: float = 1.0,
        edge_strength: float | str = "ebic",
        select_unit: int = 50,
        candidates: object = None,
        form: str = "auto",
        edge_features: bool = True,
        refit: str = "auto",
        n_strengths: int = 30,
        ebic_gamma: float = 0.35,
        n_folds: int = 5,
        n_subsamples: int = 50,
        threshold: float = 0.75,
        tolerance: float | StoppingRule = 1e-5,
        max_iterations: int | None = None,
        n_threads: int | None = None,
        random_state: object = None,
        verbose: int = 0,
        missing: str = "impute",
        bins: int | dict[Label, int] | None = None,
        standardize: bool = True,
        cluster: object = None,
    ) -> None:
        self.method = method
        self.loss = loss
        self.inference = inference
        self.group_norm = group_norm
        self.node_strength = node_strength
        self.edge_strength = edge_strength
        self.select_unit = select_unit
        self.candidates = candidates
        self.form = form
        self.edge_features = edge_features
        self.refit = refit
        self.n_strengths = n_strengths
        self.ebic_gamma = ebic_gamma
        self.n_folds = n_folds
        self.n_subsamples = n_subsamples
        self.threshold = threshold
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose
        self.missing = missing
        self.bins = bins
        self.standardize = standardize
        self.cluster = cluster

    def fit(
        self,
        Y: Samples,
        X: Samples = None,
        *,
        inputs: object = None,
        callbacks: Sequence[Callback] = (),
        on_half: Callable[[int, int], None] | None = None,
    ) -> StructureLearner:
        """Learn from a table Y [samples, variables] of labels, and `inputs` if there are any.

        `inputs` are [samples, features], which all variables share, [samples, variables, features], for each variable,
        or a tuple of both in this order. The other methods take them in the same form; giving them as X is deprecated.
        Callbacks see every iteration at every strength. Each row records its strength; StopTraining ends the path.
        `on_half` is called after each random half of "stability" with the number of halves that are done, and of all.
        On Ctrl-C the best model of the strengths so far is kept and KeyboardInterrupt is raised.
        """
        with self._on_cluster(self._training(callbacks, on_half)) as training:
            return self._done(training, *training.fit(Y, given_inputs(inputs, X, Y)))

    def path(
        self,
        Y: Samples,
        strengths: Iterable[float] | None = None,
        *,
        inputs: object = None,
        n: int | None = None,
        ratio: float = 0.01,
        callback: PathCallback | None = None,
    ) -> tuple[PathPoint[GraphModel], ...]:
        """Return a model for each strength of the edge penalty, the largest first; each starts from the last solution.

        The strengths are those given, or `n` (by default `n_strengths`) in geometric progression from the smallest
        without edges down to `ratio` times that. The weights are not refitted. The estimator itself does not change.
        `cluster` is not used.
        """
        shown = print_point if callback is None and self.verbose else callback
        options = PathOptions(strengths, self.n_strengths if n is None else n, ratio, shown)
        return self._training().path(Y, inputs, options)
