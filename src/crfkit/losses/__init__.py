"""Losses: functions of the weights. See :mod:`crfkit.protocols`. A member is a file and a line of :data:`LOSSES`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crfkit.names import check_name
from crfkit.protocols import Loss

if TYPE_CHECKING:
    from crfkit.losses.chain import ChainLikelihood as ChainLikelihood
    from crfkit.losses.chain import SoftmaxMargin as SoftmaxMargin
    from crfkit.losses.chain import StructuredHinge as StructuredHinge
    from crfkit.losses.chain_candidates import CandidateChain as CandidateChain
    from crfkit.losses.chain_margin_candidates import CandidateMargin as CandidateMargin
    from crfkit.losses.chain_weak import MarginalLikelihood as MarginalLikelihood
    from crfkit.losses.composite import CompositeLikelihood as CompositeLikelihood
    from crfkit.losses.contrastive import ContrastiveDivergence as ContrastiveDivergence
    from crfkit.losses.graph import GraphLikelihood as GraphLikelihood
    from crfkit.losses.graph_margin import GraphHinge as GraphHinge
    from crfkit.losses.graph_margin import GraphSoftmaxMargin as GraphSoftmaxMargin
    from crfkit.losses.pseudo import PseudoLikelihood as PseudoLikelihood
    from crfkit.losses.structure_likelihood import StructureLikelihood as StructureLikelihood
    from crfkit.losses.structure_pseudo import StructurePseudoLikelihood as StructurePseudoLikelihood


class Registry(Mapping[str, type[Loss]]):
    """Losses by name. Their modules are loaded when they are first asked for: taggers need nothing of graphs."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        """`homes` are "module.Class" by name."""
        self._homes = {name: tuple(home.split(".")) for name, home in homes.items()}

    def __getitem__(self, name: str) -> type[Loss]:
        return self._load(*self._homes[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def by_class(self, name: str) -> type[Loss]:
        """Return the class of this name; raises AttributeError."""
        for module, known in self._homes.values():
            if known == name:
                return self._load(module, known)
        raise AttributeError(f"module 'crfkit.losses' has no attribute {name!r}")

    def _load(self, module: str, name: str) -> type[Loss]:
        # getattr: the registry has the name of the class, so that its module need not be imported before.
        found: type[Loss] = getattr(import_module(f"crfkit.losses.{module}"), name)
        return found


LOSSES = Registry({
    "chain-likelihood": "chain.ChainLikelihood",
    "chain-softmax-margin": "chain.SoftmaxMargin",
    "chain-hinge": "chain.StructuredHinge",
    "chain-marginal-likelihood": "chain_weak.MarginalLikelihood",
    "chain-candidates": "chain_candidates.CandidateChain",
    "chain-margin-candidates": "chain_margin_candidates.CandidateMargin",
    "graph-likelihood": "graph.GraphLikelihood",
    "graph-softmax-margin": "graph_margin.GraphSoftmaxMargin",
    "graph-hinge": "graph_margin.GraphHinge",
    "pseudo-likelihood": "pseudo.PseudoLikelihood",
    "composite-likelihood": "composite.CompositeLikelihood",
    "contrastive-divergence": "contrastive.ContrastiveDivergence",
    "structure-likelihood": "structure_likelihood.StructureLikelihood",
    "structure-pseudo-likelihood": "structure_pseudo.StructurePseudoLikelihood",
})  # fmt: skip


def loss_class(name: str) -> type[Loss]:
    """Return the loss of a name of :data:`LOSSES`; raises ParameterError with the nearest one.

    >>> loss_class("pl").__name__
    'PseudoLikelihood'
    """
    return LOSSES[check_name("loss", name, LOSSES)]


def __getattr__(name: str) -> Any:
    return LOSSES.by_class(name)
