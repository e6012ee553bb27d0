"""ImageSegmenter: against GridCRF by hand, sizes, forms of input, choice of strengths, files, wrong input."""

from __future__ import annotations

import json
import time
import warnings

import numpy as np
import pytest
from optional import optional
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from crfkit import L1, L2, Graph, GridCRF, ImageSegmenter
from crfkit.errors import DataError, ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.files.images import MaskRules
from crfkit.images.blocks import block_labels, full_size
from crfkit.images.features import ImageFeatures
from crfkit.images.model.inference import limited_engine
from crfkit.images.model.segmenter import SegmenterModel, learn_scales
from crfkit.images.pairs import Pairs
from crfkit.pool import in_threads

pillow = optional("PIL.Image")

QUICK = {"loss": "pseudo-likelihood", "n_threads": 1}


def scene(H, W, seed, classes=2):
    """Stripes on a disc, and (third class) checks on a square; noise elsewhere."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:H, :W]
    cy, cx = rng.uniform(0.4, 0.6, 2) * (H, W)
    mask = ((y - cy) ** 2 + (x - cx) ** 2 < (0.35 * H) ** 2).astype(int)
    values = np.where(mask, 0.6 + 0.3 * np.sin(x), 0.35)
    if classes == 3:
        square = (y < H / 3) & (x < W / 3)
        mask[square] = 2
        values[square] = 0.95
    return np.clip(values + rng.normal(0, 0.05, (H, W)), 0, 1).astype(np.float32), mask


@pytest.fixture(scope="module")
def scenes():
    pairs = [scene(24, 30, seed) for seed in range(4)]
    return [image for image, _ in pairs], [mask for _, mask in pairs]


@pytest.fixture(scope="module")
def segmenter(scenes):
    return ImageSegmenter(**QUICK, penalty=L2(1.0)).fit(*scenes)


def test_it_is_a_grid_field_on_standardised_features(scenes):
    """Weights, masks and probabilities are those of GridCRF on features and centred differences made by hand."""
    images, masks = scenes
    segmenter = ImageSegmenter(**QUICK, penalty=L2(1.0), upsample="nearest").fit(images, masks)
    features = ImageFeatures()
    values = [features.compute(image) for image in images]
    flat = np.concatenate([v.reshape(-1, 162) for v in values]).astype(float)
    scale = np.where(flat.std(axis=0) > 1e-7, flat.std(axis=0), 1)
    X = [(v - flat.mean(axis=0)) / scale for v in values]
    Y = [block_labels(mask, np.array([0, 1]), features) for mask in masks]
    pairs = [np.abs(np.diff(x, axis=axis)).reshape(-1, 162) for x in X for axis in (0, 1)]
    centre = np.concatenate(pairs).mean(axis=0)
    forms = {"node_form": "ising", "edge_form": "ising", "edge_features": lambda a, b: np.abs(a - b) - centre}
    crf = GridCRF(**forms, decode="marginal", penalty=L2(1.0), standardize=False, **QUICK).fit(X, Y)
    expected = crf.coef_.copy()
    expected[163] -= crf.coef_[164:] @ centre  # the file has weights of |h_i − h_j| itself
    np.testing.assert_allclose(segmenter.model_.field.w, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(segmenter.model_.edge_mean, centre)
    for given, p, found, mask in zip(
        X, segmenter.predict_marginals(images), segmenter.predict(images), masks, strict=True
    ):
        expected = crf.predict_marginals([given])[0]
        np.testing.assert_allclose(p[::2, ::2], expected, atol=2e-3)
        sure = np.abs(expected[..., 1] - 0.5) > 0.01
        np.testing.assert_array_equal(found[::2, ::2][sure], crf.predict([given])[0][sure])
        assert found.shape == mask.shape


def test_potentials_are_those_of_the_field(scenes):
    """Strips, weights that hold the scales: nothing but another order of the same sums."""
    images, masks = scenes
    model = ImageSegmenter(**QUICK, colour=True, penalty=L2(1.0)).fit(images, masks).model_
    for shape in ((1, 5), (7, 1), (9, 14)):
        values = ImageFeatures(colour=True).compute(images[0][: 2 * shape[0], : 2 * shape[1]])
        data = model.field.encoder.encode([(values - model.mean) / model.scale])
        expected, found = model.field.potentials(data), model.potentials(values)
        np.testing.assert_array_equal(found.graph.edges, expected.graph.edges)
        np.testing.assert_allclose(found.unary, expected.unary, atol=1e-3)
        np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-3)


def test_it_learns_what_can_be_seen(scenes, segmenter):
    images, masks = scenes
    assert segmenter.score(images, masks) > 0.93
    new, truth = scene(31, 37, 9)  # another, odd size
    (found,) = segmenter.predict([new])
    assert found.shape == (31, 37)
    assert np.mean(found == truth) > 0.85
    errors = segmenter.errors([*images, new], [*masks, truth])
    assert errors.shape == (5,)
    np.testing.assert_allclose(errors[-1], np.mean(found != truth))
    np.testing.assert_allclose(segmenter.score(images, masks), 1 - errors[:4].mean(), atol=1e-12)
    (p,) = segmenter.predict_marginals([new])
    assert p.shape == (31, 37, 2)
    np.testing.assert_allclose(p.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_array_equal(p.argmax(axis=-1), found)


def test_forms_of_the_same_image_give_the_same(scenes, segmenter, tmp_path):
    image = np.rint(scenes[0][0] * 255).astype(np.uint8)
    expected = segmenter.predict([image])[0]
    pillow.fromarray(image).save(tmp_path / "a.png")
    rgba = np.dstack([image, image, image, np.full_like(image, 9)])
    for given in (image / 255, image.astype(np.uint16) * 257, rgba, tmp_path / "a.png", str(tmp_path / "a.png")):
        found = segmenter.predict([given])[0]
        assert np.mean(found == expected) > 0.99


def test_values_of_masks_come_back(scenes):
    images, masks = scenes
    fitted = ImageSegmenter(**QUICK, penalty=L2(1.0)).fit(images, [(255 * mask).astype(np.uint8) for mask in masks])
    assert fitted.classes_.tolist() == [0, 255]
    assert set(np.unique(fitted.predict(images[:1])[0])) <= {0, 255}
    bools = ImageSegmenter(**QUICK, penalty=L2(1.0)).fit(images, [mask.astype(bool) for mask in masks])
    np.testing.assert_array_equal(bools.predict(images)[0] > 0, fitted.predict(images)[0] > 0)


def test_more_classes():
    pairs = [scene(24, 30, seed, 3) for seed in range(3)]
    images, masks = [a for a, _ in pairs], [b for _, b in pairs]
    fitted = ImageSegmenter(**QUICK, multiclass=True, colour=True).fit(images, masks)
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.score(images, masks) > 0.85
    assert fitted.predict_marginals(images)[0].shape == (24, 30, 3)
    with pytest.raises(DataError, match=r"mask 0 has 3 distinct values"):
        ImageSegmenter(**QUICK).fit(images, masks)


def test_likelihood_by_inference(scenes):
    images, masks = scenes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = ImageSegmenter(inference="trw", size=(12, 16), max_iterations=15, n_threads=1).fit(images, masks)
    assert fitted.score(images, masks) > 0.8
    assert fitted.predict(images)[0].shape == (24, 30)


@pytest.mark.parametrize("decode", ["auto", "icm", "max-product"])
def test_other_decoders(scenes, segmenter, decode):
    images, masks = scenes
    other = clone(segmenter).set_params(decode=decode).fit(images, masks)
    assert other.score(images, masks) > 0.9


# --- blocks


def test_the_label_of_a_block_is_that_of_most_pixels():
    rng = np.random.default_rng(0)
    mask = rng.integers(0, 3, (7, 10)) * 5
    classes = np.array([0, 5, 10])
    for block in (1, 2, 3, 4):
        found = block_labels(mask, classes, ImageFeatures(block))
        for r, c in np.ndindex(found.shape):
            part = mask[r * block : (r + 1) * block, c * block : (c + 1) * block]
            counts = [(part == label).sum() for label in classes]
            assert counts[list(classes).index(found[r, c])] == max(counts)


def test_blocks_are_drawn_where_they_are():
    for block in (1, 2, 3):
        features = ImageFeatures(block)
        mask = np.random.default_rng(1).integers(0, 2, (6, 9))
        blocks = block_labels(np.kron(mask, np.ones((block, block), dtype=int)), np.array([0, 1]), features)
        np.testing.assert_array_equal(
            full_size(blocks, (6 * block, 9 * block), features), np.kron(mask, np.ones((block, block)))
        )
    halves = full_size(np.array([[0, 1]]), (5, 8), ImageFeatures(2, size=(2, 4)))
    np.testing.assert_array_equal(halves, np.tile([0] * 4 + [1] * 4, (5, 1)))
    assert full_size(np.zeros((2, 2)), (3, 3), ImageFeatures(2)).shape == (3, 3)


def test_scales_are_those_of_all_blocks():
    values = [np.random.default_rng(k).random((3 + k, 4, 5)).astype(np.float32) for k in range(3)]
    values = [np.dstack([v, np.full(v.shape[:2], 7.0, dtype=np.float32)]) for v in values]
    mean, scale = learn_scales(values)
    flat = np.concatenate([v.reshape(-1, 6) for v in values]).astype(float)
    np.testing.assert_allclose(mean, flat.mean(axis=0))
    np.testing.assert_allclose(scale, [*flat.std(axis=0)[:5], 1])


# --- selection


@pytest.mark.filterwarnings("ignore:with the best strength")
def test_strengths_are_tried_and_the_best_is_kept(scenes):
    images, masks = scenes
    new = [scene(24, 30, seed) for seed in (11, 12)]
    validation = [a for a, _ in new], [b for _, b in new]
    fitted = ImageSegmenter(**QUICK, strengths=[0.3, 1000.0, 5.0], solver="owlqn").fit(images, masks, validation)
    assert [point.strength for point in fitted.path_] == [1000.0, 5.0, 0.3]
    nonzeros = [point.nonzeros for point in fitted.path_]
    assert nonzeros[0] < nonzeros[1] < nonzeros[2]
    best = min(point.score for point in fitted.path_)
    np.testing.assert_allclose(1 - fitted.score(*validation), best)
    chosen = next(point for point in fitted.path_ if point.score == best)
    assert np.count_nonzero(fitted.model_.field.w) == chosen.nonzeros
    drawn = ImageSegmenter(**QUICK, strengths=[50.0, 5.0], validation_fraction=0.25).fit(images, masks)
    assert len(drawn.path_) == 2


def test_selected_features_have_weights(scenes):
    fitted = ImageSegmenter(**QUICK, penalty=L1(5.0), position=True).fit(*scenes)
    nodes, edges = fitted.model_.weights()
    names = fitted.model_.features.names
    assert nodes.shape == edges.shape == (1, 165)
    for part, weights in (("unary", nodes), ("pairwise", edges)):
        selected = fitted.selected_features_[part]
        assert 0 < len(selected) < len(names)
        assert set(selected) == {names[k] for k in np.flatnonzero(weights[0, 1:])}


# --- files


def test_a_file_gives_the_same_model(scenes, segmenter, tmp_path):
    segmenter.save(tmp_path / "m.crf")
    loaded = ImageSegmenter.load(tmp_path / "m.crf", n_threads=1)
    assert loaded.get_params()["features"] == ("sift", "c1")
    for a, b in zip(loaded.segment(scenes[0]), segmenter.segment(scenes[0]), strict=True):
        np.testing.assert_array_equal(a.mask, b.mask)
        np.testing.assert_array_equal(a.probabilities, b.probabilities)
    with pytest.raises(ModelFileError, match=r"m\.crf.*kind 'segmenter'"):
        GridCRF.load(tmp_path / "m.crf")


def test_a_model_of_another_kind(scenes, tmp_path):
    image, mask = scenes[0][0], scenes[1][0]
    GridCRF(**QUICK).fit([image[..., None]], [mask]).save(tmp_path / "grid.crf")
    with pytest.raises(ModelFileError, match=r"grid\.crf.*kind 'graph'; expected 'segmenter'"):
        ImageSegmenter.load(tmp_path / "grid.crf")
    (tmp_path / "text.crf").write_text("hello there")
    with pytest.raises(ModelFileError, match=r"text\.crf"):
        ImageSegmenter.load(tmp_path / "text.crf")


def alter(model: SegmenterModel, change):
    metadata, tensors = model.parts()
    metadata = json.loads(json.dumps(metadata))
    change(metadata, tensors)
    return metadata, tensors


@pytest.mark.parametrize(
    "change",
    [
        lambda m, t: m.pop("image_features"),
        lambda m, t: m["image_features"].update(kinds=["sift"]),
        lambda m, t: m["image_features"].update(kinds=["hog"]),
        lambda m, t: m["image_features"].update(block_size=0),
        lambda m, t: m["image_features"].update(block_size="2"),
        lambda m, t: m["image_features"].update(size=[1]),
        lambda m, t: m["image_features"].update(size="no"),
        lambda m, t: m["image_features"].update(more=1),
        lambda m, t: m.update(multiclass=3),
        lambda m, t: m.update(neighbours=8),
        lambda m, t: m.update(intercept=False),
        lambda m, t: m.update(labels=["a", "b"]),
        lambda m, t: m.update(inputs="graphs"),
        lambda m, t: t.pop("feature_mean"),
        lambda m, t: t.update(feature_mean=t["feature_mean"][1:]),
        lambda m, t: t.update(feature_scale=0 * t["feature_scale"]),
        lambda m, t: t.update(feature_scale=np.full(162, np.nan)),
        lambda m, t: t.update(weights=t["weights"][1:]),
        lambda m, t: t.update(edge_mean=t["edge_mean"][1:]),
        lambda m, t: t.update(edge_mean=np.full(162, np.inf)),
        lambda m, t: m.update(upsampling="cubic"),
        lambda m, t: m.update(masks={"ignore": ["a"], "colours": []}),
        lambda m, t: m.update(masks=3),
    ],
)
def test_an_inconsistent_file_is_refused(segmenter, tmp_path, change):
    modelfile.write(tmp_path / "m.crf", "segmenter", *alter(segmenter.model_, change))
    with pytest.raises(ModelFileError, match=r"m\.crf"):
        ImageSegmenter.load(tmp_path / "m.crf")


# --- wrong input


def test_data_that_cannot_be_learned_from(scenes):
    images, masks = scenes
    fit = ImageSegmenter(**QUICK).fit
    with pytest.raises(DataError, match="every pixel of the masks is 0"):
        fit(images, [np.zeros_like(mask) for mask in masks])
    with pytest.raises(DataError, match=r"image 1 is 24×30 pixels \(height×width\), mask 1 24×29"):
        fit(images, [masks[0], masks[1][:, 1:], *masks[2:]])
    with pytest.raises(DataError, match="3 masks for 4 images"):
        fit(images, masks[1:])
    with pytest.raises(DataError, match="there are no images"):
        fit([], [])
    with pytest.raises(DataError, match="must be a list"):
        fit(images[0], masks[0])
    with pytest.raises(DataError, match=r"masks contain 3 distinct values .*mask 1\)"):
        fit(images, [masks[0], 5 * masks[1], *masks[2:]])
    with pytest.raises(DataError, match="image 2 has values that are not finite"):
        fit([*images[:2], images[2] * np.nan, images[3]], masks)
    dot = np.zeros_like(masks[0])
    dot[0, 0] = 1
    with pytest.raises(DataError, match="no block has mostly the label 1"):
        fit(images[:1], [dot])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"features": "sift"}, "tuple"),
        ({"decode": "best"}, "decode"),
        ({"inference": "magic"}, "inference"),
        ({"loss": "magic"}, "loss"),
        ({"solver": "magic"}, "solver"),
        ({"strengths": []}, "strengths"),
        ({"strengths": [-1.0]}, "strengths"),
        ({"strengths": [1.0], "validation_fraction": 1.5}, "validation_fraction"),
        ({"n_threads": 0}, "n_threads"),
        ({"block_size": 0}, "block_size"),
    ],
)
def test_options_out_of_range(scenes, options, said):
    with pytest.raises(ParameterError, match=said):
        ImageSegmenter(**{**QUICK, **options}).fit(*scenes)


def test_not_fitted_clone_and_too_few_images(scenes):
    images, masks = scenes
    with pytest.raises(NotFittedError):
        ImageSegmenter().predict(images)
    assert clone(ImageSegmenter(size=(8, 10), strengths=[1.0])).size == (8, 10)
    with pytest.raises(DataError, match="too few"):
        ImageSegmenter(strengths=[1.0]).fit(images[:1], masks[:1])
    with pytest.raises(ParameterError, match="validation set"):
        ImageSegmenter().fit(images, masks, validation=(images, masks))


def test_progress_and_cache(scenes, tmp_path):
    images, masks = scenes
    seen = []
    fitted = ImageSegmenter(**QUICK, cache=tmp_path, max_iterations=2, solver="lbfgs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(images, masks, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(k, 4) for k in (1, 2, 3, 4)]
    assert len(list(tmp_path.iterdir())) == 4
    fitted.predict(images)
    assert len(list(tmp_path.iterdir())) == 4


def test_plots(scenes, segmenter):
    matplotlib = optional("matplotlib")
    matplotlib.use("Agg")
    from crfkit.plots.segmentation import plot_features, plot_segmentation

    images, masks = scenes
    figure = plot_segmentation(segmenter, images[:2], masks[:2], titles=["a", "b"])
    assert [ax.get_title() for ax in figure.axes[:4]] == ["image", "truth", "prediction", "probability"]
    assert len(plot_segmentation(segmenter, images[:1]).axes) == 4  # three panels and a colour bar
    nodes, edges = plot_features(segmenter, n=5)
    assert len(nodes.patches) == len(edges.patches) == 5
    with pytest.raises(ParameterError, match="titles"):
        plot_segmentation(segmenter, images[:1], titles=[])
    with pytest.raises(DataError, match="cannot draw"):
        plot_segmentation(segmenter, images[:1], masks)
    matplotlib.pyplot.close("all")


def test_ctrl_c_keeps_the_model_so_far(scenes):
    images, masks = scenes

    def interrupt(iteration):
        if iteration.row.iteration == 3:
            raise KeyboardInterrupt

    fitted = ImageSegmenter(**QUICK)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(images, masks, callbacks=[interrupt])
    assert fitted.result_.iterations == 3
    assert fitted.predict(images)[0].shape == (24, 30)
    several = ImageSegmenter(**QUICK, strengths=[2.0, 1.0], validation_fraction=0.25)
    with pytest.raises(KeyboardInterrupt):
        several.fit(images, masks, callbacks=[interrupt])
    assert several.predict(images)[0].shape == (24, 30)


def test_names_of_files_in_messages(scenes, tmp_path):
    """Whatever was drawn for validation."""
    images, masks = scenes
    paths = [tmp_path / f"m{k}.png" for k in range(4)]
    for k, path in enumerate(paths):
        pillow.fromarray(((7 if k == 2 else 1) * masks[k]).astype(np.uint8)).save(path)
    with pytest.raises(DataError, match=r"masks contain 3 distinct values \[0, 1, 7\].*m2\.png\)"):
        ImageSegmenter(**QUICK).fit(images, paths)
    search = ImageSegmenter(**QUICK, strengths=[9.0], validation_fraction=0.25)
    for seed in range(4):
        (held_out,) = Pairs.read(images, paths, MaskRules(multiclass=True)).draw(0.25, seed)[1].names
        if not held_out.endswith("m2.png"):
            with pytest.raises(DataError, match=r"masks contain 3 distinct values.*m2\.png\)"):
                clone(search).set_params(random_state=seed).fit(images, paths)


def test_more_memory_than_there_is(scenes):
    with pytest.raises(DataError, match=r"need about .*B of memory; this machine has"):
        ImageSegmenter(**QUICK, block_size=1, size=(50000, 40000)).fit(*scenes)


def test_sweeps_bound_the_inference_of_training_only(scenes):
    images, masks = scenes
    seen = []

    def losses(iteration):
        seen.append(iteration.row.seconds)

    for inference, sweeps, expected in (("trw", 3, 3), ("bp", 7, 7), ("mean-field", None, None), ("junction", 5, None)):
        engine = limited_engine(inference, lambda: Graph.grid((12, 15)).repeat(3), 2, sweeps, 1)
        assert (engine if isinstance(engine, str) else engine.max_iterations) == (expected or inference)
    assert limited_engine("auto", lambda: Graph.grid((3, 40)).repeat(3), 2, 5, None) == "auto"  # narrow: exact
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = ImageSegmenter(inference="trw", sweeps=2, max_iterations=3, n_threads=1, size=(12, 16))
        fitted.fit(images, masks, callbacks=[losses])
    assert seen
    assert fitted.model_.field.inference == "trw"
    with pytest.raises(ParameterError, match="sweeps"):
        ImageSegmenter(sweeps=0).fit(images, masks)


def test_threads_stop_after_an_error():
    begun = []

    def work(k):
        begun.append(k)
        if k == 3:
            raise DataError("three")
        time.sleep(0.001)  # or all have begun before the error is seen
        return k

    with pytest.raises(DataError, match="three"):
        list(in_threads(work, range(1000), 1))
    assert len(begun) < 1000
    assert list(in_threads(lambda k: k * k, range(5), 2)) == [0, 1, 4, 9, 16]
