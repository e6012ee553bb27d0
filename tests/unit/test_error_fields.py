"""Errors carry what callers ask about them as fields: nobody has to look for words in a message."""

import pickle

import numpy as np
import pytest

from crfkit import Graph
from crfkit.convert import load
from crfkit.errors import (
    DataError,
    EncodingError,
    LimitError,
    ModelFileError,
    ParameterError,
    option_error,
    sample_error,
)
from crfkit.files import limits
from crfkit.files.images import read_image
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.engines import make_engine
from crfkit.images.probability_maps import read_probabilities


def test_a_file_is_named_once():
    error = ModelFileError("it is damaged").in_file("m.crf")
    assert (str(error), error.path) == ("m.crf: it is damaged", "m.crf")
    assert str(error.in_file("other.crf")) == "m.crf: it is damaged"
    limit = LimitError("too large").in_file("a.png")
    assert (type(limit), str(limit)) == (LimitError, "a.png: too large")


def test_the_name_of_a_file_inside_a_message_is_not_mistaken_for_the_file(tmp_path):
    """The message quotes the same letters, but does not say that they are the file."""
    error = DataError("there is no column 'a'")
    assert str(error.in_file("a")) == "a: there is no column 'a'"


@pytest.mark.parametrize("line", [0, 3])
def test_fields_survive_pickling(line):
    error = pickle.loads(pickle.dumps(DataError("it is empty", "x.txt", line)))
    assert (error.path, error.line, str(error)) == ("x.txt", line, f"x.txt:{f'{line}:' if line else ''} it is empty")
    error = pickle.loads(pickle.dumps(sample_error(ParameterError, 2, " has a cycle")))
    assert str(error.of_sample("row 2")) == "row 2 has a cycle"
    error = pickle.loads(pickle.dumps(option_error("order", " must be 1 or 2")))
    assert (str(error), error.option, error.problem) == ("order must be 1 or 2", "order", " must be 1 or 2")


def test_errors_about_images_know_their_file(tmp_path):
    from PIL import Image

    path = tmp_path / "a.png"
    Image.fromarray(np.zeros((3, 4), dtype=np.uint8)).save(path)
    with pytest.raises(DataError) as error:
        read_image(tmp_path / "none.png")
    assert error.value.path == tmp_path / "none.png"
    with pytest.raises(LimitError) as limit, limits.raised(pixels=1):
        read_image(path)
    assert limit.value.path == path
    np.save(tmp_path / "a.npy", np.zeros((2, 2, 2)))
    with pytest.raises(DataError) as error:
        read_probabilities(tmp_path / "a.npy", (3, 4), "probabilities 0")
    assert error.value.path == tmp_path / "a.npy"


def test_a_missing_model_file_is_named_once(tmp_path):
    with pytest.raises(ModelFileError) as error:
        load(tmp_path / "none.crf")
    assert str(error.value).count("none.crf") == 1


@pytest.mark.parametrize("engine", ["tree", "enumerate", "junction"])
def test_errors_of_exact_engines_know_the_graph(engine):
    graphs = Graph.join([Graph.path(2), Graph.complete(40)])
    with pytest.raises(ParameterError) as error:
        make_engine(engine).run(Potentials.from_tables(graphs, np.zeros((42, 2)), np.eye(2)))
    assert error.value.sample == 1
    assert str(error.value.of_sample("image 1")).startswith("image 1")


def test_an_encoding_error_has_its_own_class():
    assert issubclass(EncodingError, ModelFileError)
