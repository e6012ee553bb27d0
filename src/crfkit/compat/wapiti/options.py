"""The options of each mode of ``crfkit-wapiti``."""

from __future__ import annotations

from crfkit.compat.arguments import CommandParser, count, number, positive, strength


def _parser(mode: str, inputs: str, outputs: str) -> CommandParser:
    parser = CommandParser(prog=f"crfkit-wapiti {mode}", allow_abbrev=False)
    parser.add_argument("input", nargs="?", metavar=inputs, help="default: standard input")
    parser.add_argument("output", nargs="?", metavar=outputs, help="default: standard output")
    return parser


def train_parser() -> CommandParser:
    """Return the parser of `train`; the help lists the options of Wapiti that have no effect."""
    parser = _parser("train", "DATA", "MODEL")
    add = parser.add_argument
    add("-T", "--type", default="crf", metavar="NAME", help="type of model: crf")
    add("-a", "--algo", default="l-bfgs", metavar="NAME", help="training algorithm, or list for a list of them")
    add("-p", "--pattern", metavar="FILE", help="patterns; without them the data hold observations")
    add("-m", "--model", metavar="FILE", help="model to start from")
    add("-d", "--devel", metavar="FILE", help="development data, whose error is reported and decides when to stop")
    add("-c", "--compact", action="store_true", help="leave observations without weights out of the model")
    add("-t", "--nthread", type=positive, default=1, metavar="N", help="number of threads (default: 1)")
    add("-i", "--maxiter", type=count, default=0, metavar="N", help="maximum number of iterations (0: no limit)")
    add("-1", "--rho1", type=strength, default=0.5, metavar="X", help="L1 penalty X·‖w‖₁ (default: 0.5)")
    add("-2", "--rho2", type=strength, default=0.0001, metavar="X", help="L2 penalty X/2·‖w‖² (default: 0.0001)")
    add("-o", "--objwin", type=count, default=5, metavar="N", help="window of the objective (default: 5)")
    add("-w", "--stopwin", type=count, default=5, metavar="N", help="window of the token error (default: 5; 0: none)")
    add("-e", "--stopeps", type=strength, default=0.02, metavar="X", help="stop below this change (default: 0.02)")
    add("--histsz", type=positive, metavar="N", help="(l-bfgs) number of curvature pairs")
    add("--eta0", type=number, metavar="X", help="(sgd-l1) step size; chosen by trials by default")
    add("-j", "--jobsize", type=positive, metavar="N", help="no effect")
    add("-s", "--sparse", action="store_true", help="no effect: crfkit always uses what is sparse")
    for name in ("--maxls", "--alpha", "--kappa", "--stpmin", "--stpmax", "--stpinc", "--stpdec"):
        add(name, type=number, metavar="X", help="no effect")
    add("--cutoff", action="store_true", help="no effect")
    for name, metavar in (("--rstate", "FILE"), ("--sstate", "FILE")):
        add(name, metavar=metavar, help="not supported")
    for name in ("--me", "--clip"):
        add(name, action="store_true", help="not supported")
    return parser


def label_parser() -> CommandParser:
    """Return the parser of `label`."""
    parser = _parser("label", "DATA", "LABELLED")
    add = parser.add_argument
    add("-m", "--model", metavar="FILE", help="model file of Wapiti or crfkit")
    add("-l", "--label", action="store_true", help="write only the labels")
    add("-c", "--check", action="store_true", help="the last column is the label: report errors")
    add("-s", "--score", action="store_true", help="write the scores of labellings and labels")
    add("-p", "--post", action="store_true", help="choose labels by their marginal probabilities")
    add("-n", "--nbest", type=positive, default=1, metavar="N", help="write the N best labellings")
    add("--force", action="store_true", help="keep the labels that the last column gives")
    add("-t", "--nthread", type=positive, metavar="N", help="number of threads (default: all); not in Wapiti")
    add("--me", action="store_true", help="not supported")
    return parser


def dump_parser() -> CommandParser:
    """Return the parser of `dump`."""
    parser = _parser("dump", "MODEL", "TEXT")
    parser.add_argument("-p", "--prec", type=count, default=5, metavar="N", help="digits after the point (default: 5)")
    parser.add_argument("--all", action="store_true", help="write weights that are zero as well")
    return parser


def update_parser() -> CommandParser:
    """Return the parser of `update`."""
    parser = _parser("update", "PATCH", "MODEL")
    parser.add_argument("-m", "--model", metavar="FILE", help="model whose weights the patch changes")
    parser.add_argument("-c", "--compact", action="store_true", help="leave observations without weights out")
    return parser


PARSERS = {"train": train_parser, "label": label_parser, "dump": dump_parser, "update": update_parser}
