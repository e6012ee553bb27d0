"""``crfkit-wapiti dump``: the weights of a model as text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crfkit.convert.wapiti_model import WapitiModel


def dump(model: WapitiModel, precision: int = 5, everything: bool = False) -> Iterator[bytes]:
    """Yield the weights of each observation, a line each, with a blank line after the observation.

    The columns are the observation, the label before (# for weights of single labels), the label and the weight.
    Weights that are zero are omitted unless everything is requested.
    """
    labels, n, starts = model.labels, len(model.labels), model.starts()
    bounds = np.searchsorted(model.index, starts).tolist()
    for o, name in enumerate(model.observations):
        a, b, begin = bounds[o], bounds[o + 1], int(starts[o])
        places, weights = (model.index[a:b] - begin).tolist(), model.weights[a:b].tolist()
        if everything:
            given = dict(zip(places, weights, strict=True))
            places = list(range(int(starts[o + 1]) - begin))
            weights = [given.get(place, 0.0) for place in places]
        states = 0 if name.startswith(b"b") else n
        lines = []
        for place, weight in zip(places, weights, strict=True):
            if weight == 0.0 and not everything:
                continue
            i, j = divmod(place - states, n)
            before, label = (b"#", labels[place]) if place < states else (labels[i], labels[j])
            lines.append(b"%s\t%s\t%s\t%.*f\n" % (name, before, label, precision, weight))
        if lines:
            yield b"".join(lines) + b"\n"
