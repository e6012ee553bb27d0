"""Text features that do well on common tasks."""

from __future__ import annotations

from crfkit.features.text import TextFeatures

PRESETS: dict[str, TextFeatures] = {
    "ner": TextFeatures(window=2, affixes=4, bag=4, context=True),
    "chunking": TextFeatures(window=2, affixes=3, columns=(1,)),
    "pos": TextFeatures(window=2, affixes=4),
    "segmentation": TextFeatures(window=2, affixes=0, shapes=False, lower=False, pairs=False, characters=3),
}
