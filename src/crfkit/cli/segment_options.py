"""Options that commands of `crfkit segment` share, and what their texts mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.protocols import Penalty

INPUT, MODEL, OPTIMISATION, OUTPUT = "Input", "Model", "Optimisation", "Output"
LOSSES = {"pl": "pseudo-likelihood"}

FILES = (
    "Images: PNG, JPEG, TIFF, BMP, WebP, GIF, grey or colour, 8 or 16 bits, of any sizes. A mask has the name of its "
    "image (but for the ending; or NAME_mask, as apply writes it), its shape, and two values; lossy masks (JPEG) are "
    "thresholded at 127."
)

Images = Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder of images.")]
Masks = Annotated[Path, typer.Argument(metavar="MASKS", help="Folder of masks.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", "-p", metavar="N", help="Number of threads. Default: all cores.", rich_help_panel=OPTIMISATION
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Keep the features of images in this folder.", rich_help_panel=INPUT),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=OUTPUT)]
Ignore = Annotated[
    str | None,
    typer.Option(
        "--ignore",
        metavar="V[,V…]",
        help="Mask values of pixels whose class is not known, e.g. 255: never learned from, never counted.",
        rich_help_panel=INPUT,
    ),
]
MaskColours = Annotated[
    str | None,
    typer.Option(
        "--mask-colours",
        metavar="C=CLASS,…|FILE",
        help="Classes of the colours of masks, e.g. black=0,#ff0000=1,white=ignore; or a file with a line for each.",
        rich_help_panel=INPUT,
    ),
]
ImagePattern = Annotated[
    str | None,
    typer.Option(
        "--image-pattern", metavar="PATTERN", help="File names of images, e.g. '{name}_rgb.jpg'.", rich_help_panel=INPUT
    ),
]
MaskPattern = Annotated[
    str | None,
    typer.Option(
        "--mask-pattern",
        metavar="PATTERN",
        help="File names of masks, e.g. '{name}_gt.png'; they may then lie in the folder of the images.",
        rich_help_panel=INPUT,
    ),
]
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad", help="Leave out files that cannot be used, and name them on stderr.", rich_help_panel=INPUT
    ),
]


def parse_size(text: str | None) -> tuple[int, int] | None:
    """Return (height, width) of a text such as 80x100."""
    if text is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,4})[x×]([1-9]\d{0,4})", text.strip().lower())
    if not found:
        raise ParameterError(f"--size must be HEIGHTxWIDTH such as 80x100, not {text!r}")
    return int(found[1]), int(found[2])


def parse_strengths(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--strengths must be numbers separated by commas, not {text!r}") from None


def parse_ignore(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--ignore must be integers separated by commas, such as 255, not {text!r}") from None


def make_solver(name: str, mu: float | None, tolerance: float, max_iterations: int | None, seed: int) -> Any:
    """Return the name, or the solver with its smoothing width μ."""
    from dataclasses import fields, replace

    from crfkit.solvers import SOLVERS
    from crfkit.training.options import SolverOptions

    if mu is None or name not in SOLVERS:
        return name
    if "mu" not in {item.name for item in fields(SOLVERS[name])}:
        able = [other for other, kind in SOLVERS.items() if "mu" in {item.name for item in fields(kind)}]
        raise ParameterError(f"--mu is for solvers that smooth the penalty ({', '.join(able) or 'none here'})")
    ready = SolverOptions(None, name, tolerance, max_iterations, None, seed).make_solver()
    return replace(ready, mu=mu)


def make_penalty(l1: float | None, l2: float | None, edge_l2: float | None) -> Penalty | None:
    """Return the penalty of all weights or, with `edge_l2`, of nodes and edges each; None: the default."""
    from crfkit.cli import options
    from crfkit.penalties import L2, Blockwise

    penalty = options.make_penalty(l1, l2)
    if edge_l2 is None:
        return penalty
    return Blockwise({"node": L2(1.0) if penalty is None else penalty, "edge": L2(edge_l2)})
