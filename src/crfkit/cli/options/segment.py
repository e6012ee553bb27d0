"""The options of `crfkit segment train`, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfkit.cli.options import image, shared
from crfkit.cli.options.declared import own_flag, own_option
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, OUTPUT
from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.protocols import Penalty


@dataclass(frozen=True)
class SegmentOptions:
    """The options of `crfkit segment train`."""

    images: image.Images
    masks: image.Masks
    model: shared.NewModel
    size: str | None = own_option(
        INPUT, "--size", metavar="HxW", help="Resize images to this height and width first, e.g. 80x100."
    )
    image_pattern: image.ImagePattern = None
    mask_pattern: image.MaskPattern = None
    ignore: image.Ignore = None
    mask_colours: image.MaskColours = None
    skip_bad: image.SkipBad = False
    cache: image.Cache = None
    block: int | None = own_option(
        MODEL,
        "--block",
        metavar="N",
        help="Side of an image block in pixels. Default: 2, or the next larger side for which training fits into "
        "memory.",
    )
    features: str = own_option(
        MODEL, "--features", default="sift,c1", metavar="NAMES", help="Features of image blocks: sift, c1 or sift,c1."
    )
    colour: bool = own_flag(MODEL, "--colour", help="Add the mean colour of each image block.")
    sift_cell: int = own_option(
        MODEL,
        "--sift-cell",
        default=4,
        metavar="N",
        help="Side of a SIFT cell in pixels. A SIFT patch is four cells wide.",
    )
    position: bool = own_flag(MODEL, "--position", help="Add the row and column of each image block.")
    multi_class: bool = own_flag(INPUT, "--multi-class", help="Allow masks with more than two values, one per class.")
    upsample: str = own_option(
        MODEL,
        "--upsample",
        default="bilinear",
        metavar="NAME",
        help="How to get from image blocks to pixels: bilinear, or nearest, which shows the blocks.",
    )
    loss: shared.GraphLoss = "likelihood"
    inference: str = own_option(
        MODEL,
        "--inference",
        default="auto",
        metavar="NAME",
        help="Inference engine: {engines}. pl is the same as --loss pl.",
    )
    sweeps: shared.TrainingSweeps = 50
    l2: float | None = own_option(
        MODEL,
        "--l2",
        metavar="S",
        help="L2 penalty S/2·‖w‖² of all weights. By default, it is chosen on held-out images for groups of many "
        "features (sift, c1), and 1 for other weights; see --edge-l2 for the pseudo-likelihood.",
    )
    l1: shared.L1Strength = None
    edge_l2: float | None = own_option(
        MODEL,
        "--edge-l2",
        metavar="S",
        help="L2 penalty of the weights between neighbours, which replaces --l1 and --l2 for these weights. With "
        "the pseudo-likelihood and no penalty given, it is chosen on held-out images.",
    )
    strengths: str | None = own_option(
        OPTIMISATION,
        "--strengths",
        metavar="S,S,…",
        help="Strengths of the L1 penalty to try. The one with the smallest error on held-out images is chosen.",
    )
    validation: float = own_option(
        OPTIMISATION,
        "--validation",
        default=0.2,
        metavar="SHARE",
        help="Share of the images to hold out for choosing a strength.",
    )
    solver: shared.Solver = "auto"
    mu: float | None = own_option(
        OPTIMISATION, "--mu", metavar="MU", help="Width of the smoothing of the L1 penalty, for solvers that smooth it."
    )
    seed: shared.Seed = 0
    threads: shared.Threads = None
    max_iterations: shared.MaxIterations = None
    tolerance: shared.Tolerance = 1e-5
    time_limit: float | None = own_option(
        OPTIMISATION,
        "--time-limit",
        metavar="SECONDS",
        help="Stop after this time, including the computation of features, and write the model so far.",
    )
    resume: Path | None = own_option(
        OPTIMISATION,
        "--resume",
        metavar="FILE",
        help="Start from a checkpoint or a model with the same features and classes.",
    )
    checkpoint: Path | None = own_option(
        OUTPUT, "--checkpoint", metavar="FILE", help="Write the model so far to this file from time to time."
    )
    checkpoint_every: float = own_option(
        OUTPUT, "--checkpoint-every", default=60.0, metavar="SECONDS", help="Time between checkpoints, in seconds."
    )
    log: shared.Log = None
    dry_run: shared.DryRun = False
    quiet: shared.Quiet = False


def parse_size(text: str | None) -> tuple[int, int] | None:
    """Return (height, width) from a text such as 80x100."""
    if text is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,4})[x×]([1-9]\d{0,4})", text.strip().lower())
    if not found:
        raise ParameterError(f"--size must be HEIGHTxWIDTH such as 80x100, not {text!r}")
    return int(found[1]), int(found[2])


def parse_strengths(text: str | None) -> tuple[float, ...] | None:
    """Return the strengths that --strengths lists."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"--strengths must be numbers separated by commas, not {text!r}") from None


def make_solver(name: str, mu: float | None, tolerance: float, max_iterations: int | None, seed: int) -> Any:
    """Return the name of the solver, or the solver with its smoothing width μ if that is given."""
    from dataclasses import fields, replace

    from crfkit.solvers import SOLVERS
    from crfkit.training.options import SolverOptions

    if mu is None or name not in SOLVERS:
        return name
    if "mu" not in {item.name for item in fields(SOLVERS[name])}:
        able = [other for other, kind in SOLVERS.items() if "mu" in {item.name for item in fields(kind)}]
        raise ParameterError(
            f"the solver {name} has no --mu; solvers that smooth the penalty have it: {', '.join(able)}"
        )
    ready = SolverOptions(None, name, tolerance, max_iterations, None, seed).make_solver()
    return replace(ready, mu=mu)


def make_penalty(l1: float | None, l2: float | None, edge_l2: float | None) -> Penalty | None:
    """Return one penalty for all weights or, with `edge_l2`, one for nodes and one for edges; None is the default."""
    from crfkit.cli.options import parsing as options
    from crfkit.penalties import L2, Blockwise

    penalty = options.make_penalty(l1, l2)
    if edge_l2 is None:
        return penalty
    return Blockwise({"node": L2(1.0) if penalty is None else penalty, "edge": L2(edge_l2)})
