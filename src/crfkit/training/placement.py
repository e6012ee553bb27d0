"""The place where losses are evaluated and the parts of a search run: in this process, on a cluster or on a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from crfkit._types import Floats
from crfkit.errors import ParameterError
from crfkit.extras import load
from crfkit.protocols import Loss, Penalty, Solver
from crfkit.training.tasks import Tasks

if TYPE_CHECKING:
    from crfkit.result import Result
    from crfkit.solvers.parts.loop import Callback


class Placement:
    """Keep losses and tasks in this process.

    :mod:`crfkit.distributed.placement` has the placement on a cluster, :mod:`crfkit.torch.placement` that on a device.

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

    def minimise(
        self,
        solver: Solver,
        loss: Loss,
        penalty: Penalty,
        w0: Floats,
        callbacks: Sequence[Callback],
        resume: Mapping[str, Any] | None,
    ) -> Result:
        """Return the result of a solver for a loss of this placement, with weights as NumPy arrays."""
        return solver.minimize(loss, penalty, w0, callbacks, resume)


HERE = Placement()


@contextmanager
def placement(cluster: object, device: object = None) -> Iterator[Placement]:
    """Yield the placement that the options `cluster` and `device` of an estimator or a command stand for.

    None and None is the compiled core in this process.
    """
    if device is not None:
        if cluster is not None:
            raise ParameterError("device cannot be combined with cluster; drop one of them")
        yield on_device(device)
        return
    if cluster is None:
        yield HERE
        return
    from crfkit.distributed.placement import cluster_placement

    with cluster_placement(cluster) as there:
        yield there


def on_device(device: object) -> Placement:
    """Return the placement on a device of PyTorch, such as "cuda"."""
    load("torch", f"device={device!r} needs")
    from crfkit.torch.placement import device_placement

    return device_placement(device)
