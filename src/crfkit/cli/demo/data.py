"""The files of `crfkit demo`: generated sentences, tables and images in a folder of their own."""

from __future__ import annotations

from pathlib import Path

from crfkit.cli.runtime.output import csv_bytes
from crfkit.errors import DataError

N_DEV, N_TEST = 200, 300  # sentences
N_DAYS, N_NEW_DAYS, N_ANSWERS = 600, 12, 1000  # rows of tables
N_IMAGES, N_NEW_IMAGES = 8, 4

TEMPLATE = """# words around the token, shapes, and pairs of them
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
U10:%x[-1,1]/%x[0,1]
U11:%x[0,1]/%x[1,1]
# transitions between labels
B
"""

_MARK = "Files of `crfkit demo`"
README = f"""{_MARK}
======================

All data are generated. `crfkit demo` replaces these files when it runs again.

train.txt dev.txt test.txt   sentences with people, places, firms and dates
                             (columns: word, shape of the word, label)
template                     which columns a tagger looks at, in CRF++ syntax
news.txt                     plain sentences, one per line
labels.csv                   a diary of days: five measurements, four labels
new.csv                      days whose labels are not known
survey.csv                   answers to ten questions
images masks new_images      noisy pictures of discs, where the discs are, and
                             pictures without masks (needs Pillow)
model.crf                    a tagger, trained on train.txt
segmenter.crf                a segmenter of pictures
structure.crf                which pixels of handwritten digits belong together
report.html                  a page about model.crf; open it in a browser
"""


def prepare(folder: Path) -> None:
    """Create the folder of the demo; raise DataError if it has files that are not from a demo."""
    try:
        if folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder):
            raise DataError(
                "this folder has files that `crfkit demo` did not write; give another folder with --output", folder
            )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "README.txt").write_text(README, encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot create the folder: {error.strerror}", folder) from error


def _is_ours(folder: Path) -> bool:
    """Return whether README.txt is from a demo. It is written first, so an interrupted demo can run again."""
    try:
        return (folder / "README.txt").read_text(encoding="utf-8").startswith(_MARK)
    except (OSError, UnicodeDecodeError):
        return False


def write(folder: Path, sentences: int, seed: int) -> bool:
    """Write all data; return whether there are images, which need Pillow."""
    from crfkit.synthetic import write_columns
    from crfkit.synthetic.news import NEWS, news_corpus
    from crfkit.synthetic.tables import DIARY_FEATURES, diary_table, survey_table

    (folder / "template").write_text(TEMPLATE, encoding="utf-8")
    for k, (name, n) in enumerate((("train", sentences), ("dev", N_DEV), ("test", N_TEST))):
        write_columns(str(folder / f"{name}.txt"), news_corpus(n, 3 * seed + k))
    (folder / "news.txt").write_text(NEWS, encoding="utf-8")
    names, rows = diary_table(N_DAYS + N_NEW_DAYS, seed)
    n_features = len(DIARY_FEATURES)
    (folder / "labels.csv").write_bytes(csv_bytes(names, rows[:N_DAYS]))
    (folder / "new.csv").write_bytes(csv_bytes(names[:n_features], (row[:n_features] for row in rows[N_DAYS:])))
    (folder / "survey.csv").write_bytes(csv_bytes(*survey_table(N_ANSWERS, seed)))
    return _write_images(folder, seed)


def _write_images(folder: Path, seed: int) -> bool:
    from crfkit.extras import is_installed
    from crfkit.files.pictures import pillow
    from crfkit.synthetic import disc_images

    if not is_installed("PIL"):
        return False
    images, masks = disc_images(N_IMAGES, seed)
    new, _ = disc_images(N_NEW_IMAGES, seed + 1)
    for name, arrays in (("images", images), ("masks", masks), ("new_images", new)):
        (folder / name).mkdir(exist_ok=True)
        for k, array in enumerate(arrays, 1):
            picture = pillow().fromarray(array)
            if name == "masks":  # 0 and 1, shown as black and white
                picture.putpalette([0, 0, 0, 255, 255, 255])
            picture.save(folder / name / f"{'new' if name == 'new_images' else 'disc'}{k}.png")
    return True
