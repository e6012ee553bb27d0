"""Text features that do well on common tasks."""

from __future__ import annotations

from crfkit.text.words import TextFeatures

# words next to parts of speech
_WORDS_AND_TAGS = ("column1[-1]|lower[0]", "lower[0]|column1[1]", "lower[-1]|column1[0]", "column1[0]|lower[1]")

PRESETS: dict[str, TextFeatures] = {
    "ner": TextFeatures(window=2, affixes=4, bag=6, context=True),
    "chunking": TextFeatures(window=2, affixes=3, columns=(1,), extra=_WORDS_AND_TAGS),
    "pos": TextFeatures(window=2, affixes=4),
    "segmentation": TextFeatures(window=2, affixes=0, shapes=False, lower=False, pairs=False, characters=3),
}
