"""Targets: models of CRF++, CRFsuite and Wapiti, and a pickled sklearn-crfsuite model."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from crfpp_cases import binary_model, text_model
from wapiti_cases import MODEL

from crfkit import ChainCRF, _core, convert
from crfkit.compat.pycrfsuite import Tagger
from crfkit.convert import crfsuite
from crfkit.errors import ModelFileError
from fuzz.chains import ITEMS, LABELS, ROWS, ask
from fuzz.commands import inspect
from fuzz.target import Target
from fuzz.text import change_lines, change_words

WAPITI = MODEL.replace(b"1:N,", b"3:B-x,").replace(b"1:D,", b"1:O,")  # labels that mark phrases


NETSTRING = re.compile(rb"\d+:(.*),")
WEIGHT = re.compile(rb"(\d+)=(.*)")


def change_wapiti(valid: bytes, rng: random.Random) -> bytes:
    """Return a model with other names, whose lengths are right, or other weights; or with other lines."""
    if rng.random() < 0.3:
        return change_lines(valid, rng)
    lines = valid.split(b"\n")
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(lines))
        name = NETSTRING.fullmatch(lines[at])
        if name:
            text = change_lines(name[1], rng)
            lines[at] = b"%d:%s," % (len(text), text)
        elif found := WEIGHT.fullmatch(lines[at]):
            place, weight = int(found[1]), found[2]
            number = rng.choice((place + 1, place - 1, 0, 21, 22, 2**31, 2**63, 2**64))
            value = rng.choice((weight, b"0x1p+1023", b"-inf", b"nan", b"0x0p+0", b"1e999", b"0x1p-1074"))
            lines[at] = b"%d=%s" % (number, value)
    return b"\n".join(lines)


def _crfsuite() -> bytes:
    return crfsuite.to_bytes(ChainCRF(n_threads=1).fit(ITEMS, LABELS).model_)


def _use(X: Any, path: Path, rng: random.Random) -> None:
    model = convert.load(path, n_threads=1)
    ask(model, X, rng)
    if rng.random() < 0.05:
        inspect(path, rng)


def _use_crfsuite(path: Path, rng: random.Random) -> None:
    """Use a model where it lies, as python-crfsuite does, or converted."""
    if rng.random() < 0.5:
        return _use(ITEMS, path, rng)
    try:
        tagger = _core.Tagger.open_crfsuite(path.read_bytes())
        for x in ITEMS:
            tagger.tag(x)
    except _core.BadModel as error:
        raise ModelFileError(str(error)) from None
    other = Tagger()
    try:
        other.open(str(path))
    except (ValueError, OSError) as error:  # as python-crfsuite raises them
        raise ModelFileError(str(error)) from None
    for x in ITEMS:
        other.tag(x)
    other.info()
    return None


Use = Callable[[Path, random.Random], None]
KINDS: dict[str, tuple[Callable[[], bytes], Any, Use]] = {
    "crfpp-binary": (binary_model, change_words, partial(_use, ROWS)),
    "crfpp-text": (text_model, change_lines, partial(_use, ROWS)),
    "wapiti-model": (lambda: WAPITI, change_wapiti, partial(_use, ROWS)),
    "crfsuite-model": (_crfsuite, change_words, _use_crfsuite),
}
TARGETS = [Target(name, valid, mutate, use) for name, (valid, mutate, use) in KINDS.items()]
