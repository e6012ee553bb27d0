"""Conditional random fields: train, tag, evaluate.

>>> import crfkit
>>> crfkit.ChainCRF(penalty=crfkit.L2(0.5)).penalty
L2(strength=0.5)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"  # the one place: pyproject.toml reads it from here

# Loaded when first needed: the command line and tagging do not need scikit-learn.
_HOME = {
    "Annotations": "crfkit.chain.encoding.weak_labels",
    "Blockwise": "crfkit.penalties",
    "ByBlock": "crfkit.penalties",
    "ChainCRF": "crfkit.chain.estimator.chain_crf",
    "ChainModel": "crfkit.chain.model.model",
    "ElasticNet": "crfkit.penalties",
    "Graph": "crfkit.graph.graph",
    "GraphCRF": "crfkit.graph.estimator.graph_crf",
    "GraphData": "crfkit.graph.data",
    "GraphModel": "crfkit.graph.model",
    "GraphSample": "crfkit.graph.encoding.graph_samples",
    "GridCRF": "crfkit.graph.estimator.grid_crf",
    "GroupL2": "crfkit.penalties",
    "GroupLinf": "crfkit.penalties",
    "HuberL1": "crfkit.penalties",
    "ImageSegmenter": "crfkit.images.estimator.segmenter",
    "L1": "crfkit.penalties",
    "L2": "crfkit.penalties",
    "NoPenalty": "crfkit.penalties",
    "PathPoint": "crfkit.training.path",
    "Refiner": "crfkit.images.estimator.refiner",
    "StructureLearner": "crfkit.structure.estimator.structure_learner",
    "Template": "crfkit.text.template",
    "TextFeatures": "crfkit.text.words",
    "convert_tags": "crfkit.schemes",
    "detect_scheme": "crfkit.schemes",
    "evaluate": "crfkit.metrics",
    "read_columns": "crfkit.files.columns",
    "read_crfsuite": "crfkit.files.crfsuite_data",
    "read_table": "crfkit.files.tables",
    "regularisation_path": "crfkit.training.path",
    "show_versions": "crfkit.versions",
}

if TYPE_CHECKING:
    from crfkit.chain.encoding.weak_labels import Annotations as Annotations
    from crfkit.chain.estimator.chain_crf import ChainCRF as ChainCRF
    from crfkit.chain.model.model import ChainModel as ChainModel
    from crfkit.files.columns import read_columns as read_columns
    from crfkit.files.crfsuite_data import read_crfsuite as read_crfsuite
    from crfkit.files.tables import read_table as read_table
    from crfkit.graph.data import GraphData as GraphData
    from crfkit.graph.encoding.graph_samples import GraphSample as GraphSample
    from crfkit.graph.estimator.graph_crf import GraphCRF as GraphCRF
    from crfkit.graph.estimator.grid_crf import GridCRF as GridCRF
    from crfkit.graph.graph import Graph as Graph
    from crfkit.graph.model import GraphModel as GraphModel
    from crfkit.images.estimator.refiner import Refiner as Refiner
    from crfkit.images.estimator.segmenter import ImageSegmenter as ImageSegmenter
    from crfkit.metrics import evaluate as evaluate
    from crfkit.penalties import L1 as L1
    from crfkit.penalties import L2 as L2
    from crfkit.penalties import Blockwise as Blockwise
    from crfkit.penalties import ByBlock as ByBlock
    from crfkit.penalties import ElasticNet as ElasticNet
    from crfkit.penalties import GroupL2 as GroupL2
    from crfkit.penalties import GroupLinf as GroupLinf
    from crfkit.penalties import HuberL1 as HuberL1
    from crfkit.penalties import NoPenalty as NoPenalty
    from crfkit.schemes import convert_tags as convert_tags
    from crfkit.schemes import detect_scheme as detect_scheme
    from crfkit.structure.estimator.structure_learner import StructureLearner as StructureLearner
    from crfkit.text.template import Template as Template
    from crfkit.text.words import TextFeatures as TextFeatures
    from crfkit.training.path import PathPoint as PathPoint
    from crfkit.training.path import regularisation_path as regularisation_path
    from crfkit.versions import show_versions as show_versions

__all__ = [*_HOME]  # noqa: PLE0604 - names, and each can be asked for


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crfkit' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
