"""Encoded, frozen data."""

from crfkit.data.encode import TaggedCorpus, Vocabulary, learn, learn_file
from crfkit.data.sequences import SequenceData

__all__ = ["SequenceData", "TaggedCorpus", "Vocabulary", "learn", "learn_file"]
