"""The index of losses: the one registry. A loss is a file in the room of its shape and a line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

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


class Entry(NamedTuple):
    """The place of a loss, and its names for `loss=` of its shape's estimator and command."""

    home: str  # "module:Class"; the module is one of crfkit
    shape: str = ""  # "chain", "graph" or "structure"
    options: tuple[str, ...] = ()


class Registry(Mapping[str, type[Loss]]):
    """Losses by name. Their modules are loaded when they are first needed: taggers need nothing of graphs."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = dict(entries)

    def add(self, name: str, entry: Entry) -> None:
        """Register a loss of another package."""
        self._entries[name] = entry

    def __getitem__(self, name: str) -> type[Loss]:
        module, _, known = self._entries[name].home.partition(":")
        found: type[Loss] = getattr(import_module(f"crfkit.{module}"), known)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def by_class(self, name: str) -> type[Loss]:
        """Return the class of this name; raises AttributeError."""
        for key, entry in self._entries.items():
            if entry.home.endswith(f":{name}"):
                return self[key]
        raise AttributeError(f"module 'crfkit.losses' has no attribute {name!r}")

    def options(self, shape: str) -> tuple[str, ...]:
        """Return the names that the option `loss=` of a shape takes."""
        return tuple(name for entry in self._entries.values() if entry.shape == shape for name in entry.options)

    def by_option(self, shape: str, option: str) -> type[Loss]:
        """Return the loss that an option of a shape names; raises ParameterError with the nearest name."""
        check_name("loss", option, self.options(shape))
        return next(
            self[key] for key, entry in self._entries.items() if entry.shape == shape and option in entry.options
        )


LOSSES = Registry({
    "chain-likelihood": Entry("chain.losses.likelihood:ChainLikelihood", "chain", ("likelihood",)),
    "chain-softmax-margin": Entry("chain.losses.likelihood:SoftmaxMargin", "chain", ("softmax-margin",)),
    "chain-hinge": Entry("chain.losses.likelihood:StructuredHinge", "chain", ("hinge",)),
    "chain-marginal-likelihood": Entry("chain.losses.weak:MarginalLikelihood", "chain"),
    "chain-candidates": Entry("chain.losses.candidates:CandidateChain", "chain"),
    "chain-margin-candidates": Entry("chain.losses.margin_candidates:CandidateMargin", "chain"),
    "graph-likelihood": Entry("graph.losses.likelihood:GraphLikelihood", "graph", ("likelihood",)),
    "pseudo-likelihood": Entry("graph.losses.pseudo:PseudoLikelihood", "graph", ("pseudo-likelihood",)),
    "composite-likelihood": Entry("graph.losses.composite:CompositeLikelihood", "graph", ("composite",)),
    "contrastive-divergence": Entry(
        "graph.losses.contrastive:ContrastiveDivergence",
        "graph",
        ("contrastive-divergence", "persistent-contrastive-divergence"),
    ),
    "graph-softmax-margin": Entry("graph.losses.margin:GraphSoftmaxMargin", "graph", ("softmax-margin",)),
    "graph-hinge": Entry("graph.losses.margin:GraphHinge", "graph", ("hinge",)),
    "structure-pseudo-likelihood": Entry(
        "structure.losses.pseudo:StructurePseudoLikelihood", "structure", ("pseudo-likelihood",)
    ),
    "structure-likelihood": Entry("structure.losses.likelihood:StructureLikelihood", "structure", ("likelihood",)),
})  # fmt: skip


def loss_class(name: str) -> type[Loss]:
    """Return the loss of a name of :data:`LOSSES`; raises ParameterError with the nearest one.

    >>> loss_class("pl").__name__
    'PseudoLikelihood'
    """
    return LOSSES[check_name("loss", name, LOSSES)]


def __getattr__(name: str) -> object:
    return LOSSES.by_class(name)
