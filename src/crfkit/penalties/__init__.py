"""Penalties: functions of the weights that are added to the loss. See :mod:`crfkit.protocols`.

A member is a file and a line of :data:`PENALTIES`. The structured ones are a family: `group_index` (which weights
belong together), `group_rows` (the mathematics of one group), `group_norms` (penalties of groups), `parts` and
`blockwise` (another penalty for every part of the weights).
"""

from crfkit.penalties.ball import GroupL2Ball, L1Ball
from crfkit.penalties.blockwise import Blockwise, ByBlock
from crfkit.penalties.elastic_net import ElasticNet
from crfkit.penalties.group_index import Groups
from crfkit.penalties.group_norms import GroupL1, GroupL2, GroupLinf
from crfkit.penalties.huber import HuberL1
from crfkit.penalties.l1 import L1
from crfkit.penalties.l2 import L2
from crfkit.penalties.none import NoPenalty
from crfkit.protocols import Penalty

PENALTIES: dict[str, type[Penalty]] = {
    "none": NoPenalty,
    "l1": L1,
    "l2": L2,
    "elastic-net": ElasticNet,
    "huber-l1": HuberL1,
    "group-l1": GroupL1,
    "group-l2": GroupL2,
    "group-linf": GroupLinf,
    "l1-ball": L1Ball,
    "group-l2-ball": GroupL2Ball,
    "blockwise": Blockwise,
    "by-block": ByBlock,
}

__all__ = [
    "L1",
    "L2",
    "PENALTIES",
    "Blockwise",
    "ByBlock",
    "ElasticNet",
    "GroupL1",
    "GroupL2",
    "GroupL2Ball",
    "GroupLinf",
    "Groups",
    "HuberL1",
    "L1Ball",
    "NoPenalty",
]
