"""A trained pairwise field: encoder, weights, how to infer and decode."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._types import Array, Entries, Floats, Ids, Label, Record, Tabular
from crfkit.errors import CrfkitError, LimitError, ModelFileError, ParameterError
from crfkit.files import limits, modelfile
from crfkit.files.training_record import checked_record
from crfkit.graph.data import GraphData
from crfkit.graph.encoding.calibrated import CalibratedEncoder
from crfkit.graph.encoding.graphs import SampleEncoder
from crfkit.graph.encoding.grids import GridEncoder
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.fields.basis import is_unit
from crfkit.graph.fields.field import GraphField
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.decoding import METHODS, Decoding, decode, joined_decodings
from crfkit.graph.inference.defaults import default_engine
from crfkit.graph.inference.engines import ENGINES, make_engine, restored_engine
from crfkit.graph.inference.marginals import Engine, Marginals, PortableEngine, Sampler

Encoder = TableEncoder | SampleEncoder
ENCODERS: Mapping[str, type[Encoder]] = {
    e.kind: e for e in (TableEncoder, SampleEncoder, GridEncoder, CalibratedEncoder)
}
DECODERS = ("auto", *METHODS)
ITERATIVE = ("bp", "trw", "mean-field")  # engines that sweep until nothing changes
BLOCK = 1 << 22  # numbers in the tables of edges of the graphs that are inferred at once


@dataclass(frozen=True, eq=False)
class GraphModel:
    """Predict with a trained field, without scikit-learn.

    >>> from crfkit import GraphCRF
    >>> model = GraphCRF().fit([[0.0], [1.0]], [["a", "c"], ["b", "d"]]).model_
    >>> data = model.encoder.encode([[1.0]])
    >>> model.encoder.labels(model.best(data).labels, data, None).tolist()
    [['b', 'd']]
    """

    encoder: Encoder
    field: GraphField
    w: Floats
    inference: str | Engine = "auto"
    decode: str = "auto"
    training: Record = dataclasses.field(default_factory=dict)  # how it was made
    n_threads: int | None = None
    seed: int = 0
    sweeps: int | None = None  # maximum of iterative inference in prediction; None for the engine's own limit
    auto_engine: str | None = None  # what "auto" means, if training chose it by its cost

    @property
    def classes(self) -> Array | list[Array]:
        """Return the labels, sorted; of a table, a list with the labels of each variable."""
        return self.encoder.classes

    # --- inference

    def potentials(self, data: GraphData, observed: Ids | None = None) -> Potentials:
        """Return the field of these graphs, given the states that are known."""
        potentials = self.field.potentials(data, self.w)
        potentials.check()
        return potentials if observed is None else potentials.clamp(observed)

    def engine(self, graph: Graph, rows: int = 1) -> Engine:
        """Return the engine for a graph, with the threads, the seed and the maximum of sweeps of the model.

        `rows` is the number of rows of a table that are inferred.
        """
        inference = self.auto_engine if self.inference == "auto" and self.auto_engine is not None else self.inference
        inference = cheap_engine(inference, self.encoder, graph, self.field.max_states, max(rows, graph.n_graphs))
        return ready_engine(inference, graph, self.field.max_states, self.n_threads, self.seed, self.sweeps)

    def infer(self, data: GraphData, observed: Ids | None = None) -> Marginals:
        """Return log Z and marginals of these graphs, given the states that are known."""
        some, times = self.distinct(data, observed)
        if times == 1:
            return joined([self._run(part, len(data)) for part in self._blocks(data, observed)])
        found = self._run(self.potentials(some, observed), 1)
        nodes = np.tile(found.nodes, (times, 1))
        return replace(
            found,
            log_z=np.tile(found.log_z, times),
            nodes=nodes,
            make_edges=lambda: _repeat(found, times),
            edge_sums=None,
        )

    def best(self, data: GraphData, observed: Ids | None = None) -> Decoding:
        """Return the labelling that `decode` finds."""
        some, times = self.distinct(data, observed)
        parts = []
        for potentials in self._blocks(some, observed):
            options = {"marginals": self._run(potentials, len(some))} if self.decode == "marginal" else {}
            with naming(self.encoder):
                parts.append(decode(potentials, self.decode, self.n_threads, **options))
        found = joined_decodings(parts)
        return found if times == 1 else found.repeat(times)

    def log_likelihood(self, data: GraphData, states: Ids) -> tuple[Floats, Marginals]:
        """Return log p(known labels) [G], and the less trusted of the marginals with and without labels."""
        free = self.infer(data)
        if (states < 0).any():
            clamped = self.infer(data, states)
            return clamped.log_z - free.log_z, clamped if free.status.settled else free
        return self.score(data, states) - free.log_z, free

    def score(self, data: GraphData, states: Ids) -> Floats:
        """Return the score of the labels of each graph [G], without log Z."""
        ends = np.cumsum([0, *(part.graph.n_nodes for part in data.blocks(BLOCK // self._width))])
        parts = data.blocks(BLOCK // self._width)
        return np.concatenate([
            self.potentials(part).score(states[begin:end])
            for part, begin, end in zip(parts, ends, ends[1:], strict=False)
        ])  # fmt: skip

    def sample(self, data: GraphData, n_samples: int, seed: int, observed: Ids | None = None) -> Ids:
        """Draw labellings [n_samples, n]: independent if exact inference is cheap, otherwise by Gibbs sampling."""
        potentials = self.potentials(data, observed)
        engine: Any = self.engine(potentials.graph)
        if not isinstance(engine, Sampler):
            name = default_engine(potentials.graph, self.field.max_states, "sampling")
            engine = ready_engine(name, potentials.graph, 0, self.n_threads, seed)
        states: Ids = engine.sample(potentials, n_samples, seed)
        return states

    def _run(self, potentials: Potentials, rows: int) -> Marginals:
        with naming(self.encoder):
            return self.engine(potentials.graph, rows).run(potentials)

    def _blocks(self, data: GraphData, observed: Ids | None) -> Iterator[Potentials]:
        """Yield the fields of some graphs at a time, so that the tables of their edges fit into memory."""
        begin = 0
        for part in data.blocks(BLOCK // self._width):
            end = begin + part.graph.n_nodes
            yield self.potentials(part, None if observed is None else observed[begin:end])
            begin = end

    @property
    def _width(self) -> int:
        """Return the numbers that engines may keep for an edge."""
        return self.field.max_states**2

    def distinct(self, data: GraphData, observed: Ids | None) -> tuple[GraphData, int]:
        """Return the graphs to infer, and how often to repeat the result: rows without inputs are all alike."""
        alike = isinstance(self.encoder, TableEncoder) and self.encoder.features is None
        return (data.take([0]), len(data)) if alike and observed is None and len(data) > 1 else (data, 1)

    # --- weights by name

    def node_weights(self) -> dict[tuple[Label, ...], float]:
        """Return (variable, feature, label) → weight; without the variable if all nodes share their weights."""
        nodes, _ = self.field.unpack(self.w)
        out = {}
        for t, b in np.argwhere(self.field.node_active).tolist():
            classes = self.encoder.node_classes(t).tolist()
            state = classes[1] if self.field.node_form == "ising" else classes[b]
            for f, value in enumerate(nodes[t, b].tolist()):
                out[(*self.encoder.node_name(t, f), state)] = value
        return out

    def edge_weights(self) -> dict[tuple[Label, ...], float]:
        """Return ((variable, variable), feature, (label, label)) → weight.

        In place of the labels it has "equal" for Potts and Ising edges, and "scores" for ordinal edges. Where only one
        end of an ordinal edge has scores, "scores" takes the place of its label.
        """
        _, edges = self.field.unpack(self.w)
        basis = self.field.edge_basis
        unit = is_unit(basis)
        out = {}
        for s, b in np.argwhere(self.field.edge_active).tolist():
            first, second = (classes.tolist() for classes in self.encoder.edge_classes(s))
            k, m = divmod(b, basis.shape[1]) if unit else np.argwhere(basis[b])[0].tolist()
            named = {"potts": "equal", "ising": "equal"}
            pair: Any = named.get(self.field.edge_form, (first[k], second[m]))
            if self.field.edge_form == "ordinal":
                pair = self._scored_pair(s, pair)
            for f, value in enumerate(edges[s, b].tolist()):
                out[(*self.encoder.edge_name(s, f), pair)] = value
        return out

    def _scored_pair(self, edge_type: int, labels: tuple[Label, Label]) -> Label:
        """Return what a weight of an ordinal edge belongs to: its labels, with "scores" for ends that have scores."""
        field = self.field
        if field.scored is None or field.edge_ends is None or field.scored[field.edge_ends[edge_type]].all():
            return "scores"
        ends = field.scored[field.edge_ends[edge_type]].tolist()
        return tuple("scores" if scored else label for scored, label in zip(ends, labels, strict=True))

    # --- the file

    def parts(self) -> tuple[Entries, dict[str, Array]]:
        """Return the metadata and the tensors of the model file."""
        metadata, tensors = self.encoder.parts()
        metadata = {
            **metadata,
            "inputs": self.encoder.kind,
            "node_form": self.field.node_form,
            "edge_form": self.field.edge_form,
            **({} if self.field.scored is None else {"scored": self.field.scored.tolist()}),
            "inference": describe_engine(self.inference),
            "decode": self.decode,
            "training": dict(self.training),
        }
        return metadata, {**tensors, "weights": self.w}

    @classmethod
    def from_parts(cls, contents: modelfile.Contents, n_threads: int | None = None) -> GraphModel:
        """Build a model from the contents of a file; raise ModelFileError if its parts do not fit together."""
        if contents.kind != "graph":
            raise ModelFileError(f"this is a model of kind '{contents.kind}'; expected 'graph'")
        kind = contents.entry("inputs", str)
        if kind not in ENCODERS:
            raise ModelFileError(f"inputs of kind '{kind}'; this version knows {', '.join(ENCODERS)}")
        try:
            encoder = ENCODERS[kind].from_parts(contents)
            field = encoder.field(contents.entry("node_form", str), contents.entry("edge_form", str))
            if "scored" in contents.metadata:
                field = dataclasses.replace(field, scored=np.array(contents.entry("scored", list)))
            _check_states(field, contents.size)
            inference = _read_engine(contents.entry("inference", dict))
        except LimitError:
            raise
        except CrfkitError as error:
            raise ModelFileError(f"inconsistent model: {error}") from None
        w = contents.weights(field.size)
        decode = contents.entry("decode", str)
        if decode not in DECODERS:
            raise ModelFileError(f"unknown decoding '{decode}'")
        training = checked_record(contents.metadata)
        auto = training.get("inference")
        return cls(
            encoder,
            field,
            w,
            inference=inference,
            decode=decode,
            training=training,
            n_threads=n_threads,
            auto_engine=auto if isinstance(auto, str) and auto in ENGINES else None,
        )

    def save(self, path: str | Path) -> None:
        """Write a model file."""
        modelfile.write(path, "graph", *self.parts())

    @classmethod
    def load(cls, path: str | Path, n_threads: int | None = None) -> GraphModel:
        """Open a model file."""
        return modelfile.load(path, cls.from_parts, n_threads)


@contextmanager
def naming(encoder: Encoder) -> Iterator[None]:
    """Let errors of inference name their graph as a row or an image."""
    try:
        yield
    except CrfkitError as error:
        if error.sample is None:
            raise
        raise error.of_sample(f"{encoder.noun} {error.sample}") from None


def node_accuracy(labels: Ids, data: GraphData, states: Ids, sample_weight: Tabular = None) -> float:
    """Return the share of known states that labels agree with, with graphs weighted by `sample_weight`."""
    weights = replace(data, weights=sample_weight).node_weights * (states >= 0)
    total = float(weights.sum())
    return float(weights @ (labels == states)) / total if total else 0.0


def joined(parts: list[Marginals]) -> Marginals:
    """Return the marginals of several sets of graphs as those of one; the status is the least trusted one."""
    if len(parts) == 1:
        return parts[0]
    worst = max(parts, key=lambda part: (not part.status.settled, part.residual))
    errors = None if worst.errors is None else np.concatenate([part.errors for part in parts])
    return replace(
        worst,
        log_z=np.concatenate([part.log_z for part in parts]),
        nodes=np.concatenate([part.nodes for part in parts]),
        make_edges=lambda: np.concatenate([part.edges for part in parts]),
        errors=errors,
        state=None,
        edge_sums=None,
    )


def _repeat(found: Marginals, times: int) -> Floats:
    return np.tile(found.edges, (times, 1, 1))


def cheap_engine(inference: str | Engine, encoder: Encoder, graph: Graph, n_states: int, rows: int = 1) -> str | Engine:
    """Return the engine that "auto" chooses in predictions of a model; an engine that was named is kept.

    A table gets the most exact engine available: its graphs are small and dense, where approximations are far off.
    """
    if inference != "auto":
        return inference
    if not isinstance(encoder, TableEncoder):
        return default_engine(graph, n_states, "samples")
    if encoder.edges_differ:
        return default_engine(graph, n_states, "any")
    return default_engine(encoder.structure, encoder.n_states, "rows", rows)


def ready_engine(
    inference: str | Engine,
    graph: Graph,
    n_states: int,
    n_threads: int | None,
    seed: int,
    sweeps: int | None = None,
) -> Engine:
    """Return an engine by name, with these threads, seed and sweeps; a given engine is returned unchanged."""
    if not isinstance(inference, str):
        return inference
    engine: Any = make_engine(inference, graph, n_states)
    known = {item.name for item in dataclasses.fields(engine)}
    options = {name: value for name, value in (("n_threads", n_threads), ("seed", seed)) if name in known}
    if sweeps is not None and engine.name in ITERATIVE:
        options["max_iterations"] = int(sweeps)
    ready: Engine = dataclasses.replace(engine, **options)
    return ready


def describe_engine(inference: str | Engine) -> Entries:
    """Return an engine for a model file: its name and its options."""
    if isinstance(inference, str):
        return {"name": inference, "options": {}}
    engine: Any = inference.portable() if isinstance(inference, PortableEngine) else inference
    options = {item.name: getattr(engine, item.name) for item in dataclasses.fields(engine) if item.name != "n_threads"}
    for name, value in options.items():
        if inference.name not in ENGINES or not isinstance(value, (int, float, str, type(None))):
            raise ParameterError(
                f"inference {inference.name!r} with {name}={value!r} cannot be saved; give the engine by name"
            )
    return {"name": inference.name, "options": options}


def _check_states(field: GraphField, file_size: int) -> None:
    """Raise LimitError if the tables of edges of a file would take too much memory: symmetric ones are K⁴/2 numbers."""
    K = field.max_states
    if field.edge_form == "symmetric":
        limits.check_memory(4 * K**4, f"symmetric tables for all pairs of {K:,} labels", file_size)


def _read_engine(entry: Record) -> str | Engine:
    name, options = entry.get("name"), entry.get("options")
    if not isinstance(name, str) or not isinstance(options, dict) or name not in ("auto", *ENGINES):
        raise ModelFileError(f"unknown inference {name!r}")
    return restored_engine(name, options) if options else name
