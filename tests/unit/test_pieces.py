"""A training set that is encoded in pieces has the attributes, numbers and weights of one that is encoded whole."""

import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from crfkit.chain.encoding.pieces import Numbering, count, joined, numbered, raw_files, raw_sequences
from crfkit.chain.fields.united import united
from crfkit.chain.training.train import ChainTraining
from crfkit.errors import DataError
from crfkit.files.columns import ColumnFile

TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB01:%x[0,0]\nB\n"
LISTS = ("state_offsets", "state_labels", "pair_offsets", "pair_codes", "transition_codes", "triple_codes")


def text(seed, n):
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        for _ in range(rng.integers(1, 6)):
            k = int(rng.integers(9))
            lines.append(f"w{k} {'ABCD'[k % 4 if rng.random() < 0.8 else 0]}")
        lines.append("")
    return "\n".join(lines) + "\n" if lines else ""


def file(content):
    return ColumnFile(io.BytesIO(content.encode()))


def in_tree(items, join, rng):
    """Join neighbours in any order."""
    items = list(items)
    while len(items) > 1:
        k = int(rng.integers(len(items) - 1))
        items[k : k + 2] = [join(items[k], items[k + 1])]
    return items[0]


@given(
    seeds=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 6)), min_size=1, max_size=5),
    min_frequency=st.sampled_from([1, 3]),
    hash_bits=st.sampled_from([None, 4]),
    order=st.sampled_from([1, 2]),
)
def test_pieces_are_numbered_as_the_whole(seeds, min_frequency, hash_bits, order):
    texts = [text(seed, n) for seed, n in seeds]
    training = ChainTraining(template=TEMPLATE, min_frequency=min_frequency, hash_bits=hash_bits, order=order)
    inputs = training.make_inputs()
    rng = np.random.default_rng(len(texts))
    raws = [pickle.loads(pickle.dumps(raw_files([file(t)], inputs, False))) for t in texts]
    counts = pickle.loads(pickle.dumps(in_tree(map(count, raws), joined, rng)))
    if len(counts.labels) < 2:
        with pytest.raises(DataError, match=r"no sequences|at least two different labels are needed"):
            Numbering.of(counts, inputs, min_frequency, True)
        return
    whole, _ = training.learn_files([file("".join(texts))])
    numbering = pickle.loads(pickle.dumps(Numbering.of(counts, inputs, min_frequency, True)))
    assert numbering.classes.tolist() == whole.classes.tolist()
    assert numbering.vocabulary.attributes.to_list() == whole.vocabulary.attributes.to_list()
    assert numbering.vocabulary.pair_attributes.to_list() == whole.vocabulary.pair_attributes.to_list()
    assert numbering.vocabulary.n_features == whole.vocabulary.n_features
    parts = [numbered(raw, numbering) for raw in raws]
    assert_array_equal(np.concatenate([p.attributes for p in parts]), whole.data.attributes)
    assert_array_equal(np.concatenate([p.labels for p in parts]), whole.data.labels)
    classes = whole.classes.tolist()
    field, _ = training.make_field(whole.data, whole.vocabulary, classes)
    fields = [training.make_field(p, numbering.vocabulary, classes)[0] for p in parts if len(p)]
    for name in LISTS:
        assert_array_equal(getattr(united(fields), name), getattr(field, name))


def test_attributes_in_two_pieces_count_once_each():
    inputs = ChainTraining().make_inputs()
    first = raw_sequences([[["a"], ["b"]]], [["X", "Y"]], inputs)
    second = raw_sequences([[["b"], ["c"]]], [["Z", "X"]], inputs)
    total = joined(count(first), count(second))
    assert total.attributes.names.to_list() == ["a", "b", "c"]
    assert total.counts.tolist() == [1, 2, 1]
    assert total.labels == ("X", "Y", "Z")
    assert total.ends == (1, 2)


def test_files_with_other_columns_are_refused():
    inputs = ChainTraining(template="U00:%x[0,0]").make_inputs()
    three = ColumnFile(io.BytesIO(b"a x A\nb y B\n"))
    three.source.name = "three.txt"
    pieces = [count(raw_files([f], inputs, False)) for f in (file("a A\nb B\n"), three)]
    with pytest.raises(DataError, match=r"three\.txt: 3 columns, but .* has 2; all files must have the same columns"):
        joined(*pieces)
