"""Training of refiners: from options, probability maps, images and masks to a model, without scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from crfkit._checks import check_count, check_optional_count
from crfkit._types import Floats, Ids, Label, Tabular
from crfkit.errors import DataError, ParameterError
from crfkit.files.images import as_list
from crfkit.graph.encoding.calibrated import CalibratedEncoder
from crfkit.graph.encoding.grids import EdgeFeatures
from crfkit.graph.graph import Graph
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.training.problem import LossChoice
from crfkit.graph.training.record import with_chosen_engine
from crfkit.graph.training.train import GraphTraining
from crfkit.images.features import Image
from crfkit.images.model.inference import limited_engine
from crfkit.images.model.refiner import NodeOptions, RefinerModel, normalised
from crfkit.images.probability_maps import LAYOUTS, choose_classes, read_maps, read_truth, to_class_numbers
from crfkit.result import Result, Status
from crfkit.solvers.parts.loop import Callback
from crfkit.training.options import SolverOptions
from crfkit.wording import counted

DETAIL_IMAGES = 20  # images that the share of details is chosen on
DETAILS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # shares that are tried


@dataclass(frozen=True, eq=False)
class RefinerFit:
    """A trained refiner, and how training went."""

    model: RefinerModel
    result: Result
    interrupted: bool  # whether Ctrl-C ended training


@dataclass(frozen=True, kw_only=True)
class RefinerTraining:
    """Trains refiners; the options are named as in :class:`crfkit.Refiner`."""

    neighbours: int = 4
    block_size: int = 1
    superpixels: int | None = None
    edge_features: EdgeFeatures = "contrast"
    edge_form: str = "potts"
    classes: Sequence[Label] | None = None
    ignore: ArrayLike | None = None
    layout: str = "auto"
    inference: str | Engine = "auto"
    sweeps: int | None = 30
    loss: LossChoice = "likelihood"
    decode: str = "marginal"
    options: SolverOptions = field(default_factory=lambda: SolverOptions(tolerance=1e-4))

    def check(self) -> None:
        """Raise ParameterError if an option is out of range."""
        if self.neighbours not in (4, 8) or isinstance(self.neighbours, bool):
            raise ParameterError(f"neighbours must be 4 or 8, not {self.neighbours!r}")
        check_count(block_size=self.block_size)
        check_optional_count(superpixels=self.superpixels, sweeps=self.sweeps)
        if self.superpixels is not None and self.block_size != 1:
            raise ParameterError("block_size and superpixels exclude each other; give one of them")
        edges = self.edge_features
        if edges is not None and not callable(edges) and edges != "contrast":
            raise ParameterError(f"edge_features must be 'contrast', None or a function of both ends, not {edges!r}")
        if self.layout not in LAYOUTS:
            raise ParameterError(f"layout must be one of {', '.join(LAYOUTS)}, not {self.layout!r}")
        self._field_training(self.inference).check()

    def run(
        self, probabilities: Tabular, images: Tabular, masks: Tabular, callbacks: Sequence[Callback] = ()
    ) -> RefinerFit:
        """Learn from probability maps, their images and masks."""
        self.check()
        given = read_maps(probabilities, images, self.layout)
        if not given:
            raise DataError("there are no images; give at least one")
        truth = as_list(masks, "masks")
        if len(truth) != len(given):
            raise DataError(
                f"{counted(len(truth), 'mask')} for {counted(len(given), 'image')}; expected one mask per image"
            )
        K = given[0][0].shape[2]
        if odd := [k for k, (p, _) in enumerate(given) if p.shape[2] != K]:
            raise DataError(f"probabilities {odd[0]} have {given[odd[0]][0].shape[2]} classes; the first have {K}")
        read = [
            read_truth(mask, image.shape, f"mask {k}", self.ignore, K > 2)
            for k, (mask, (_, image)) in enumerate(zip(truth, given, strict=True))
        ]
        classes = choose_classes(read, K, self.classes)
        nodes = self._nodes()
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
        encoder = CalibratedEncoder(
            classes=np.arange(K),
            n_features=K,
            n_edge_features=nodes.edge_width,
            edge_inputs=nodes.edges is not None,
        )
        engine = limited_engine(
            self.inference,
            lambda: Graph.join(sample.edges for sample in samples),
            K,
            self.sweeps,
            self.options.n_threads,
        )
        trained, result, _ = self._field_training(engine).run(encoder, samples, labels, None, callbacks)
        field = replace(trained, inference=self.inference, decode=self.decode)
        made = RefinerModel(nodes, with_chosen_engine(field, engine), classes)
        if result.status is Status.INTERRUPTED or (nodes.block_size == 1 and nodes.superpixels is None):
            return RefinerFit(made, result, result.status is Status.INTERRUPTED)
        chosen = range(0, len(given), -(-len(given) // DETAIL_IMAGES))
        try:
            detail = choose_detail(made, [given[k] for k in chosen], [truths[k] for k in chosen])
        except KeyboardInterrupt:
            return RefinerFit(made, result, True)
        return RefinerFit(replace(made, detail=detail), result, False)

    def _nodes(self) -> NodeOptions:
        superpixels = None if self.superpixels is None else int(self.superpixels)
        return NodeOptions(int(self.block_size), superpixels, int(self.neighbours), self.edge_features)

    def _field_training(self, inference: str | Engine) -> GraphTraining:
        return GraphTraining(
            inference=inference, loss=self.loss, edge_form=self.edge_form, decode=self.decode, options=self.options
        )


def choose_detail(model: RefinerModel, pairs: Sequence[tuple[Floats, Image]], truths: Sequence[Ids]) -> float:
    """Return how much of the differences within regions to keep: the share that makes the known pixels most likely.

    `truths` are the classes [H, W] of the pixels of each image, −1 where unknown.
    """
    losses = np.zeros(len(DETAILS))
    for (probabilities, image), states in zip(pairs, truths, strict=True):
        _, _, mean, difference = model.scores(probabilities, image)
        known = states >= 0
        right = states[known][:, None]
        for k, detail in enumerate(DETAILS):
            p = np.take_along_axis(normalised(mean[known] + detail * difference[known]), right, axis=1)
            losses[k] -= np.log(np.maximum(p, 1e-300)).sum()
    return DETAILS[int(losses.argmin())]
