"""Functions of images as features of blocks: the same as built-in ones that compute the same, in fields and files."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from optional import optional
from sklearn.base import clone

from crfkit import L2, ImageSegmenter
from crfkit.errors import ModelFileError, ParameterError
from crfkit.files.images import read_image
from crfkit.images.features import COLOUR_NAMES, ImageFeatures, intensity, lab
from crfkit.images.model.segmenter import SegmenterModel
from crfkit.images.sift import dense_sift
from crfkit.penalties import Blockwise
from crfkit.synthetic import disc_images

STEADY = Blockwise({"node": L2(1.0), "edge": L2(2000.0)})  # edges do not outweigh features
OPTIONS = {"block_size": 4, "loss": "pseudo-likelihood", "penalty": STEADY, "n_threads": 2}


def colours(image):
    """Per pixel, what colour=True computes."""
    return np.concatenate([image, lab(image)], axis=-1)


def blocks_of_sift(image):
    """Per block of 4×4 pixels, what "sift" computes."""
    return dense_sift(intensity(image), 4, 4)


def grey(image):
    return intensity(image)


@pytest.fixture(scope="module")
def discs():
    images, masks = disc_images(3)
    return [read_image(image) for image in images], masks


@pytest.fixture(scope="module")
def trained(discs):
    return ImageSegmenter(features=("c1", grey), **OPTIONS).fit(*discs)


@pytest.mark.parametrize("size", [None, (30, 41)])
@pytest.mark.parametrize("shape", [(32, 40), (21, 30)])
def test_a_function_computes_what_built_in_features_do(size, shape):
    image = np.random.default_rng(0).random((*shape, 3)).astype(np.float32)
    if size is not None:
        optional("PIL")
    found = ImageFeatures(4, (colours,), size=size).compute(image)
    np.testing.assert_array_equal(found, ImageFeatures(4, (), colour=True, size=size).compute(image))
    found = ImageFeatures(4, (blocks_of_sift,), size=size).compute(image)
    np.testing.assert_array_equal(found, ImageFeatures(4, ("sift",), size=size).compute(image))
    both = ImageFeatures(4, (colours, "c1", blocks_of_sift), size=size)
    parts = [ImageFeatures(4, kinds, size=size).compute(image) for kinds in (("c1",), (colours,), (blocks_of_sift,))]
    np.testing.assert_array_equal(both.compute(image), np.concatenate(parts, axis=-1))


def test_a_segmenter_learns_the_same(discs, tmp_path):
    images, masks = discs
    built_in = ImageSegmenter(features=(), colour=True, **OPTIONS).fit(images, masks)
    custom = ImageSegmenter(features=(colours,), **OPTIONS).fit(images, masks)
    np.testing.assert_array_equal(custom.model_.field.w, built_in.model_.field.w)
    for a, b in zip(custom.predict_marginals(images), built_in.predict_marginals(images), strict=True):
        np.testing.assert_array_equal(a, b)
    assert custom.model_.features.names == tuple(f"custom{k}" for k in range(6))
    again = clone(custom).fit(images, masks)
    np.testing.assert_array_equal(again.model_.field.w, built_in.model_.field.w)


def test_names(discs):
    def named(image):
        return colours(image)

    def two(image):
        return image[..., :2]

    named.feature_names = [f"my {name}" for name in COLOUR_NAMES]
    features = ImageFeatures(2, (grey, named, two, "c1"), position=True)
    with pytest.raises(
        ParameterError, match=r"'grey' returns is not known before the first image; call " r"measured\(image\)"
    ):
        _ = features.names
    names = features.measured(discs[0][0]).names
    assert names[34:] == ("row", "column", "custom0", *named.feature_names, "custom7", "custom8")
    named.feature_names = COLOUR_NAMES
    with pytest.raises(ParameterError, match="two features are named 'red'"):
        ImageFeatures(2, (named,), colour=True)
    named.feature_names = "red"
    with pytest.raises(ParameterError, match="feature_names of the function 'named' must be a tuple of strings"):
        ImageFeatures(2, (named,))


def test_a_file_has_names_and_no_code(discs, trained, tmp_path):
    path = tmp_path / "s.crf"
    trained.save(path)
    with pytest.raises(ModelFileError, match=r"s\.crf: .*functions as features.*load\(path, features=\{'grey': …\}\)"):
        ImageSegmenter.load(path)
    with pytest.raises(ModelFileError, match="contain no code"):
        SegmenterModel.load(path)
    images, masks = discs
    for loaded in (
        ImageSegmenter.load(path, features={"grey": grey}),
        ImageSegmenter.load(path, features={"grey": lambda image: intensity(image)[..., None]}),
    ):
        for a, b in zip(loaded.predict_marginals(images), trained.predict_marginals(images), strict=True):
            np.testing.assert_array_equal(a, b)
    found = SegmenterModel.load(path, features={"grey": grey}).segment(images[0]).mask
    np.testing.assert_array_equal(found, trained.predict(images[:1])[0])
    again = ImageSegmenter.load(path, features={"grey": grey}).set_params(**OPTIONS).fit(images, masks)
    np.testing.assert_array_equal(again.model_.field.w, trained.model_.field.w)

    # to begin from, and to look at, it needs no function
    assert SegmenterModel.load_weights(path).selected()["unary"][-1] == "custom0"
    same = ImageSegmenter(features=("c1", grey), **OPTIONS).fit(images, masks, start=path)
    assert same.result_.iterations < trained.result_.iterations / 2
    with pytest.raises(ParameterError, match="the model to start from has other features"):
        ImageSegmenter(features=("c1", colours), **OPTIONS).fit(images, masks, start=path)


def test_other_functions_are_refused(discs, trained, tmp_path):
    path = tmp_path / "s.crf"
    trained.save(path)

    def other(image):
        return intensity(image)

    other.feature_names = ("brightness",)
    for functions, said in (
        ({"grey": grey, "gray": grey}, "no feature function named 'gray'; its functions are grey"),
        ({"grey": other}, r"has the feature_names \('brightness',\); expected \('custom0',\), as in the model"),
        ([grey], "must be a dict of functions by name"),
        ({"grey": "grey"}, "must be a dict of functions by name"),
    ):
        with pytest.raises(ModelFileError, match=said):
            ImageSegmenter.load(path, features=functions)
    wide = ImageSegmenter.load(path, features={"grey": colours})
    with pytest.raises(ParameterError, match="the function 'grey' returned 6 features; expected 1"):
        wide.predict(discs[0])
    ImageSegmenter(features=("c1",), **OPTIONS).fit(*discs).save(path)
    with pytest.raises(ModelFileError, match="named 'grey'; it has no functions"):
        ImageSegmenter.load(path, features={"grey": grey})


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda image: np.zeros((3, 3, 2)), r"returned shape \(3, 3, 2\) for an image of 64×80 pixels; expected "),
        (lambda image: image.mean(), r"returned shape \(\)"),
        (lambda image: np.full(image.shape, "a"), "returned an array of type <U1"),
        (lambda image: image[..., :0], "returned 0 features; expected at least one"),
        (lambda image: np.where(image > 0.5, np.nan, image), "returned nan; expected finite"),
        (lambda image: image.astype(np.float64) * 1e300, "returned inf; expected finite"),
    ],
)
def test_what_functions_may_not_return(discs, function, said):
    with pytest.raises(ParameterError, match=said):
        ImageSegmenter(features=(function,), **OPTIONS).fit(*discs)


def test_functions_need_names_of_their_own(discs):
    with pytest.raises(ParameterError, match=r"2 feature functions are named '<lambda>'.*__name__"):
        ImageSegmenter(features=(lambda x: x, lambda x: x**2), **OPTIONS).fit(*discs)
    with pytest.raises(ParameterError, match="features must be a tuple such as"):
        ImageSegmenter(features=grey, **OPTIONS).fit(*discs)

    class Power:
        def __init__(self, exponent):
            self.exponent = exponent

        def __call__(self, image):
            return image**self.exponent

    features = ImageFeatures(2, (Power(2), partial(np.clip, a_min=0, a_max=0.5), grey))
    assert [part.name for part in features.custom] == ["Power", "clip", "grey"]
    assert features.compute(discs[0][0]).shape == (32, 40, 7)


def test_the_cache_keeps_built_in_features_only(discs, tmp_path):
    image = discs[0][0]

    def double(image):
        return 2 * intensity(image)

    double.__name__ = "grey"  # a function that was changed since
    plain = ImageFeatures(4, ("c1",)).compute_cached(image, tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 1
    for function in (grey, double, grey):
        features = ImageFeatures(4, ("c1", function))
        found = features.compute_cached(image, tmp_path)
        np.testing.assert_array_equal(found, features.compute(image))
        np.testing.assert_array_equal(found[..., :-1], plain)
    assert sorted(tmp_path.iterdir()) == files
    ImageFeatures(4, (grey,)).compute_cached(image, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_functions_cannot_change_the_image(discs):
    image = discs[0][0]

    def careless(image):
        image *= 0
        return image

    before = image.copy()
    features = ImageFeatures(4, (careless, colours))
    np.testing.assert_array_equal(features.compute(image)[..., 3:], ImageFeatures(4, (colours,)).compute(before))
    np.testing.assert_array_equal(image, before)


def test_the_command_line_names_what_is_missing(discs, trained, tmp_path, monkeypatch, capsys):
    pillow = optional("PIL.Image")
    from crfkit.cli.entry import main

    monkeypatch.chdir(tmp_path)
    trained.save("s.crf")
    (tmp_path / "images").mkdir()
    pillow.fromarray(np.rint(255 * discs[0][0]).astype(np.uint8)).save("images/a.png")
    for args, code, said in (
        (["inspect", "s.crf"], 0, "35 features: 34 c1, 1 custom"),
        (["segment", "apply", "s.crf", "images", "-o", "out"], 2, "pass the functions again"),
    ):
        monkeypatch.setattr("sys.argv", ["crfkit", *args])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        assert (ended.value.code or 0) == code
        assert said in captured.out + captured.err
