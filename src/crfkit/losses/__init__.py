"""Losses: functions of the weights. See :mod:`crfkit.protocols`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Loaded when first asked for: taggers need nothing of graphs.
_HOME = {
    "CandidateChain": "chain_candidates",
    "ChainLikelihood": "chain",
    "CompositeLikelihood": "composite",
    "ContrastiveDivergence": "contrastive",
    "GraphHinge": "graph_margin",
    "GraphLikelihood": "graph",
    "GraphSoftmaxMargin": "graph_margin",
    "PseudoLikelihood": "pseudo",
    "SoftmaxMargin": "chain",
    "StructureLikelihood": "structure_likelihood",
    "StructurePseudoLikelihood": "structure_pseudo",
    "StructuredHinge": "chain",
}

if TYPE_CHECKING:
    from crfkit.losses.chain import ChainLikelihood as ChainLikelihood
    from crfkit.losses.chain import SoftmaxMargin as SoftmaxMargin
    from crfkit.losses.chain import StructuredHinge as StructuredHinge
    from crfkit.losses.chain_candidates import CandidateChain as CandidateChain
    from crfkit.losses.composite import CompositeLikelihood as CompositeLikelihood
    from crfkit.losses.contrastive import ContrastiveDivergence as ContrastiveDivergence
    from crfkit.losses.graph import GraphLikelihood as GraphLikelihood
    from crfkit.losses.graph_margin import GraphHinge as GraphHinge
    from crfkit.losses.graph_margin import GraphSoftmaxMargin as GraphSoftmaxMargin
    from crfkit.losses.pseudo import PseudoLikelihood as PseudoLikelihood
    from crfkit.losses.structure_likelihood import StructureLikelihood as StructureLikelihood
    from crfkit.losses.structure_pseudo import StructurePseudoLikelihood as StructurePseudoLikelihood


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crfkit.losses' has no attribute {name!r}")
    # getattr: the name of a class, in a module that is imported only now.
    return getattr(import_module(f"crfkit.losses.{_HOME[name]}"), name)
