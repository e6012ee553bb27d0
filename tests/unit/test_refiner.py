"""Refiner: the field is the one that is said, the forms of inputs are one, and held-out maps become better."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import optional
from sklearn.base import clone

from crfkit import L2, GraphData, GridCRF, ImageSegmenter, Refiner
from crfkit.errors import CrfkitError, DataError, ModelFileError, ParameterError
from crfkit.files.images import read_image
from crfkit.graph.encoding.grid_edges import contrast_features
from crfkit.graph.fields.calibrated import CalibratedField
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.images.probability_maps import read_probabilities
from crfkit.images.regions import Regions


def scene(seed, shape=(14, 18), classes=2, noise=0.2):
    """(probabilities [H, W, K], image, mask): a map with independent errors of an image with clear edges."""
    rng = np.random.default_rng(seed)
    y, x = np.indices(shape)
    cy, cx = rng.uniform(0.35, 0.65, 2) * shape
    mask = ((y - cy) ** 2 + (x - cx) ** 2 < (0.3 * min(shape)) ** 2).astype(int)
    if classes > 2:
        mask[:, : shape[1] // 4] = 2
    image = np.clip(0.2 + 0.3 * mask + rng.normal(0, 0.03, shape), 0, 1)
    scores = 1.5 * np.eye(classes)[mask] + rng.normal(0, noise * 7, (*shape, classes))
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True), image, mask


def scenes(seeds, **options):
    return [list(column) for column in zip(*(scene(seed, **options) for seed in seeds), strict=True)]


@pytest.fixture(scope="module")
def fitted():
    return Refiner(block_size=2).fit(*scenes(range(4)))


# --- the field


def calibrated(seed=0, K=3):
    rng = np.random.default_rng(seed)
    graph = Graph.grid((2, 3))
    log_p = np.log(rng.dirichlet(np.ones(K), size=6))
    data = GraphData.make(graph, log_p, rng.normal(size=(graph.n_edges, 2)), labels=rng.integers(K, size=6))
    return data, CalibratedField(np.array([K]), 1 + K, 3, edge_form="symmetric"), rng


def test_the_adjoint_is_the_transposed_map():
    data, field, rng = calibrated()
    w = rng.normal(size=field.size)
    nodes, edges = rng.normal(size=(6, 3)), rng.normal(size=(data.graph.n_edges, len(field.edge_basis)))
    made = field.potentials(data, w)
    expected = np.vdot(made.unary, nodes) + np.vdot(made.coefficients, edges)
    assert_allclose(w @ field.adjoint(data, nodes, edges), expected, rtol=1e-12)
    assert_allclose(made.unary, w[0] * data.node_features[:, 1:] + w[1:4], rtol=1e-12)


def test_the_gradient_is_that_of_differences():
    data, field, rng = calibrated()
    loss = GraphLikelihood(data, field, make_engine("junction"))
    w = rng.normal(size=field.size)
    step = 1e-6
    found = [(loss.at(w + step * e).value - loss.at(w - step * e).value) / (2 * step) for e in np.eye(field.size)]
    assert_allclose(loss.at(w).grad, found, atol=1e-7)


@pytest.mark.parametrize("K", [2, 3])
def test_a_node_per_pixel_gives_the_marginals_of_the_field(K):
    refiner = Refiner(neighbours=8).fit(*scenes(range(2), classes=K, shape=(4, 5)))
    p, image, _ = scene(9, classes=K, shape=(2, 4))
    p, image = read_probabilities(p, (2, 4), "p"), read_image(image)  # none below the floor, single precision
    (found,) = refiner.predict_proba([p], [image])
    regions = Regions.blocks((2, 4), 1, 8)
    sample = refiner.model_.nodes.sample(regions, p, image)
    strength = np.column_stack([np.ones(regions.graph.n_edges), sample.edge_features]) @ np.array(
        [float(w[0]) for w in refiner.edge_weights_.values()]
    )
    field = Potentials.from_tables(
        regions.graph,
        (np.log(p) / refiner.temperature_ + refiner.bias_).reshape(8, K),
        strength[:, None, None] * np.eye(K),
    )
    assert_allclose(found.reshape(8, K), Enumerate().run(field).nodes, atol=1e-9)


def test_sharpened_probabilities_have_a_higher_temperature_and_the_same_result():
    p, images, masks = scenes(range(3), shape=(6, 8), noise=0.15)
    masks = [m ^ (np.random.default_rng(k).random(m.shape) < 0.2) for k, m in enumerate(masks)]  # not separable
    sharp = [q**2 / (q**2).sum(axis=-1, keepdims=True) for q in p]
    assert min(q.min() for q in sharp) > 1e-6
    options = {"penalty": L2(1e-4), "tolerance": 1e-7}
    one, two = Refiner(**options).fit(p, images, masks), Refiner(**options).fit(sharp, images, masks)
    assert_allclose(two.temperature_, 2 * one.temperature_, rtol=1e-3)
    for a, b in zip(one.predict_proba(p, images), two.predict_proba(sharp, images), strict=True):
        assert_allclose(a, b, atol=2e-3)


# --- what it is for


@pytest.mark.parametrize(
    "options",
    [
        {"inference": "trw"},
        {"neighbours": 8, "block_size": 2},
        {"superpixels": 60},
        {"edge_form": "symmetric", "block_size": 2},
    ],
)
@pytest.mark.parametrize("K", [2, 3])
def test_held_out_maps_become_better(options, K):
    if "superpixels" in options:
        optional("skimage")
    refiner = Refiner(**options, tolerance=1e-3).fit(*scenes(range(4), classes=K, shape=(12, 14)))
    p, images, masks = scenes(range(10, 14), classes=K, shape=(12, 14))
    before = np.mean([np.mean(q.argmax(axis=-1) == m) for q, m in zip(p, masks, strict=True)])
    assert refiner.score(p, images, masks) > before + 0.05
    assert all(q.shape == a.shape for q, a in zip(refiner.predict_proba(p, images), p, strict=True))


def test_contrast_tells_where_not_to_smooth():
    train, test = scenes(range(4)), scenes(range(10, 16))
    by_contrast, everywhere = (Refiner(edge_features=e, block_size=2).fit(*train) for e in ("contrast", None))
    assert by_contrast.score(*test) > everywhere.score(*test)


def test_details_within_blocks_are_kept():
    """Blocks of 6 × 6 pixels, and a sharp map: the border of the disc stays where it was."""
    p, images, masks = scenes(range(3), noise=0.02, shape=(30, 36))
    refiner = Refiner(block_size=6).fit(p, images, masks)
    assert refiner.score(p, images, masks) > 0.99


# --- inputs


def test_forms_of_probabilities_are_one(fitted):
    p, image, _ = scene(7)
    expected = fitted.predict_proba([p], [image])[0]
    for form in (np.moveaxis(p, -1, 0), p[..., 1], p.astype(np.float32), p.tolist()):
        assert_allclose(fitted.predict_proba([form], [image])[0], expected, atol=1e-5)
    square = np.full((2, 2, 2), 0.5)
    with pytest.raises(DataError, match=r"first or its last axis; pass layout="):
        fitted.predict([square], [np.zeros((2, 2))])
    for layout in ("first", "last"):
        chosen = clone(fitted).set_params(layout=layout)
        chosen.model_, chosen.classes_ = fitted.model_, fitted.classes_
        assert chosen.predict([square], [np.zeros((2, 2))])[0].shape == (2, 2)
    with pytest.raises(DataError, match=r"has shape \(2, 14, 18\)"):
        chosen.predict([np.moveaxis(p, -1, 0)], [image])


def test_files_are_read(fitted, tmp_path):
    pillow = optional("PIL.Image")
    p, image, mask = scene(7)
    grey = np.rint(255 * p[..., 1]).astype(np.uint8)
    np.save(tmp_path / "a.npy", p)
    np.savez(tmp_path / "a.npz", p)
    pillow.fromarray(grey).save(tmp_path / "a.png")
    pillow.fromarray((255 * mask).astype(np.uint8)).save(tmp_path / "mask.png")
    expected = fitted.predict_proba([p], [image])[0]
    for name, tolerance in (("a.npy", 1e-12), ("a.npz", 1e-12), ("a.png", 0.1)):
        assert_allclose(fitted.predict_proba([tmp_path / name], [image])[0], expected, atol=tolerance)
    refiner = Refiner(block_size=2).fit([p], [image], [tmp_path / "mask.png"])
    assert refiner.classes_.tolist() == [0, 255]
    assert set(np.unique(refiner.predict([p], [image])[0])) <= {0, 255}


def test_unknown_pixels_are_not_learned_from():
    p, images, masks = scenes(range(2))
    hole = np.zeros(masks[0].shape, dtype=bool)
    hole[4:8, 4:10] = True
    forms = {
        "masked": [np.ma.array(m, mask=hole) for m in masks],
        "minus": [np.where(hole, -1, m) for m in masks],
        "void": [np.where(hole, 255, m) for m in masks],
    }
    found = {k: Refiner(ignore=255, block_size=2).fit(p, images, m).model_.field.w for k, m in forms.items()}
    assert_array_equal(found["masked"], found["minus"])
    assert_array_equal(found["masked"], found["void"])
    assert not np.allclose(found["masked"], Refiner(block_size=2).fit(p, images, masks).model_.field.w)


def test_edge_functions_may_use_the_direction():
    """Rows are labelled independently of each other: only horizontal neighbours have a coupling."""
    rng = np.random.default_rng(0)
    masks = [np.repeat(rng.integers(0, 2, (9, 1)), 14, axis=1) for _ in range(3)]
    p = [np.clip(0.5 + 0.15 * (2 * m - 1) + rng.normal(0, 0.2, m.shape), 0.02, 0.98) for m in masks]
    images = [np.full(m.shape, 0.5) for m in masks]

    def horizontal(first, second, offsets):
        return (offsets[:, 0] == 0).astype(float)

    refiner = Refiner(edge_features=horizontal).fit(p, images, masks)
    weights = refiner.edge_weights_
    assert weights["e0"][0] > 1
    assert abs(weights["intercept"][0]) < 0.5
    assert refiner.score(p, images, masks) > Refiner(edge_features=None).fit(p, images, masks).score(p, images, masks)


def test_regions_cover_and_average():
    regions = Regions.blocks((5, 7), 3, 4)
    values = np.random.default_rng(0).normal(size=(5, 7, 2))
    assert regions.graph.n_nodes == 6
    assert_allclose(regions.mean(values)[5], values[3:, 6:].reshape(-1, 2).mean(axis=0))
    assert_allclose(regions.spread(np.ones((6, 1))), 1.0)
    states = np.full((5, 7), -1)
    states[0, 0], states[0, 1], states[1, 0] = 1, 1, 0
    assert regions.majority(states, 2).tolist() == [1, -1, -1, -1, -1, -1]


def test_superpixels_follow_the_image():
    optional("skimage")
    _, image, mask = scene(1, shape=(40, 40))
    regions = Regions.superpixels(image, 80)
    sizes = np.bincount(regions.ids.ravel())
    assert regions.graph.n_nodes == len(sizes) > 40
    assert (sizes > 0).all()
    assert regions.graph.components.max() == 0
    of_region = regions.mean(mask[..., None])[:, 0]
    assert np.minimum(of_region, 1 - of_region).mean() < 0.05
    assert contrast_features(np.zeros((2, 1)), np.ones((2, 1)), np.ones((2, 2))).shape == (2, 3)


# --- files, options, errors


def test_a_model_file_holds_everything(fitted, tmp_path):
    p, images, masks = scenes(range(20, 22))
    fitted.save(tmp_path / "r.crf")
    opened = Refiner.load(tmp_path / "r.crf")
    assert opened.get_params()["block_size"] == 2
    assert_array_equal(opened.predict_proba(p, images)[0], fitted.predict_proba(p, images)[0])
    assert opened.edge_weights_.keys() == fitted.edge_weights_.keys()
    function = Refiner(edge_features=lambda a, b: abs(a - b)[:, 0], block_size=2).fit(p, images, masks)
    function.save(tmp_path / "f.crf")
    with pytest.raises(ParameterError, match=r"Refiner\.load"):
        Refiner.load(tmp_path / "f.crf").predict(p, images)
    again = Refiner.load(tmp_path / "f.crf", edge_features=lambda a, b: abs(a - b)[:, 0])
    assert_array_equal(again.predict(p, images)[0], function.predict(p, images)[0])
    with pytest.raises(ParameterError, match="records its edge features"):
        Refiner.load(tmp_path / "r.crf", edge_features=abs)
    with pytest.raises(ModelFileError, match="kind 'refiner'"):
        GridCRF.load(tmp_path / "r.crf")


def test_other_decoders(fitted):
    p, images, masks = scenes(range(30, 32))
    refiner = clone(fitted).set_params(decode="auto").fit(*scenes(range(2)))
    assert refiner.score(p, images, masks) > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, x, m: (p[:1], x, m), "1 probability map for 2 images"),
        (lambda p, x, m: (p, x, m[:1]), "1 mask for 2 images"),
        (lambda p, x, m: ([q[:3] for q in p], x, m), r"has shape \(3, 18, 2\), its image 14×18"),
        (
            lambda p, x, m: ([3 * q for q in p], x, m),
            r"of pixel \(\d+, \d+\) add up to 3; .*apply a softmax",
        ),
        (lambda p, x, m: ([np.log(q) for q in p], x, m), "expected probabilities"),
        (lambda p, x, m: ([q * np.nan for q in p], x, m), "is nan at"),
        (lambda p, x, m: (p, x, [k[:4] for k in m]), "mask 0 is 4×18, its image 14×18"),
        (lambda p, x, m: (p, x, [k + 3 * (k == 1) + 7 * (x[0] > 0.4) for k in m]), "different values .*classes="),
        (lambda p, x, m: (p, x, [k * 0 for k in m]), "only the class"),
        (lambda p, x, m: (p, x, [k * 0 - 1 for k in m]), "no known pixel"),
        (lambda p, x, m: ([p[0], np.full((14, 18, 3), 1 / 3)], x, m), "have 3 classes; the first have 2"),
    ],
)
def test_wrong_inputs_are_named(change, message):
    with pytest.raises(DataError, match=message):
        Refiner(block_size=2).fit(*change(*scenes(range(2))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"neighbours": 6}, "neighbours must be 4 or 8"),
        ({"block_size": 0}, "block_size must be an integer >= 1"),
        ({"block_size": 2, "superpixels": 9}, "exclude each other"),
        ({"edge_features": "colour"}, "'contrast', None or a function"),
        ({"layout": "middle"}, "layout must be one of"),
        ({"decode": "best"}, "unknown decoder"),
        ({"classes": [1, 1]}, "each once"),
        ({"edge_features": lambda a, b: np.zeros((7, 7))}, r"returned shape \(7, 7\)"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        Refiner(**options).fit(*scenes(range(2)))


def test_superpixels_without_scikit_image(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    with pytest.raises(CrfkitError, match=r"pip install 'crfkit\[superpixels\]'"):
        Refiner(superpixels=9).fit(*scenes(range(2)))


def test_logits_are_named_once_with_the_number_of_maps():
    rng = np.random.default_rng(0)
    images = [rng.uniform(size=(6, 8)) for _ in range(12)]
    logits = [rng.normal(0, 3, (6, 8, 2)) for _ in images]
    masks = [(image > 0.5).astype(int) for image in images]
    with pytest.raises(DataError) as caught:
        Refiner().fit(logits, images, masks)
    said = str(caught.value)
    assert "\n" not in said
    assert said.count("apply a softmax") == 1
    assert "the same is true of 11 others: probabilities 1, " in said
    row, column = np.unravel_index(logits[0].min(axis=2).argmin(), (6, 8))
    total = logits[0][row, column].sum()
    assert f"at pixel ({row}, {column}), where the 2 classes add up to {total:.4g}" in said


def test_one_image_is_not_a_list():
    rng = np.random.default_rng(0)
    image, mask = rng.uniform(size=(6, 8, 3)), rng.integers(0, 2, (6, 8))
    p = np.full((6, 8, 2), 0.5)
    for images in (image, image[..., 0]):
        with pytest.raises(DataError, match=r"^images must be a list .* one array of shape .* give a list of it"):
            Refiner().fit([p], images, [mask])
        with pytest.raises(DataError, match=r"^images must be a list .* one array of shape .* give a list of it"):
            ImageSegmenter().fit(images, [mask])
    with pytest.raises(DataError, match=r"^probabilities are one array of shape \(6, 8, 2\) for 1 image; expected"):
        Refiner().fit(p, [image], [mask])


def test_masks_with_the_same_fault_are_one_line():
    images, masks = [np.zeros((6, 8))] * 12, [np.zeros((6, 8, 3), dtype=int) + np.arange(3)] * 12
    with pytest.raises(DataError, match=r"^mask 0 has colours; .*the same is true of 11 others: mask 1, ") as caught:
        ImageSegmenter().fit(images, masks)
    assert "\n" not in str(caught.value)
