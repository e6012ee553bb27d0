"""The questions that a trained chain answers, by name: shared by models and estimators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from crfkit._types import Floats, Label, Sequences
from crfkit.chain.model import calibration as chain_calibration
from crfkit.chain.model import decoding as chain_decoding
from crfkit.chain.model import explanation as chain_explanation
from crfkit.chain.model import reliability as chain_reliability
from crfkit.chain.model import spans as chain_spans
from crfkit.chain.model.calibration import LabellingSet
from crfkit.chain.model.decoding import Decoded, Entropy, Labelling
from crfkit.chain.model.explanation import Explanation
from crfkit.chain.model.limits import Allowed, Known, Pairs
from crfkit.chain.model.reliability import Kind, Reliability
from crfkit.chain.model.spans import Span, Thresholds

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel


class ChainAnswers:
    """Methods about labellings, phrases and their probabilities. They can be called from many threads at once."""

    def trained_model(self) -> ChainModel:
        """Return the trained model."""
        raise NotImplementedError

    def decode(
        self,
        X: Sequences,
        n: int = 1,
        method: Literal["viterbi", "posterior"] = "viterbi",
        *,
        known: Known = None,
        allowed: Allowed = None,
        constraints: Pairs = None,
        contiguous: bool | Collection[Label] = False,
        min_confidence: float | None = None,
        abstain: Label = None,
        entropy: bool = False,
        search_limit: int = 50_000,
    ) -> list[Decoded]:
        """Return the labels of each sequence with their score, probability, confidences and alternatives.

        n: how many labellings to find: the best one, and n − 1 `alternatives`. Where fewer labellings exist, all of
        them are returned.

        method: "viterbi" chooses the most probable labelling. "posterior" chooses the most probable label of each
        position, which makes the fewest mistakes per position; constraints between neighbours may not hold.

        known: for each sequence a list with a label or None for each position, or None for the whole sequence.

        allowed: for each sequence and position a collection of labels that may be chosen, or None for all.

        constraints: a tagging scheme ("iob2", "bilou", …) or forbidden pairs (label, next label), in addition to the
        constraints of training.

        contiguous: True if each label may have at most one run of positions, or the labels for which this holds. If the
        labels mark phrases, each type may have at most one phrase. The search gives up after `search_limit` partial
        labellings of a sequence; then the result is the best that a beam finds, and `exact` is False.

        min_confidence: positions whose label has a smaller marginal probability get the label `abstain` instead.

        entropy: also compute the entropy of each labelling.

        >>> from crfkit import ChainCRF
        >>> X = [[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"], ["w=sat"]]]
        >>> crf = ChainCRF().fit(X, [["DET", "NOUN"], ["DET", "NOUN", "VERB"]])
        >>> found = crf.decode(X[:1], n=2)[0]
        >>> found.labels, round(found.probability, 2), found.alternatives[0].labels
        (['DET', 'NOUN'], 0.43, ['NOUN', 'NOUN'])
        >>> crf.decode(X[:1], known=[["NOUN", None]])[0].labels
        ['NOUN', 'NOUN']
        """
        return chain_decoding.decode(
            self.trained_model(),
            X,
            n,
            method,
            known=known,
            allowed=allowed,
            constraints=constraints,
            contiguous=contiguous,
            min_confidence=min_confidence,
            abstain=abstain,
            entropy=entropy,
            search_limit=search_limit,
        )

    def predict_nbest(self, X: Sequences, n: int) -> list[list[Labelling]]:
        """Return the n best labellings of each sequence, best first; all of them where there are fewer than n.

        Each has `labels`, `probability`, `log_probability`, `score` and its `difference` to the best in log p.

        >>> from crfkit import ChainCRF
        >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]])
        >>> [(found.labels, round(found.probability, 2)) for found in crf.predict_nbest([[["w=the"]]], 2)[0]]
        [(['DET'], 0.57), (['NOUN'], 0.43)]
        """
        return chain_decoding.predict_nbest(self.trained_model(), X, n)

    def sequence_probability(self, X: Sequences, y: Iterable[Sequence[Label]], log: bool = False) -> Floats:
        """Return the probability of given labels for each sequence; with `log`, its logarithm (it cannot underflow).

        >>> from crfkit import ChainCRF
        >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]]], [["DET", "NOUN"]])
        >>> crf.sequence_probability([[["w=the"]], [["w=cat"]]], [["DET"], ["NOUN"]]).round(2).tolist()
        [0.58, 0.58]
        """
        return chain_decoding.sequence_probability(self.trained_model(), X, y, log)

    def predict_spans(self, X: Sequences, min_probability: Thresholds | str = None) -> list[list[Span]]:
        """Return the phrases of the best labelling of each sequence: (start, end, type, probability).

        The probability is exact: it sums over all labellings with this phrase, with these ends and this type. Labels
        must mark phrases, in any scheme (see :mod:`crfkit.schemes`). With `min_probability` (one number, numbers by
        type, or "calibrated" for the thresholds that `calibrate` found), less probable phrases are omitted.

        >>> from crfkit import ChainCRF
        >>> X = [[["w=in"], ["w=New"], ["w=York"]], [["w=York"], ["w=in"], ["w=rain"]]]
        >>> crf = ChainCRF().fit(X, [["O", "B-LOC", "I-LOC"], ["B-LOC", "O", "O"]])
        >>> [(s.start, s.end, s.type, round(s.probability, 2)) for s in crf.predict_spans(X[:1])[0]]
        [(1, 3, 'LOC', 0.26)]
        >>> crf.predict_spans(X[:1], min_probability=0.5)
        [[]]
        """
        return chain_spans.predict_spans(self.trained_model(), X, min_probability)

    def sample(
        self,
        X: Sequences,
        n: int = 1,
        random_state: object = None,
        *,
        known: Known = None,
        allowed: Allowed = None,
        constraints: Pairs = None,
    ) -> list[list[list[Label]]]:
        """Return n independent labellings of each sequence, drawn exactly from p(y | x).

        The same `random_state` gives the same samples, with any number of threads. `known`, `allowed` and `constraints`
        are those of `decode`.

        >>> from crfkit import ChainCRF
        >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]]], [["DET", "NOUN"]])
        >>> crf.sample([[["w=the"], ["w=cat"]]], n=3, random_state=0, known=[["DET", None]])[0][0][0]
        'DET'
        """
        model = self.trained_model()
        return chain_decoding.sample(model, X, n, random_state, known=known, allowed=allowed, constraints=constraints)

    def entropies(
        self,
        X: Sequences,
        *,
        known: Known = None,
        allowed: Allowed = None,
        constraints: Pairs = None,
    ) -> list[Entropy]:
        """Return the entropy of each sequence in nats: `sequence`, of the whole labelling, and `positions`.

        Both are exact. The entropy of a position is computed from its marginal probabilities. `known`, `allowed` and
        `constraints` are as in `decode`.

        >>> from crfkit import ChainCRF
        >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]]], [["DET", "NOUN"]])
        >>> found = crf.entropies([[["w=the"], ["w=cat"]]])[0]
        >>> len(found.positions), bool(found.sequence <= found.positions.sum())
        (2, True)
        """
        return chain_decoding.entropies(self.trained_model(), X, known=known, allowed=allowed, constraints=constraints)

    # --- trust

    def reliability(
        self, X: Sequences, y: Iterable[Sequence[Label]], kind: Kind = "spans", bins: int = 10
    ) -> Reliability:
        """Return how well the probabilities of predictions fit labelled sequences: bins and calibration error.

        kind: "spans", the phrases of the best labellings, or "tokens", the labels of all positions.

        >>> from crfkit import ChainCRF
        >>> X = [[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]]
        >>> crf = ChainCRF().fit(X, [["DET", "NOUN"], ["DET", "NOUN"]])
        >>> found = crf.reliability(X, [["DET", "NOUN"], ["DET", "DET"]], kind="tokens")
        >>> found.total, found.mean_accuracy
        (4, 0.75)
        """
        return chain_reliability.reliability(self.trained_model(), X, y, kind, bins)

    def predict_sets(self, X: Sequences, coverage: float, n: int = 1000) -> list[LabellingSet]:
        """Return, for each sequence, a set of labellings that holds the true one with a stated probability.

        `coverage` is a value that was passed to `calibrate`. A set has the labellings whose probability is at least the
        threshold of the coverage, at most 1/threshold of them. They are looked for among the n best, and `complete` is
        False where these were not enough. An empty set means that no labelling is probable enough.

        >>> from crfkit import ChainCRF
        >>> X, y = [[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]]
        >>> crf = ChainCRF().fit(X, y).calibrate(X, y, coverage=0.5, objective="none")
        >>> [found.labels for found in crf.predict_sets(X, coverage=0.5)[0].labellings]
        [['DET', 'NOUN']]
        """
        return chain_calibration.predict_sets(self.trained_model(), X, coverage, n)

    def explain(
        self, x: object, against: Sequence[Label] | None = None, tokens: Sequence[str] | None = None
    ) -> Explanation:
        """Explain the choice between the chosen label and the runner-up at each position of one sequence.

        The runner-up is the label of the best labelling that has another label there. The contributions of attributes,
        transitions and pair attributes sum to the difference of the two scores, the log of the ratio of their
        probabilities. With `against`, labels for the sequence (the gold ones, say), the other label is that of
        `against` wherever it differs from the chosen one. `tokens` are texts to show; by default words are looked for
        in `x`. The result prints as text; it has `to_frame()` and `to_html()`.

        >>> from crfkit import ChainCRF
        >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]])
        >>> print(crf.explain([["w=the"], ["w=cat"]]))
        labels with probability 0.568
        0 'the': DET (0.712) rather than NOUN (0.288), by 1.152
            +0.864  DET → NOUN  rather than NOUN → NOUN
            +0.288  w=the
        1 'cat': NOUN (0.747) rather than DET (0.253), by 1.370
            +0.864  DET → NOUN  rather than DET → DET
            +0.505  w=cat
        """
        return chain_explanation.explain(self.trained_model(), x, against, tokens)
