"""Blocks of weights against a table of which weights there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit.chain.fields.block import WeightBlock
from crfkit.errors import DataError

tables = st.integers(0, 2**12 - 1).map(lambda bits: np.array([bits >> k & 1 for k in range(12)], bool).reshape(4, 3))


def block(table):
    """Return the block of the weights that are True in a table [lists, codes]."""
    return WeightBlock.of_keys(*table.shape, np.flatnonzero(table))


def there(some):
    """Return which weights a block has, as a table."""
    table = np.zeros((some.n, some.width), dtype=bool)
    table[some.ids] = True
    return table


@given(tables, st.lists(st.booleans(), min_size=4, max_size=4))
def test_lists_are_taken(table, lists):
    some, lists = block(table), np.array(lists)
    taken, places = some.take(lists)
    np.testing.assert_array_equal(there(taken), table[lists])
    np.testing.assert_array_equal(np.isin(some.keys // 3, np.flatnonzero(lists)).nonzero()[0], places)
    all_of_it, where = WeightBlock(4, 3).take(lists)
    assert all_of_it.complete
    np.testing.assert_array_equal(where, np.flatnonzero(np.repeat(lists, 3)))


@given(tables, tables)
def test_union_and_keep(one, other):
    np.testing.assert_array_equal(there(block(one).union(block(other))), one | other)
    kept = block(one).keep(other[one])
    np.testing.assert_array_equal(there(kept), one & other)
    used = (one & other).any(axis=1)
    np.testing.assert_array_equal(there(block(one).keep(other[one], used)), (one & other)[used])
    assert block(one).union(WeightBlock(4, 3)).complete
    with pytest.raises(DataError, match="different labels or attributes"):
        block(one).union(WeightBlock(3, 3))


@given(tables)
def test_weights_are_looked_up(table):
    some, w = block(table), np.arange(1.0, table.sum() + 1)
    dense = some.table(w)
    np.testing.assert_array_equal(dense != 0, table)
    assert dense[table].tolist() == w.tolist()
    np.testing.assert_array_equal(some.rows(w, np.array([2, 0, 2])), dense[[2, 0, 2]])
    assert [[some.at(w, k, code) for code in range(3)] for k in range(4)] == dense.tolist()
    full = np.arange(12.0)
    assert [WeightBlock(4, 3).at(full, k, code) for k in range(4) for code in range(3)] == full.tolist()


@given(tables)
def test_lists_are_added(table):
    np.testing.assert_array_equal(there(block(table).extended(2)), np.vstack([table, np.ones((2, 3), bool)]))
    np.testing.assert_array_equal(
        there(block(table).extended(2, empty=True)), np.vstack([table, np.zeros((2, 3), bool)])
    )
    assert WeightBlock(4, 3).extended(2).size == 18
