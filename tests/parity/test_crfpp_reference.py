"""What CRF++ 0.58 itself printed: weight counts, objectives, its model's objective, tags and probabilities in ours."""

import gzip
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need_shared

from crfkit import L2, ChainCRF, Template
from crfkit.chain.encoding.sequences import learn_file
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.losses import ChainLikelihood

need_shared("test_crfpp_enumerated.py")


def first_sentences(source, n: int, target):
    """The first n blank-line separated blocks of a column file."""
    blocks = source.read_text(encoding="utf-8").split("\n\n")[:n]
    target.write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    return target


def read_text_model(path):
    """(labels, {feature: first index}, weights) of a text model."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        _, labels, _, features, weights = stream.read().split("\n\n")[:5]
    index = {name: int(start) for start, name in (line.split(" ", 1) for line in features.split("\n"))}
    return labels.split("\n"), index, np.array([float(x) for x in weights.split()])


def read_tagged(path):
    """Per sentence of `crf_test -v1`: (probability of the labelling, [label], [its marginal])."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        blocks = [block.split("\n") for block in stream.read().strip().split("\n\n")]
    for head, *lines in blocks:
        last = [line.split("\t")[-1].rsplit("/", 1) for line in lines]
        yield float(head.removeprefix("# ")), [label for label, _ in last], [float(p) for _, p in last]


def final_objective(path) -> float:
    return float(re.findall(r"obj=([\d.]+)", path.read_text())[-1])


@pytest.fixture(scope="module", params=["chunking", "cond"])
def reference(request, shared_data, shared_reference, tmp_path_factory):
    """The training set in our encoding and CRF++'s weights in our order."""
    folder, data_folder = shared_reference / "crfpp", shared_data / "conll2000"
    temporary = tmp_path_factory.mktemp(request.param)
    train = first_sentences(data_folder / "train.txt", 500, temporary / "train.txt")
    test = first_sentences(data_folder / "test.txt", 200, temporary / "test.txt")
    template = Template.read(folder / f"{request.param}.template")
    corpus = learn_file(train, template, 3)
    vocabulary, L = corpus.vocabulary, len(corpus.classes)
    field = ChainField.from_data(
        corpus.data,
        L,
        len(vocabulary.attributes),
        len(vocabulary.pair_attributes),
        all_states=True,
        all_transitions=True,
        transitions=template.transitions,
    )
    labels, index, theirs = read_text_model(folder / f"{request.param}.model.txt.gz")
    # ours: all unigram attributes, the bare B, all other bigram attributes; theirs: wherever the index says
    starts = [(index[name], L) for name in vocabulary.attributes.to_list()]
    starts += [(index["B"], L * L)] + [(index[name], L * L) for name in vocabulary.pair_attributes.to_list()]
    places = np.concatenate([np.arange(start, start + size) for start, size in starts])
    return SimpleNamespace(
        name=request.param,
        folder=folder,
        train=train,
        test=test,
        template=template,
        corpus=corpus,
        field=field,
        labels=labels,
        index=index,
        weights=theirs,
        places=places,
        w=theirs[places],
        objective=final_objective(folder / f"{request.param}.log"),
    )


def test_weight_counts_and_feature_names(reference):
    expected = {"chunking": 167390, "cond": 181469}[reference.name]
    assert reference.field.size == len(reference.weights) == expected
    assert sorted(reference.places.tolist()) == list(range(expected))
    vocabulary = reference.corpus.vocabulary
    names = {"B", *vocabulary.attributes.to_list(), *vocabulary.pair_attributes.to_list()}
    assert names == set(reference.index)
    assert sorted(reference.labels) == reference.corpus.classes.tolist()


def test_its_weights_have_its_objective(reference):
    assert reference.labels == reference.corpus.classes.tolist()
    loss = ChainLikelihood(reference.corpus.data, reference.field, 1).at(reference.w)
    assert_allclose(loss.value + L2.from_crfpp(C=1.0).value(reference.w), reference.objective, rtol=1e-4)


def test_training_reaches_its_objective(reference):
    penalty = L2.from_crfpp(C=1.0)
    crf = ChainCRF(
        template=reference.template,
        penalty=penalty,
        min_frequency=3,
        all_possible_states=True,
        all_possible_transitions=True,
        n_threads=1,
    ).fit_file(reference.train)
    assert len(crf.coef_) == reference.field.size
    assert crf.result_.value <= reference.objective * (1 + 1e-5)
    assert_allclose(crf.result_.value, reference.objective, rtol=1e-3)
    # J is 1-strongly convex, so from CRF++'s weights no more than ‖gradient‖²/2 can be gained
    gradient = ChainLikelihood(reference.corpus.data, reference.field, 1).at(reference.w).grad
    penalty.add_gradient(reference.w, gradient)
    assert crf.result_.value >= reference.objective - gradient @ gradient / 2


def test_its_model_tags_as_it_does(reference):
    X = [
        [tuple(line.split()[:2]) for line in block.split("\n")]
        for block in reference.test.read_text(encoding="utf-8").strip().split("\n\n")
    ]
    data = reference.corpus.vocabulary.encode(X)
    inference = ChainInference(reference.field, reference.w, 1)
    labels, scores = inference.decode(data)
    node, log_z = inference.node_marginals(data), inference.log_partition(data)
    tagged = list(read_tagged(reference.folder / f"{reference.name}.v1.gz"))
    assert len(tagged) == len(X) == 200
    names = reference.corpus.classes
    assert names[labels].tolist() == list(itertools.chain.from_iterable(row for _, row, _ in tagged))
    marginals = [p for _, _, row in tagged for p in row]
    assert_allclose(node[np.arange(len(labels)), labels], marginals, atol=1e-4)
    assert_allclose(np.exp(scores - log_z), [p for p, _, _ in tagged], atol=1e-4)
