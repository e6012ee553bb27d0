"""Pixels whose class is not known: never learned from and never counted, whichever way masks say so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from optional import optional

from crfkit import L2, GraphCRF, GridCRF, ImageSegmenter
from crfkit.errors import ApproximationWarning, DataError, ParameterError
from crfkit.files.images import VOID, MaskRules, read_mask
from crfkit.images.block_grids import average_difference
from crfkit.images.blocks import block_labels
from crfkit.images.features import ImageFeatures
from crfkit.images.model.segmenter import learn_scales
from crfkit.images.pairs import Pairs
from crfkit.synthetic import disc_images

pillow = optional("PIL.Image")

OPTIONS = {"block_size": 4, "features": (), "colour": True, "n_threads": 1, "penalty": L2(1.0)}


@pytest.fixture(scope="module")
def discs():
    """Images, true masks, and which pixels are hidden: a margin of the disc, and the left fifth."""
    images, masks = disc_images(4, shape=(32, 40))
    hidden = []
    for mask in masks:
        near = np.zeros(mask.shape, dtype=bool)
        for axis in (0, 1):
            for step in (-1, 1):
                near |= np.roll(mask, step, axis) != mask
        near[:, :8] = True
        hidden.append(near)
    return images, [np.asarray(mask, dtype=int) for mask in masks], hidden


def as_objects(mask, hidden):
    out = mask.astype(object)
    out[hidden] = None
    return out


WAYS = {
    "numpy.ma": (lambda m, h: np.ma.masked_array(np.where(h, 1 - m, m), h), {}),  # what is below the mask is wrong
    "NaN": (lambda m, h: np.where(h, np.nan, m), {}),
    "None": (as_objects, {}),
    "-1": (lambda m, h: np.where(h, -1, m), {}),
    "ignore=255": (lambda m, h: np.where(h, 255, m).astype(np.uint8), {"ignore": 255}),
    "ignore=[7, 255]": (lambda m, h: np.where(h, np.where(m, 7, 255), m), {"ignore": [7, 255]}),
}


@pytest.mark.parametrize("loss", ["likelihood", "pseudo-likelihood"])
def test_all_ways_to_hide_pixels_train_the_same_model(discs, loss):
    images, masks, hidden = discs
    weights = {}
    for name, (hide, more) in WAYS.items():
        given = [hide(m, h) for m, h in zip(masks, hidden, strict=True)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inference of training may not be quite settled
            fitted = ImageSegmenter(**OPTIONS, **more, loss=loss, max_iterations=12).fit(images, given)
        assert fitted.classes_.tolist() == [0, 1], name
        weights[name] = fitted.model_.field.w
        known = np.concatenate([(p != m)[~h] for p, m, h in zip(fitted.predict(images), masks, hidden, strict=True)])
        assert fitted.score(images, given) == pytest.approx(1 - known.mean()), name
        assert fitted.errors(images, given).shape == (4,)
    for name, w in weights.items():
        np.testing.assert_array_equal(w, weights["NaN"], err_msg=name)


def test_wrong_labels_below_a_mask_do_no_harm():
    """The upper half is labelled background in the arrays, and masked."""
    images, masks = disc_images(4)
    new, truth = disc_images(4, seed=1)
    hidden = np.arange(64)[:, None] < np.full(80, 32)
    wrong = [np.where(hidden, 0, mask) for mask in masks]
    fit = ImageSegmenter(**OPTIONS, inference="trw", sweeps=500).fit
    masked, full, misled = (
        fit(images, given).score(new, truth) for given in ([np.ma.masked_array(m, hidden) for m in wrong], masks, wrong)
    )
    assert masked > full - 0.01
    assert masked > misled + 0.05


def test_hidden_blocks_are_summed_over_as_in_grid_crf(discs):
    images, masks, hidden = discs
    images, masks, hidden = ([part[:16, :20] for part in parts] for parts in (images, masks, hidden))
    given = [np.ma.masked_array(m, h) for m, h in zip(masks, hidden, strict=True)]
    features = ImageFeatures(4, (), colour=True)
    values = [features.compute(image / np.float32(255)) for image in images]
    mean, scale = learn_scales(values)
    X = [(v - mean) / scale for v in values]
    Y = [block_labels(read_mask(m), np.array([0, 1]), features) for m in given]
    assert any((y == VOID).any() for y in Y)
    Y = [np.ma.masked_array(y, y == VOID) for y in Y]
    centre = average_difference(X)
    forms = {"node_form": "ising", "edge_form": "ising", "edge_features": lambda a, b: np.abs(a - b) - centre}
    crf = GridCRF(**forms, inference="junction", penalty=L2(1.0), standardize=False).fit(X, Y)
    fitted = ImageSegmenter(**OPTIONS, inference="junction").fit(images, given)
    edge = fitted.model_.field.w[7:].copy()
    edge[0] += edge[1:] @ centre
    np.testing.assert_allclose(np.concatenate([fitted.model_.field.w[:7], edge]), crf.coef_, atol=1e-3)


def test_losses_of_labelled_blocks_leave_the_others_out(discs):
    """The pseudo-likelihood of the blocks with a label and the edges among them."""
    images, masks, hidden = discs
    given = [np.ma.masked_array(m, h) for m, h in zip(masks, hidden, strict=True)]
    fitted = ImageSegmenter(**OPTIONS, loss="pseudo-likelihood").fit(images, given)
    model = fitted.model_
    samples, labels = [], []
    for image, mask in zip(images, given, strict=True):
        x = (model.features.compute(image / np.float32(255)) - model.mean) / model.scale
        y = block_labels(read_mask(mask), model.classes, model.features)
        known = np.argwhere(y != VOID).tolist()
        number = {tuple(place): k for k, place in enumerate(known)}
        edges = [
            (k, number[r + dr, c + dc])
            for (r, c), k in number.items()
            for dr, dc in ((0, 1), (1, 0))
            if (r + dr, c + dc) in number
        ]
        nodes = np.array([x[r, c] for r, c in known])
        i, j = np.array(edges).T
        samples.append((nodes, edges, np.abs(nodes[i] - nodes[j]) - model.edge_mean))
        labels.append([y[r, c] for r, c in known])
    crf = GraphCRF(loss="pseudo-likelihood", node_form="ising", edge_form="ising", penalty=L2(1.0), standardize=False)
    with pytest.warns(ApproximationWarning, match="edges too strong"):
        crf.fit(samples, labels)
    edge = model.field.w[7:].copy()
    edge[0] += edge[1:] @ model.edge_mean
    np.testing.assert_allclose(np.concatenate([model.field.w[:7], edge]), crf.coef_, atol=2e-3)


def test_the_label_of_a_block_is_that_of_most_known_pixels():
    rng = np.random.default_rng(0)
    mask = rng.integers(0, 3, (11, 14)) * 5
    mask[rng.random(mask.shape) < 0.6] = VOID
    classes = np.array([0, 5, 10])
    for block in (1, 2, 3):
        found = block_labels(mask, classes, ImageFeatures(block))
        for r, c in np.ndindex(found.shape):
            part = mask[r * block : (r + 1) * block, c * block : (c + 1) * block]
            counts = [(part == label).sum() for label in classes]
            expected = classes[int(np.argmax(counts))] if max(counts) else VOID
            assert found[r, c] == expected
    half = np.full((8, 8), VOID)
    half[:, 4:] = 5
    resized = block_labels(half, np.array([0, 5]), ImageFeatures(2, size=(4, 4)))
    np.testing.assert_array_equal(resized, [[VOID, 5], [VOID, 5]])


def test_validation_counts_known_pixels_only(discs):
    images, masks, hidden = discs
    given = [np.ma.masked_array(np.where(h, 1 - m, m), h) for m, h in zip(masks, hidden, strict=True)]
    options = {**OPTIONS, "penalty": None, "loss": "pseudo-likelihood", "strengths": [30.0, 3.0]}
    fitted = ImageSegmenter(**options).fit(images[:2], given[:2], validation=(images[2:], given[2:]))
    best = min(point.score for point in fitted.path_)
    assert 1 - fitted.score(images[2:], given[2:]) == pytest.approx(best)


def test_minus_one_is_a_class_beside_one_alone(discs):
    images, masks, _ = discs
    signs = [2 * mask - 1 for mask in masks]
    fitted = ImageSegmenter(**OPTIONS, inference="junction").fit(images, signs)
    assert fitted.classes_.tolist() == [-1, 1]
    assert fitted.score(images, signs) > 0.8
    with pytest.raises(DataError, match="every pixel of the masks is 1"):
        ImageSegmenter(**OPTIONS, ignore=-1).fit(images, signs)


def test_void_of_palette_files_and_what_is_said_without_the_option(discs, tmp_path):
    images, masks, hidden = discs
    paths = []
    for k, (mask, near) in enumerate(zip(masks, hidden, strict=True)):
        pillow.fromarray(np.where(near, 255, mask).astype(np.uint8)).save(tmp_path / f"{k}.png")
        paths.append(tmp_path / f"{k}.png")
    fit = ImageSegmenter(**OPTIONS, loss="pseudo-likelihood", ignore=255).fit
    assert fit(images, paths).classes_.tolist() == [0, 1]
    with pytest.raises(
        DataError, match=r"0\.png has 3 distinct values \(0, 1, 255\), expected " r"2.*ignore=255 \(--ignore 255\)"
    ):
        ImageSegmenter(**OPTIONS).fit(images, paths)
    with pytest.raises(ParameterError, match="ignore must be None, an integer or a list"):
        ImageSegmenter(**OPTIONS, ignore="255").fit(images, paths)
    pillow.fromarray(masks[0].astype(np.uint8) * 255).save(tmp_path / "a.jpg")
    with pytest.raises(DataError, match=r"a\.jpg is a lossy file, so its pixels to ignore"):
        read_mask(tmp_path / "a.jpg", ignore=255)


def test_a_mask_without_a_known_pixel(discs):
    images, masks, _ = discs
    nothing = np.ma.masked_all(masks[0].shape, dtype=int)
    fitted = ImageSegmenter(**OPTIONS, loss="pseudo-likelihood")
    with pytest.warns(UserWarning, match=r"1 masks have no pixel of a known class \(the first: mask 3\)"):
        fitted.fit(images, [*masks[:3], nothing])
    errors = fitted.errors(images, [*masks[:3], nothing])
    assert np.isfinite(errors[:3]).all()
    assert np.isnan(errors[3])
    with pytest.raises(DataError, match="no pixel of the masks has a known class"):
        fitted.score(images[:1], [nothing])
    with pytest.raises(DataError, match="no pixel of the masks has a known class"):
        ImageSegmenter(**OPTIONS).fit(images[:1], [nothing])


def test_the_rules_are_in_the_file(discs, tmp_path):
    images, masks, hidden = discs
    given = [np.where(h, 9, m) for m, h in zip(masks, hidden, strict=True)]
    fitted = ImageSegmenter(**OPTIONS, loss="pseudo-likelihood", ignore=9).fit(images, given)
    fitted.save(tmp_path / "m.crf")
    loaded = ImageSegmenter.load(tmp_path / "m.crf")
    assert loaded.ignore == (9,)
    assert loaded.score(images, given) == fitted.score(images, given)


def test_pairs_of_a_model_know_its_classes():
    mask = np.array([[-1, 0], [1, 1]])
    image = np.zeros((2, 2))
    rules = MaskRules()
    assert Pairs.read([image], [mask], rules, np.array([0, 1])).masks[0].tolist() == [[VOID, 0], [1, 1]]
    only = np.array([[-1, 1], [1, 1]])
    assert Pairs.read([image], [only], rules, np.array([0, 1])).masks[0].tolist() == [[VOID, 1], [1, 1]]
    assert Pairs.read([image], [only], rules, np.array([-1, 1])).masks[0].tolist() == [[-1, 1], [1, 1]]
