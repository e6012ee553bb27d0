"""The base of StructureLearner: it hands its options to training, and keeps and stores what was learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from crfkit._values import Label
from crfkit.errors import ModelFileError
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.model import GraphModel
from crfkit.names import full_name
from crfkit.result import Result, Status
from crfkit.solvers.parts.loop import Callback
from crfkit.solvers.parts.stopping import StoppingRule
from crfkit.structure.estimator.prediction import PredictionMixin
from crfkit.structure.estimator.weights import WeightsMixin, edge_sizes
from crfkit.structure.options import StructureOptions, Tunables
from crfkit.structure.record import StructureFit, StructureRecord, concerns
from crfkit.structure.select import Hooks
from crfkit.structure.table import StructureData
from crfkit.structure.train import StructureTraining
from crfkit.training.estimator import Estimator, warn_convergence
from crfkit.training.options import SolverOptions
from crfkit.training.path import PathPoint
from crfkit.training.progress import print_half, print_point, print_row
from crfkit.warn import warn_caller

DISTRIBUTED_RULES = ("cv", "stability")  # rules with tasks that can run on a cluster
Edge = tuple[Label, Label, float]
Learner = TypeVar("Learner", bound="StructureEstimator")


class StructureEstimator(PredictionMixin, WeightsMixin, Estimator):
    """Training, model files and what was learned about a graph."""

    tunables = Tunables()
    """Constants of the algorithms, which only tests and experiments change."""

    method: str
    loss: str
    inference: str | Engine
    group_norm: str
    node_strength: float
    edge_strength: float | str
    select_unit: int
    candidates: object
    form: str
    edge_features: bool
    refit: str
    n_strengths: int
    ebic_gamma: float
    n_folds: int
    n_subsamples: int
    threshold: float
    tolerance: float | StoppingRule
    max_iterations: int | None
    n_threads: int | None
    missing: str
    bins: int | dict[Label, int] | None
    standardize: bool
    cluster: object

    result_: Result | None  # type: ignore[assignment] # None where nothing was minimised

    def _training(
        self, callbacks: Sequence[Callback] = (), on_half: Callable[[int, int], None] | None = None
    ) -> StructureTraining:
        options = StructureOptions(
            method=self.method,
            loss=self.loss,
            inference=self.inference,
            group_norm=str(self.group_norm),
            node_strength=self.node_strength,
            edge_strength=self.edge_strength,
            select_unit=self.select_unit,
            candidates=self.candidates,
            form=self.form,
            edge_features=self.edge_features,
            refit=self.refit,
            n_strengths=self.n_strengths,
            ebic_gamma=self.ebic_gamma,
            n_folds=self.n_folds,
            n_subsamples=self.n_subsamples,
            threshold=self.threshold,
            missing=self.missing,
            bins=self.bins,
            standardize=self.standardize,
            solver=SolverOptions(
                tolerance=self.tolerance,
                max_iterations=self.max_iterations,
                n_threads=self.n_threads,
                seed=self._seed(),
            ),
            tunables=self.tunables,
        )
        if on_half is None and self.verbose and self.cluster is not None:
            on_half = print_half
        hooks = Hooks(
            on_iteration=(*callbacks, *((print_row,) if self.verbose > 1 else ())),
            on_point=print_point if self.verbose else None,
            on_half=on_half,
        )
        return StructureTraining(options, hooks)

    @contextmanager
    def _on_cluster(self, training: StructureTraining) -> Iterator[StructureTraining]:
        """Yield the training with its tasks on the cluster, if there is one and the rule has tasks."""
        if self.cluster is None:
            yield training
            return
        training.options.check()
        if training.options.edge_strength not in DISTRIBUTED_RULES:
            warn_caller(
                f"the cluster is not used with edge_strength={training.options.edge_strength!r}: only "
                f"{' and '.join(map(repr, DISTRIBUTED_RULES))} have tasks that run on one; leave out cluster",
                UserWarning,
            )
            yield training
            return
        from crfkit.distributed.tasks import cluster_tasks

        with cluster_tasks(self.cluster) as tasks:
            yield replace(training, hooks=replace(training.hooks, tasks=tasks))

    def _done(self: Learner, training: StructureTraining, fit: StructureFit, data: StructureData) -> Learner:
        """Keep what was learned; raise KeyboardInterrupt if Ctrl-C ended it, otherwise warn of each concern."""
        self._set_model(fit.model, fit.record)
        self.result_ = fit.learned.solution.result
        self.inference_status_ = None
        self.score_error_ = None
        if fit.interrupted:
            raise KeyboardInterrupt(str(Status.INTERRUPTED))
        for concern, unconverged in concerns(training.options, fit.learned, data):
            if unconverged:
                warn_convergence(concern)
            else:
                warn_caller(concern, UserWarning)
        if self.verbose and fit.learned.refit is not None:
            print(f"weights by {fit.learned.refit.by}", flush=True)
        return self

    def _set_model(self, model: GraphModel, record: StructureRecord | None = None) -> None:
        """Keep a model; `record` is how its edges were chosen, by default the record in its file."""
        record = StructureRecord.read(model) if record is None else record
        self.model_ = model
        self._record = record
        self.classes_ = model.encoder.classes
        self.strength_ = record.strength
        self.refit_ = record.refit
        self.strength_path_: list[PathPoint[object]] = list(record.path)
        p = len(model.encoder.classes)
        self.stability_ = {self._pair(edge // p, edge % p): share for edge, share in record.stability.items()}
        self.entry_order_ = [(*self._pair(edge // p, edge % p), strength) for edge, strength in record.entries]
        sizes = edge_sizes(model, record.input_scales).tolist()
        ends = self._encoder().structure.edges.tolist()
        edges = [(*self._pair(i, j), size) for (i, j), size in zip(ends, sizes, strict=True)]
        self.edges_: list[Edge] = sorted(edges, key=lambda edge: -abs(edge[2]))

    # --- files

    @classmethod
    def load(cls: type[Learner], path: str | Path, n_threads: int | None = None) -> Learner:
        """Return an estimator that predicts with the model of a file; its options are those that the file records."""
        model = GraphModel.load(path, n_threads)
        if not isinstance(model.encoder, TableEncoder) or not isinstance(model.training.get("structure"), dict):
            raise ModelFileError(
                f"{path}: this is not a model of learnt structure; open it with GraphCRF.load or GridCRF.load"
            )
        try:
            record = StructureRecord.read(model)
            learner = cls(
                method=record.method,
                loss=full_name(record.loss),
                inference=model.inference,
                edge_strength=record.rule or record.strength,
                form=model.field.edge_form if model.field.edge_form in ("ordinal", "reference") else "auto",
                edge_features=model.encoder.edge_inputs,
                n_threads=n_threads,
            )
            learner._set_model(model, record)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{path}: the record of how the structure was learned is damaged ({error})") from None
        return learner

    def _fitted(self) -> GraphModel:
        model: GraphModel = Estimator._fitted(self)
        return replace(model, inference=self.inference, n_threads=self.n_threads)

    def _encoder(self) -> TableEncoder:
        encoder = self._fitted().encoder
        assert isinstance(encoder, TableEncoder)
        return encoder
