"""Wapiti's model files: what they say, what is written again, and files that are damaged."""

import locale
import random
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from wapiti_cases import MODEL

from crfkit import ChainCRF, _core, convert
from crfkit.chain.model.model import ChainModel
from crfkit.chain.training.transfer import transfer
from crfkit.convert import wapiti
from crfkit.convert.wapiti_model import format_wapiti, parse_wapiti
from crfkit.errors import CrfkitError, LimitError, ModelFileError, ParameterError


def weights_of(model: ChainModel) -> dict[tuple[str, ...], float]:
    """The weights by name, whatever their order."""
    f, w, v = model.field, model.w, model.vocabulary
    labels, states, pairs = model.class_list, v.attributes.to_list(), v.pair_attributes.to_list()
    found = {}
    for place, (a, j) in enumerate(zip(*f.state_ids(), strict=True)):
        found[states[a], labels[j]] = w[place]
    for place, (i, j) in enumerate(zip(*f.transition_ids(), strict=True)):
        found["", labels[i], labels[j]] = w[f.layout["transition"]][place]
    for place, (b, i, j) in enumerate(zip(*f.pair_ids(), strict=True)):
        found[pairs[b], labels[i], labels[j]] = w[f.layout["pair"]][place]
    return found


# --- reading


def test_weights_stand_where_wapiti_has_them():
    model = wapiti.read(MODEL)
    assert model.class_list == ["N", "D"]
    assert weights_of(model) == {
        ("u:the", "N"): -0.25,
        ("u:the", "D"): 3.0,
        ("*:the", "N"): 0.5,
        ("*:the", "N", "D"): 1.0,
        ("*:the", "D", "N"): -1.0,
        ("u:cat", "N"): 2.0,
        ("", "N", "D"): 1.25,
        ("", "D", "N"): 0.125,
        ("*:cat", "N"): 0.1,
        ("*:cat", "D", "D"): -1.0,
    }


def test_scores_are_the_sums_of_these_weights():
    model = wapiti.read(MODEL)
    data = model.encode([[["The"], ["cat"]], [["the"], ["cat"]]])
    best, scores = model.inference.decode(data)
    assert [model.class_list[j] for j in best] == ["N", "N", "D", "N"]
    assert_allclose(scores, [0.5 + 2.0 + 0.1, 3.0 + 0.125 + 2.0 + 0.1])


def test_the_older_header_and_other_line_ends():
    plain = weights_of(wapiti.read(MODEL))
    assert weights_of(wapiti.read(MODEL.replace(b"#mdl#2#", b"#mdl#").replace(b"3/0/0", b"3/0"))) == plain
    assert weights_of(wapiti.read(MODEL.replace(b"\n", b"\r\n"))) == plain
    assert weights_of(wapiti.read(bytearray(MODEL))) == plain


def test_a_model_opens_by_its_contents(tmp_path):
    path = tmp_path / "any.name"
    path.write_bytes(MODEL)
    assert weights_of(convert.load(path)) == weights_of(wapiti.read(path)) == weights_of(wapiti.read(MODEL))
    model = wapiti.read(path)
    model.save(tmp_path / "own")
    again = ChainModel.load(tmp_path / "own")
    assert weights_of(again) == weights_of(model)
    X = [[["the"], ["cat"]], [["cat"]]]
    assert again.predict(X) == model.predict(X)


def test_models_without_patterns_take_observations():
    model = wapiti.read(
        b"#mdl#2#3\n#rdr#0/0/0\n#qrk#2\n1:N,\n1:D,\n#qrk#3\n4:u:aa,\n4:*:bb,\n1:b,\n0=0x1p+0\n2=0x1p+1\n9=0x1p+2\n"
    )
    assert model.vocabulary.kind == "observations"
    X = [[["u:aa", "*:bb", "b", "u:unknown"], ["*:bb", "b"]]]
    data = model.encode(X)
    best, scores = model.inference.decode(data)
    assert [model.class_list[j] for j in best] == ["N", "D"] or scores[0] >= 7
    assert_allclose(scores, max(1 + 2 + 4 + 0, 1 + 2 + 2))
    assert model.tagger.tag(X[0]) == model.predict(X)[0]
    with pytest.raises(CrfkitError, match="neither u"):
        model.predict([[["x:aa"]]])


def test_bytes_that_are_no_characters_are_kept():
    contents = parse_wapiti(
        '#mdl#2#1\n#rdr#1/0/0\n18:u:%m[0,0,".?.?.?$"],\n#qrk#2\n1:N,\n1:D,\n#qrk#1\n'.replace("18:", "19:").encode()
        + b"5:u:\xa9es,\n1=0x1p+0\n"
    )
    model = wapiti.from_wapiti(contents)
    assert model.predict([[["cafées"]]]) == [["D"]]
    assert format_wapiti(wapiti.to_wapiti(model)) == format_wapiti(contents)
    assert_array_equal(transfer(model, model.vocabulary, model.class_list, model.field), model.w)


def test_other_encodings():
    data = MODEL.replace(b"5:u:cat", b"5:u:\xe9t\xe9").replace(b"5:*:cat", b"5:*:\xc9t\xe9")
    model = wapiti.read(data, encoding="latin-1")
    assert ("u:été", "N") in weights_of(model)
    with pytest.raises(ParameterError, match="unknown encoding"):
        wapiti.read(data, encoding="latin-99")


# --- writing


def test_what_was_read_is_written_again():
    contents = parse_wapiti(MODEL)
    assert weights_of(wapiti.from_wapiti(parse_wapiti(format_wapiti(contents)))) == weights_of(wapiti.read(MODEL))


def test_a_trained_model_survives(tmp_path):
    X = [[["The"], ["cat"], ["sat"]], [["A"], ["dog"]]]
    y = [["D", "N", "V"], ["D", "N"]]
    crf = ChainCRF(template='u:%x[0,0]\n*:%t[0,0,"^\\u"]\nb:%x[-1,0]\nb\nb:constant').fit(X, y)
    path = tmp_path / "model"
    wapiti.write(crf.model_, path)
    again = wapiti.read(path)
    kept = {name: value for name, value in weights_of(crf.model_).items() if value != 0}
    assert weights_of(again) == kept
    for found, expected in zip(again.predict_marginals(X), crf.model_.predict_marginals(X), strict=True):
        order = [again.class_list.index(label) for label in crf.model_.class_list]
        assert_allclose(found[:, order], expected, rtol=1e-12)


def test_what_does_not_fit_is_refused(tmp_path):
    X, y = [[["a"], ["b"]]], [["B-X", "I-X"]]
    refused = {
        "a CRF..+ template": ChainCRF(template="U%x[0,0]\nB").fit(X, y),
        "kind 'items'": ChainCRF().fit(X, y),
        "order 2": ChainCRF(template="u%x[0,0]\nb", order=2).fit(X, y),
        "constraints": ChainCRF(template="u%x[0,0]\nb", constraints="iob2").fit(X, y),
        "has a blank": ChainCRF(template="u%x[0,0]\nb").fit(X, [["one label", "two"]]),
    }
    for reason, crf in refused.items():
        with pytest.raises(ModelFileError, match=reason):
            wapiti.write(crf.model_, tmp_path / "model")
    assert not (tmp_path / "model").exists()


# --- files that are damaged

REFUSED = {
    "not a Wapiti model": MODEL[1:],
    "type maxent": MODEL.replace(b"#mdl#2#", b"#mdl#0#"),
    "type memm": MODEL.replace(b"#mdl#2#", b"#mdl#1#"),
    "type unknown": MODEL.replace(b"#mdl#2#", b"#mdl#3#"),
    "pure maxent mode": MODEL.replace(b"3/0/0", b"3/0/1"),
    "do not fit": MODEL.replace(b"#qrk#5", b"#qrk#999999999999"),
    "10 weights are announced": MODEL[: MODEL.rindex(b"19=")],
    "not a whole line": MODEL[:-1],
    "11 weights are announced": MODEL.replace(b"#mdl#2#10", b"#mdl#2#11"),
    "9 weights are announced": MODEL.replace(b"#mdl#2#10", b"#mdl#2#9"),
    "not a weight": MODEL.replace(b"19=-0x1p+0", b"19=-0x1p"),
    "'19=nan' is not a finite": MODEL.replace(b"19=-0x1p+0", b"19=nan"),
    "not a finite number": MODEL.replace(b"19=-0x1p+0", b"19=0x1p+9999"),
    "not a finite": MODEL.replace(b"19=-0x1p+0", b"19=1e400".replace(b"400", b"999")),
    "there are only 20": MODEL.replace(b"19=", b"20="),
    "a weight of the Wapiti model occurs twice": MODEL.replace(b"19=", b"14="),
    "a label of the Wapiti model occurs twice": MODEL.replace(b"1:D,", b"1:N,"),
    "an? observation of the Wapiti model occurs twice": MODEL.replace(b"5:u:cat", b"5:u:the"),
    "starts with neither": MODEL.replace(b"5:u:cat", b"5:x:cat"),
    "a length": MODEL.replace(b"5:u:cat", b"x:u:cat"),
    "end with a comma": MODEL.replace(b"5:u:cat", b"6:u:cat"),
    "comma": MODEL.replace(b"5:u:cat", b"99999999:u:cat"),
    "line end": MODEL.replace(b"5:u:cat,\n", b"5:u:cat, "),
    "should begin": MODEL.replace(b"#qrk#5", b"#qrx#5"),
    "unknown command": MODEL.replace(b"u:%x[0", b"u:%y[0"),
    "comment": MODEL.replace(b"9:u:%x[0,0],", b"9:u:%x[0,#],"),
    "without labels": b"#mdl#2#0\n#rdr#0/0/0\n#qrk#0\n#qrk#1\n1:u,\n",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_damaged_files_are_refused(reason, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(REFUSED[reason])
    with pytest.raises(ModelFileError, match=reason) as caught:
        wapiti.read(path)
    assert str(path) in str(caught.value)
    with pytest.raises(ModelFileError, match=reason):
        wapiti.read(REFUSED[reason])


def test_the_record_names_the_tool():
    assert wapiti.read(MODEL).training["origin"] == "Wapiti"


def test_missing_files():
    with pytest.raises(ModelFileError, match="cannot read"):
        wapiti.read("/nowhere/at/all")


def test_expressions_of_other_encodings_are_refused():
    data = MODEL.replace(b"9:u:%x[0,0]", b'13:u:%m[0,0,"."]'.replace(b"13", b"13")).replace(
        b"5:u:cat", b"5:u:\xe9t\xe9"
    )
    with pytest.raises(ModelFileError, match="match bytes of latin-1"):
        wapiti.read(data, encoding="latin-1")


def test_flips_and_cuts():
    """Whatever is changed, there is a model or an error with a sentence, soon and without much memory."""
    rng = random.Random(7)
    tracemalloc.start()
    for _ in range(600):
        data = bytearray(MODEL)
        for _ in range(rng.randint(1, 3)):
            what = rng.random()
            at = rng.randrange(len(data))
            if what < 0.6:
                data[at] ^= 1 << rng.randrange(8)
            elif what < 0.8:
                del data[at:]
                break
            else:
                data[at:at] = rng.choice([b"9", b"0", b"\n", b":", b"#", b"-", b"x"])
            if not data:
                break
        try:
            model = wapiti.read(bytes(data))
        except ModelFileError:
            continue
        assert np.isfinite(model.w).all()
        if model.vocabulary.template is not None and model.vocabulary.template.n_columns <= 1:
            model.predict([[["the"], ["cat"]]])
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


def test_every_truncation_is_refused():
    for size in range(len(MODEL)):
        with pytest.raises(ModelFileError):
            wapiti.read(MODEL[:size])


@pytest.mark.parametrize("n", [46341, 20_000])
def test_too_many_labels(n):
    labels = b"".join(b"%d:%x,\n" % (len(b"%x" % k), k) for k in range(n))
    with pytest.raises(LimitError, match=f"{n:,} labels and order 1 would take"):
        wapiti.read(b"#mdl#2#0\n#rdr#1/0/0\n1:b,\n#qrk#%d\n" % n + labels + b"#qrk#1\n1:b,\n")


def test_weights_are_written_with_all_their_digits():
    values = np.array(
        [0.75, -0.75, 1.0, 5e-324, -2.3e-310, 1.7976931348623157e308, 0.1, -1 / 3, *np.exp(range(-300, 300, 7))]
    )
    index = np.arange(len(values)) * 10**15
    text = _core.format_wapiti_weights(index, values)
    assert text.startswith(b"0=0x1.8p-1\n1000000000000000=-0x1.8p-1\n2000000000000000=0x1p+0\n")
    assert [float.fromhex(line.split(b"=")[1].decode()) for line in text.splitlines()] == values.tolist()
    places, again = _core.parse_wapiti_weights(np.frombuffer(text, np.uint8))
    assert_array_equal(places, index)
    assert_array_equal(again, values)


def test_weights_do_not_depend_on_the_locale():
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"):
        with suppress(locale.Error):
            locale.setlocale(locale.LC_NUMERIC, name)
            break
    else:
        pytest.skip("no locale with a decimal comma is installed: sudo locale-gen de_DE.UTF-8")
    try:
        assert _core.format_wapiti_weights(np.array([3]), np.array([0.75])) == b"3=0x1.8p-1\n"
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


def test_an_observation_that_is_refused_leaves_nothing_behind():
    data = b"#mdl#2#1\n#rdr#0/0/0\n#qrk#1\n1:A,\n#qrk#2\n3:u:x,\n3:b:x,\n1=0x1p+0\n"
    encoder = wapiti.read(data).vocabulary.encoder()
    with pytest.raises(_core.BadInput, match="position 2"):
        encoder.add_items([["u:x"], ["b:x"], ["z"]])
    encoder.add_items([["u:x"], ["b:x"]])
    clean = wapiti.read(data).vocabulary.encoder()
    clean.add_items([["u:x"], ["b:x"]])
    for found, expected in zip(encoder.take(), clean.take(), strict=True):
        assert_array_equal(found, expected)
