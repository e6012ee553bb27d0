"""What the pictures of the README share: colours, fonts, saving."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt

REPOSITORY = Path(__file__).parents[2]
OURS, THEIRS, INK = "#0a7d91", "#c9ced6", "#22272e"
plt.rcParams.update(
    {
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.color": INK,
        "axes.labelcolor": INK,
        "svg.hashsalt": "crfkit",
    }
)


def results(name: str) -> Any:
    """Return the committed results of a benchmark."""
    return json.loads((REPOSITORY / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def save(figure: Any, name: str, dpi: int = 130) -> None:
    """Write docs/images/front/NAME.png with a palette, which makes it small."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=dpi, format="png", facecolor="white")
    folder = REPOSITORY / "docs" / "images" / "front"
    folder.mkdir(parents=True, exist_ok=True)
    Image.open(buffer).convert("RGB").quantize(160).save(folder / f"{name}.png", optimize=True)
