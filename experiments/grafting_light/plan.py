"""The steps of this experiment: Figures 2 to 5 of the paper, and what its claims need besides."""

from __future__ import annotations

from pathlib import Path

from steps import Step

CONLL, OCR = "conll2000", "ocr_letters"
SEEDS = (0, 1, 2)
LETTERS = "acmsig"


def steps(quick: bool, data: Path, output: Path) -> list[Step]:
    """Return the steps; a quick run has one draw, fewer select units, a part of the sentences and two letters."""
    made = _quick() if quick else _full()
    where = ("--output", str(output))
    return [
        Step(name, ("run.py", part, *more, *_data(needed, data), *where), minutes, needed)
        for name, part, more, minutes, needed in made
    ]


def _data(needed: tuple[str, ...], data: Path) -> tuple[str, ...]:
    return ("--data", str(data / needed[0])) if needed else ()


Row = tuple[str, str, tuple[str, ...], float, tuple[str, ...]]


def _quick() -> list[Row]:
    sentences = ("--sentences", "500")
    chains = ("--seeds", "0", "--units", "10,50", "--methods", "full-opt-l1,grafting-light,grafting")
    letters = ("--letters", "as", "--studies", "bp,units", "--units", "10,50", "--seconds", "20")
    return [
        ("synthetic", "synthetic", chains, 0.8, ()),
        ("owlqn", "owlqn", (), 0.1, ()),
        ("strength", "np-strength", ("--folds", "0,1", *sentences), 0.6, (CONLL,)),
        ("np", "np", ("--units", "500", "--seconds", "20", *sentences), 1.0, (CONLL,)),
        ("letters", "letters", letters, 1.2, (OCR,)),
        ("figures", "figures", (), 0.2, ()),
    ]


def _full() -> list[Row]:
    seidel = ("--seeds", "0", "--methods", "gauss-seidel", "--seconds", "300", "--units")
    phrases = [
        (f"np {method} {unit}", "np", ("--methods", method, "--units", unit, "--seconds", "600"), minutes, (CONLL,))
        for method, minutes in (("grafting-light", 3.0), ("grafting", 10.0), ("gauss-seidel", 10.0))
        for unit in ("100", "500", "2000")
    ]
    return [
        *((f"synthetic {seed}", "synthetic", ("--seeds", str(seed)), 5.0, ()) for seed in SEEDS),
        *((f"gauss-seidel {unit}", "synthetic", (*seidel, unit), 5.0, ()) for unit in ("50", "10", "1")),
        ("origin", "synthetic", ("--seeds", "0", "--methods", "grafting-origin"), 4.0, ()),
        ("sgd", "sgd", ("--seeds", "0"), 2.0, ()),
        ("owlqn", "owlqn", (), 1.2, (CONLL,)),
        *((f"strength {fold}", "np-strength", ("--folds", str(fold)), 4.0, (CONLL,)) for fold in range(5)),
        ("np batch", "np", ("--methods", "all-features,full-opt-l1"), 5.0, (CONLL,)),
        *phrases,
        *(
            (f"letter {letter}", "letters", ("--letters", letter, "--studies", "bp,pl,units"), 3.0, (OCR,))
            for letter in LETTERS
        ),
        ("beyond", "letters", ("--letters", "as", "--studies", "beyond", "--seconds", "60"), 10.0, (OCR,)),
        ("figures", "figures", (), 0.3, ()),
    ]
