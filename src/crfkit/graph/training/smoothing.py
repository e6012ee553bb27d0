"""Find out whether a field that was trained without inference predicts worse than its own features do.

Pseudo-likelihood and composite likelihood see the true labels of the neighbours. Where neighbours mostly agree these
say nearly everything, so edges become strong and features weak. In prediction the neighbours are unknown too, and
the best labelling is then often a single label for all nodes.
"""

from __future__ import annotations

from crfkit._types import Ids
from crfkit.graph.data import GraphData
from crfkit.graph.model import GraphModel

MARGIN = 0.01  # share of the training nodes by which features alone may be better
MOST_NODES = 2_000_000  # nodes of the training set up to which it is looked at


def over_smoothed(model: GraphModel, data: GraphData, states: Ids) -> str:
    """Return what to tell the user if the model predicts its training set worse than the features of nodes alone do.

    It is "" if the model does not, or if finding out is expensive.
    """
    graph = data.graph
    if not graph.n_edges or graph.is_forest or graph.n_nodes > MOST_NODES or not (states >= 0).any():
        return ""
    known = states >= 0
    alone = float((model.potentials(data).unary.argmax(axis=1) == states)[known].mean())
    found = float((model.best(data).labels == states)[known].mean())
    if found >= alone - MARGIN:
        return ""
    return (
        f"the trained field predicts {100 * found:.1f} % of the labels of its own training set, but the features of "
        f"nodes alone predict {100 * alone:.1f} %: this loss has made the edges too strong, because it sees "
        f"the true labels of neighbours. Penalise edges more: try edge_penalty=L2({graph.n_edges}) and strengths "
        "around it on held-out graphs"
    )
