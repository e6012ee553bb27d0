"""All or observed (attribute, label) and (label, label) pairs: F1 on held-out training sentences, CPU seconds, memory.

    python benchmarks/parameter_sets.py FOLDER [--strengths 0.5,1,2]

FOLDER has conll2000/train.txt, conll2000/chunking.template and conll2002_spanish/esp.train. Every fifth sentence is
held out; test files are not read. Each training runs in a process of its own, so that its memory can be measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

FILES = {"chunking": "conll2000/train.txt", "spanish": "conll2002_spanish/esp.train"}
SETS = {"observed": (False, False), "all transitions": (False, True), "all": (True, True)}


def run(folder: Path, corpus: str, chosen: str, strength: float) -> dict[str, object]:
    from crfkit import L2, ChainCRF, evaluate, read_columns

    X, y = read_columns(folder / FILES[corpus])
    train, held_out = (
        [[row for n, row in enumerate(rows) if (n % 5 == 4) is out] for rows in (X, y)] for out in (False, True)
    )
    states, transitions = SETS[chosen]
    crf = ChainCRF(
        template=folder / "conll2000/chunking.template",
        penalty=L2(strength),
        all_possible_states=states,
        all_possible_transitions=transitions,
        n_threads=1,
    )
    memory, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    crf.fit(*train)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = evaluate(held_out[1], crf.predict(held_out[0]))
    return {
        "corpus": corpus,
        "pairs": chosen,
        "l2": strength,
        "weights": len(crf.coef_),
        "f1": round(100 * found.overall.f1, 2),
        "accuracy": round(100 * found.accuracy, 3),
        "cpu_seconds": round(seconds, 1),
        "peak_mb_above_data": round((peak - memory) / 1024),
        "iterations": crf.result_.iterations,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strengths", default="0.5,1,2")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        corpus, chosen, strength = options.one
        print(json.dumps(run(options.folder, corpus, chosen, float(strength))))
        return
    for corpus, strength, chosen in product(FILES, options.strengths.split(","), SETS):
        command = [sys.executable, __file__, str(options.folder), "--one", corpus, chosen, strength]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
