"""Plain text as tokens and sentences with character offsets."""

from crfkit.text.sentences import Sentence, sentences
from crfkit.text.tokens import Token, tokenize, tokens

__all__ = ["Sentence", "Token", "sentences", "tokenize", "tokens"]
