"""Grafting-Light (Zhu, Lao & Xing 2010): Figures 2 to 5.

    python experiments/grafting_light/run.py synthetic [--units 1,10,20,…] [--methods …]
    python experiments/grafting_light/run.py np CONLL2000 [--units 100,500] [--strength S | --cv SENTENCES]
    python experiments/grafting_light/run.py letters OCR_LETTERS [--units 1,10,…]

`synthetic` is Figure 2 (six criteria against the select unit M), `np` Figure 3 (noun phrases, the folder of CoNLL-2000
with train.txt and test.txt), `letters` Figures 4 and 5. Every run is a process of its own, with one thread unless
--threads says otherwise. Writes results.json, which is merged with what is there, results.md and figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from methods import BATCH, METHODS, in_own_process, merged  # noqa: E402

UNITS_OF = {"synthetic": "1,10,20,30,40,50,60,70,80,90,100,110", "np": "100,500", "letters": "1,10,30,50,100"}
QUALITY = {"synthetic": ("error", "error rate, test"), "np": ("f1", "F1, test")}
TITLES = {"synthetic": "Figure 2: synthetic chains, λ = 64", "np": "Figure 3: noun phrases of CoNLL-2000"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name in ("synthetic", "np", "letters"):
        part = parts.add_parser(name)
        if name != "synthetic":
            part.add_argument("data", type=Path)
        part.add_argument("--units", default=UNITS_OF[name])
        part.add_argument("--threads", type=int, default=1)
        part.add_argument("--output", type=Path, default=HERE)
        if name == "letters":
            part.add_argument("--letters", default="acmsig")
            continue
        part.add_argument("--methods", default=",".join(METHODS[1:] if name == "synthetic" else METHODS))
        part.add_argument("--strength", type=float, default=64.0 if name == "synthetic" else None)
        if name == "np":
            part.add_argument("--cv", type=int, default=1000, help="sentences of the cross-validation")
    one = parts.add_parser("one", help="one run; prints what was measured")
    one.add_argument("which", choices=["synthetic", "np"])
    one.add_argument("--data", type=Path)
    one.add_argument("--method", choices=METHODS)
    one.add_argument("--unit", type=int)
    one.add_argument("--strength", type=float)
    one.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.part == "one":
        print(json.dumps(_one(given)))
    elif given.part == "letters":
        import letters

        letters.run(given)
    else:
        sweep(given)


def _one(given: argparse.Namespace) -> dict[str, Any]:
    settings = (given.method, given.unit, given.strength, given.threads)
    if given.which == "np":
        import np_chunking

        return np_chunking.one(given.data, *settings)
    import synthetic_chains

    return synthetic_chains.one(*settings)


def sweep(given: argparse.Namespace) -> None:
    """Every method with every select unit."""
    options: dict[str, Any] = {"threads": given.threads}
    if given.part == "np":
        options["data"] = given.data
        if given.strength is None:
            given.strength = _cross_validated(given)
    records: list[dict[str, Any]] = []
    for method in given.methods.split(","):
        units = [0] if method in BATCH else [int(unit) for unit in given.units.split(",")]
        for unit in units:
            record = in_own_process(given.part, method=method, unit=unit, strength=given.strength, **options)
            print({key: value for key, value in record.items() if key != "chosen"}, flush=True)
            records = merged(given.part, [record], given.output)
    write(given.part, records, given.output)


def _cross_validated(given: argparse.Namespace) -> float:
    import np_chunking

    found = np_chunking.choose_strength(given.data, given.cv, threads=given.threads)
    (given.output / "np_strength.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return float(found["best"])


def write(part: str, records: list[dict[str, Any]], output: Path) -> None:
    from report import figure, table

    figure(records, QUALITY[part], output / f"{part}.png", TITLES[part])
    path = output / f"results_{part}.md"
    path.write_text(f"# {TITLES[part]}\n\n{table(records, QUALITY[part])}\n", "utf-8")


if __name__ == "__main__":
    main()
