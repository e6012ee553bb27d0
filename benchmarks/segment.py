"""`crfkit segment apply`: images per second and peak memory, from a folder of PNG files to masks, overlays and maps.

    python benchmarks/segment.py [--images DIR --masks DIR] [--count 40] [--output results/segment]

Without folders, discs are drawn. A model is trained on five images (20 iterations), then applied to images of 320×240
pixels, in blocks of 2×2 and of 4×4. Writes JSON and a Markdown table.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import write_results
from PIL import Image

from crfkit.files.images import pair_folders
from crfkit.synthetic import disc_images

HERE = Path(__file__).resolve().parent
SIZE = (320, 240)  # width, height


def draw(folder: Path) -> tuple[Path, Path]:
    images, masks = disc_images(5, shape=(240, 320))
    for name, arrays in (("images", images), ("masks", [255 * mask for mask in masks])):
        (folder / name).mkdir()
        for k, array in enumerate(arrays):
            Image.fromarray(array).save(folder / name / f"{k}.png")
    return folder / "images", folder / "masks"


def crfkit(*arguments: Any) -> dict[str, float]:
    """Seconds and peak memory of a command, from start to end of the process."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "crfkit", *map(str, arguments)])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"crfkit {arguments[0]} {arguments[1]} failed")
    return {"seconds": time.perf_counter() - begin, "peak_mb": usage.ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--masks", type=Path)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "segment")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        folders = (options.images, options.masks) if options.images and options.masks else draw(work)
        pairs = pair_folders(*folders)[:5]
        for part in ("train", "truth", "apply"):
            (work / part).mkdir()
        for image, mask in pairs:
            os.symlink(image.resolve(), work / "train" / image.name)
            os.symlink(mask.resolve(), work / "truth" / mask.name)
        for k in range(options.count):
            Image.open(pairs[k % len(pairs)][0]).convert("RGB").resize(SIZE).save(work / "apply" / f"{k:03}.png")
        for block in (2, 4):
            model = work / f"{block}.crf"
            options_of = ("--block", block, "--size", "240x320", "--l1", 30, "-i", 20, "-q")
            crfkit("segment", "train", work / "train", work / "truth", "-m", model, *options_of)
            taken = crfkit("segment", "apply", model, work / "apply", "--output", work / f"out{block}", "-q")
            rows.append(
                {
                    "block": block,
                    "images": options.count,
                    **taken,
                    "images_per_second": options.count / taken["seconds"],
                }
            )
    write_results(options.output.with_suffix(".json"), {"rows": rows})
    lines = ["| blocks | images | seconds | images per second | peak memory |", "|---|---|---|---|---|"]
    lines += [
        f"| {r['block']}×{r['block']} | {r['images']} of 320×240 | {r['seconds']:.1f} | {r['images_per_second']:.1f} "
        f"| {r['peak_mb']:.0f} MB |"
        for r in rows
    ]
    options.output.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
