"""The part of `crfkit demo` on text: a tagger, the names that it finds, its scores, and why it chose a label."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crfkit._values import Entries
from crfkit.cli.demo.screen import Piece, Screen

if TYPE_CHECKING:
    from crfkit.chain.estimator.chain_crf import ChainCRF
    from crfkit.chain.model.explanation import Contribution, PositionExplanation
    from crfkit.chain.model.spans import Span

COLOURS = {"PER": "yellow", "LOC": "green", "ORG": "cyan", "DATE": "magenta"}
KINDS = {"PER": "a person", "LOC": "a place", "ORG": "a firm", "DATE": "a date"}
SHOWN = (1, 2, 11)  # sentences of news.txt, among them one with two names that nothing decides
ASKED = "Jordan Weber told reporters in Jordan that sales had doubled."  # one word, two labels
TOP = 3


@dataclass(frozen=True, eq=False)
class Tagger:
    """A tagger that was trained on train.txt, and how long that took."""

    crf: ChainCRF
    seconds: float
    n_sentences: int


def train(folder: Path, n_sentences: int, screen: Screen) -> Tagger:
    """Train on train.txt and write model.crf."""
    from crfkit.chain.estimator.chain_crf import ChainCRF
    from crfkit.cli.runtime.progress import progress_callback

    screen.step(1, "Find names in text")
    screen.say(
        f"The training data are {n_sentences:,} short news sentences in which people, places, firms and dates are "
        "marked. The features of words come from a preset; nothing was written by hand."
    )
    begin = time.perf_counter()
    crf = ChainCRF(features="ner")
    with progress_callback(crf.max_iterations, quiet=not screen.is_live) as showing:
        crf.fit_file(folder / "train.txt", callbacks=showing)
    crf.save(folder / "model.crf")
    return Tagger(crf, time.perf_counter() - begin, n_sentences)


def tag(tagger: Tagger, folder: Path, screen: Screen) -> Entries:
    """Show some sentences of news.txt with the names that were found; return all of them as values."""
    from crfkit.text import tokenize

    sentences = [tokenize(line) for line in (folder / "news.txt").read_text(encoding="utf-8").splitlines()]
    found = tagger.crf.predict_spans(sentences)
    result = tagger.crf.result_
    screen.say(f"It learned {len(tagger.crf.coef_):,} weights in {tagger.seconds:.1f} s. New sentences, tagged:")
    screen.gap()
    for n in SHOWN:
        screen.flow(_marked(sentences[n], found[n]))
    screen.gap()
    screen.say(
        "Each name has the exact probability that it is this name, from its first to its last word. "
        + _least_certain(sentences, found)
    )
    return {
        "weights": len(tagger.crf.coef_),
        "iterations": result.iterations,
        "converged": result.status.name == "CONVERGED",
        "seconds": tagger.seconds,
        "sentences": [
            {"tokens": tokens, "spans": [[s.start, s.end, s.type, s.probability] for s in spans]}
            for tokens, spans in zip(sentences, found, strict=True)
        ],
    }


def _least_certain(sentences: list[list[str]], found: list[list[Span]]) -> str:
    """Return which of the names that are shown is the least certain one."""
    least = min(((span.probability, n, span) for n in SHOWN for span in found[n]), key=lambda row: row[0], default=None)
    if least is None:
        return "Here, it found none."
    p, n, span = least
    text = f"It is least certain of {' '.join(sentences[n][span.start : span.end])} ({_percent(p)})"
    return text + (": the last sentence does not say what it is." if n == SHOWN[-1] else ".")


def _marked(tokens: list[str], spans: list[Span]) -> list[Piece]:
    """Return a sentence in pieces: words, and names with their type and probability."""
    starts = {span.start: span for span in spans}
    pieces: list[Piece] = []
    t = 0
    while t < len(tokens):
        span = starts.get(t)
        end = span.end if span else t + 1
        space = "" if end < len(tokens) and tokens[end] in ".,;:!?" else " "
        text = " ".join(tokens[t:end])
        if span is None:
            pieces.append((text + space, {}))
        else:
            told = f"{text} [{span.type} {_percent(span.probability)}]"
            pieces += [(told, {"fg": COLOURS.get(span.type), "bold": True}), (space, {})]
        t = end
    return pieces


def _percent(p: float) -> str:
    """Return a probability in per cent, which is 100 only if it is certain."""
    return f"{p:.0%}" if p < 0.995 or p == 1.0 else ">99%"


def score(tagger: Tagger, folder: Path, screen: Screen) -> Entries:
    """Show the scores on test.txt; return them as values."""
    from crfkit.metrics import Evaluation

    result = Evaluation()
    for gold, predicted in tagger.crf.model_.tag_labelled(folder / "test.txt"):
        for a, b in zip(gold, predicted, strict=True):
            result.add(a, b)
    screen.step(2, "How good is it?")
    screen.say(f"{result.sequences} other sentences come with the right answers, so that mistakes can be counted:")
    rows = [("all names", result.overall), *sorted(result.by_type.items())]
    table = [f"{'':9}  precision  recall      F1"]
    table += [f"{name:9}  {c.precision:9.1%}  {c.recall:6.1%}  {c.f1:6.1%}" for name, c in rows]
    screen.lines("\n".join(table))
    screen.say(
        "A name counts as found if its type, its first and its last word are right. Dates are easy. Other names are "
        "not: Bergen is a place, a firm and a surname, and some names never occur in the training data."
    )
    return result.as_dict()


def explain(tagger: Tagger, screen: Screen) -> Entries:
    """Show why one word has two different labels; return the contributions."""
    from crfkit.text import tokenize

    tokens = tokenize(ASKED)
    why = tagger.crf.explain(tokens)
    places = [t for t, token in enumerate(tokens) if token == "Jordan"]
    screen.step(3, "Why this label?")
    told = [_kind(why.labels[t]) for t in places]
    screen.say(f"“{ASKED}” The first Jordan is {told[0]}, the second {told[1]}. What decided, and by how much:")
    screen.lines("\n\n".join(_reasons(why[t], tokens, "first" if t == 0 else "second") for t in places))
    screen.say(
        "These are all the reasons there are: with the smaller ones they add up exactly to the logarithm of how much "
        "more probable the chosen labels are than the best other ones."
    )
    return {
        "tokens": tokens,
        "labels": list(why.labels),
        "positions": [
            {
                "position": one.position,
                "label": one.label,
                "runner_up": one.runner_up,
                "difference": one.difference,
                "contributions": [[c.kind, c.name, c.position, c.amount] for c in one.contributions],
            }
            for one in (why[t] for t in places)
        ],
    }


def _kind(label: str) -> str:
    """Return what a label such as B-PER stands for."""
    return KINDS.get(label[2:], "no name")


def _reasons(one: PositionExplanation, tokens: list[str], which: str) -> str:
    """Return the strongest reasons in words."""
    lines = [f"{which} {one.token}: {_kind(one.label)} rather than {_kind(one.runner_up)}, by {one.difference:+.2f}"]
    shown = [c for c in one.contributions if c.amount > 0][:TOP]
    lines += [f"  {c.amount:+6.2f}  {_plain(c, tokens)}" for c in shown]
    rest = one.difference - sum(c.amount for c in shown)
    lines.append(f"  {rest:+6.2f}  {len(one.contributions) - len(shown)} other reasons together")
    return "\n".join(lines)


def _plain(c: Contribution, tokens: list[str]) -> str:
    """Return a contribution in plain English; an attribute without words for it keeps its name."""
    if c.kind != "attribute":
        return f"{tokens[c.position]!r} continues with {_kind(c.labels[1])}"
    name, _, value = c.name.partition("=")
    first, _, shape = value.partition("|")
    after = "at the start of the sentence" if first == "<s>" else f"after {first!r}"
    known = {
        "lower[0]": f"the word is {value!r}",
        "lower[-1]": f"the word before is {value!r}",
        "lower[1]": f"the next word is {value!r}",
        "lower[1..6]": f"{value!r} is one of the next six words",
        "lower[-6..-1]": f"{value!r} is one of the six words before",
        "shape2[-2]": "two words before is a word in small letters" if value == "xx" else c.name,
        "lower[-1]|shape2[0]": f"a capital letter {after}" if shape == "Xxx" else c.name,
    }
    return str(known.get(name, c.name))
