"""Generated data with a seed, so that demos and tests need no files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from crfkit.data.graph import Graph
from crfkit.data.graphs import GraphData
from crfkit.errors import ParameterError
from crfkit.fields.graph import untied_field
from crfkit.inference.junction import Junction

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

    Many names are ambiguous (Victoria is a person, a place and a firm) and some are invented, so that a tagger has
    to use the context and does not reach 100 %.

    >>> entity_corpus(1, seed=1)[0][0]
    ('Chelsea', 'Xx', 'B-PER')
    """
    rng = random.Random(seed)
    return [_sentence(rng) for _ in range(n_sentences)]


def entity_words(n_sentences: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words and the labels of `entity_corpus`, as `ChainCRF(features="ner")` takes them.

    >>> X, y = entity_words(1, seed=1)
    >>> X[0][:2], y[0][:2]
    (['Chelsea', 'met'], ['B-PER', 'O'])
    """
    sentences = entity_corpus(n_sentences, seed)
    words = [[word for word, _, _ in sentence] for sentence in sentences]
    return words, [[label for _, _, label in sentence] for sentence in sentences]


def _sentence(rng: random.Random) -> list[Token]:
    tokens: list[Token] = []
    for word in rng.choice(_PATTERNS).split():
        if word.startswith("<"):
            kind = rng.choice(_KINDS) if word == "<ANY>" else word[1:-1]
            for k, part in enumerate(_entity(kind, rng)):
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


def disc_images(
    n: int, seed: int = 0, shape: tuple[int, int] = (64, 80)
) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.uint8]]]:
    """Return (images [H, W, 3], masks [H, W] with 1 on the disc): discs with a faint tint under strong noise.

    >>> images, masks = disc_images(2)
    >>> images[0].shape, sorted(set(masks[0].ravel().tolist()))
    ((64, 80, 3), [0, 1])
    """
    H, W = shape
    y, x = np.mgrid[:H, :W]
    images, masks = [], []
    for k in range(n):
        rng = np.random.default_rng((seed, k))
        radius = rng.uniform(0.22, 0.34) * min(H, W)
        row, column = rng.uniform(radius, H - radius), rng.uniform(radius, W - radius)
        mask = (y - row) ** 2 + (x - column) ** 2 < radius**2
        values = 0.5 + mask[..., None] * (0.06, 0.0, -0.06) + rng.normal(0, 0.25, (H, W, 3))
        images.append(np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8))
        masks.append(mask.astype(np.uint8))
    return images, masks


@dataclass(frozen=True, eq=False)
class PairwiseTable:
    """Samples of a pairwise CRF on binary variables, each with its own features, and the field they are drawn from."""

    X: NDArray[np.float64]  # [samples, nodes, features]
    Y: NDArray[np.int32]  # [samples, nodes] 0 or 1
    edges: NDArray[np.int32]  # [E, 2] the true ones
    node_weights: NDArray[np.float64]  # [nodes, 1 + features] of [1, f_i], for state 0; none for state 1
    edge_weights: NDArray[np.float64]  # [E, 3, 1 + 2·features] of [1, f_i, f_j], for the states 00, 01, 10; none for 11

    def data(self, structure: Graph | None = None) -> GraphData:
        """Return the samples encoded for an untied field; every sample has the given edges, or all pairs of nodes."""
        n_samples, n, d = self.X.shape
        structure = Graph.complete(n) if structure is None else structure
        i, j = structure.edges.T
        ones = np.ones((n_samples, n, 1))
        edges = np.concatenate([ones[:, i], self.X[:, i], self.X[:, j]], axis=2)
        return GraphData(
            structure.repeat(n_samples),
            np.concatenate([ones, self.X], axis=2).reshape(n_samples * n, 1 + d),
            edges.reshape(n_samples * structure.n_edges, 1 + 2 * d),
            node_types=np.tile(np.arange(n, dtype=np.int32), n_samples),
            edge_types=np.tile(np.arange(structure.n_edges, dtype=np.int32), n_samples),
            labels=self.Y.ravel(),
        )

    def __getitem__(self, rows: slice) -> PairwiseTable:
        """Return some of the samples."""
        return PairwiseTable(self.X[rows], self.Y[rows], self.edges, self.node_weights, self.edge_weights)


def random_pairwise(
    n_nodes: int, n_features: int, n_samples: int, edge_probability: float = 0.5, seed: int = 0
) -> PairwiseTable:
    """Return a random pairwise CRF and exact samples of it, as in Xue & Zhang (2016), after Schmidt et al. (2008).

    Each pair of nodes is an edge with this probability; features and node weights are N(0, 1), the weights of an edge
    U(−b, b) with b ~ N(0, 1) for each edge. At most about 20 nodes: samples are drawn by exact inference.

    >>> table = random_pairwise(5, 2, 100)
    >>> table.X.shape, table.Y.shape, table.node_weights.shape, table.edge_weights.shape[1:]
    ((100, 5, 2), (100, 5), (5, 3), (3, 5))
    """
    for name, number in (("n_nodes", n_nodes), ("n_features", n_features), ("n_samples", n_samples)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < (name != "n_features"):
            raise ParameterError(f"{name} must be an integer >= {int(name != 'n_features')}, not {number!r}")
    if not 0 <= edge_probability <= 1:
        raise ParameterError(f"edge_probability must be between 0 and 1, not {edge_probability!r}")
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(n_nodes), 2)), dtype=np.int32).reshape(-1, 2)
    edges = pairs[rng.random(len(pairs)) < edge_probability]
    nodes = rng.normal(size=(n_nodes, 1 + n_features))
    bounds = rng.normal(size=(len(edges), 1, 1))
    weights = np.abs(bounds) * rng.uniform(-1, 1, size=(len(edges), 3, 1 + 2 * n_features))
    X = rng.normal(size=(n_samples, n_nodes, n_features))
    unlabelled = PairwiseTable(X, np.zeros((n_samples, n_nodes), dtype=np.int32), edges, nodes, weights)
    data = unlabelled.data(Graph(n_nodes, edges))
    field = untied_field(data, 2)
    w = np.concatenate([nodes.ravel(), weights.ravel()])
    Y = Junction().sample(field.potentials(data, w), 1, seed=seed)[0].reshape(n_samples, n_nodes)
    return PairwiseTable(X, Y, edges, nodes, weights)


def gaussian_chains(
    n: int = 5000,
    n_inputs: int = 1000,
    n_relevant: int = 100,
    length: int = 8,
    scale: float = 1.0,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]]:
    """Return (inputs [n, length, n_inputs], labels 0 or 1 [n, length], the relevant inputs), the data of Zhu, Lao &
    Xing (2010, section 6.1.1).

    Inputs are independent normal numbers. Labels are drawn exactly from a chain whose weights (one for each label and
    relevant input, and for each pair of labels) are normal with this standard deviation.

    >>> X, y, relevant = gaussian_chains(3, n_inputs=20, n_relevant=2)
    >>> X.shape, y.shape, len(relevant)
    ((3, 8, 20), (3, 8), 2)
    """
    if not (n >= 0 and length >= 1 and 0 <= n_relevant <= n_inputs):
        raise ParameterError(
            f"expected n >= 0, length >= 1 and 0 <= n_relevant <= n_inputs; got {n}, {length}, {n_relevant} "
            f"and {n_inputs}"
        )
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, length, n_inputs))
    relevant = np.sort(rng.choice(n_inputs, n_relevant, replace=False))
    node = scale * rng.standard_normal((n_relevant, 2))
    edge = scale * rng.standard_normal((2, 2))  # [from, to]
    scores = X[:, :, relevant] @ node  # [n, length, 2]
    onward = np.zeros((n, length, 2))  # log of the sum over later labels
    for t in range(length - 2, -1, -1):
        later = (scores[:, t + 1] + onward[:, t + 1])[:, None, :] + edge  # [n, label, next]
        onward[:, t] = np.logaddexp(later[..., 0], later[..., 1])
    uniform = rng.random((n, length))
    y = np.zeros((n, length), dtype=np.int32)
    for t in range(length):
        here = scores[:, t] + onward[:, t] + (edge[y[:, t - 1]] if t else 0.0)
        y[:, t] = uniform[:, t] * (1.0 + np.exp(np.minimum(here[:, 0] - here[:, 1], 700.0))) < 1.0
    return X, y, relevant


def labelled_words(
    n: int, n_labels: int, length: tuple[int, int] = (5, 25), context: int = 1, noise: float = 0.3, seed: int = 0
) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Return (sequences of attribute lists, labels "L0" …) with any number of labels, to measure how time grows.

    Each label has five usual successors and twenty usual words, which it shares with others; `noise` is the share of
    words that are drawn at random. A token's attributes are the words up to `context` positions away. Lengths are drawn
    from `length`, the upper end excluded.

    >>> X, y = labelled_words(2, n_labels=300)
    >>> X[0][0], y[0][0]
    (['0=1414', '1=401'], 'L134')
    """
    rng = np.random.default_rng(seed)
    n_words = 5 * n_labels
    successors = rng.integers(0, n_labels, (n_labels, 5))
    words = rng.integers(0, n_words, (n_labels, 20))
    X: list[list[list[str]]] = []
    y: list[list[str]] = []
    for _ in range(n):
        labels = [int(rng.integers(n_labels))]
        for _ in range(int(rng.integers(*length)) - 1):
            usual = rng.random() < 0.9
            labels.append(int(successors[labels[-1], rng.integers(5)] if usual else rng.integers(n_labels)))
        usual_words = [int(words[label, min(int(rng.exponential(3.0)), 19)]) for label in labels]
        seen = [int(rng.integers(n_words)) if rng.random() < noise else word for word in usual_words]
        near = range(-context, context + 1)
        X.append([[f"{k}={seen[t + k]}" for k in near if 0 <= t + k < len(seen)] for t in range(len(seen))])
        y.append([f"L{label}" for label in labels])
    return X, y
