"""Python packages next to crfkit, for peers.py: training and tagging from the same lists of attributes of CoNLL-2000.

chaine             CRFsuite inside: the same weights and objective
underthesea-core   L-BFGS in Rust, for 100 iterations, its default; its L2 penalty has a scale of its own
crfs               reads models of CRFsuite and tags; it cannot train
scikit-learn       logistic regression of every token on its own attributes, without the neighbouring labels: what the
                   structure is worth

Ours is trained and tags between the peers. A package that is not installed is left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from common import Report, Sequences, attributes, crfsuite_train, say, seconds

from crfkit import L2, ChainCRF, Template, evaluate

Labels = list[list[str]]
Tagger = Callable[[Sequences], Labels]
Made = tuple[float | None, Tagger]  # seconds of training, and what tags


def chaine(X: Sequences, y: Labels, folder: Path, iterations: int) -> Made:
    import chaine
    from chaine.logging import set_verbosity

    set_verbosity(0)
    path = folder / "chaine"
    trainer = chaine.Trainer("lbfgs", c1=0.0, c2=1.0, max_iterations=iterations)
    sets = [[dict.fromkeys(item, 1.0) for item in x] for x in X]
    taken = seconds(lambda: trainer.train(sets, y, model_filepath=path))
    model = chaine.Model(path)
    ready: dict[int, Any] = {}

    def tag(rows: Sequences) -> Labels:
        items = ready.setdefault(id(rows), [[dict.fromkeys(item, 1.0) for item in x] for x in rows])
        return [list(model.predict_single(x)) for x in items]

    return taken, tag


def underthesea(X: Sequences, y: Labels, folder: Path, iterations: int) -> Made:
    from underthesea_core import CRFTagger, CRFTrainer

    trainer = CRFTrainer(
        loss_function="lbfgs", l1_penalty=0.0, l2_penalty=1.0, max_iterations=min(iterations, 100), verbose=0
    )
    taken = seconds(lambda: trainer.train(X, y))
    tagger = CRFTagger.from_model(trainer.get_model())
    return taken, lambda rows: [tagger.tag(x) for x in rows]


def crfs(X: Sequences, y: Labels, folder: Path, iterations: int) -> Made:
    from crfs import Attribute, Model

    path = folder / "crfs"
    crfsuite_train(X, y, path, min(iterations, 50))
    model = Model.open(str(path))
    ready: dict[int, Any] = {}

    def tag(rows: Sequences) -> Labels:
        items = ready.setdefault(id(rows), [[[Attribute(name) for name in item] for item in x] for x in rows])
        return [list(model.tag(x)) for x in items]

    return None, tag


def scikit_learn(X: Sequences, y: Labels, folder: Path, iterations: int) -> Made:
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    hasher = FeatureHasher(n_features=1 << 20, input_type="string", alternate_sign=False)
    n = sum(map(len, X))
    model = SGDClassifier(loss="log_loss", alpha=2.0 / n, max_iter=20, tol=1e-4, random_state=0, n_jobs=2)
    flat = [label for row in y for label in row]
    taken = seconds(lambda: model.fit(hasher.transform(item for x in X for item in x), flat))

    def tag(rows: Sequences) -> Labels:
        found = iter(model.predict(hasher.transform(item for x in rows for item in x)).tolist())
        return [[next(found) for _ in x] for x in rows]

    return taken, tag


def ours(X: Sequences, y: Labels, folder: Path, iterations: int) -> Made:
    crf = ChainCRF(penalty=L2.from_crfsuite(1.0), n_threads=2)
    taken = seconds(lambda: crf.fit(X, y))
    crf.save(folder / "crfkit.crf")
    single = ChainCRF.load(folder / "crfkit.crf", n_threads=1)
    return taken, single.predict


PACKAGES: dict[str, tuple[str, Callable[..., Made]]] = {
    "chaine": ("chaine", chaine),
    "underthesea": ("underthesea-core", underthesea),
    "crfs": ("crfs", crfs),
    "sklearn": ("scikit-learn", scikit_learn),
}


def compare(part: str, data: Path, folder: Path, rounds: int, quick: bool) -> Report:
    """Return how a package does next to crfkit; raises ImportError if it is not installed."""
    name, peer = PACKAGES[part]
    most = 300 if quick else None
    template = Template.read(data / "chunking.template")
    X, y = attributes(data / "train.txt", template, most)
    X_test, y_test = attributes(data / "test.txt", template, most)
    tokens = sum(map(len, X_test))
    iterations = 20 if quick else 10_000

    def measured(make: Callable[..., Made]) -> Report:
        taken, tag = make(X, y, folder, iterations)
        predicted = tag(X_test)  # what a tagger prepares once is not counted
        speed = statistics.median(tokens / seconds(lambda: tag(X_test)) for _ in range(3))
        return {"train": taken, "tokens_per_second": speed, "f1": evaluate(y_test, predicted).overall.f1}

    runs = []
    for k in range(rounds):
        runs.append({"crfkit": measured(ours), "peer": measured(peer)})
        say(f"{name}, round {k + 1}: {runs[-1]}")

    def middle(who: str, figure: str) -> float | None:
        found = [run[who][figure] for run in runs]
        return None if None in found else statistics.median(found)

    who = {who: {figure: middle(who, figure) for figure in runs[0]["peer"]} for who in ("crfkit", "peer")}
    faster = [run["peer"]["train"] / run["crfkit"]["train"] for run in runs if run["peer"]["train"] is not None]
    tagging = [run["crfkit"]["tokens_per_second"] / run["peer"]["tokens_per_second"] for run in runs]
    return {
        "package": name,
        "version": version(name),
        **who,
        "times_faster_training": statistics.median(faster) if faster else None,
        "times_faster_tagging": statistics.median(tagging),
    }
