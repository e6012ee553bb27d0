"""Wapiti's patterns: worked by hand, against the slow oracle, and patterns that cannot be used."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wapiti_patterns import observe

from crfkit import ChainCRF, Template
from crfkit.chain.encoding.sequences import learn_file
from crfkit.chain.model.model import ChainModel
from crfkit.errors import ParameterError, TemplateError

ROWS = [["The", "DT"], ["Cat3", "NN"], ["sat", "VBD"], ["!", "."]]


def wapiti(text: str) -> Template:
    return Template(text, syntax="wapiti")


def at(line: str, t: int, rows=ROWS) -> str:
    return wapiti(line).expand(rows)[t][0][0]


# --- expansion


@pytest.mark.parametrize(
    ("line", "t", "expected"),
    [
        ("u:%x[0,0]", 1, "u:Cat3"),
        ("u:%x[-1,0]/%x[+1,1]", 1, "u:The/VBD"),
        ("u:%X[0,0]", 1, "u:cat3"),
        ("U:%x[0,0]", 0, "u:The"),
        ("u:%x[@1,0]|%x[@-1,0]|%x[@2,1]", 3, "u:The|!|NN"),
        ("u:%x[@0,0]|%x[@5,0]|%x[@-5,0]", 0, "u:_x-1|_x+1|_x-1"),
        ('u:%t[0,0,"^\\u"]', 0, "u:true"),
        ('u:%t[0,0,"^\\u"]', 2, "u:false"),
        ('u:%t[0,0,"\\d"]', 1, "u:true"),
        ('u:%t[0,0,"^\\p*$"]', 3, "u:true"),
        ('u:%t[0,0,"^\\p*$"]', 0, "u:false"),
        ('u:%m[0,0,".?.?.?$"]', 1, "u:at3"),
        ('u:%m[0,0,".?.?.?$"]', 3, "u:!"),
        ('u:%M[0,0,"^.?.?"]', 1, "u:ca"),
        ('u:%m[0,0,"\\l\\l*"]', 1, "u:a"),  # * takes as little as it can
        ('u:%m[0,0,"\\l\\l*$"]', 2, "u:sat"),
        ('u:%m[0,0,"x"]/', 0, "u:/"),
        ('u:%m[0,0,""]/', 0, "u:/"),
        ('u:%m[-1,0,".?.?$"]', 0, "u:-1"),  # expressions see what stands for rows outside as well
        ("u:no command", 0, "u:no command"),
        ("u:%x[0,0] # comment", 0, "u:The"),
        ('u:%t[0,0,"\\"|\\\\|\\."]', 0, "u:false"),
        ("u:%x[ 1,0]%x[010,0]%x[0x1,0]", 0, "u:Cat3_x+#Cat3"),  # as C reads numbers
    ],
)
def test_patterns_by_hand(line, t, expected):
    assert at(line, t) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (-1, ["_x-1", "The", "Cat3", "sat"]),
        (-6, ["_x-#", "_x-#", "_x-4", "_x-3"]),
        (1, ["Cat3", "sat", "!", "_x+1"]),
        (7, ["_x+4", "_x+#", "_x+#", "_x+#"]),
    ],
)
def test_rows_outside_the_sequence(row, expected):
    assert [u for (u,), _ in wapiti(f"u%x[{row},0]").expand(ROWS)] == ["u" + text for text in expected]


def test_kinds_of_lines():
    template = wapiti("*:%x[0,0]\nu:%x[0,1]\nb:%x[0,1]\nb\n")
    assert template.unigrams == ["*:%x[0,0]", "u:%x[0,1]"]
    assert template.bigrams == ["*:%x[0,0]", "b:%x[0,1]"]
    assert (template.transitions, template.transition_line, template.n_columns) == (True, "b", 2)
    assert template.expand(ROWS[:1]) == [(["*:The", "u:DT"], ["*:The", "b:DT"])]


def test_a_line_that_another_can_imitate_is_no_transition():
    for text in ('b\nb%m[0,0,"x"]', "b:1\nb:%x[0,0]", "b\nb"):
        assert not wapiti(text).transitions
    assert wapiti("b:1\nb:2\nu:%x[0,0]").transition_line == "b:1"
    assert wapiti("b:1\nb:2").bigrams == ["b:2"]


def test_expressions_see_bytes():
    assert at('u:%m[0,0,".?$"]', 0, [["café"]]) == "u:\udca9"
    assert at('u:%t[0,0,"\\a$"]%X[0,0]', 0, [["É"]]) == "u:falseÉ"


def test_time_is_bounded():
    text = "a" * 2000
    line = 'u:%t[0,0,"' + "a?" * 200 + "a*" * 20 + 'b"]'
    before = time.process_time()
    assert at(line, 0, [[text]]) == "u:false"
    assert time.process_time() - before < 2
    lines = [f"b{k:06}" for k in range(40_000)]
    before = time.process_time()
    assert wapiti("\n".join([*lines, "b%x[0,0]"])).transition_line is None
    assert wapiti("\n".join(["b:%x[0,0]", *lines])).transition_line == "b000000"
    assert time.process_time() - before < 5


# --- against the oracle

ATOMS = ["a", "b", "1", "-", ".", "\\a", "\\d", "\\l", "\\p", "\\s", "\\u", "\\w"]
ATOMS += [atom.upper() for atom in ATOMS if len(atom) == 2] + ["\\.", '\\"', "\\*", "é", "^", "$"]
texts = st.text(alphabet='abAB1-.é"*$^', min_size=1, max_size=6)


@st.composite
def expressions(draw):
    parts = draw(st.lists(st.tuples(st.sampled_from(ATOMS), st.sampled_from(["", "*", "?"])), max_size=5))
    body = "".join(map("".join, parts))
    start = "^" if draw(st.booleans()) or body.startswith("^") else ""
    return start + body + draw(st.sampled_from(["", "$"]))


@st.composite
def patterns(draw):
    text = draw(st.sampled_from(["u", "b", "*"])) + draw(st.sampled_from([":", "", "x="]))
    for _ in range(draw(st.integers(1, 3))):
        letter = draw(st.sampled_from("xXtTmM"))
        row = draw(st.sampled_from(["0", "-1", "+1", "2", "-7", "@1", "@-1", "@0", "@3", "@-9"]))
        quoted = f',"{draw(expressions())}"' if letter in "tTmM" else ""
        text += f"%{letter}[{row},{draw(st.integers(0, 1))}{quoted}]" + draw(st.sampled_from(["", "/", "|z"]))
    return text


@given(st.lists(patterns(), min_size=1, max_size=3), st.lists(st.tuples(texts, texts), min_size=1, max_size=4))
def test_the_core_observes_what_the_oracle_does(lines, rows):
    template = wapiti("\n".join(lines))
    encoded = [[text.encode() for text in row] for row in rows]
    for t, (unigrams, bigrams) in enumerate(template.expand([list(row) for row in rows])):
        expected = [observe(line.encode(), encoded, t) for line in lines]
        for found, kinds in ((unigrams, b"u*"), (bigrams, b"b*")):
            assert [text.encode("utf-8", "surrogateescape") for text in found] == [
                text for text in expected if text[0] in kinds
            ]


# --- patterns that cannot be used


@pytest.mark.parametrize(
    "line",
    [
        "x:%x[0,0]",
        " u:%x[0,0]",
        "%x[0,0]",
        "u:%y[0,0]",
        "u:%é",
        "u:%",
        "u:100%%",
        "u:%x",
        "u:%x[0]",
        "u:%x[0,-1]",
        "u:%x[a,0]",
        "u:%x[@,0]",
        "u:%x[0 ,0]",
        "u:%x[99999999999,0]",
        "u:%x[0,0",
        'u:%x[0,0,"a"]',
        "u:%t[0,0]",
        "u:%m[0,0,a]",
        'u:%m[0,0,"a]',
        'u:%m[0,0,"a"',
        'u:%m[0,0,"*a"]',
        'u:%m[0,0,"a**"]',
        'u:%m[0,0,"^?"]',
    ],
)
def test_bad_lines_are_named(line):
    with pytest.raises(TemplateError) as caught:
        wapiti(f"# comment\nu:%x[0,0]\n\n{line}\nb\n")
    assert caught.value.line == 4
    assert line in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n# comments"])
def test_empty_patterns_are_refused(text):
    with pytest.raises(TemplateError, match="no u, b or"):
        wapiti(text)


# --- the syntax


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("U00:%x[0,0]\nB", "crf++"),
        ("u:%x[0,0]\nb", "wapiti"),
        ("# words\nu:%x[0,0]\n\n*:%x[0,1]\n", "wapiti"),
        ("U:%x[0,0]\n*:%x[0,0]", "wapiti"),
        ('U:%t[0,0,"a"]\nB', "wapiti"),
        ("U:%x[@1,0]\nB", "wapiti"),
        ("U#:%x[0,0]", "crf++"),
        ("B", "crf++"),
        ("b", "wapiti"),
    ],
)
def test_the_syntax_is_recognised(text, expected):
    assert Template(text).syntax == expected


def test_unknown_syntaxes_are_refused():
    with pytest.raises(ParameterError, match="wapiti"):
        Template("u", syntax="wapitti")


def test_the_syntax_is_kept_in_the_model_file(tmp_path):
    X, y = [[["The"], ["cat"]], [["A"], ["dog"]]], [["D", "N"], ["D", "N"]]
    crf = ChainCRF(template='u:%t[0,0,"^\\u"]\n*:%X[0,0]\nb').fit(X, y)
    crf.save(tmp_path / "model")
    model = ChainModel.load(tmp_path / "model")
    assert model.vocabulary.template == crf.model_.vocabulary.template
    assert model.vocabulary.template.syntax == "wapiti"
    assert model.predict([[["An"], ["cat"]]]) == [["D", "N"]]
    # files of before do not name the syntax
    old = ChainCRF(template="U:%x[0,0]\nB").fit(X, y).model_
    metadata, tensors = old.parts()
    del metadata["template_syntax"]
    from crfkit.files import modelfile

    assert ChainModel.from_parts(modelfile.Contents("chain", metadata, tensors)).vocabulary.template.syntax == "crf++"


def test_star_lines_have_weights_of_labels_and_of_pairs(tmp_path):
    path = tmp_path / "data"
    path.write_text("a X\nb Y\n\n", encoding="utf-8")
    corpus = learn_file(path, wapiti("*:%x[0,0]\nb"), 1)
    assert sorted(corpus.vocabulary.attributes.to_list()) == ["*:a", "*:b"]
    assert corpus.vocabulary.pair_attributes.to_list() == ["*:b"]  # no pair ends at the first position
