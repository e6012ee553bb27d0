"""Conditional random fields: train, tag, evaluate.

>>> import crfkit
>>> crfkit.ChainCRF(penalty=crfkit.L2(0.5)).penalty
L2(strength=0.5)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"  # the one place: pyproject.toml reads it from here

# Loaded when first asked for: the command line and tagging do not need scikit-learn.
_HOME = {
    "Annotations": "crfkit.encoders.weak_labels",
    "Blockwise": "crfkit.penalties",
    "ByBlock": "crfkit.penalties",
    "ChainCRF": "crfkit.estimators.chain",
    "ChainModel": "crfkit.models.chain",
    "ElasticNet": "crfkit.penalties",
    "Graph": "crfkit.data.graph",
    "GraphCRF": "crfkit.estimators.graph",
    "GraphData": "crfkit.data.graphs",
    "GraphModel": "crfkit.models.graph",
    "GraphSample": "crfkit.encoders.graph_samples",
    "GridCRF": "crfkit.estimators.grid",
    "GroupL2": "crfkit.penalties",
    "GroupLinf": "crfkit.penalties",
    "HuberL1": "crfkit.penalties",
    "ImageSegmenter": "crfkit.estimators.segmenter",
    "L1": "crfkit.penalties",
    "L2": "crfkit.penalties",
    "NoPenalty": "crfkit.penalties",
    "PathPoint": "crfkit.training.path",
    "Refiner": "crfkit.estimators.refiner",
    "StructureLearner": "crfkit.estimators.structure",
    "Template": "crfkit.features",
    "TextFeatures": "crfkit.features",
    "convert_tags": "crfkit.schemes",
    "detect_scheme": "crfkit.schemes",
    "evaluate": "crfkit.metrics",
    "read_columns": "crfkit.readers",
    "read_crfsuite": "crfkit.readers",
    "read_table": "crfkit.readers.tables",
    "regularisation_path": "crfkit.training.path",
    "show_versions": "crfkit.versions",
}

if TYPE_CHECKING:
    from crfkit.data.graph import Graph as Graph
    from crfkit.data.graphs import GraphData as GraphData
    from crfkit.encoders.graph_samples import GraphSample as GraphSample
    from crfkit.encoders.weak_labels import Annotations as Annotations
    from crfkit.estimators.chain import ChainCRF as ChainCRF
    from crfkit.estimators.graph import GraphCRF as GraphCRF
    from crfkit.estimators.grid import GridCRF as GridCRF
    from crfkit.estimators.refiner import Refiner as Refiner
    from crfkit.estimators.segmenter import ImageSegmenter as ImageSegmenter
    from crfkit.estimators.structure import StructureLearner as StructureLearner
    from crfkit.features import Template as Template
    from crfkit.features import TextFeatures as TextFeatures
    from crfkit.metrics import evaluate as evaluate
    from crfkit.models.chain import ChainModel as ChainModel
    from crfkit.models.graph import GraphModel as GraphModel
    from crfkit.penalties import L1 as L1
    from crfkit.penalties import L2 as L2
    from crfkit.penalties import Blockwise as Blockwise
    from crfkit.penalties import ByBlock as ByBlock
    from crfkit.penalties import ElasticNet as ElasticNet
    from crfkit.penalties import GroupL2 as GroupL2
    from crfkit.penalties import GroupLinf as GroupLinf
    from crfkit.penalties import HuberL1 as HuberL1
    from crfkit.penalties import NoPenalty as NoPenalty
    from crfkit.readers import read_columns as read_columns
    from crfkit.readers import read_crfsuite as read_crfsuite
    from crfkit.readers.tables import read_table as read_table
    from crfkit.schemes import convert_tags as convert_tags
    from crfkit.schemes import detect_scheme as detect_scheme
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
