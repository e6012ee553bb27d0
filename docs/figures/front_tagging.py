"""Draw docs/images/front/tagging.png: names in plain sentences, each with its exact probability.

The model is that of docs/tutorials/names.md, which shows some of these sentences with the same probabilities.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from front_parts import INK, save
from tutorial_parts import variables

COLOURS = {"PER": "#cfe8d5", "LOC": "#cfe0f5", "ORG": "#f6dcc0", "DATE": "#e5d8f0"}
SENTENCES = (
    "Elena Costa joined Meridian Bank in March .",
    "Orion Airlines opened an office in Lisbon on Tuesday .",
    "Victoria Haddad flew from Nairobi to Victoria on May 14 .",
    "Bergen lost against Jordan on Sunday .",
)
SIZE, LINE = 12.5, 1.0


def draw(ax: Any, words: list[str], spans: Any, y: float) -> None:
    """Write a sentence; a box marks each name, with its type and probability below."""
    starts = {span.start: span for span in spans}
    x, k = 0.0, 0
    renderer = ax.figure.canvas.get_renderer()
    while k < len(words):
        span = starts.get(k)
        end = span.end if span else k + 1
        text = ax.text(x, y, " ".join(words[k:end]), fontsize=SIZE, va="center", color=INK)
        if span:
            text.set_bbox({"facecolor": COLOURS[span.type], "edgecolor": "none", "boxstyle": "round,pad=0.28"})
        box = text.get_window_extent(renderer).transformed(ax.transData.inverted())
        if span:
            share = f"{span.probability:.0%}" if span.probability < 0.995 else ">99%"
            note = f"{span.type} {share}"
            ax.text((box.x0 + box.x1) / 2, y - 0.36, note, fontsize=8.5, ha="center", va="center", color="#57606a")
        x, k = box.x1 + (0.022 if span or end in starts else 0.012), end


def main() -> None:
    crf = variables("names")["crf"]
    sentences = [sentence.split() for sentence in SENTENCES]
    figure, ax = plt.subplots(figsize=(7.2, 2.5))
    figure.subplots_adjust(0.02, 0.02, 0.98, 0.98)
    ax.set(xlim=(-0.01, 1), ylim=(-len(sentences) + 0.45, 0.4))
    ax.axis("off")
    for row, (words, spans) in enumerate(zip(sentences, crf.predict_spans(sentences), strict=True)):
        draw(ax, words, spans, -row * LINE)
    save(figure, "tagging")


if __name__ == "__main__":
    main()
