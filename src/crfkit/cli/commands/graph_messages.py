"""Messages of `crfkit graph`: options as the command line names them, and counts of errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crfkit._types import Ids


def in_options(text: str) -> str:
    """Return a message of the library with its parameters replaced by options of the command line.

    >>> in_options("loss='pseudo-likelihood' is faster; raise max_iterations, or use fewer edges (graph=…)")
    '--loss pseudo-likelihood is faster; raise --max-iterations, or use fewer edges (--edges FILE)'
    """
    text = re.sub(r"[,;][^,;]* add damping \(make_engine\([^)]*\)\)", "", text)  # the command line has no such option
    text = re.sub(r"\b(loss|inference)='([^']+)'", r"--\1 \2", text)
    for name, option in (("max_iterations", "--max-iterations"), ("graph=…", "--edges FILE")):
        text = text.replace(name, option)
    return re.sub(r"\bthe tolerance\b", "--tolerance", text)


def errors(predicted: Ids, gold: Ids) -> str:
    """Return the Hamming loss (share of wrong labels) and the subset accuracy (share of rows without a mistake).

    Cells of −1 do not count. If no row has a label for some column, the accuracy is over the other columns.
    """
    known = gold >= 0
    if not known.any():
        return f"{len(gold)} rows, no label to compare with"
    wrong = (predicted != gold) & known
    labelled = known.any(axis=0)  # the columns that have labels
    complete = known[:, labelled].all(axis=1)
    text = f"{len(gold)} rows, Hamming loss {wrong.sum() / known.sum():.4f}"
    if not complete.any():
        return text
    return f"{text}, subset accuracy {(~wrong[complete].any(axis=1)).mean():.4f}"
