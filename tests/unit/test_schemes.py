"""Tagging schemes: phrases against a slow reading of each scheme, conversions there and back, detection, errors."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfkit
from crfkit import convert_tags, detect_scheme
from crfkit.errors import DataError, ParameterError
from crfkit.schemes import TAG_SCHEMES, are_phrases, phrases, scheme_name, split_label

SCHEMES = sorted(TAG_SCHEMES)
SPANS = list[tuple[str, int, int]]


def write(spans: SPANS, length: int, scheme: str) -> list[str]:
    """The slow oracle of writing: every position asks where it lies in its phrase and what lies beside that."""
    labels = []
    for t in range(length):
        mine = [span for span in spans if span[1] <= t < span[2]]
        if not mine:
            labels.append("O")
            continue
        ((kind, begin, end),) = mine
        first, last = t == begin, t == end - 1
        joins = any(other == (kind, other[1], begin) for other in spans)
        joined = any(other == (kind, end, other[2]) for other in spans)
        if scheme == "iob1":
            tag = "B" if first and joins else "I"
        elif scheme == "iob2":
            tag = "B" if first else "I"
        elif scheme == "ioe1":
            tag = "E" if last and joined else "I"
        elif scheme == "ioe2":
            tag = "E" if last else "I"
        else:
            single, stop = {"iobes": "SE", "bilou": "UL"}[scheme]
            tag = single if first and last else "B" if first else stop if last else "I"
        labels.append(f"{tag}-{kind}" if kind else tag)
    return labels


@st.composite
def spans_of_sequences(draw, kinds=("PER", "LOC", "A-B")):
    """(phrases, length) that do not overlap; many of them touch."""
    spans, t = [], 0
    for gap, length, kind in draw(
        st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3), st.sampled_from(kinds)), max_size=5)
    ):
        spans.append((kind, t + gap, t + gap + length))
        t += gap + length
    return spans, t + draw(st.integers(0, 2))


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=150)
@given(drawn=spans_of_sequences())
def test_phrases_are_read_as_they_were_written(scheme, drawn):
    spans, length = drawn
    labels = write(spans, length, scheme)
    assert [(p.type, p.begin, p.end) for p in phrases(labels)] == spans


@settings(max_examples=150)
@given(drawn=spans_of_sequences())
def test_every_conversion_writes_what_the_oracle_writes_and_goes_back(drawn):
    written = {scheme: write(*drawn, scheme) for scheme in SCHEMES}
    for source, to in itertools.product(SCHEMES, repeat=2):
        for given_source in ("auto", source):
            assert convert_tags([written[source]], to, given_source) == [written[to]]
        assert convert_tags(convert_tags([written[source]], to), source) == [written[source]]


@given(drawn=spans_of_sequences(kinds=("",)))
def test_tags_without_types_are_converted_too(drawn):
    written = {scheme: write(*drawn, scheme) for scheme in SCHEMES}
    for source, to in itertools.product(SCHEMES, repeat=2):
        assert convert_tags([written[source]], to, source) == [written[to]]


@settings(max_examples=200)
@given(
    labels=st.lists(st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "L-X", "U-X", "B-Y", "I-Y", "E-Y"]), max_size=9)
)
def test_conversion_keeps_the_phrases_of_any_labels(labels):
    before = list(phrases(labels))
    for to in SCHEMES:
        (after,) = convert_tags([labels], to)
        assert list(phrases(after)) == before
        assert detect_scheme([after]) in ({to} if before and set(after) - {"O", "I-X", "I-Y"} else {to, "iob1", None})


# what a whole labelling of one type looks like, a letter each
GRAMMAR = {
    "iob1": r"O*(I+(BI*)*(O+|$))*",
    "iob2": r"(O|BI*)*",
    "ioe1": r"O*((I*E)*I+(O+|$))*",
    "ioe2": r"(O|I*E)*",
    "iobes": r"(O|S|BI*E)*",
    "bilou": r"(O|U|BI*L)*",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_valid_taggings_are_those_of_the_grammar(scheme):
    form = re.compile(GRAMMAR[scheme])
    for length in range(6):
        for tags in itertools.product(["O", *TAG_SCHEMES[scheme].tags], repeat=length):
            labels = [tag if tag == "O" else f"{tag}-X" for tag in tags]
            if form.fullmatch("".join(tags)):
                convert_tags([labels], "iob2", scheme)
            else:
                with pytest.raises(DataError, match="sequence 0, position"):
                    convert_tags([labels], "iob2", scheme)


def test_two_singles_are_two_phrases():
    result = crfkit.evaluate([["U-PER", "U-PER"]], [["U-PER", "U-PER"]])
    assert result.overall.gold == 2
    assert result.scheme == "bilou"
    assert [(p.begin, p.end) for p in phrases(["B-A", "L-A", "B-A", "I-A", "L-A", "U-A"])] == [(0, 2), (2, 5), (5, 6)]


# --- detection


@settings(max_examples=150)
@given(drawn=spans_of_sequences())
def test_schemes_are_detected_where_they_differ(drawn):
    """What is detected writes the same labels; phrases of one and of two positions tell all apart."""
    spans, length = drawn
    telling = [("PER", 0, 1), ("PER", 1, 3)]
    for scheme in SCHEMES:
        labels = write(spans, length, scheme)
        found = detect_scheme([labels])
        assert found is None if not spans else write(spans, length, found) == labels
        assert detect_scheme([labels, write(telling, 3, scheme)]) == scheme


@pytest.mark.parametrize(
    "labels",
    [
        ["DET", "NOUN"],
        ["B_NP", "I_NP"],
        [],
        ["O", "O"],
        ["O", "I-A", "B-A", "O", "B-A"],
        ["S-A", "U-A"],
        [1, 2],
        ["B-"],
    ],
    ids=str,
)
def test_no_scheme(labels):
    assert detect_scheme([labels]) is None


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["B-NP", "I-NP", "O"], True),
        (["B", "I", "O"], True),
        (["B", "I", "E", "S"], True),
        (["U-PER", "L-PER", "O-x"], True),
        (["O"], True),
        (["NN", "VB", "O"], False),
        (["B_NP", "I_NP", "O"], False),
        (["S", "E", "O"], False),
        (["B-NP", "NN"], False),
        (["B-NP", 1], False),
        (["X-NP"], False),
    ],
    ids=str,
)
def test_which_labels_write_phrases(labels, expected):
    assert are_phrases(labels) is expected


def test_labels_are_split_at_the_first_dash():
    assert split_label("B-a-b") == ("B", "a-b")
    assert split_label("BI-a") is None


# --- bad input


def test_what_cannot_be_converted():
    with pytest.raises(DataError, match=r"sequence 1, position 0: the label 'NN' does not mark a phrase"):
        convert_tags([["O"], ["NN"]], "iobes")
    with pytest.raises(
        DataError, match=r"sequence 1, position 1: I-ORG cannot begin a phrase in iob2; these labels look like IOB1"
    ):
        convert_tags([["O"], ["O", "I-ORG"]], "iobes", "iob2")
    with pytest.raises(DataError, match=r"position 1: I-A cannot end a phrase in ioe2; 1 place breaks ioe2"):
        convert_tags([["E-A", "I-A", "O"], ["I-A", "E-A", "E-A"]], "iob2", "ioe2")
    with pytest.raises(DataError, match=r"S-A is not a label of bilou, whose tags are B, I, L, U and O; .* like IOBES"):
        convert_tags([["O", "S-A"]], "iob2", "bilou")
    for to in ("io", "", None, 3):
        with pytest.raises(ParameterError, match=r"unknown tagging scheme .*bilou, iob1, iob2, iobes, ioe1, ioe2"):
            convert_tags([["O"]], to)
    for wrong in (["O", "B-A"], "O", 5, [3]):
        with pytest.raises(DataError, match="expected a list of label sequences"):
            convert_tags(wrong, "iob2")
        with pytest.raises(DataError, match="expected a list of label sequences"):
            detect_scheme(wrong)
    with pytest.raises(DataError, match="position 0: the label 'NN'"):
        list(phrases(["NN"]))


def test_spellings_and_arrays():
    assert [scheme_name(x) for x in ("IOB2", "BIO", "ioe", "BIOES", "BILUO")] == [
        "iob2",
        "iob2",
        "ioe2",
        "iobes",
        "bilou",
    ]
    assert convert_tags([np.array(["B-A", "I-A"]), ("B-A",)], "IOBES") == [["B-A", "E-A"], ["S-A"]]
