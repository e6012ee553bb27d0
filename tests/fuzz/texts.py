"""Targets: templates, patterns and data files, read and learned from."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from crfkit import ChainCRF, ChainModel, GraphCRF, Template, read_columns, read_crfsuite, read_table
from crfkit.chain.fields.constraints import make_constraints
from crfkit.files.columns import ColumnFile
from crfkit.files.mask_colours import read_colours
from fuzz.chains import LABELS, ROWS
from fuzz.commands import run
from fuzz.target import Target
from fuzz.text import change_lines

QUICK = {"n_threads": 1, "max_iterations": 2}
TEMPLATE = b"# words\nU00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[2,1]\n\nB\nB01:%x[0,1]\n"
PATTERNS = b'# words\nu:1=%x[0,0]\n*:%X[-1,0]\nu:s=%m[0,0,".?.?$"]\nu:t=%t[0,1,"^\\u\\d*[a-z]+"]/%x[@-1,0]\nb\n'
COLUMNS = b"the D O\nna\xc3\xafve A B-x\ncat N I-x\n\na D O\ndog N B-x\n\nsleep V B-y\n"
CRFSUITE = b"DET\tw=the\tcap\nNOUN\tw=cat\tlen:3\n\n@weight:2\nNOUN\ttime=12\\:30\tlen:1e-3\nDET\tw=a\n"
CONLLU = b"""# sent_id = 1
1-2\tthe cat\t_\t_\t_\t_\t_\t_\t_\t_
1\tthe\tthe\tDET\tDT\tA=b|C=d\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\tSpaceAfter=No
2.1\tran\trun\tVERB\tVB\t_\t_\t_\t_\t_

1\tdogs\tdog\tNOUN\tNNS\t_\t0\troot\t_\t_
"""
CSV = b'size,colour,"a ""b""",kind\n1.5,0,0,a\n2,1,1,b\n7,0,0,"a"\n-1e3,"1",1,b\n'
ARFF = b"""% comment
@relation weather
@attribute size numeric
@attribute kind {red, 'light blue'}
@attribute 'a b' {0, 1}
@data
1.5, red, 0
{0 2, 1 'light blue', 2 1}
-1e3,'light blue',0
2,red,1
"""
COLOURS = b"#808080 1\nred 2\n0,0,0 = void\n"


def _template(path: Path, rng: random.Random) -> None:
    template = Template.read(path)
    template.expand(ROWS[0])
    ChainCRF(template=template, **QUICK).fit(ROWS, LABELS).predict(ROWS)


@cache
def _model() -> ChainModel:
    return ChainCRF(template=Template("U:%x[0,0]\nB"), **QUICK).fit(ROWS, LABELS).model_


def _columns(path: Path, rng: random.Random) -> None:
    match rng.randrange(4):
        case 0:
            read_columns(path, label=rng.random() < 0.5)
        case 1:
            ChainCRF(template=Template("U:%x[0,0]\nB"), **QUICK).fit_file(path)
        case 2:
            list(_model().tag_columns(path, rng.choice((None, "best", "all"))))
        case _:
            run("tag", "-m", _saved(path), path)


def _saved(path: Path) -> Path:
    model = path.parent / "model.crf"
    if not model.exists():
        _model().save(model)
    return model


def _crfsuite(path: Path, rng: random.Random) -> None:
    X, y, _ = read_crfsuite(path)
    ChainCRF(**QUICK).fit(X, y).predict(X)


def _conllu(path: Path, rng: random.Random) -> None:
    file = ColumnFile(path, format="conllu", label_column=rng.choice((None, "feats", 4)))
    if rng.random() < 0.5:
        read_columns(file)
    else:
        ChainCRF(template=Template("U:%x[0,1]\nB"), **QUICK).fit_file(file)


def _table(path: Path, rng: random.Random) -> None:
    table = read_table(path, header=rng.choice((None, True)))
    match rng.randrange(3):
        case 0:
            GraphCRF(**QUICK).fit(None, table.take(range(1, min(3, len(table.columns)))))
        case 1:
            run("graph", "train", path, "--labels", "kind", "-m", path.parent / "g.crf", "--max-iterations", 2)
        case _:
            run("structure", "learn", path, "-m", path.parent / "s.crf", "--bins", 2, "-s", 1.0)


def _colours(path: Path, rng: random.Random) -> None:
    read_colours(path)


def _constraints(path: Path, rng: random.Random) -> None:
    labels = path.read_bytes().decode("utf-8", "replace").split()
    make_constraints(rng.choice(("iob1", "iob2", "ioe1", "iobes", "bilou")), labels, None)


Use = Callable[[Path, random.Random], None]
FILES: dict[str, tuple[bytes, str, Use]] = {
    "template": (TEMPLATE, ".template", _template),
    "patterns": (PATTERNS, ".pattern", _template),
    "columns": (COLUMNS, ".txt", _columns),
    "crfsuite-data": (CRFSUITE, ".crfsuite", _crfsuite),
    "conllu": (CONLLU, ".conllu", _conllu),
    "csv": (CSV, ".csv", _table),
    "arff": (ARFF, ".arff", _table),
    "mask-colours": (COLOURS, ".txt", _colours),
}


def _targets() -> list[Target]:
    made = []
    for name, (valid, suffix, use) in FILES.items():
        made.append(Target(name, lambda valid=valid: valid, change_lines, use, suffix))  # type: ignore[misc]
    return made


TARGETS = _targets()
