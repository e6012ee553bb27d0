"""Value and gradient of the chain likelihood before they become weights: residuals of rows and sums of label pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from crfkit.torch.chain_rows import ChainRows
from crfkit.torch.kernels import usable
from crfkit.torch.log_space import LogChains
from crfkit.torch.scaled import ScaledChains

Chains = ScaledChains | LogChains


@dataclass(frozen=True, eq=False)
class FirstOrder:
    loss: Tensor  # one double
    lost: Tensor  # one double, not 0 if probabilities could not hold this
    residuals: Tensor  # [T, L]: weight·(p − observed)
    pair_sums: Tensor  # [L, L], in double precision: Σ weight·p(i, j)
    chains: Chains | None = None  # that it was computed from; None by kernels

    @classmethod
    def of(cls, rows: ChainRows, chains: Chains, unary: Tensor, pairs: Tensor) -> FirstOrder:
        return cls(
            rows.loss(chains.log_z_terms, chains.pair_top, unary, pairs),
            chains.lost(),
            rows.residuals(chains.nodes),
            chains.pair_sums(rows.later_weights),
            chains,
        )

    @classmethod
    def fast(cls, rows: ChainRows, unary: Tensor, pairs: Tensor) -> FirstOrder:
        """Return it from scaled probabilities, by kernels where they can."""
        if not usable(unary.device, unary.shape[1]) or len(unary) == 0:
            return cls.of(rows, ScaledChains(unary, pairs, rows.packing), unary, pairs)
        from crfkit.torch.kernels.chains import evaluate

        return cls(*evaluate(rows, unary, pairs))

    @classmethod
    def safe(cls, rows: ChainRows, unary: Tensor, pairs: Tensor) -> FirstOrder:
        """Return it from logarithms."""
        return cls.of(rows, LogChains(unary, pairs, rows.packing), unary, pairs)

    def gradient(self, rows: ChainRows) -> Tensor:
        return rows.scores.adjoint(self.residuals, self.pair_sums - rows.pair_counts)

    def numbers(self) -> tuple[float, bool]:
        """Return (loss, lost), waiting for the device once."""
        loss, lost = torch.stack([self.loss, self.lost]).tolist()
        return loss, lost != 0.0 or math.isnan(loss)
