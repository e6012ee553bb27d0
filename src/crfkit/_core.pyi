"""The compiled core of crfkit."""

from collections.abc import Sequence
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray

import crfkit.errors


def available_kernels() -> list[str]:
    """Instruction sets that this machine runs, fastest first."""

def default_kernels() -> str:
    """The kernels that "auto" stands for; CRFKIT_KERNELS chooses others."""

def build() -> tuple[str, str, bool]:
    """
    (type of the build, compiler, whether it is for all versions of Python from 3.12 on)
    """

class StringTable:
    """Strings with ids 0, 1, …: a frozen hash table over three arrays."""

    def __init__(self, offsets: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], slots: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Checks that the arrays make a table."""

    @staticmethod
    def from_strings(strings: list[str]) -> StringTable: ...

    @staticmethod
    def from_bytes(offsets: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> StringTable:
        """
        The table of the strings bytes[offsets[i] : offsets[i + 1]], in any encoding.
        """

    def __len__(self) -> int: ...

    def __getitem__(self, id: int) -> str: ...

    def find(self, text: str) -> int:
        """The id of text, or -1."""

    def find_all(self, other: StringTable) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """
        The ids here of the strings of another table, -1 for those that are not here.
        """

    def to_list(self) -> list[str]: ...

    def take(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> StringTable:
        """The table of these ids' strings, renumbered in this order."""

    @property
    def offsets(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', writable=False)]: ...

    @property
    def bytes(self) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', writable=False)]: ...

    @property
    def slots(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', writable=False)]: ...

def parse_wapiti_weights(text: NDArray[numpy.uint8]) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64]]:
    """(places, weights) of the lines at the end of a Wapiti model"""

def format_wapiti_weights(index: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
    """The lines at the end of a Wapiti model."""

def all_within(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], most: float) -> bool:
    """Whether all values lie between -most and most; NaN does not."""

def empty_bytes(n: int) -> NDArray[numpy.uint8]:
    """An array whose bytes are to be set."""

def encode_weights(weights: NDArray[numpy.float64]) -> tuple[NDArray[numpy.uint8], NDArray[numpy.float64]]:
    """(a byte for each weight, a step for each block of them)"""

def decode_weights(codes: NDArray[numpy.uint8], steps: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """The weights that encode_weights wrote."""

def checksum(bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
    """64-bit hash of the bytes."""

class BucketTable:
    """Buckets of hashed names with ids 0, 1, …; their names are #0, #1, …."""

    def __init__(self, bits: int, buckets: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Checks that the buckets make a table."""

    def __len__(self) -> int: ...

    def __getitem__(self, id: int) -> str: ...

    def find(self, text: str) -> int:
        """The id of a bucket's name, or -1."""

    def find_name(self, name: str) -> int:
        """The id of the bucket that an attribute falls into, or -1."""

    def find_all(self, other: BucketTable) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """
        The ids here of the buckets of another table, -1 for those that are not here.
        """

    def to_list(self) -> list[str]: ...

    def take(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> BucketTable:
        """The table of these ids' buckets, renumbered in this order."""

    def merged(self, other: BucketTable) -> BucketTable:
        """These buckets, followed by those that only the other table has."""

    @property
    def bits(self) -> int: ...

    @property
    def buckets(self) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C')]: ...

class TextRules:
    """Rules that make attributes of plain tokens; see crfkit.text.words."""

    def __init__(self, rules: Sequence[str], gazetteers: Sequence[tuple[str, StringTable]] = (), fold: bool = False, words: StringTable | None = None, vectors: NDArray[numpy.float32] | None = None) -> None: ...

    @property
    def n_columns(self) -> int: ...

    @property
    def dimensions(self) -> int: ...

    def expand(self, rows: Sequence[Sequence[str]]) -> list[list[tuple[str, float]]]:
        """The attributes of each position, with their values."""

class BadInput(crfkit.errors.DataError):
    pass

class LineError(ValueError):
    pass

def number_labels(rows: list[Any]) -> tuple[list[str], NDArray[numpy.int32], NDArray[numpy.int64]] | None:
    """
    (different labels as they occur, number of each label, length of each row); None if they are not all str.
    """

class Items:
    """A sequence of items whose attributes have been worked out."""

    def __init__(self, sequence: object) -> None: ...

    def __len__(self) -> int: ...

    def items(self) -> list[dict[str, float]]:
        """The attributes of each item with their values."""

class Lines:
    """Lines of a column file that wait for their labels."""

    def with_columns(self, extra: list[str]) -> bytes:
        """
        Hands out the lines, each followed by its string; tabs in it separate columns.
        """

    def with_labels(self, names: list[str], ids: NDArray[numpy.int32]) -> bytes:
        """Hands out the lines with a further column each."""

class Encoder:
    """Builds encoded sequences; see crfkit.chain.data."""

    def __init__(self, template: str | None = None, attributes: StringTable | BucketTable | None = None, pair_attributes: StringTable | BucketTable | None = None, labelled: bool = False, keep_lines: bool = False, syntax: str = 'crf++', loose: bool = False, text: TextRules | None = None, hash_bits: int = 0, most: int = 2147483647) -> None: ...

    def feed(self, bytes: bytes, end: bool = False) -> None: ...

    def add_rows(self, sequence: object) -> None: ...

    def add_items(self, sequence: object) -> None: ...

    def add_all_items(self, sequences: list[Any], n_threads: int = 1) -> None:
        """Adds sequences. The number of threads changes nothing but the time."""

    def take(self, ordered: bool = False) -> tuple[Any, ...]: ...

    def take_lines(self) -> Lines: ...

    def lines_with(self, extra: list[str]) -> bytes: ...

    def table(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], pairs: bool = False) -> StringTable | BucketTable: ...

    @property
    def sizes(self) -> tuple[int, int]: ...

    @property
    def label_names(self) -> list[str]: ...

    @property
    def n_columns(self) -> int: ...

    @property
    def line(self) -> int: ...

def template_summary(text: str, syntax: str = 'crf++') -> tuple[list[str], list[str], str | None, int]:
    """
    (unigram lines, bigram lines other than that of the transitions, that line or None, columns needed)
    """

def expand_template(template: str, rows: Sequence[Sequence[str]], syntax: str = 'crf++') -> list[tuple[list[str], list[str]]]:
    """Per position, the unigram and the bigram attributes."""

def count_attributes(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_ids: int, n_labels: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]]:
    """(how often each id occurs, with how many different labels)"""

def observed_pairs(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_ids: int, n_labels: int, pairs: bool = False) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]]: ...

def renumber(offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, rank: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> int:
    """
    Renumbers in place, dropping negative ranks; returns the number of entries that remain.
    """

class Sequences:
    def __init__(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], attributes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, pair_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, pair_attributes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, targets: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, token_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Field:
    def __init__(self, n_labels: int, n_attributes: int, n_pair_attributes: int, state_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, state_labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, transition_codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_transition: int, pair_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, pair_codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, order: int, triple_codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_triple: int, allowed: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, allowed_start: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, allowed_end: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, label_classes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_classes: int, class_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, class_codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> None: ...

    @property
    def size(self) -> int: ...

    def array(self, name: str) -> Any:
        """
        The field's own copy of an array, which nobody can change; None if it has none.
        """

class KeptPlan:
    """What `Objective.plan` returned, as arrays that may lie in a file."""

    def __init__(self, group_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], group_members: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], row_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], entry_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], entry_weights: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], entry_labels: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], row_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], entry_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Objective:
    """Negative log-likelihood or hinge loss of chains and its derivatives."""

    def __init__(self, data: Sequences, field: Field, n_threads: int, kernels: str = 'auto', cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, hinge: bool = False, plan: KeptPlan | None = None) -> None: ...

    def plan(self) -> dict[str, Any]:
        """
        The arrays that the data were written out to; a KeptPlan of them saves making them again.
        """

    def value_gradient(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], keep: bool = False, hold: bool = True) -> float:
        """
        Fills gradient, returns the value. With keep, Hessian products at w start from what is left behind; without it and without hold there can be none, and w is let go.
        """

    def single_value_gradient(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float | None:
        """The same in single precision; None where that cannot hold the scores."""

    def hessian_product(self, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], product: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """product = Hessian times v, at the w of the last value_gradient."""

    def hessian_diagonal(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], single: bool = False) -> None:
        """diagonal = sum of p (1 - p) over the occurrences of each feature."""

    @property
    def cache_bytes(self) -> int: ...

@overload
def dense_beliefs(u: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], time_first: bool, start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], transitions: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], lengths: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int, log_z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], node: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], edge: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], labels: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, kernels: str = 'auto') -> None: ...

@overload
def dense_beliefs(u: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], time_first: bool, start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lengths: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int, log_z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], node: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], edge: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], labels: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, kernels: str = 'auto') -> None:
    """
    Fills log Z [batch], node marginals [batch, time, labels] and the sum over time of edge marginals [batch, labels, labels] of label scores [batch, time, labels], or [time, batch, labels]; -inf forbids. With labels [batch, time], takes their scores and counts from them.
    """

@overload
def dense_viterbi(u: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], time_first: bool, start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], lengths: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int, labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], kernels: str = 'auto') -> None: ...

@overload
def dense_viterbi(u: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], time_first: bool, start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lengths: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int, labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], kernels: str = 'auto') -> None:
    """
    Fills the best labels [batch, time], 0 in the padding, and their scores [batch].
    """

def dense_covariances(u: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], time_first: bool, start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lengths: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int, d_u: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], d_transitions: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], node: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], edge: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], kernels: str = 'auto') -> None:
    """
    Fills the derivatives of node [batch, time, labels] and edge marginals [batch, labels, labels] along d_u [batch, time, labels] and d_transitions [batch, labels, labels].
    """

class Decoder:
    """A field with its weights: marginals and best labels of sequences."""

    def __init__(self, field: Field, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], kernels: str = 'auto') -> None: ...

    def marginals(self, data: Sequences, n_threads: int, nodes: bool = True, edges: bool = False, allowed: NDArray[numpy.uint8] | None = None) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
        """(log Z per sequence, node marginals, edge marginals)"""

    def viterbi(self, data: Sequences, n_threads: int, allowed: NDArray[numpy.uint8] | None = None) -> tuple[NDArray[numpy.int32], NDArray[numpy.float64]]:
        """(best labels, their scores)"""

    def nbest(self, data: Sequences, n_threads: int, most: int, allowed: NDArray[numpy.uint8] | None = None, groups: NDArray[numpy.int32] | None = None, goes_on: NDArray[numpy.uint8] | None = None, limit: int = 0) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.uint8]]:
        """
        (number of labellings per sequence, their scores, their labels, whether the search was complete). With groups (of each label, -1: none), only labellings in which each group has at most one run.
        """

    def best_spans(self, data: Sequences, n_threads: int, goes_on: NDArray[numpy.uint8], types: NDArray[numpy.int32], allowed: NDArray[numpy.uint8] | None = None) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.float64]]:
        """
        The phrases of the best labelling of each sequence: (log Z, how many; their begins, ends, types and probabilities).
        """

    def span_probabilities(self, data: Sequences, n_threads: int, goes_on: NDArray[numpy.uint8], types: NDArray[numpy.int32], offsets: NDArray[numpy.int64], begins: NDArray[numpy.int64], ends: NDArray[numpy.int64], kinds: NDArray[numpy.int32], allowed: NDArray[numpy.uint8] | None = None) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
        """(log Z, probabilities of spans). Spans offsets[n] … are of sequence n."""

    def entropies(self, data: Sequences, n_threads: int, allowed: NDArray[numpy.uint8] | None = None) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
        """(log Z, entropy) of each sequence"""

    def sample(self, data: Sequences, n_threads: int, count: int, seed: int, allowed: NDArray[numpy.uint8] | None = None) -> tuple[NDArray[numpy.float64], NDArray[numpy.int32]]:
        """
        (log Z, labels of `count` samples of each sequence, one sequence after the other)
        """

def name_labels(labels: list[Any], ids: NDArray[numpy.int32], starts: NDArray[numpy.int64]) -> list[list[Any]]:
    """The names of label ids, a list for each sequence."""

class Tagger:
    """Tags one sequence at a time; the sequence of the last call is kept."""

    def __init__(self, encoder: Encoder, decoder: Decoder, labels: list[Any], rows: bool) -> None: ...

    @staticmethod
    def open_crfsuite(file: bytes) -> Tagger:
        """
        The tagger of a CRFsuite file, whose attributes are read when they occur. Raises BadModel.
        """

    @property
    def labels(self) -> list[Any]: ...

    def tag(self, sequence: object) -> list[Any]:
        """The best labels of a sequence."""

    def set(self, sequence: object) -> None:
        """Encodes a sequence and keeps it."""

    def viterbi(self) -> list[Any]:
        """The best labels."""

    def score(self, labels: Sequence[int]) -> float:
        """The score of labels, given by their ids."""

    @property
    def log_partition(self) -> float: ...

    @property
    def length(self) -> int: ...

    def marginal(self, label: int, position: int) -> float:
        """p(label at position)."""

    def marginals(self) -> NDArray[numpy.float64]:
        """p(label) of every position: [positions, labels]."""

class BadModel(ValueError):
    pass

def read_crfsuite(file: NDArray[numpy.uint8]) -> tuple[list[bytes], StringTable, NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.float64]]:
    """
    (labels, attributes, state offsets, state labels, transition codes, weights) of a CRFsuite model
    """

def write_crfsuite(labels: Sequence[str], attributes: StringTable, state_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], state_labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], transition_codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
    """The CRFsuite model file of these parts."""

class Online:
    """
    Chains that are updated sequence by sequence; see crfkit.chain.losses.online.
    """

    def __init__(self, data: Sequences, field: Field, kernels: str = 'auto', cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, hinge: bool = False) -> None: ...

    def start(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], variances: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    def variances(self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> bool:
        """Fills out with AROW's variances; False if there are none yet."""

    def weights(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def square(self) -> float:
        """Squared length of the weights."""

    def average(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def sgd(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], steps: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], l2: float, l1: float, averaged: bool, shrink_first: bool = False) -> float:
        """Summed loss before each update."""

    def perceptron(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def measure(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Counts mistakes, changes nothing."""

    @property
    def mistakes(self) -> tuple[int, int]:
        """
        (sequences, positions) that the last epoch labelled wrongly, before its updates.
        """

    @property
    def mistake_share(self) -> float:
        """
        The share of wrong positions of each sequence of the last epoch, times its weight, summed.
        """

    def save(self) -> tuple[Any, ...]:
        """All that later epochs depend on."""

    def restore(self, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], reached: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], covariances: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], multipliers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: float, scale_sum: float, penalty: float, steps: int) -> None:
        """Goes on from what save returned."""

    def passive_aggressive(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], kind: int, c: float, count_errors: bool = True) -> float:
        """Summed loss before each update."""

    def arow(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], variance: float, gamma: float) -> float:
        """Summed loss before each update."""

    def mira(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], c: float, shortened: bool = False) -> float:
        """Summed loss before each update."""

class SingleOnline:
    """Plain stochastic gradients in single precision."""

    def __init__(self, data: Sequences, field: Field, kernels: str = 'auto', cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    def start(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def weights(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def square(self) -> float:
        """Squared length of the weights."""

    def sgd(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], steps: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], l2: float) -> float:
        """Summed loss before each update."""

def dot(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> float:
    """x · y"""

def combine(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], a: float, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """x + a·y"""

def add_and_measure(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], a: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[float, float]:
    """y += a·x; returns (x·x, y·y)."""

def empty_vector(n: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """
    A vector whose numbers are to be set; large ones take memory that others have left.
    """

def free_vectors() -> None:
    """Give the memory of vectors that were dropped back to the system."""

def secant_products(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[float, float, float, float, float]:
    """(s·s, s·y, y·y, s·g_new, s·g) with s = x_new − x and y = g_new − g"""

@overload
def rows_dot(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

@overload
def rows_dot(rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

@overload
def rows_dot(rows: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """rows @ (scale·x)"""

@overload
def rows_combine(c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], a: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], measure: bool, n_threads: int) -> float: ...

@overload
def rows_combine(c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], a: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], measure: bool, n_threads: int) -> float: ...

@overload
def rows_combine(c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], a: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], measure: bool, n_threads: int) -> float:
    """
    out = scale·(a·scale·x + c @ rows); out may be x. Returns x·out with `measure`, else 0.
    """

@overload
def curvature_pair(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, s: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> tuple[float, float]: ...

@overload
def curvature_pair(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, s: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], y: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> tuple[float, float]: ...

@overload
def curvature_pair(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, s: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu')], y: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> tuple[float, float]:
    """s = (x_new − x)/scale, y = (g_new − g)·scale; returns (s·y, y·y)."""

@overload
def rows_direction(c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], a: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, row: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> float: ...

@overload
def rows_direction(c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], a: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, row: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> float:
    """row = a·scale·x + c @ rows, rounded; returns x·(scale·row)."""

@overload
def advance(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], a: float, row: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

@overload
def advance(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], a: float, row: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """x + a·scale·row"""

@overload
def row_dot(row: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> float: ...

@overload
def row_dot(row: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> float:
    """x·(scale·row)"""

@overload
def add_step(rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], s: int, y: int, a: float, row: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], float, float]: ...

@overload
def add_step(rows: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')], s: int, y: int, a: float, row: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g_new: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], float, float]:
    """
    rows[s] = a·row, rows[y] = (g_new − g)·scale; returns (rows @ (scale·g_new), s·y, y·y).
    """

class GroupMembers:
    """Which weights are members of which group."""

    def __init__(self, members: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def norms_linf(w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: GroupMembers) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """max |w_k| over the members k of every group."""

def project_epigraph_linf(w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: GroupMembers) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
    """
    The nearest (w, alpha) with |w_k| ≤ alpha_s for the members k of every group s.
    """

def least_subgradient_linf(w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], strength: float, groups: GroupMembers) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
    """
    The shortest of gradient + strength · the sub-differential of Σ_s max_k |w_k|.
    """

def sum_absolute(w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> float:
    """Σ |w_j|"""

def moving_weights(w: NDArray[numpy.float64], g: NDArray[numpy.float64], strength: float, n_threads: int) -> tuple[Any, Any, Any, Any, float]:
    """
    (places of the weights that are not zero, p there, places of those that leave zero, p there, ‖p‖), where −p is the shortest sub-gradient of f(w) + strength·‖w‖₁ and g = ∇f(w)
    """

def move_columns(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], from_: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], to: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    The columns of rows that are named `from_`, ascending, in a matrix whose columns are named `to`; else 0.
    """

def two_loop(g: NDArray[numpy.float64], s: NDArray[numpy.float64], y: NDArray[numpy.float64], diagonal: NDArray[numpy.float64], places: NDArray[numpy.int64], excess: NDArray[numpy.float64]) -> tuple[Any, float]:
    """
    (H·g, γ) of the pairs in the rows of s and y, oldest first, with H₀ = γ·(diag(diagonal) + excess at the places); γ = 0: no pair is used.
    """

class Graph:
    """The structure of one or many graphs, as checked copies of arrays."""

    def __init__(self, n_nodes: int, edges: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], node_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], edge_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def n_nodes(self) -> int: ...

    @property
    def n_edges(self) -> int: ...

    def colours(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]]:
        """(bounds, nodes by colour): no two nodes of a colour are neighbours."""

    def spanning_forest(self, costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """The edges of the spanning forest of least total cost."""

class Blocks:
    """Nodes in blocks of eight of one colour and degree."""

    def __init__(self, graph: Graph) -> None: ...

class SumProduct:
    """Loopy belief propagation in probability space."""

    def __init__(self, graph: Graph, blocks: Blocks, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], kernels: str, n_threads: int) -> None: ...

    @property
    def fits(self) -> bool: ...

    @property
    def form(self) -> str: ...

    def start_from(self, other: SumProduct) -> bool: ...

    def run(self, max_iterations: int, tolerance: float, damping: float, flooding: bool, n_threads: int) -> tuple[int, float, bool]:
        """
        (iterations, largest change of a log message, whether that is within the tolerance)
        """

    def log_z(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    def nodes(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]: ...

    def edges(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C')]: ...

class Reweighted:
    """Tree-reweighted sum-product in log space, over blocks of nodes."""

    def __init__(self, graph: Graph, blocks: Blocks, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, kernels: str, n_threads: int) -> None: ...

    @property
    def fits(self) -> bool: ...

    def start_from(self, other: Reweighted) -> bool: ...

    def run(self, max_iterations: int, tolerance: float, damping: float, flooding: bool, n_threads: int) -> tuple[int, float, bool]:
        """
        (iterations, largest change of a log message, whether that is within the tolerance)
        """

    def log_z(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    def nodes(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]: ...

    def edges(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C')]: ...

class LogMessages:
    """Message passing in log space: sum or max, tree-reweighted or not."""

    def __init__(self, graph: Graph, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, maximum: bool) -> None: ...

    def start_from(self, other: LogMessages) -> bool: ...

    def run(self, max_iterations: int, tolerance: float, damping: float, schedule: str, n_threads: int) -> tuple[int, float, bool]:
        """
        (iterations, largest change of a log message, whether that is within the tolerance)
        """

    def log_z(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    def nodes(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]: ...

    def edges(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C')]: ...

    def states(self, n_threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]:
        """The state of the largest belief of every node."""

class MeanField:
    """Naive mean field by coordinate ascent."""

    def __init__(self, graph: Graph, blocks: Blocks, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], kernels: str, n_threads: int) -> None: ...

    def start_from(self, nodes: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    def run(self, max_iterations: int, tolerance: float, damping: float, n_threads: int) -> tuple[int, float, bool]:
        """
        (iterations, largest change of a probability, whether that is within the tolerance)
        """

    def log_z(self, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    def nodes(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]: ...

class TreePlan:
    """The order in which exact inference passes through a forest."""

    def __init__(self, graph: Graph) -> None: ...

    @property
    def cyclic(self) -> int:
        """The first graph that has a cycle; -1: none."""

    def marginals(self, unary: NDArray[numpy.float64], tables: NDArray[numpy.float64], n_threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
        """(log Z per graph, node marginals, edge marginals)"""

    def decode(self, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]:
        """A labelling of the highest score."""

    def sample(self, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], n_samples: int, seed: int, n_threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C')]:
        """Independent labellings."""

class Elimination:
    """Orders in which to eliminate the nodes of graphs."""

    def __init__(self, graph: Graph, n_states: int, limit: int, budget: int) -> None: ...

    @property
    def stopped(self) -> int:
        """The graph without an order; -1: none."""

    @property
    def widest(self) -> int:
        """The graph of the largest clique."""

    @property
    def width(self) -> int:
        """Its width: the nodes of a clique less one."""

    def most_entries(self, n_states: int) -> tuple[int, float]:
        """
        (graph, entries): the graph that needs most for all its tables together.
        """

class JunctionPlan:
    """Clique tables of graphs, for so many states."""

    def __init__(self, elimination: Elimination, n_states: int) -> None: ...

    @property
    def max_size(self) -> int:
        """Entries of all tables of the largest graph."""

    def marginals(self, unary: NDArray[numpy.float64], tables: NDArray[numpy.float64], n_threads: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
        """(log Z per graph, node marginals, edge marginals)"""

    def decode(self, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]:
        """A labelling of the highest score."""

    def sample(self, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], n_samples: int, seed: int, n_threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C')]:
        """Independent labellings."""

    def pair_marginals(self, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], pairs: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C')]:
        """
        Marginals of pairs of nodes of a graph each; those of the same first node stand together.
        """

class GibbsPlan:
    """What of a graph the Gibbs sampler needs: colours and induced forests."""

    def __init__(self, graph: Graph) -> None: ...

    @property
    def n_outside(self) -> int: ...

    def forest(self, sweep: int = 1) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')]]:
        """
        (bounds of the trees, nodes by tree, parents before children), in turn by sweep
        """

def gibbs_start(plan: GibbsPlan, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], seed: int, stream: int, n_threads: int) -> None:
    """
    Fills labels [nodes, chains] with independent draws from the unary part.
    """

def gibbs_sweeps(plan: GibbsPlan, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], first: int, n_sweeps: int, block: bool, seed: int, stream: int, n_threads: int) -> None:
    """
    Sweeps over labels [nodes, chains] in place, after `first` earlier ones.
    """

def gibbs_marginals(plan: GibbsPlan, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], first: int, n_sweeps: int, thin: int, block: bool, seed: int, stream: int, n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C')]]:
    """
    The same, and (node marginals, edge marginals) from the state after each thin-th sweep.
    """

def gibbs_annealed(plan: GibbsPlan, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], n_runs: int, n_steps: int, block: bool, seed: int, stream: int, n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
    """
    [graphs, runs] log weights of annealed importance sampling from the unary part.
    """

def pseudo_value(graph: Graph, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[float, Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]]:
    """
    (pseudo-likelihood, conditionals, its derivatives by unary and by coefficients)
    """

def pseudo_tangent(graph: Graph, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]]:
    """
    The derivatives of pseudo_value's derivatives along a direction (unary, coefficients), at conditionals p.
    """

def pseudo_variances(graph: Graph, basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
    """
    Second derivatives of the pseudo-likelihood by the coefficients of each edge.
    """

def composite_value(graph: Graph, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[float, Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]]:
    """
    (edge composite likelihood, its derivatives by unary and by coefficients)
    """

def iterate_modes(graph: Graph, unary: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], tables: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], scales: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C')], int]:
    """
    (labels, sweeps): coordinate ascent from `start` until no change of one node raises the score.
    """

def transpose(offsets: NDArray[numpy.int64], ids: NDArray[numpy.int32], values: NDArray[numpy.float64] | None, n_ids: int) -> tuple[Any, ...]:
    """Rows of entries to (offsets, rows, values) by id."""

class Inverted:
    """The positions of every attribute."""

    def __init__(self, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_positions: int) -> None: ...

    def gather(self, attributes: NDArray[numpy.int64]) -> tuple[Any, ...]:
        """
        (offsets, ids, values) by position of these attributes, renumbered in this order.
        """

    def add_gradients(self, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, first: int, last: int, residual: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], t0: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None:
        """
        Adds, for the weights of the attributes from first to last, the sums of residual rows t0, … over the positions of each attribute.
        """

class PseudoTable:
    """The pseudo-likelihood of samples of one graph, untied."""

    def __init__(self, states: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bank: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], node_columns: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], node_basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], node_active: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], edges: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], edge_columns: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], edge_basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], edge_active: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def size(self) -> int: ...

    def value(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int, kernels: str = 'auto') -> tuple[float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """(pseudo-likelihood, its gradient)"""
