"""The place where losses are evaluated and the parts of a search run: in this process, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from crfkit.protocols import Loss
from crfkit.training.tasks import Tasks

if TYPE_CHECKING:
    from crfkit.solvers.parts.loop import Callback


class Placement:
    """Keep losses and tasks in this process. :mod:`crfkit.distributed.placement` has the placement on a cluster.

    >>> with placement(None) as there:
    ...     there.here
    True
    """

    here: ClassVar[bool] = True

    @property
    def tasks(self) -> Tasks:
        """Return what runs the parts of a search."""
        return Tasks()

    @property
    def callbacks(self) -> Sequence[Callback]:
        """Return callbacks that add columns about the placement to the trace of a training."""
        return ()

    def chain_loss(self, options: Any, data: Any, field: Any, *, candidates: bool, screen: Any) -> Loss:
        """Return the loss of sequences, as :class:`crfkit.chain.training.problem.ChainOptions` makes it."""
        loss: Loss = options.make_loss(data, field, candidates, screen)
        return loss

    def graph_loss(self, loss: Loss) -> Loss:
        """Return a loss of graphs with the same values."""
        return loss


HERE = Placement()


@contextmanager
def placement(cluster: object) -> Iterator[Placement]:
    """Yield the placement that the option `cluster` of an estimator or a command stands for; None is this process."""
    if cluster is None:
        yield HERE
        return
    from crfkit.distributed.placement import cluster_placement

    with cluster_placement(cluster) as there:
        yield there
