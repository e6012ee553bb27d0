"""Phrases found in plain text against phrases found in the given tokens; how fast plain text is divided.

    python benchmarks/tokens.py [--data FOLDER] [--output FILE]

A tagger is trained on the tokens of a corpus. The test sentences are tagged twice: with their own tokens, and as plain
text that is rebuilt from these, as `crfkit tag --text` reads it: a sentence or a paragraph of up to five per line. What
ends without a full stop, such as a heading, ends its line. A phrase is
right if its type and its characters are. English names are the runs of proper nouns (NNP, NNPS) of CoNLL-2000, whose
labels are chunks; the rules of abbreviations were chosen on its training set. Spanish names are those of CoNLL-2002.
"before" is the pattern that crfkit had first, which takes a line for a sentence.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import RESULTS, SHARED, machine, say

from crfkit import ChainCRF, read_columns
from crfkit.schemes import phrases
from crfkit.text import sentences, tokenize
from crfkit.text.sentences import sentence_words

Rows = list[list[str]]
PARAGRAPH = 5
BEFORE = re.compile(r"\w+(?:[-'’.,:/@&+]\w+)*|[^\w\s]")
TREEBANK = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}"}
NO_BLANK_BEFORE = {".", ",", ";", ":", "?", "!", "%", ")", "}", "]", "''", "...", "'", "»"}
NO_BLANK_AFTER = {"(", "{", "[", "$", "#", "``", "¿", "¡", "«", "US$", "C$"}
CLITIC = re.compile(r"n't|N'T|'(?:s|S|re|ve|ll|d|m)")


def corpus(path: Path, label: Callable[[tuple[str, ...], str], str]) -> tuple[Rows, Rows]:
    """Return words, without the escapes of the Penn Treebank, and labels."""
    X, y = read_columns(path)
    words = [[TREEBANK.get(row[0], row[0].replace("\\/", "/").replace("\\*", "*")) for row in rows] for rows in X]
    labels = [[label(row, tag) for row, tag in zip(*pair, strict=True)] for pair in zip(X, y, strict=True)]
    return words, [in_iob2(row) for row in labels]


def in_iob2(labels: list[str]) -> list[str]:
    return [f"I-{x}" if x == "NAME" and k and labels[k - 1] == "NAME" else f"B-{x}" if x == "NAME" else x
            for k, x in enumerate(labels)]  # fmt: skip


def plain_text(words: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return a sentence as it is written, and the place of each token."""
    text, places, quotes = "", [], 0
    for k, word in enumerate(words):
        before = words[k - 1] if k else ""
        if word == "." and before.endswith(".") and before != "..." and len(before) > 1:
            places.append((len(text) - 1, len(text)))  # one full stop ends the abbreviation and the sentence
            continue
        touches = word in NO_BLANK_BEFORE or before in NO_BLANK_AFTER or CLITIC.fullmatch(word) is not None
        if word == '"':
            quotes += 1
            touches = quotes % 2 == 0
        elif before == '"' and quotes % 2 == 1:
            touches = True
        if text and not touches:
            text += " "
        places.append((len(text), len(text) + len(word)))
        text += word
    return text, places


Phrases = set[tuple[int, int, int, str]]  # paragraph, first and last character, type


def by_characters(number: int, labels: list[str], places: list[tuple[int, int]]) -> Phrases:
    return {(number, places[p.begin][0], places[p.end - 1][1], p.type) for p in phrases(labels)}


def f1(gold: Phrases, found: Phrases) -> float:
    return round(200 * len(gold & found) / (len(gold) + len(found)), 2)


def compare(crf: ChainCRF, test: tuple[Rows, Rows], per_line: int) -> dict[str, Any]:
    """Return F1 with the given tokens and with those of plain text, and F1 of the tokens and sentences themselves."""
    X, y = test
    paragraphs: list[str] = []
    gold: Phrases = set()
    given: Phrases = set()
    tokens: set[tuple[int, int, int]] = set()
    ends: set[tuple[int, int]] = set()
    for k, (words, labels, found) in enumerate(zip(X, y, crf.predict(X), strict=True)):
        text, places = plain_text(words)
        if k % per_line == 0 or not X[k - 1][-1].endswith((".", "!", "?", '"', "''")):
            paragraphs.append("")
        offset = len(paragraphs[-1]) + 1 if paragraphs[-1] else 0
        paragraphs[-1] += " " * (offset > 0) + text
        number = len(paragraphs) - 1
        places = [(a + offset, b + offset) for a, b in places]
        gold |= by_characters(number, labels, places)
        given |= by_characters(number, found, places)
        tokens |= {(number, a, b) for a, b in places}
        ends.add((number, offset + len(text)))
    report: dict[str, Any] = {"sentences": len(X), "given_tokens": {"f1": f1(gold, given)}}
    for how, divide in (("before", divided_before), ("text", divided)):
        parts = [(n, part) for n, text in enumerate(paragraphs) for part in divide(text)]
        found = crf.predict([[text for text, _, _ in part] for _, part in parts])
        mine: Phrases = set()
        for (n, part), labels in zip(parts, found, strict=True):
            mine |= by_characters(n, labels, [(a, b) for _, a, b in part])
        cut = {(n, a, b) for n, part in parts for _, a, b in part}
        stops = {(n, part[-1][2]) for n, part in parts}
        report[how] = {
            "f1": f1(gold, mine),
            "tokens_f1": round(200 * len(tokens & cut) / (len(tokens) + len(cut)), 2),
            "sentences_f1": round(200 * len(ends & stops) / (len(ends) + len(stops)), 2),
        }
    say(json.dumps(report))
    return report


def measure(name: str, train: tuple[Rows, Rows], test: tuple[Rows, Rows]) -> dict[str, Any]:
    say(name)
    crf = ChainCRF(features="ner", n_threads=1).fit(*train)
    return {"a sentence per line": compare(crf, test, 1), "a paragraph per line": compare(crf, test, PARAGRAPH)}


def divided_before(text: str) -> list[list[tuple[str, int, int]]]:
    return [[(match[0], match.start(), match.end()) for match in BEFORE.finditer(text)]]


def divided(text: str) -> list[list[tuple[str, int, int]]]:
    return [[tuple(token) for token in sentence.tokens] for sentence in sentences(text)]


def speed(test: Rows) -> dict[str, float]:
    """Return millions of characters per CPU second, the median of five rounds; a sentence per line."""
    texts = [plain_text(words)[0] for words in test]
    size = sum(map(len, texts)) / 1e6
    ways: dict[str, Callable[[str], Any]] = {
        "before": BEFORE.findall, "tokenize": tokenize, "sentence_words": sentence_words, "sentences": sentences
    }  # fmt: skip
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(5):
        for way, divide in ways.items():
            begin = time.process_time()
            for text in texts:
                divide(text)
            times[way].append(time.process_time() - begin)
    return {way: round(size / statistics.median(found), 1) for way, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--output", type=Path, default=RESULTS / "tokens.json")
    options = parser.parse_args()

    def names(row: tuple[str, ...], _: str) -> str:
        return "NAME" if row[1] in ("NNP", "NNPS") else "O"

    def tag(_: tuple[str, ...], tag: str) -> str:
        return tag

    conll, spanish = options.data / "conll2000", options.data / "conll2002_spanish"
    english = [corpus(conll / f"{part}.txt", names) for part in ("train", "test")]
    spain = [corpus(spanish / f"esp.{part}", tag) for part in ("train", "testb")]
    report = {
        "machine": machine(),
        "English names": measure("English names", *english),
        "Spanish names": measure("Spanish names", *spain),
        "million_characters_per_second": {"English": speed(english[1][0]), "Spanish": speed(spain[1][0])},
    }
    options.output.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
