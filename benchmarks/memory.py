"""The memory that `crfkit train --dry-run` announces, next to the peak of the training itself.

    python benchmarks/memory.py [--cases L1,order 2,…] [--data DIR] [--quick] [--resume]

Every case is announced and trained in processes of their own, for 40 iterations: the curvature pairs are full by then.
An estimate is good if it is within 20 % of the peak. Writes results/memory.json and .md.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

from common import RESULTS, SCRATCH, SHARED, Report, Store, markdown, say, watched
from scaling import written

ITERATIONS = "40"
CASES: dict[str, tuple[int, list[str]]] = {  # labels of generated text, or 0: CoNLL-2000; options of `crfkit train`
    "observed pairs": (0, ["--c2", "1"]),
    "all pairs": (0, ["--C", "1", "--all-states"]),
    "L1": (0, ["--c1", "1"]),
    "order 2": (0, ["--c2", "1", "--order", "2"]),
    "60 labels": (60, ["--c2", "1"]),
    "60 labels and all pairs": (60, ["--C", "1", "--all-states"]),
}
UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def measure(case: str, data: Path, quick: bool) -> Report:
    labels, options = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        template, model = Path(folder) / "template", Path(folder) / "model.crf"
        if labels or quick:
            path, rules = written({"tokens": 5_000 if quick else 50_000, "labels": labels or 22})
        else:
            path, rules = data / "train.txt", (data / "chunking.template").read_text(encoding="utf-8")
        template.write_text(rules, encoding="utf-8")
        command = [sys.executable, "-m", "crfkit", "train", path, "-t", template, "-m", model, *options]
        dry_peak, said = watched([*command, "--dry-run"])
        found = re.search(r"memory at the peak: about ([\d.]+) (\w+)", said)
        assert found, said
        estimate = float(found[1]) * UNITS[found[2]]
        peak, _ = watched([*command, "-q", "-i", ITERATIONS])
    row = {"estimate": estimate, "peak": peak, "peak_of_the_dry_run": dry_peak, "ratio": estimate / peak}
    say(f"{case}: {json.dumps(row)}")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "data" / "conll2000")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--resume", action="store_true", help="keep the cases of an earlier run")
    parser.add_argument("--quick", action="store_true", help="5,000 tokens, to try the command")
    parser.add_argument("--output", type=Path, default=RESULTS / "memory")
    options = parser.parse_args()
    if options.quick:
        options.output = SCRATCH / "memory_quick"
    store = Store(options.output.with_suffix(".json"), options.resume)
    for case in options.cases.split(","):
        store.part(case, lambda case=case: measure(case, options.data, options.quick))
    rows = [
        (case, *(f"{row[key] / 1e6:,.0f} MB" for key in ("estimate", "peak")), f"{row['ratio']:.2f}")
        for case, row in store.results.items()
        if case in CASES
    ]
    text = markdown(("training", "estimate of the dry run", "peak of the training", "ratio"), rows)
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
