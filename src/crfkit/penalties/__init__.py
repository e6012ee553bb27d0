"""Penalties: functions of the weights that are added to the loss. See :mod:`crfkit.protocols`."""

from crfkit.penalties.ball import GroupL2Ball, L1Ball
from crfkit.penalties.blocks import Blockwise
from crfkit.penalties.elastic_net import ElasticNet
from crfkit.penalties.group import GroupL1, GroupL2, GroupLinf
from crfkit.penalties.groups import Groups
from crfkit.penalties.huber import HuberL1
from crfkit.penalties.l1 import L1
from crfkit.penalties.l2 import L2
from crfkit.penalties.none import NoPenalty

__all__ = [
    "L1",
    "L2",
    "Blockwise",
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
