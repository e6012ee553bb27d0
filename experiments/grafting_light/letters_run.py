"""The studies of the letters: Figure 4 by belief propagation and by pseudo-likelihood, Figure 5, and weaker strengths.

results_letters.json has the paths of λ and the runs, letters_images.json the average images.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import letters as of
import numpy as np
import store
from letters import Letter
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

KEYS = ("study", "letter", "loss", "method", "M", "share")
FIGURE_5 = "a"
BEYOND = (0.2, 0.1, 0.05)  # of the critical strength: the paths have ended before


class Store:
    """The files of results; `again`: measure what is in them already, too."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.path = given.output / "results_letters.json"
        self.images = given.output / "letters_images.json"
        self.again = given.again
        self.seconds = given.seconds

    def rows(self, letter: Letter, kind: str) -> list[dict[str, Any]]:
        """Return the path of a letter; it is computed where it is missing."""
        everything = store.read(self.path)
        paths = everything.setdefault("paths", {})
        name = f"{letter.name} {kind}"
        if name not in paths or self.again:
            paths[name] = of.path(letter, kind)
            store.write(self.path, everything)
        return list(paths[name])

    def run(self, study: str, letter: Letter, kind: str, method: str, unit: int, share: float, strength: float) -> None:
        """Measure a method, and keep the average images of what it has learned."""
        unit_key = 0 if method == "full-opt-l1" else unit
        key = (study, letter.name, kind, method, unit_key, share)
        if not self.again and store.settled(store.found(self.path, "runs", KEYS, key), self.seconds):
            return
        record, loss, w = of.measured(method, kind, letter, strength, unit, self.seconds)
        record |= {"study": study, "share": share}
        if study != "units":
            ids = loss.active_ids
            drawn = {"samples": of.by_samples(letter, ids, w)}
            if kind == "bp":
                drawn["BP"] = of.by_marginals(letter, ids, w)
            target = of.average(letter)
            for how, image in drawn.items():
                record[f"{how.lower()}_distance"] = float(np.abs(image - target).mean())
                record[f"{how.lower()}_blur"] = of.blur(image)
                self.image(f"{study} {share:g} {kind} {method} {how}", letter.name, image)
        print(json.dumps(record), flush=True)
        store.merge(self.path, "runs", KEYS, record)

    def image(self, row: str, letter: str, image: Any) -> None:
        """Keep an image as two hexadecimal digits a pixel."""
        pixels = np.clip(np.rint(255 * np.asarray(image)), 0, 255).astype(np.uint8)
        kept = store.read(self.images)
        kept.setdefault(row, {})[letter] = pixels.tobytes().hex()
        store.write(self.images, kept)


def run(given: argparse.Namespace) -> None:
    """Run the studies that were asked for, letter by letter."""
    kept = Store(given)
    studies = given.studies.split(",")
    letters = [letter for letter in of.read(given.data) if letter.name in given.letters]
    with threadpool_limits(1, "blas"):
        for letter in letters:
            kept.image("training images", letter.name, of.average(letter))
        for study in studies:
            for letter in letters:
                _study(study, letter, kept, given.units)


def _study(study: str, letter: Letter, kept: Store, units: list[int]) -> None:
    kind = "pl" if study == "pl" else "bp"
    rows = kept.rows(letter, kind)
    strength = of.best(rows)
    critical = rows[0]["strength"] / rows[0]["share"]
    share = next(row["share"] for row in rows if row["strength"] == strength)
    if study == "bp":
        for method in of.METHODS:
            kept.run(study, letter, kind, method, of.UNITS[kind], share, strength)
    elif study == "pl":
        kept.run(study, letter, kind, "grafting-light", of.UNITS[kind], share, strength)
    elif study == "units" and letter.name == FIGURE_5:
        for method in of.METHODS[:2]:
            for unit in units:
                kept.run(study, letter, kind, method, unit, share, strength)
    elif study == "beyond":
        for weaker in BEYOND:
            for method in of.METHODS:
                kept.run(study, letter, kind, method, of.UNITS[kind], weaker, weaker * critical)
