"""Save a picture of the tutorials: PNG with a palette, which is a third of the size."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from PIL import Image

matplotlib.use("Agg")

IMAGES = Path(__file__).parents[1] / "images" / "tutorials"


def save(figure: Any, name: str, dpi: int = 110) -> None:
    """Write docs/images/tutorials/NAME.png."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=dpi, format="png")
    IMAGES.mkdir(parents=True, exist_ok=True)
    Image.open(buffer).convert("RGB").quantize(128).save(IMAGES / f"{name}.png", optimize=True)
