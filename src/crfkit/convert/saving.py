"""Write a chain as the model file of any tool that can hold it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from crfkit.chain.model.model import ChainModel
from crfkit.errors import ParameterError
from crfkit.names import check_name

WRITERS = {"crfsuite": "crfkit.convert.crfsuite", "crf++": "crfkit.convert.crfpp", "wapiti": "crfkit.convert.wapiti"}
KINDS = ("crfkit", *WRITERS)
_ENDINGS = {".crfsuite": "crfsuite", ".txt": "crf++", ".wapiti": "wapiti"}


def save(model: ChainModel, path: str | Path, kind: str = "crfkit", weights: str = "double") -> None:
    """Write a model as a file of this kind: "crfkit", "crfsuite", "crf++" (its text format) or "wapiti".

    With weights="8bit", a crfkit model takes one byte for each weight. Raises ModelFileError if the model has what the
    format cannot hold.
    """
    check_name("kind of model file", kind, KINDS)
    if kind == "crfkit":
        model.save(path, weights)
    elif weights != "double":
        raise ParameterError(f"files of {kind} cannot have weights={weights!r}; only crfkit files can")
    else:
        import_module(WRITERS[kind]).write(model, path)


def kind_of_name(path: str | Path) -> str:
    """Return the kind of model file that a name suggests.

    >>> kind_of_name("ner.crfsuite"), kind_of_name("ner.crf")
    ('crfsuite', 'crfkit')
    """
    return _ENDINGS.get(Path(path).suffix.lower(), "crfkit")
