"""CRFs on PyTorch: layers for networks, and chains on tensors of any device. ``pip install 'crfkit[torch]'``.

>>> import torch
>>> from crfkit.torch import CRF
>>> layer = CRF(num_tags=9, batch_first=True)
>>> loss = -layer(torch.randn(4, 7, 9), torch.zeros(4, 7, dtype=torch.long), reduction="mean")

Everything runs where the tensors are. On the CPU the compiled core does the recursions if it is there; nothing here
needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Loaded when first needed, so that a missing PyTorch is reported with what to install.
_HOME = {
    "CRF": "crfkit.torch.layer",
    "GridCRF": "crfkit.torch.grid_layer",
    "emission_items": "crfkit.torch.models",
    "from_chain_model": "crfkit.torch.models",
    "to_chain_model": "crfkit.torch.models",
}

if TYPE_CHECKING:
    from crfkit.torch.grid_layer import GridCRF as GridCRF
    from crfkit.torch.layer import CRF as CRF
    from crfkit.torch.models import emission_items as emission_items
    from crfkit.torch.models import from_chain_model as from_chain_model
    from crfkit.torch.models import to_chain_model as to_chain_model

__all__ = [*_HOME]  # noqa: PLE0604 - names, and each can be asked for


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crfkit.torch' has no attribute {name!r}")
    from crfkit.extras import load

    load("torch", f"crfkit.torch.{name} needs")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
