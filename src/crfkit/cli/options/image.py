"""Arguments and options of the commands that read folders of images: `crfkit segment` and `crfkit refine`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.runtime.help import INPUT, flag, option
from crfkit.errors import ParameterError

FILES = (
    "Images are PNG, JPEG, TIFF, BMP, WebP or GIF files of any size, grey or colour, with 8 or 16 bits. A mask has the "
    "shape of its image and its name up to the ending (or NAME_mask, as apply writes it), and two values. Lossy masks "
    "(JPEG) are thresholded at 127."
)

Images = Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder of images.")]
Masks = Annotated[Path, typer.Argument(metavar="MASKS", help="Folder of masks.")]
Cache = Annotated[
    Path | None,
    option(INPUT, "--cache", metavar="DIR", help="Keep the features of images in this folder, to compute them once."),
]
Ignore = Annotated[
    str | None,
    option(
        INPUT,
        "--ignore",
        metavar="V[,V…]",
        help="Mask values of pixels whose class is unknown, e.g. 255. They are neither learned from nor counted.",
    ),
]
MaskColours = Annotated[
    str | None,
    option(
        INPUT,
        "--mask-colours",
        metavar="C=CLASS,…|FILE",
        help="Classes of the colours in masks, e.g. black=0,#ff0000=1,white=ignore, or a file with one C=CLASS per "
        "line.",
    ),
]
ImagePattern = Annotated[
    str | None,
    option(INPUT, "--image-pattern", metavar="PATTERN", help="File names of images, e.g. '{name}_rgb.jpg'."),
]
MaskPattern = Annotated[
    str | None,
    option(
        INPUT,
        "--mask-pattern",
        metavar="PATTERN",
        help="File names of masks, e.g. '{name}_gt.png'. Images and masks may then be in the same folder.",
    ),
]
SkipBad = Annotated[
    bool,
    flag(INPUT, "--skip-bad", help="Skip files that cannot be used and list them on stderr, instead of failing."),
]


def parse_ignore(text: str | None) -> list[int] | None:
    """Return the mask values that --ignore names."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--ignore must be integers separated by commas, such as 255, not {text!r}") from None
