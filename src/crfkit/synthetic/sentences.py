"""A small language with people, places, firms and dates."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Token = tuple[str, str, str]  # word, shape, label

_SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "za"]
_FIRST = ["Anna", "Jordan", "Paris", "Victoria", "Marcus", "Ines", "Chelsea", "Omar", "Lea", "Sidney"]
_PLACES = ["Jordan", "Paris", "Victoria", "Chelsea", "Sidney", "Lima", "Oslo", "Kyoto", "Quito", "Bergen"]
_FIRMS = ["Orion", "Bergen", "Delta", "Victoria", "Nimbus", "Apex", "Lima", "Atlas"]
_SUFFIXES = ["Ltd", "Bank", "Group", "Airlines"]
_DAYS = ["Monday", "Tuesday", "Friday", "May", "June", "March"]

# Slots in angle brackets are filled with entities; the context does not tell the kind of <ANY>. Words divided by | are
# alternatives.
_PATTERNS = [
    "<PER> works|worked for|at <ORG> in <LOC> .",
    "<ORG> opened an office in <LOC> on <DATE> .",
    "<PER> met <PER> near <LOC> .",
    "on <DATE> <PER> left|joined <ORG> .",
    "shares of <ORG> fell|rose on <DATE> .",
    "<LOC> is colder than <LOC> .",
    "<PER> may|will march to <LOC> in <DATE> .",
    "the bank of <LOC> sued <ORG> and <PER> .",
    "after <DATE> <ORG> hired <PER> from <ORG> .",
    "<ORG> and <ORG> agreed|refused to buy a group in <LOC> .",
    "nobody in <LOC> knows <PER> .",
    "we saw|missed <ANY> on <DATE> .",
    "<ANY> was in the news again .",
    "they spoke about <ANY> and <ANY> in <DATE> .",
]
_KINDS = ["PER", "LOC", "ORG"]


def entity_corpus(n_sentences: int, seed: int = 0) -> list[list[Token]]:
    """Return sentences of a small language with people, places, firms and dates, labelled in IOB2.

    Many names are ambiguous (Victoria is a person, a place and a firm) and some are invented, so a tagger has
    to use the context and does not reach 100 %.

    >>> entity_corpus(1, seed=1)[0][0]
    ('Chelsea', 'Xx', 'B-PER')
    """
    rng = random.Random(seed)
    return [fill_pattern(rng.choice(_PATTERNS), _entity, rng) for _ in range(n_sentences)]


def entity_words(n_sentences: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words and the labels of `entity_corpus`, as `ChainCRF(features="ner")` takes them.

    >>> X, y = entity_words(1, seed=1)
    >>> X[0][:2], y[0][:2]
    (['Chelsea', 'met'], ['B-PER', 'O'])
    """
    sentences = entity_corpus(n_sentences, seed)
    words = [[word for word, _, _ in sentence] for sentence in sentences]
    return words, [[label for _, _, label in sentence] for sentence in sentences]


def fill_pattern(
    pattern: str, make_entity: Callable[[str, random.Random], list[str]], rng: random.Random
) -> list[Token]:
    """Return a sentence: slots are filled with entities of their kind, and one word of a|b is chosen."""
    tokens: list[Token] = []
    for word in pattern.split():
        if word.startswith("<"):
            kind = rng.choice(_KINDS) if word == "<ANY>" else word[1:-1]
            for k, part in enumerate(make_entity(kind, rng)):
                tokens.append((part, word_shape(part), ("B-" if k == 0 else "I-") + kind))
        else:
            chosen = rng.choice(word.split("|"))
            tokens.append((chosen, word_shape(chosen), "O"))
    return tokens


def _entity(kind: str, rng: random.Random) -> list[str]:
    invented = "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 3))).capitalize()

    def known_or(names: Sequence[str], share: float) -> str:
        return rng.choice(names) if rng.random() < share else invented

    if kind == "PER":
        name = [known_or(_FIRST, 0.7)]
        return [*name, "".join(rng.choices(_SYLLABLES, k=3)).capitalize()] if rng.random() < 0.5 else name
    if kind == "LOC":
        return (["New"] if rng.random() < 0.15 else []) + [known_or(_PLACES, 0.75)]
    if kind == "ORG":
        return [known_or(_FIRMS, 0.6)] + ([rng.choice(_SUFFIXES)] if rng.random() < 0.4 else [])
    return [rng.choice(_DAYS)] + ([str(rng.randint(1, 28))] if rng.random() < 0.3 else [])


def word_shape(word: str) -> str:
    """Return x for lower case, Xx for capitalised, 9 for numbers, . for the rest."""
    if word[0].isdigit():
        return "9"
    if not word[0].isalpha():
        return "."
    return "Xx" if word[0].isupper() else "x"


def write_columns(path: str, sentences: Sequence[Sequence[Token]]) -> None:
    """Write sentences as a column file."""
    with open(path, "w", encoding="utf-8") as stream:
        for sentence in sentences:
            stream.writelines("\t".join(token) + "\n" for token in sentence)
            stream.write("\n")
