"""Phrases as conlleval counts them: by hand, and against its own rules written out again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit import evaluate
from crfkit.metrics import phrases


def found(labels: str) -> list[tuple[str, int, int]]:
    return [(p.type, p.begin, p.end) for p in phrases(labels.split())]


# --- by hand


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        # IOB2: every phrase starts with B
        ("B-NP I-NP O B-VP", [("NP", 0, 2), ("VP", 3, 4)]),
        ("B-NP B-NP I-NP", [("NP", 0, 1), ("NP", 1, 3)]),
        ("B-NP I-VP", [("NP", 0, 1), ("VP", 1, 2)]),
        ("O I-NP I-NP O", [("NP", 1, 3)]),
        # IOB1: B only between neighbours of one type
        ("I-NP I-NP B-NP I-NP", [("NP", 0, 2), ("NP", 2, 4)]),
        ("I-NP I-VP I-VP O I-NP", [("NP", 0, 1), ("VP", 1, 3), ("NP", 4, 5)]),
        # IOE1 and IOE2: E ends a phrase
        ("I-NP E-NP I-NP I-NP", [("NP", 0, 2), ("NP", 2, 4)]),
        ("I-NP E-NP E-NP", [("NP", 0, 2), ("NP", 2, 3)]),
        ("O E-NP O", [("NP", 1, 2)]),
        # IOBES
        ("B-NP I-NP E-NP S-NP S-NP", [("NP", 0, 3), ("NP", 3, 4), ("NP", 4, 5)]),
        ("S-A B-A E-A B-A E-A", [("A", 0, 1), ("A", 1, 3), ("A", 3, 5)]),
        ("S-A I-A", [("A", 0, 1), ("A", 1, 2)]),
        # types with hyphens, tags without types
        ("B-NP-SBJ I-NP-SBJ B-NP", [("NP-SBJ", 0, 2), ("NP", 2, 3)]),
        ("B I I B O I", [("", 0, 3), ("", 3, 4), ("", 5, 6)]),
        ("O O", []),
        ("", []),
    ],
)
def test_phrases_by_hand(labels, expected):
    assert found(labels) == expected


def test_counts_by_hand():
    gold = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "O"], []]
    guess = [["B-NP", "I-NP", "O", "B-NP"], ["B-NP", "I-NP"], []]
    result = evaluate(gold, guess)
    assert (result.overall.gold, result.overall.predicted, result.overall.correct) == (3, 3, 1)
    assert {kind: (c.gold, c.predicted, c.correct) for kind, c in result.by_type.items()} == {
        "NP": (2, 3, 1),
        "VP": (1, 0, 0),
    }
    assert result.accuracy == 4 / 6
    assert result.sequence_accuracy == 1 / 3
    assert result.overall.precision == result.overall.recall == result.overall.f1 == pytest.approx(1 / 3)
    assert result.by_type["VP"].precision == result.by_type["VP"].f1 == 0.0
    assert result.as_dict()["by_type"]["NP"]["recall"] == 0.5
    assert result.as_dict()["overall"]["f1"] == result.overall.f1


def test_nothing_to_count():
    for gold in ([], [[]], [["O"]]):
        result = evaluate(gold, gold)
        assert result.overall.f1 == result.overall.precision == result.overall.recall == 0.0
    assert evaluate([], []).accuracy == 0.0


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="2 gold labels but 1 predicted"):
        evaluate([["O", "O"]], [["O"]])
    with pytest.raises(ValueError, match="1 gold label sequences but 0 predicted"):
        evaluate([["O"]], [])


# --- conlleval's rules, as its Perl source has them


def ends(last, last_type, tag, kind):
    return (
        (last, tag) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}
        or (last not in ("O", ".") and last_type != kind)
        or last in ("]", "[")
    )


def starts(last, last_type, tag, kind):
    return (
        (last, tag) in {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}
        or (tag not in ("O", ".") and last_type != kind)
        or tag in ("[", "]")
    )


def conlleval(gold, guess) -> dict[str, tuple[int, int, int]]:
    """Per type (gold, guessed, correct): one pass over both label sequences side by side."""
    counts: dict[str, list[int]] = {}

    def count(kind, what):
        counts.setdefault(kind, [0, 0, 0])[what] += 1

    correct_so_far, last = False, ("O", "", "O", "")
    for a, b in [*zip(gold, guess, strict=True), ("O", "O")]:
        g, g_type = a.split("-", 1) if "-" in a else (a, "")
        p, p_type = b.split("-", 1) if "-" in b else (b, "")
        gold_ends, guess_ends = ends(*last[:2], g, g_type), ends(*last[2:], p, p_type)
        gold_starts, guess_starts = starts(*last[:2], g, g_type), starts(*last[2:], p, p_type)
        if correct_so_far:
            if gold_ends and guess_ends and last[1] == last[3]:
                correct_so_far = False
                count(last[1], 2)
            elif gold_ends != guess_ends or g_type != p_type:
                correct_so_far = False
        if gold_starts and guess_starts and g_type == p_type:
            correct_so_far = True
        if gold_starts:
            count(g_type, 0)
        if guess_starts:
            count(p_type, 1)
        last = (g, g_type, p, p_type)
    return {kind: tuple(c) for kind, c in counts.items()}


IOB = ["O", "B-X", "I-X", "B-Y", "I-Y"]
IOE = ["O", "E-X", "I-X", "E-Y", "I-Y"]


@st.composite
def pairs_of_sequences(draw):
    tags = st.sampled_from(draw(st.sampled_from([IOB, IOE, ["O", "B", "I"]])))
    both = draw(st.lists(st.tuples(tags, tags), max_size=12))
    return [a for a, _ in both], [b for _, b in both]


@settings(max_examples=300)
@given(pair=pairs_of_sequences())
def test_counts_equal_conlleval(pair):
    result = evaluate([pair[0]], [pair[1]])
    assert {k: (c.gold, c.predicted, c.correct) for k, c in result.by_type.items()} == conlleval(*pair)


@given(pairs=st.lists(pairs_of_sequences(), max_size=4))
def test_counts_add_up(pairs):
    whole = evaluate([a for a, _ in pairs], [b for _, b in pairs])
    parts = [evaluate([a], [b]) for a, b in pairs]
    for name in ("gold", "predicted", "correct"):
        total = getattr(whole.overall, name)
        assert total == sum(getattr(part.overall, name) for part in parts)
        assert total == sum(getattr(counts, name) for counts in whole.by_type.values())
    for name in ("tokens", "correct_tokens", "sequences", "correct_sequences"):
        assert getattr(whole, name) == sum(getattr(part, name) for part in parts)


@given(labels=st.lists(st.sampled_from([*IOB, *IOE, "S-X", "S-Y"]), max_size=15))
def test_phrases_are_disjoint_ordered_and_cover_what_is_not_outside(labels):
    spans = list(phrases(labels))
    covered = [t for p in spans for t in range(p.begin, p.end)]
    assert covered == [t for t, label in enumerate(labels) if label != "O"]
    assert all(labels[t].partition("-")[2] == p.type for p in spans for t in range(p.begin, p.end))
    perfect = evaluate([labels], [labels])
    assert perfect.accuracy == (1.0 if labels else 0.0)
    assert perfect.overall.f1 == (1.0 if spans else 0.0)
    assert perfect.overall.correct == len(spans)


@given(pair=pairs_of_sequences())
def test_exchanging_gold_and_guess_exchanges_precision_and_recall(pair):
    a, b = evaluate([pair[0]], [pair[1]]).overall, evaluate([pair[1]], [pair[0]]).overall
    assert (a.precision, a.recall, a.f1) == (b.recall, b.precision, b.f1)
