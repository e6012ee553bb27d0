"""What "auto" stands for in predictions of a learned graph, for the model file and `crfkit inspect`."""

from __future__ import annotations

import numpy as np

from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.inference.defaults import default_decoder
from crfkit.graph.model import GraphModel

SMALL = 200  # variables up to which looking for the decoder takes a few hundredths of a second


def structure_choices(model: GraphModel) -> dict[str, str]:
    """Return what "auto" is in predictions of a learnt graph; the method is part of the record of its structure."""
    encoder = model.encoder
    if not isinstance(encoder, TableEncoder) or encoder.structure.n_nodes > SMALL:
        return {}
    chosen = {"inference": model.engine(encoder.structure).name} if model.inference == "auto" else {}
    if model.decode == "auto" and encoder.features is None and np.isfinite(model.w).all():
        chosen["decode"] = default_decoder(model.potentials(encoder.encode(None)))
    return chosen
