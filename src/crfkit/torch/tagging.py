"""Tagging in bulk on a device: best labels and marginals of encoded sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from crfkit._types import Floats, Ids
from crfkit.errors import DataError, ParameterError
from crfkit.torch.chain_arrays import ChainArrays
from crfkit.torch.chain_rows import ChainRows
from crfkit.torch.devices import enough_memory, find_device
from crfkit.torch.kernels import usable
from crfkit.torch.log_space import LogChains
from crfkit.torch.packing import Packing
from crfkit.torch.scaled import ScaledChains

if TYPE_CHECKING:
    from crfkit.chain.data import SequenceData
    from crfkit.chain.fields.field import ChainField
    from crfkit.chain.model.model import ChainModel

DTYPES = {"single": torch.float32, "double": torch.float64}


class TensorTagger:
    """Tags encoded sequences with the weights of a field.

    >>> from crfkit import ChainCRF  # doctest: +SKIP
    >>> model = ChainCRF().fit(X, y).trained_model()  # doctest: +SKIP
    >>> TensorTagger.of_model(model, "cuda").decode(model.encode(X))  # doctest: +SKIP
    """

    def __init__(
        self, field: ChainField, w: object, device: str | torch.device = "cuda", precision: str = "double"
    ) -> None:
        if precision not in DTYPES:
            raise ParameterError(f"precision must be 'double' or 'single', not {precision!r}")
        self.device = find_device(device)
        self._field = field
        self._w = torch.asarray(w, dtype=DTYPES[precision], device=self.device, copy=True)
        if self._w.shape != (field.size,):
            raise ParameterError(f"there are {tuple(self._w.shape)} weights, but the field has {field.size}")

    @classmethod
    def of_model(
        cls, model: ChainModel, device: str | torch.device = "cuda", precision: str = "double"
    ) -> TensorTagger:
        return cls(model.field, model.w, device, precision)

    def upload(self, data: SequenceData) -> ChainRows:
        """Return sequences on the device; `decode` and `marginals` take them, too, so that they can be used again."""
        with enough_memory(self.device, "these sequences", "tag them in several parts"):
            return ChainRows.of(ChainArrays.of(data, self._field).without_labels(), self.device)

    def decode(self, data: SequenceData | ChainRows) -> Ids:
        """Return the label of every position in the most probable labelling of each sequence."""
        labels: Ids = self.decode_tensor(data).cpu().numpy()
        return labels

    def decode_tensor(self, data: SequenceData | ChainRows) -> Tensor:
        """Return the same on the device."""
        rows = data if isinstance(data, ChainRows) else self.upload(data)
        with enough_memory(self.device, "tagging", "tag in several parts, or use precision='single'"):
            unary, pairs = rows.scores.potentials(self._w)
            best = best_labels(unary, pairs, rows.packing)
            found = torch.empty_like(best)
            found[rows.packing.positions] = best
        return found

    def marginals(self, data: SequenceData | ChainRows) -> Floats:
        """Return the probability of every label at every position, [positions, labels]."""
        rows = data if isinstance(data, ChainRows) else self.upload(data)
        with enough_memory(self.device, "marginals", "tag in several parts, or use precision='single'"):
            unary, pairs = rows.scores.potentials(self._w)
            chains: ScaledChains | LogChains = ScaledChains(unary, pairs, rows.packing)
            if len(unary) and bool(chains.lost()):
                chains = LogChains(unary, pairs, rows.packing)
            found = torch.empty_like(unary)
            found[rows.packing.positions] = chains.nodes
        if bool(torch.isnan(found).any()):
            raise DataError("the constraints allow no labelling of some sequence")
        table: Floats = found.double().cpu().numpy()
        return table


def best_labels(unary: Tensor, pairs: Tensor, packing: Packing) -> Tensor:
    """Return the label of every row in the best labelling of its sequence (Viterbi); of equal ones, any."""
    if len(unary) and usable(unary.device, unary.shape[1]):
        from crfkit.torch.kernels.viterbi import best_labels as by_kernel

        return by_kernel(unary, pairs, packing)
    best = unary.clone()
    pointers = torch.empty(unary.shape, dtype=torch.int16, device=unary.device)
    for before, begin, n in packing.steps():
        for first in range(0, n, most := max(1, (1 << 24) // pairs.numel())):
            part = slice(first, min(first + most, n))
            there = best[before : before + n][part]
            score, argument = (there[:, :, None] + pairs).max(dim=1)
            here = best[begin : begin + n][part]
            here += score
            here -= here.amax(dim=1, keepdim=True)
            pointers[begin : begin + n][part] = argument.to(torch.int16)
    labels = best.argmax(dim=1).to(torch.int32)
    for before, begin, n in packing.steps_back():
        there = pointers[begin : begin + n].gather(1, labels[begin : begin + n, None].long())
        labels[before : before + n] = there[:, 0].to(torch.int32)
    return labels
