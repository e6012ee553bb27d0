"""Generated tables whose dependences are known: a diary of days, and a survey."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

Table = tuple[list[str], list[list[str]]]  # names of the columns, rows of cells

DIARY_FEATURES = ("temperature", "wind", "humidity", "pressure", "weekend")
DIARY_LABELS = ("rain", "umbrella", "travel", "picnic")


def diary_table(n: int, seed: int = 0) -> Table:
    """Return a diary of days: five measurements and four labels that depend on each other.

    Rain depends on humidity and pressure. People take an umbrella because of the rain, not because of the barometer.
    How they travel depends on rain and wind, and picnics take place on warm, dry weekends without a car in traffic.

    >>> names, rows = diary_table(2)
    >>> names[-4:], len(rows), len(rows[0])
    (['rain', 'umbrella', 'travel', 'picnic'], 2, 9)
    """
    rng = np.random.default_rng(seed)
    season = np.sin(2 * np.pi * rng.random(n))
    pressure = rng.normal(1013, 8, n)
    temperature = 12 + 9 * season + rng.normal(0, 3, n)
    humidity = np.clip(66 - 0.9 * (pressure - 1013) - 3 * season + rng.normal(0, 9, n), 20, 100)
    wind = np.clip(rng.gamma(3, 5, n) - 0.2 * (pressure - 1013), 0, None)
    weekend = rng.random(n) < 2 / 7

    def happens(log_odds: NDArray[np.float64]) -> NDArray[np.bool_]:
        return rng.random(n) < 1 / (1 + np.exp(-log_odds))

    rain = happens(0.16 * (humidity - 70) - 0.1 * (pressure - 1010))
    umbrella = happens(np.where(rain, 2.2, -2.8))
    bike = happens(2.5 - 3.5 * rain - 1.2 * umbrella - 0.07 * wind)
    car = happens(-0.8 + 1.6 * rain + 1.2 * weekend - 1.0 * umbrella)
    travel = np.where(bike, "bike", np.where(car, "car", "bus"))
    picnic = happens(-3.0 + 0.22 * (temperature - 10) + 2.0 * weekend - 3.5 * rain + 1.2 * bike)
    numbers = zip(temperature, wind, humidity, pressure, weekend, strict=True)
    words = zip(_words(rain), _words(umbrella), travel.tolist(), _words(picnic), strict=True)
    rows = [
        [f"{t:.1f}", f"{v:.0f}", f"{h:.0f}", f"{p:.0f}", str(int(w)), *labels]
        for (t, v, h, p, w), labels in zip(numbers, words, strict=True)
    ]
    return [*DIARY_FEATURES, *DIARY_LABELS], rows


def _words(answers: NDArray[np.bool_]) -> list[str]:
    return ["yes" if answer else "no" for answer in answers.tolist()]


_YES_NO = ("no", "yes")
SURVEY_COLUMNS: dict[str, tuple[str, ...]] = {
    "home": ("city", "suburb", "village"),
    "car": _YES_NO,
    "cycles": _YES_NO,
    "children": _YES_NO,
    "garden": _YES_NO,
    "dog": _YES_NO,
    "walks": _YES_NO,
    "sport": _YES_NO,
    "sleep": ("bad", "fair", "good"),
    "coffee": _YES_NO,
}
# Log-odds by which two answers go together: both rank high in their columns, or both low.
SURVEY_EDGES: dict[tuple[str, str], float] = {
    ("home", "car"): 2.0,
    ("home", "garden"): 2.2,
    ("car", "cycles"): -1.8,
    ("children", "garden"): 1.6,
    ("garden", "dog"): 1.8,
    ("dog", "walks"): 2.2,
    ("cycles", "sport"): 1.6,
    ("sport", "sleep"): 1.6,
    ("sleep", "coffee"): -1.8,
}


def survey_table(n: int, seed: int = 0) -> Table:
    """Return answers to ten questions, drawn exactly from a pairwise field with the couplings `SURVEY_EDGES`.

    Questions without a coupling may still be correlated: people in villages often walk, but only because they have
    gardens and therefore dogs.

    >>> names, rows = survey_table(3)
    >>> names[:5], len(rows)
    (['home', 'car', 'cycles', 'children', 'garden'], 3)
    """
    rng = np.random.default_rng(seed)
    names = list(SURVEY_COLUMNS)
    states = np.array(list(product(*(range(len(answers)) for answers in SURVEY_COLUMNS.values()))))  # [all, columns]
    ranks = states / np.array([len(answers) - 1 for answers in SURVEY_COLUMNS.values()]) - 0.5  # in [−½, ½]
    scores = sum(2 * weight * ranks[:, names.index(a)] * ranks[:, names.index(b)] for (a, b), weight in _edges())
    p = np.exp(scores)
    drawn = states[rng.choice(len(states), n, p=p / p.sum())]
    answers = list(SURVEY_COLUMNS.values())
    return names, [[answers[k][state] for k, state in enumerate(row)] for row in drawn.tolist()]


def _edges() -> list[tuple[tuple[str, str], float]]:
    return list(SURVEY_EDGES.items())
