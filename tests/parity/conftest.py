"""What Wapiti read and wrote: on generated sentences, which are in the repository, and on CoNLL-2000, which is not."""

from __future__ import annotations

import gzip
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from optional import shared_is_there

FIXTURES = Path(__file__).parents[1] / "fixtures" / "wapiti"


@dataclass(frozen=True)
class WapitiFiles:
    """A folder with train.txt, test.txt and all that Wapiti wrote, and figures of its model."""

    folder: Path
    n_sentences: int  # of test.txt
    n_weights: int
    objective: float  # where Wapiti stopped
    optimum: float  # a lower bound of the objective
    flags: tuple[str, ...] = ()  # of training, besides those of all

    def __truediv__(self, name: str) -> Path:
        return self.folder / name


def first_sentences(source: Path, n: int) -> str:
    return "\n\n".join(source.read_text(encoding="utf-8").split("\n\n")[:n]) + "\n\n"


def generated_files(folder: Path) -> WapitiFiles:
    for path in FIXTURES.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    with tarfile.open(folder / "printed.tar.xz") as archive:
        for member in archive.getmembers():
            (folder / member.name).write_bytes(archive.extractfile(member).read())
    return WapitiFiles(folder, 25, 1082, 52.26, 51.5, ("-w", "80"))


def shared_files(folder: Path, data: Path, reference: Path) -> WapitiFiles:
    for path in (reference / "wapiti").iterdir():
        content = path.read_bytes()
        name = path.name.removesuffix(".gz")
        (folder / name).write_bytes(gzip.decompress(content) if path.suffix == ".gz" else content)
    for name, n in (("train.txt", 500), ("test.txt", 200)):
        (folder / name).write_text(first_sentences(data / "conll2000" / name, n), encoding="utf-8")
    return WapitiFiles(folder, 200, 16876, 973.53, 900.0)


@pytest.fixture(scope="session")
def generated(tmp_path_factory) -> WapitiFiles:
    return generated_files(tmp_path_factory.mktemp("wapiti"))


@pytest.fixture(scope="session", params=["generated", "conll2000"] if shared_is_there() else ["generated"])
def files(request, tmp_path_factory) -> WapitiFiles:
    if request.param == "generated":
        return request.getfixturevalue("generated")
    folders = request.getfixturevalue("shared_data"), request.getfixturevalue("shared_reference")
    return shared_files(tmp_path_factory.mktemp("wapiti"), *folders)
