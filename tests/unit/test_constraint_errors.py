"""Every scheme as constraints, against a grammar; constraints that do not fit the labels, each with its remedy."""

import itertools
import re
import warnings

import numpy as np
import pytest

from crfkit import ChainCRF, convert_tags
from crfkit.chain.fields.constraints import make_constraints
from crfkit.errors import DataError, ParameterError
from crfkit.schemes import TAG_SCHEMES

# a whole labelling, written with a space after each label
FORMS = {
    "iob2": r"(O |B-A (I-A )*|B-B (I-B )*)*",
    "ioe2": r"(O |(I-A )*E-A |(I-B )*E-B )*",
    "iobes": r"(O |S-A |S-B |B-A (I-A )*E-A |B-B (I-B )*E-B )*",
    "bilou": r"(O |U-A |U-B |B-A (I-A )*L-A |B-B (I-B )*L-B )*",
}
# phrases of one type stand beside each other only with a B or an E between them
FORMS["iob1"] = r"((?<!I-A )(?<!B-A )(I-A )+(B-A (I-A )*)*|(?<!I-B )(?<!B-B )(I-B )+(B-B (I-B )*)*|O )*"
FORMS["ioe1"] = r"(((I-A )*E-A )*(I-A )+(?!I-A |E-A )|((I-B )*E-B )*(I-B )+(?!I-B |E-B )|O )*"


def one_thread(**options):
    return ChainCRF(**{"n_threads": 1, "solver": "lbfgs", "max_iterations": 30, "tolerance": 1e-2} | options)


def allows(masks, classes, labels) -> bool:
    ids = [classes.index(label) for label in labels]
    end = masks.allowed_end is None or masks.allowed_end[ids[-1]]
    return bool(masks.allowed_start[ids[0]] and end and all(masks.allowed[i, j] for i, j in itertools.pairwise(ids)))


@pytest.mark.parametrize("scheme", sorted(TAG_SCHEMES))
def test_schemes_allow_whole_phrases_and_nothing_else(scheme):
    classes = ["O", *(f"{tag}-{kind}" for kind in "AB" for tag in TAG_SCHEMES[scheme].tags)]
    masks, form = make_constraints(scheme, classes), re.compile(FORMS[scheme])
    for length in (1, 2, 3, 4):
        for labels in itertools.product(classes, repeat=length) if length < 4 else some(classes):
            expected = form.fullmatch("".join(f"{label} " for label in labels)) is not None
            assert allows(masks, classes, labels) is expected, labels


def some(classes):
    return [tuple(row) for row in np.random.default_rng(0).choice(classes, (500, 7))]


Y = [["B-A", "I-A", "B-A", "O"], ["O", "B-B", "I-B"], ["B-A", "O", "B-A", "I-A", "I-A"]]
X = [[[f"w{(n + t) % 4}"] for t in range(len(row))] for n, row in enumerate(Y)]


@pytest.mark.parametrize("scheme", sorted(TAG_SCHEMES))
def test_models_keep_to_every_scheme(scheme):
    crf = one_thread(constraints=scheme, all_possible_transitions=True).fit(X, convert_tags(Y, scheme))
    new = [[[f"w{k % 3}"] for k in range(n)] for n in (3, 5, 9)]
    convert_tags(crf.predict(new), "iob2", scheme)  # which checks that the labels follow it


# --- constraints that do not fit


@pytest.mark.parametrize("scheme", sorted(TAG_SCHEMES))
def test_a_scheme_that_constrains_nothing(scheme):
    with pytest.raises(
        ParameterError, match=rf"'{scheme}' would constrain nothing: no label .*\(DET, NOUN\).*'observed'"
    ):
        one_thread(constraints=scheme).fit([[["x"], ["y"]]], [["DET", "NOUN"]])
    with pytest.raises(ParameterError, match="phrases are written with '-', as in 'B-NP', not 'B_NP'"):
        one_thread(constraints=scheme).fit([[["x"], ["y"]]], [["B_NP", "I_NP"]])


def test_labels_of_another_scheme():
    with pytest.raises(
        ParameterError, match=r"do not know the label 'E-A'.*look like IOBES: use 'iobes', or rewrite the labels"
    ):
        one_thread(constraints="iob2").fit(X, convert_tags(Y, "iobes"))
    with pytest.raises(ParameterError, match=r"look like BILOU: use 'bilou', or rewrite"):
        one_thread(constraints="iobes").fit(X, convert_tags(Y, "bilou"))
    with pytest.raises(ParameterError, match=r"'B-A'.*Use 'iob2' or 'iobes' or 'bilou' or 'iob1', or rewrite"):
        make_constraints("ioe1", ["B-A", "I-A"])


@pytest.mark.parametrize(
    ("constraints", "y", "message"),
    [
        (
            "iob2",
            [["O", "O", "O"], ["O", "I-ORG", "B-ORG"]],
            r"sequence 1 has I-ORG after O \(position 1\), which the constraints forbid: I-ORG cannot begin a phrase "
            r"in iob2; these labels look like IOB1: use the constraints 'iob1', or rewrite .*convert-tags --to iob2",
        ),
        (
            "iob2",
            [["I-A", "O", "O"], ["B-A", "O", "O"]],
            r"sequence 0 has I-A at its start .*1 place breaks iob2: correct",
        ),
        ("iobes", [["S-A", "O", "O"], ["O", "O", "B-A"]], r"sequence 1 has B-A at its end \(position 2\).*cannot end"),
        ("iob1", [["B-A", "I-A", "O"]], r"B-A begins a phrase that does not follow another .*look like IOB2"),
        ([("a", "b")], [["b", "a", "b"]], r"sequence 0 has b after a \(position 2\), which the constraints forbid$"),
    ],
    ids=str,
)
def test_training_labels_that_are_forbidden(constraints, y, message):
    with pytest.raises(DataError, match=message):
        one_thread(constraints=constraints).fit([[["x"], ["y"], ["z"]]] * len(y), y)


def test_errors_name_the_file_and_the_line(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("a B-A\nb I-A\n\n\nc O\nd O\nIBM I-ORG\n\n")
    with pytest.raises(DataError, match=rf"^{path}:7: sequence 1 has I-ORG after O") as told:
        ChainCRF("U%x[0,0]\nB", constraints="iob2").fit_file(path)
    assert (told.value.line, str(told.value.path)) == (7, str(path))
    path.write_text("a S-A\nb B-A\nc O\n")  # what is wrong is that B-A is not followed
    with pytest.raises(DataError, match=rf"^{path}:2: .*B-A cannot end a phrase in iobes"):
        ChainCRF("U%x[0,0]\nB", constraints="iobes").fit_file(path)
    with pytest.raises(DataError, match=r"train\.txt: sequence 0"), open(path, "rb") as stream:
        ChainCRF("U%x[0,0]\nB", constraints="iobes").fit_file(stream)


def test_a_misspelt_pair_names_the_label_that_was_meant():
    with pytest.raises(ParameterError, match=r"'B-AA' .*did you mean 'B-A'"):
        one_thread(constraints=[("O", "B-AA")]).fit(X, Y)


# --- classes of labels


def test_misspelt_label_classes():
    with pytest.raises(
        ParameterError, match=r"label_classes names 'B_A', which is not a label .*; did you mean 'B-A'\?"
    ):
        one_thread(label_classes={"B_A": "A", "I-A": "A"}).fit(X, Y)
    with pytest.raises(ParameterError, match=r"label_classes names 'x', .*the labels are \['B-A'"):
        one_thread(label_classes={"x": "A", "y": "B"}).fit(X, Y)


def test_label_classes_of_labels_that_a_fold_lacks():
    """A rare label may be missing from a part of the data: that is no error."""
    classes = {label: label[2:] or "O" for row in Y for label in row} | {"B-MISC": "MISC"}
    with pytest.warns(UserWarning, match="'B-MISC', which is not a label of the training data and has no effect"):
        one_thread(label_classes=classes).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one_thread(label_classes=classes, solver="sgd").partial_fit(X, Y)  # it may come later
