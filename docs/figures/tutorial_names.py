"""Draw docs/images/tutorials/names.png: sentences of the demo with the names that the tagger of the page finds."""

from __future__ import annotations

import matplotlib.pyplot as plt
from tutorial_parts import save, variables

from crfkit.synthetic.news import NEWS

COLOURS = {"PER": "#f4c7ab", "LOC": "#b8d8be", "ORG": "#b5cdea", "DATE": "#e3d5f0"}
SHOWN = (2, 4, 6, 11)  # lines of news.txt


def main() -> None:
    page = variables("names")
    lines = [page["tokenize"](NEWS.splitlines()[k]) for k in SHOWN]
    figure, ax = plt.subplots(figsize=(7, 2.6))
    ax.set(xlim=(0, 74.6), ylim=(-len(lines) + 0.35, 0.75))
    ax.set_axis_off()
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
    for row, (words, spans) in enumerate(zip(lines, page["crf"].predict_spans(lines), strict=True)):
        x = 0.5
        starts = {span.start: span for span in spans}
        k = 0
        while k < len(words):
            span = starts.get(k)
            end = span.end if span else k + 1
            text = " ".join(words[k:end])
            width = len(text)
            if span:
                box = {"facecolor": COLOURS[span.type], "edgecolor": "none", "boxstyle": "round,pad=0.25"}
                ax.text(x, -row, text, family="monospace", fontsize=11, bbox=box)
                note = f"{span.type} {span.probability:.2f}"
                ax.text(x, -row + 0.42, note, fontsize=7.5, color="0.3")
            else:
                x -= 1.0 if text in ".," else 0.0
                ax.text(x, -row, text, family="monospace", fontsize=11)
            x += width + 1.2
            k = end
    save(figure, "names")


if __name__ == "__main__":
    main()
