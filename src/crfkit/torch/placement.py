"""Training on a device: the loss and all vectors are tensors there, weights come back as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from crfkit._types import Floats
from crfkit.errors import CapabilityError, ParameterError
from crfkit.protocols import Loss, Penalty
from crfkit.result import Result, TraceRow
from crfkit.torch.chain_arrays import ChainArrays
from crfkit.torch.chain_loss import TensorChainLikelihood
from crfkit.torch.devices import find_device
from crfkit.torch.graph_arrays import GraphArrays
from crfkit.torch.graph_loss import TensorPseudoLikelihood
from crfkit.training.placement import Placement

if TYPE_CHECKING:
    from crfkit.solvers.parts.loop import Callback, Iteration

REMEDY = "drop the device to train on the CPU with the compiled core"


class DevicePlacement(Placement):
    """Place losses on a device of PyTorch. Data are encoded on the CPU."""

    def __init__(self, device: str) -> None:
        self.device = find_device(device)

    def chain_loss(self, options: Any, data: Any, field: Any, *, candidates: bool, screen: Any) -> Loss:
        if options.loss != "likelihood":
            raise CapabilityError(f"only the loss 'likelihood' runs on a device, not {options.loss!r}; {REMEDY}")
        if data.weak:
            what = "labels that are known in part" if data.targets is not None else "weights of classes or tokens"
            raise CapabilityError(f"{what} cannot be combined with a device; {REMEDY}")
        if candidates:
            raise CapabilityError(
                f"the solver {options.make_solver().name} selects attributes in the compiled core, not on a device; "
                f"{REMEDY}, or use the solver 'owlqn', which has the same optimum"
            )
        solver = options.make_solver()
        if solver.numpy_only:
            raise CapabilityError(f"the solver {solver.name} does not run on a device; {REMEDY}, or use {_others()}")
        return TensorChainLikelihood(ChainArrays.of(data, field), self.device, options.precision_for(data))

    def graph_loss(self, loss: Loss) -> Loss:
        from crfkit.graph.losses.pseudo import PseudoLikelihood

        if type(loss) is not PseudoLikelihood:
            raise CapabilityError(
                f"of graphs only the loss 'pseudo-likelihood' runs on a device, not the {loss.name}; give "
                f"loss='pseudo-likelihood', or {REMEDY}"
            )
        return TensorPseudoLikelihood(GraphArrays.of(loss.data, loss.field), self.device)

    def minimise(
        self,
        solver: Any,
        loss: Any,
        penalty: Penalty,
        w0: Floats,
        callbacks: Sequence[Callback],
        resume: Mapping[str, Any] | None,
    ) -> Result:
        state = None if resume is None else self._uploaded(resume, loss)
        result: Result = solver.minimize(loss, penalty, loss.vector(w0), [on_host(seen) for seen in callbacks], state)
        return replace(result, w=host(result.w), state=downloaded(result.state))

    def _uploaded(
        self, state: Mapping[str, Any], loss: TensorChainLikelihood | TensorPseudoLikelihood
    ) -> dict[str, Any]:
        """Return a solver's state with its long vectors on the device."""

        def is_long(value: object) -> bool:
            return isinstance(value, np.ndarray) and value.shape[-1:] == (loss.size,) and value.dtype.kind == "f"

        return {name: loss.vector(value) if is_long(value) else value for name, value in state.items()}


def _others() -> str:
    """Return the names of the solvers that run on a device."""
    from crfkit.solvers import SOLVERS

    able = TensorChainLikelihood.capabilities
    return ", ".join(name for name, kind in SOLVERS.items() if not kind.numpy_only and kind.needs <= able)


class HostIteration:
    """An iteration for callbacks, which take weights and states as NumPy arrays. They are copied if somebody looks."""

    def __init__(self, given: Iteration) -> None:
        self._given = given
        self.row: TraceRow = given.row
        self.loss: Any = given.loss

    @cached_property
    def w(self) -> Floats:
        return host(self._given.w)

    def saved(self) -> dict[str, Any]:
        return downloaded(self._given.saved())


def on_host(callback: Callback) -> Callable[[Any], Mapping[str, float] | None]:
    """Return the callback for iterations whose vectors are on a device."""
    return lambda iteration: callback(HostIteration(iteration))  # type: ignore[arg-type]


def host(w: Tensor) -> Floats:
    """Return a vector as NumPy doubles."""
    found: Floats = w.detach().cpu().numpy().astype(np.float64)
    return found


def downloaded(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: host(value) if isinstance(value, Tensor) else value for name, value in state.items()}


def device_placement(device: object) -> DevicePlacement:
    """Return the placement that the option `device` of an estimator or a command stands for."""
    if not isinstance(device, str):
        raise ParameterError(f"device must be None, 'cuda', 'cuda:1' or 'torch:cpu', not {device!r}")
    return DevicePlacement(device)
