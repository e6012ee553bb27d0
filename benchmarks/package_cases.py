"""What `packages.py` runs: for each package, inputs that are generated from a seed, and the call to make on each."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STREETS = ["Main", "Oak", "Lincoln", "Washington", "Maple", "Cedar", "Elm", "Lake", "Hill"]
KINDS = ["St", "St.", "Street", "Ave", "Avenue", "Blvd", "Rd", "Road", "Ln", "Dr", "Ct", "Way", "Pkwy", "Hwy"]
CITIES = ["Chicago", "Springfield", "Portland", "Austin", "Denver", "Seattle", "Boston", "Madison", "Dayton"]
STATES = ["IL", "OR", "TX", "CO", "WA", "MA", "WI", "OH", "NY", "NV", "AZ", "CA"]
FIRST = ["Mary", "John", "Alice", "Robert", "Lin", "Priya", "Ahmed", "Maria", "Olga", "Kenji"]
LAST = ["Smith", "Johnson", "Garcia", "Chen", "Patel", "Kim", "Nguyen", "Müller", "O'Brien", "Lopez"]
FIRMS = ["Acme", "Global", "Northern", "United", "Pioneer", "Summit", "Atlas", "Harbor", "Liberty", "Crown"]
TRADES = ["Plumbing", "Insurance", "Holdings", "Media", "Foods", "Logistics", "Bank", "Trust", "Partners", "Realty"]
FORMS = ["Inc", "Inc.", "LLC", "Ltd", "Corp", "Co.", "& Sons", "Group", "LLP"]


@dataclass(frozen=True)
class Case:
    inputs: list[Any]
    run: Callable[[Any], Any]


def address(rng: random.Random) -> str:
    pick = rng.choice
    if rng.random() < 0.12:
        return f"PO Box {rng.randrange(9999)} {pick(CITIES)}, {pick(STATES)} {rng.randrange(10000, 99999)}"
    parts = [str(rng.randrange(1, 12000))]
    if rng.random() < 0.3:
        parts.append(pick(["N", "S.", "East", "W", "North"]))
    parts += [pick([*STREETS, f"{rng.randrange(2, 90)}th"]), pick(KINDS)]
    if rng.random() < 0.4:
        parts.append(f"{pick(['Apt', 'Suite', '#', 'Unit', 'Floor'])} {rng.randrange(1, 900)}")
    if rng.random() < 0.8:
        parts += [f"{pick(CITIES)},", pick(STATES)]
        if rng.random() < 0.7:
            parts.append(str(rng.randrange(10000, 99999)))
    return " ".join(parts)


def name(rng: random.Random) -> str:
    pick = rng.choice
    if rng.random() < 0.4:
        return f"{pick(FIRMS)} {pick(TRADES)} {pick(FORMS)}"
    parts = [
        pick(["Mr.", "Dr", "Mrs", ""]),
        pick(FIRST),
        pick(["", "J.", "van", pick(FIRST)]),
        pick(LAST),
        pick(["", "Jr."]),
    ]
    text = " ".join(part for part in parts if part)
    return f"{text} and {pick(FIRST)} {pick(LAST)}" if rng.random() < 0.2 else text


def _seeded(make: Callable[[random.Random], Any], n: int, seed: int = 0) -> list[Any]:
    rng = random.Random(seed)
    return [make(rng) for _ in range(n)]


def usaddress(n: int, folder: Path) -> Case:
    import usaddress as package

    return Case(_seeded(address, n), package.parse)


def probablepeople(n: int, folder: Path) -> Case:
    import probablepeople as package

    kinds = ["generic", "person", "company"]
    inputs = [(text, kinds[k % 3]) for k, text in enumerate(_seeded(name, 3 * n))]
    return Case(inputs, lambda x: package.parse(x[0], type=x[1]))


def pythainlp(n: int, folder: Path) -> Case:
    """Sentences cut, syllables, names and chunks: four of its models (the fifth has no code that opens it)."""
    import pycrfsuite
    from pythainlp import corpus
    from pythainlp.chunk.crfchunk import CRFChunkParser
    from pythainlp.corpus import thai_words
    from pythainlp.tag.thainer import ThaiNameTagger
    from pythainlp.tokenize import crfcut, han_solo

    words = sorted(thai_words())
    tags = ["NCMN", "VACT", "PPRS", "ADVN", "RPRE", "FIXN", "JCRG"]
    inputs = _seeded(lambda rng: rng.choices(words, k=rng.randrange(3, 15)), n)
    names = ThaiNameTagger.__new__(ThaiNameTagger)  # its constructor looks for a download, not for the model inside
    names.crf, names.pos_tag_name = pycrfsuite.Tagger(), "orchid_ud"
    names.crf.open(str(Path(corpus.__file__).parent / "thainer_crf_1_5_1.model"))

    def run(sentence: list[str]) -> Any:
        text = "".join(sentence)
        rng = random.Random(text)
        tagged = [(word, rng.choice(tags)) for word in sentence]
        with CRFChunkParser() as chunks:
            chunked = chunks.parse(tagged)
        return [crfcut.segment(" ".join(sentence)), han_solo.segment(text), names.get_ner(text, pos=False), chunked]

    return Case(inputs, run)


def _tagged_sentences(n: int, seed: int) -> list[list[tuple[str, str]]]:
    """Sentences with parts of speech that depend on the words and on their neighbours."""
    nouns, verbs = [*FIRMS, *STREETS, *LAST], ["saw", "likes", "buys", "runs", "found", "sold"]

    def sentence(rng: random.Random) -> list[tuple[str, str]]:
        found = []
        for _ in range(rng.randrange(1, 4)):
            if rng.random() < 0.6:
                found.append((rng.choice(["the", "a", "that", "this"]), "DT"))
            if rng.random() < 0.4:
                found.append((rng.choice(["big", "old", "light", "back", "well"]), rng.choice(["JJ", "JJ", "RB"])))
            found += [(rng.choice(nouns).lower(), "NN"), (rng.choice([*verbs, "light", "back"]), "VB")]
        return [*found, (".", ".")]

    return _seeded(sentence, n, seed)


def nltk(n: int, folder: Path) -> Case:
    """Train CRFTagger and tag. Either trains its own model, so that training is compared too."""
    os.environ["NLTK_DATA"] = str(folder)  # the only place where it may write
    from nltk.tag import CRFTagger

    tagger = CRFTagger()
    tagger.train(_tagged_sentences(1500, 1), str(folder / "nltk.crfsuite"))
    return Case([[word for word, _ in row] for row in _tagged_sentences(n, 2)], tagger.tag)


def parserator(n: int, folder: Path) -> Case:
    """Train a parser of addresses with parserator's own training function, and tag with it."""
    import pycrfsuite
    import usaddress as package
    from parserator.training import trainModel

    labelled = [(text, package.parse(text)) for text in _seeded(address, 1500, 3)]
    trainModel(labelled, package, str(folder / "parserator.crfsuite"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "parserator.crfsuite"))
    return Case(_seeded(address, n, 4), lambda text: tagger.tag(package.tokens2features(package.tokenize(text))))


def eli5(n: int, folder: Path) -> Case:
    """Explain the weights of a model that CRFsuite trained, and tag with it."""
    import eli5 as package
    from sklearn_crfsuite import CRF

    def features(row: list[str]) -> list[dict[str, Any]]:
        return [{"w": word, "last": word[-1:], "before": row[t - 1] if t else "^"} for t, word in enumerate(row)]

    path = folder.parent / "eli5.crfsuite"  # the run on CRFsuite, which is first, makes it
    if not path.exists():
        X, y = zip(*(zip(*row, strict=True) for row in _tagged_sentences(500, 6)), strict=True)
        CRF(model_filename=str(path)).fit(list(map(features, X)), y)
    crf = CRF(model_filename=str(path))
    rows = package.format_as_dict(package.explain_weights(crf, top=(n, n)))
    rows.pop("estimator")  # its text names the class
    inputs = [features([word for word, _ in row]) for row in _tagged_sentences(n, 7)]
    return Case([rows, *inputs], lambda x: x if isinstance(x, dict) else [list(labels) for labels in crf.predict([x])])


CASES: dict[str, Callable[[int, Path], Case]] = {
    "usaddress": usaddress,
    "probablepeople": probablepeople,
    "pythainlp": pythainlp,
    "nltk": nltk,
    "parserator": parserator,
    "eli5": eli5,
}


def MODELS() -> Iterator[tuple[str, str]]:  # noqa: N802
    """Yield the model files of all packages, also those that no code of theirs opens."""
    from importlib.util import find_spec

    for package in ("usaddress", "probablepeople", "pythainlp"):
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            for path in sorted(Path(spec.origin).parent.rglob("*")):
                if path.is_file() and path.suffix in (".crfsuite", ".model") and path.read_bytes()[:4] == b"lCRF":
                    yield package, str(path)


def random_attributes(model: str, n: int) -> list[list[dict[str, float]]]:
    """Sequences of attributes that the model knows, with a few that it does not."""
    from crfkit.convert import load

    known = sorted(load(model).vocabulary.attributes.to_list())
    rng = random.Random(0)

    def item() -> dict[str, float]:
        names = [*rng.choices(known, k=rng.randrange(1, 12)), f"unknown{rng.randrange(9)}"]
        return {name: rng.choice([1.0, 1.0, 1.0, 0.5, -2.0]) for name in names}

    return [[item() for _ in range(rng.randrange(1, 20))] for _ in range(n)]
