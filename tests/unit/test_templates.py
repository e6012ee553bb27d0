"""CRF++ templates: expansion worked by hand, and templates that cannot be used."""

import pytest

from crfkit import Template
from crfkit.errors import ParameterError, TemplateError, TemplateWarning

# The example of CRF++'s manual.
ROWS = [["He", "PRP"], ["reckons", "VBZ"], ["the", "DT"], ["current", "JJ"], ["account", "NN"]]


def unigrams(text: str, rows=ROWS) -> list[list[str]]:
    return [u for u, _ in Template(text).expand(rows)]


# --- expansion


@pytest.mark.parametrize(
    ("line", "expected"),  # at "the", as the manual prints them
    [
        ("U:%x[0,0]", "U:the"),
        ("U:%x[0,1]", "U:DT"),
        ("U:%x[-1,0]", "U:reckons"),
        ("U:%x[-2,1]", "U:PRP"),
        ("U:%x[0,0]/%x[0,1]", "U:the/DT"),
        ("UABC%x[0,1]123", "UABCDT123"),
        ("U%x[0,0]%x[1,0]", "Uthecurrent"),
        ("Uno macro", "Uno macro"),
        ("U", "U"),
    ],
)
def test_the_manuals_examples(line, expected):
    assert unigrams(line)[2] == [expected]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (-1, ["_B-1", "He", "reckons", "the", "current"]),
        (-2, ["_B-2", "_B-1", "He", "reckons", "the"]),
        (1, ["reckons", "the", "current", "account", "_B+1"]),
        (2, ["the", "current", "account", "_B+1", "_B+2"]),
        (4, ["account", "_B+1", "_B+2", "_B+3", "_B+4"]),
        (5, ["_B+1", "_B+2", "_B+3", "_B+4", "_B+5"]),
        (-7, ["_B-7", "_B-6", "_B-5", "_B-4", "_B-3"]),
        (1000, ["_B+996", "_B+997", "_B+998", "_B+999", "_B+1000"]),
    ],
)
def test_rows_outside_the_sequence(row, expected):
    assert unigrams(f"U%x[{row},0]") == [["U" + cell] for cell in expected]


def test_a_sequence_of_one():
    assert unigrams("U%x[-1,0]|%x[0,0]|%x[1,0]", [["a"]]) == [["U_B-1|a|_B+1"]]
    assert unigrams("U%x[0,0]", []) == []


def test_several_lines_keep_their_order_and_kind():
    template = Template("U1:%x[0,0]\nB1:%x[-1,1]/%x[0,1]\nU0:%x[0,1]\nB\nBx")
    assert template.unigrams == ["U1:%x[0,0]", "U0:%x[0,1]"]
    assert template.bigrams == ["B1:%x[-1,1]/%x[0,1]", "Bx"]
    assert template.transitions
    assert template.n_columns == 2
    assert template.expand(ROWS[:2]) == [
        (["U1:He", "U0:PRP"], ["B1:_B-1/PRP", "Bx"]),
        (["U1:reckons", "U0:VBZ"], ["B1:PRP/VBZ", "Bx"]),
    ]


def test_comments_blank_lines_and_line_ends():
    plain = Template("U0:%x[0,0]\nU1:%x[0,1]\nB\n")
    for text in (
        "# Unigram\nU0:%x[0,0]\n\n#U9:%x[9,9]\nU1:%x[0,1]\n# Bigram\nB",
        "U0:%x[0,0]\r\nU1:%x[0,1]\r\n\r\nB\r\n",
        "\ufeffU0:%x[0,0]\nU1:%x[0,1]\nB",
        "U0:%x[0,0]  \nU1:%x[0,1]\t\nB \n   \n",
    ):
        other = Template(text)
        assert other.expand(ROWS) == plain.expand(ROWS)
        assert other.transitions


def test_a_hash_inside_a_line_is_text():
    assert unigrams("U#%x[0,0]#") == [[f"U#{row[0]}#"] for row in ROWS]


def test_duplicate_lines_give_duplicate_attributes():
    assert unigrams("U%x[0,0]\nU%x[0,0]")[0] == ["UHe", "UHe"]


def test_any_text_passes_through():
    rows = [["naïve", "語"], ["%x[0,0]", "🙂"], ["a/b", "]"]]
    assert unigrams("Ué:%x[0,0]→%x[0,1]", rows) == [["Ué:naïve→語"], ["Ué:%x[0,0]→🙂"], ["Ué:a/b→]"]]


def test_numbers_may_have_signs_and_zeros():
    assert unigrams("U%x[+1,0]%x[-0,0]%x[007,0]") == unigrams("U%x[1,0]%x[0,0]%x[7,0]")


@pytest.mark.parametrize(("text", "expected"), [("B", 0), ("U", 0), ("U%x[0,0]", 1), ("U%x[0,1]\nB%x[0,4]", 5)])
def test_columns_needed(text, expected):
    assert Template(text).n_columns == expected


def test_without_a_bare_b_there_are_no_transitions():
    assert not Template("U%x[0,0]").transitions
    assert not Template("U%x[0,0]\nB1").transitions


# --- templates that cannot be used


@pytest.mark.parametrize(
    "line",
    [
        "U%y[0,0]",
        "U%",
        "U100%",
        "U%x",
        "U%x[",
        "U%x[0",
        "U%x[0,",
        "U%x[0,0",
        "U%x[,0]",
        "U%x[0,]",
        "U%x[]",
        "U%x(0,0)",
        "U%x[a,0]",
        "U%x[0,b]",
        "U%x[0,-1]",
        "U%x[0.5,0]",
        "U%x[0 ,0]",
        "U%x[--1,0]",
        "U%x[+-1,0]",
        "U%x[99999999999999999999,0]",
        "X%x[0,0]",
        "u%x[0,0]",
        " U%x[0,0]",
        "%x[0,0]",
    ],
)
def test_bad_lines_are_named(line):
    with pytest.raises(TemplateError) as caught:
        Template(f"# comment\nU:%x[0,0]\n\n{line}\nB\n")
    assert caught.value.line == 4
    assert line in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n# comments"])
def test_empty_templates_are_refused(text):
    with pytest.raises(TemplateError, match="no U or B line"):
        Template(text)


def test_two_bare_bs_are_one_with_a_warning():
    with pytest.warns(TemplateWarning, match="template:3: a bare 'B' repeats line 1"):
        template = Template("B\nU\nB \r\nU1:%x[0,0]")
    assert template.transitions
    assert template.bigrams == []
    assert template.unigrams == ["U", "U1:%x[0,0]"]


def test_a_template_in_another_encoding(tmp_path):
    path = tmp_path / "x.template"
    path.write_bytes("# 単語\r\nU語:%x[0,0]\r\nB \r\n".encode("euc-jp"))
    template = Template.read(path, encoding="euc-jp")
    assert template.unigrams == ["U語:%x[0,0]"]
    assert template.transitions
    with pytest.raises(
        TemplateError, match=r"not UTF-8 at byte 5 \(0xB8\); name its encoding, as in --encoding euc-jp"
    ):
        Template.read(path)
    with pytest.raises(TemplateError, match="not ascii at byte 3"):
        Template.read(path, encoding="ascii")
    with pytest.raises(ParameterError, match="unknown encoding 'klingon'"):
        Template.read(path, encoding="klingon")


# --- files


def test_read_and_make(tmp_path):
    path = tmp_path / "x.template"
    path.write_bytes("\ufeffUé:%x[0,0]\r\nB\r\n".encode())
    template = Template.read(path)
    assert template.expand([["a"]]) == [(["Ué:a"], [])]
    assert Template.make(path) == Template.make(str(path)) == template
    assert Template.make(template) is template
    assert Template.make("U%x[0,0]").unigrams == ["U%x[0,0]"]
    assert Template.make("U\nB").transitions


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "x.template"
    with pytest.raises(TemplateError, match=r"x\.template: cannot read"):
        Template.read(path)
    with pytest.raises(TemplateError, match="cannot read"):
        Template.read(tmp_path)
    path.write_bytes(b"U:\xff%x[0,0]\n")
    with pytest.raises(TemplateError, match=r"x\.template: .*not UTF-8"):
        Template.read(path)
    path.write_text("U\nnonsense\n")
    with pytest.raises(TemplateError, match=r"x\.template:2: 'nonsense'"):
        Template.read(path)


def test_frozen_and_comparable():
    assert Template("U\nB") == Template("U\nB") != Template("U")
    with pytest.raises(AttributeError):
        Template("U").text = "B"
