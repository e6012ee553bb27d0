"""The likelihood of what is known of the labels.

Position t allows the labels K_t (one, several, or all where nothing is known) and has the weight v_t:

    loss = −Σ_n weight_n · Σ_t v_t · log p(y_t ∈ K_t | y_0 ∈ K_0, …, y_{t−1} ∈ K_{t−1}, x_n)

With all v_t = 1 this is log Z − log Z(K), the marginal likelihood (Tsuboi et al. 2008). With one label at each position
and v_t by its class, rare labels count more, as in the weighted CRF of de Lannoy et al. (2012). Equal weights in a
sequence are its weight. Where labels are unknown or weights differ, the loss is not convex.
"""

from __future__ import annotations

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.losses.likelihood import ChainLoss
from crfkit.protocols import Capability


class MarginalLikelihood(ChainLoss):
    """The negative log-likelihood of labels that are known in part, or whose positions have weights; exact."""

    name = "marginal likelihood"
    capabilities = frozenset({Capability.SMOOTH, Capability.SUBSET, Capability.ONLINE})
    convex = False

    @classmethod
    def example(cls) -> MarginalLikelihood:
        from crfkit.chain.losses.examples import weak_chain_example

        return cls(*weak_chain_example())

    def __init__(
        self,
        data: SequenceData,
        field: ChainField,
        n_threads: int | None = None,
        kernels: str = "auto",
        precision: str = "double",
    ) -> None:
        super().__init__(data, field, n_threads, kernels, precision=precision)
