"""The index of losses by name. The members live in the rooms of their shape; a member is a file and a line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crfkit.names import check_name
from crfkit.protocols import Loss

if TYPE_CHECKING:
    from crfkit.chain.losses.candidates import CandidateChain as CandidateChain
    from crfkit.chain.losses.likelihood import ChainLikelihood as ChainLikelihood
    from crfkit.chain.losses.likelihood import SoftmaxMargin as SoftmaxMargin
    from crfkit.chain.losses.likelihood import StructuredHinge as StructuredHinge
    from crfkit.chain.losses.margin_candidates import CandidateMargin as CandidateMargin
    from crfkit.chain.losses.weak import MarginalLikelihood as MarginalLikelihood
    from crfkit.graph.losses.composite import CompositeLikelihood as CompositeLikelihood
    from crfkit.graph.losses.contrastive import ContrastiveDivergence as ContrastiveDivergence
    from crfkit.graph.losses.likelihood import GraphLikelihood as GraphLikelihood
    from crfkit.graph.losses.margin import GraphHinge as GraphHinge
    from crfkit.graph.losses.margin import GraphSoftmaxMargin as GraphSoftmaxMargin
    from crfkit.graph.losses.pseudo import PseudoLikelihood as PseudoLikelihood
    from crfkit.structure.losses.likelihood import StructureLikelihood as StructureLikelihood
    from crfkit.structure.losses.pseudo import StructurePseudoLikelihood as StructurePseudoLikelihood


class Registry(Mapping[str, type[Loss]]):
    """Losses by name. Their modules are loaded when they are first asked for: taggers need nothing of graphs."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        """`homes` are "module:Class" by name; modules are those of crfkit."""
        self._homes = {name: (home.split(":")[0], home.split(":")[1]) for name, home in homes.items()}

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
        found: type[Loss] = getattr(import_module(f"crfkit.{module}"), name)
        return found


LOSSES = Registry({
    "chain-likelihood": "chain.losses.likelihood:ChainLikelihood",
    "chain-softmax-margin": "chain.losses.likelihood:SoftmaxMargin",
    "chain-hinge": "chain.losses.likelihood:StructuredHinge",
    "chain-marginal-likelihood": "chain.losses.weak:MarginalLikelihood",
    "chain-candidates": "chain.losses.candidates:CandidateChain",
    "chain-margin-candidates": "chain.losses.margin_candidates:CandidateMargin",
    "graph-likelihood": "graph.losses.likelihood:GraphLikelihood",
    "graph-softmax-margin": "graph.losses.margin:GraphSoftmaxMargin",
    "graph-hinge": "graph.losses.margin:GraphHinge",
    "pseudo-likelihood": "graph.losses.pseudo:PseudoLikelihood",
    "composite-likelihood": "graph.losses.composite:CompositeLikelihood",
    "contrastive-divergence": "graph.losses.contrastive:ContrastiveDivergence",
    "structure-likelihood": "structure.losses.likelihood:StructureLikelihood",
    "structure-pseudo-likelihood": "structure.losses.pseudo:StructurePseudoLikelihood",
})  # fmt: skip


def loss_class(name: str) -> type[Loss]:
    """Return the loss of a name of :data:`LOSSES`; raises ParameterError with the nearest one.

    >>> loss_class("pl").__name__
    'PseudoLikelihood'
    """
    return LOSSES[check_name("loss", name, LOSSES)]


def __getattr__(name: str) -> Any:
    return LOSSES.by_class(name)
