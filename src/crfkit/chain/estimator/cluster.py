"""ChainCRF on a Dask cluster or on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crfkit._values import Frame
from crfkit.errors import ParameterError
from crfkit.training.placement import placement

if TYPE_CHECKING:
    from crfkit.chain.encoding.frames import FrameColumns
    from crfkit.chain.model.model import ChainModel
    from crfkit.chain.training.train import ChainTraining
    from crfkit.files.checkpoint import Checkpoint
    from crfkit.result import Result
    from crfkit.solvers.parts.loop import Callback


def is_collection(given: object) -> bool:
    """Return whether something is a Dask bag or a Dask DataFrame; Dask itself need not be installed."""
    return hasattr(given, "__dask_graph__") and hasattr(given, "to_delayed")


class ClusterInputs:
    """Training on a cluster or a device instead of the CPU of this machine."""

    cluster: object
    device: str | None

    @contextmanager
    def _placed(self) -> Iterator[ChainTraining]:
        """Yield the training here, or with its loss on the cluster or the device."""
        training: ChainTraining = self._training()  # type: ignore[attr-defined]
        training.check()
        with placement(self.cluster, self.device) as there:
            yield replace(training, placement=there)

    def _fit_bags(
        self, X: object, y: object, seen: Sequence[Callback], start: ChainModel | None, resume: Checkpoint | None
    ) -> tuple[ChainModel, Result]:
        from crfkit.distributed.training import fit_bags

        return fit_bags(self._training(), self._needed(), X, y, seen, start, resume)  # type: ignore[attr-defined]

    def _fit_dask_frame(
        self, frame: Frame, columns: FrameColumns, attributes: bool, **options: Any
    ) -> tuple[ChainModel, Result]:
        from crfkit.distributed.training import fit_dask_frame

        unknown = sorted(set(options) - {"callbacks", "resume"})
        if unknown:
            raise ParameterError(f"a Dask frame cannot be combined with {unknown[0]}")
        seen = self._with_progress(options.pop("callbacks", ()))  # type: ignore[attr-defined]
        start = self._start()  # type: ignore[attr-defined]
        training = self._training()  # type: ignore[attr-defined]
        return fit_dask_frame(training, self._needed(), frame, columns, attributes, seen, start, **options)

    def _refuse_device(self, what: str) -> None:
        if self.device is not None:
            raise ParameterError(f"{what} cannot be combined with a device; set device=None")

    def _needed(self) -> object:
        """Return the cluster; raise if there is none."""
        self._refuse_device("Dask collections")
        if self.cluster is None:
            raise ParameterError("Dask collections need a cluster, as in ChainCRF(cluster='local:4')")
        return self.cluster
