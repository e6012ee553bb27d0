"""The names of python-crfsuite's extension module, for programs that import them from there."""

from crfkit.compat.pycrfsuite._errors import CRFSuiteError
from crfkit.compat.pycrfsuite._items import ItemSequence
from crfkit.compat.pycrfsuite._tagger import Tagger
from crfkit.compat.pycrfsuite._trainer import BaseTrainer, Trainer

CRFSUITE_VERSION = "0.12.2"  # whose parameters, files and log this module has

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]
