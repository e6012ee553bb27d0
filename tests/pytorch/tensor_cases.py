"""Tensors in main memory that behave as those of another device do, and chains to compare losses on.

On a GPU, reading a number waits for all that was asked for before, and NumPy cannot read a tensor. `as_on_a_device`
makes NumPy refuse tensors here as well, and counts how often the host reads.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import numpy as np
import torch

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.torch.chain_arrays import ChainArrays
from crfkit.torch.chain_loss import TensorChainLikelihood

READS = ("__float__", "__int__", "__bool__", "__index__", "__complex__", "item", "tolist")


class OnHost(torch.Tensor):
    """What `cpu()` returns: the host may look at it."""


@contextmanager
def as_on_a_device():
    """Yield a count of reads by the host, by name; tensors refuse to be read as NumPy arrays inside."""
    reads: Counter[str] = Counter()
    before = {name: getattr(torch.Tensor, name) for name in (*READS, "__array__", "cpu", "numpy")}
    inside = False

    def counted(name):
        def read(self, *args):
            nonlocal inside
            if isinstance(self, OnHost) or inside:
                return before[name](self, *args)
            reads[name] += 1
            inside = True
            try:
                return before[name](self, *args)
            finally:
                inside = False

        return read

    def refuse(self, *args, **kwargs):
        if isinstance(self, OnHost):
            return before["numpy"](self.as_subclass(torch.Tensor))
        raise TypeError("can't convert a tensor of a device to NumPy: use cpu() first")

    def cpu(self):
        reads["cpu"] += 1
        return self.as_subclass(OnHost)

    try:
        for name in READS:
            setattr(torch.Tensor, name, counted(name))
        torch.Tensor.__array__ = refuse
        torch.Tensor.numpy = refuse
        torch.Tensor.cpu = cpu
        yield reads
    finally:
        for name, method in before.items():
            setattr(torch.Tensor, name, method)


def chains(seed=0, n=40, n_labels=4, n_attributes=30, states="observed") -> tuple[SequenceData, ChainField]:
    """Return sequences of 0 to 9 positions whose labels depend on their attributes, with weights and values."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 10, n)
    lengths[:3] = 0, 1, 9
    T = int(lengths.sum())
    labels = rng.integers(0, n_labels, T)
    count = rng.integers(0, 4, T)
    attributes = [np.unique((3 * labels[t] + rng.integers(0, 12, count[t])) % n_attributes) for t in range(T)]
    data = SequenceData(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([[0], np.cumsum([len(row) for row in attributes])]),
        np.concatenate([*attributes, np.zeros(0)]).astype(np.int32),
        rng.uniform(0.5, 2.0, sum(map(len, attributes))),
        labels=labels.astype(np.int32),
        weights=rng.uniform(0.0, 2.0, n),
    )
    complete = states == "all"
    return data, ChainField.from_data(data, n_labels, n_attributes, all_states=complete, all_transitions=complete)


def tensor_loss(data, field, precision="double", device="torch:cpu") -> TensorChainLikelihood:
    return TensorChainLikelihood(ChainArrays.of(data, field), device, precision)
