"""Write the pages of the experiments from their results, or check them.

    python experiments/pages.py              # write every page whose template is in the repository
    python experiments/pages.py --check      # exit with 1 if a page differs from its results or a claim does not hold
    python experiments/pages.py agpm --results build/experiments/quick/agpm

A page `X.md` is the template `X.md.j2` beside it, with values from `facts(folder)` of `facts.py`. In a template

- `{{ value | pct }}`, `{{ value | n }}` and the other filters below show a number of the results;
- `{{ claim(condition) }}` asserts a sentence: rendering fails where the condition does not hold;
- `{{ given("…") }}` marks a number that no result can change: of the protocol, of the paper, of the data.

`lint` looks for sentences that escape this: a digit outside of `{{ }}`, or a word such as "faster" in a paragraph
without a claim.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import Any

import jinja2
from claims import ClaimError, environment, lint
from loading import load

HERE = Path(__file__).resolve().parent


def facts_of(folder: Path, results: Path) -> dict[str, Any]:
    """Return what `facts.py` of an experiment says of the results in a folder."""
    return dict(load(folder, "facts").facts(results))


def render(folder: Path, results: Path | None = None, lenient: bool = False) -> dict[str, str]:
    """Return the pages of an experiment by their file names."""
    values = facts_of(folder, results or folder)
    made = environment(lenient)
    pages = {}
    for template in sorted(folder.glob("*.md.j2")):
        text = template.read_text(encoding="utf-8")
        try:
            pages[template.stem] = made.from_string(text).render(values)
        except (ClaimError, jinja2.TemplateError) as error:
            line = _line(error)
            shown = text.splitlines()[line - 1].strip() if line else ""
            raise ClaimError(f"{template}:{line}: {error}\n    {shown}") from error
    return pages


def _line(error: BaseException) -> int:
    """Return the line of the template that an error came from."""
    lines = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return lines[-1] if lines else getattr(error, "lineno", 0) or 0


def experiments() -> list[Path]:
    """Return the folders of experiments that have a template."""
    return sorted({template.parent for template in HERE.glob("*/*.md.j2")})


def check(folder: Path, results: Path | None = None) -> list[str]:
    """Return what is wrong with the pages of an experiment."""
    wrong = []
    for template in sorted(folder.glob("*.md.j2")):
        wrong += [f"{template.name}, {complaint}" for complaint in lint(template.read_text(encoding="utf-8"))]
    try:
        pages = render(folder, results)
    except ClaimError as error:
        return [*wrong, str(error)]
    for name, text in pages.items():
        page = folder / name
        old = page.read_text(encoding="utf-8") if page.exists() else ""
        if old != text:
            lines = difflib.unified_diff(
                old.splitlines(), text.splitlines(), "committed", "from the results", "", "", 0
            )
            wrong.append(f"{page.name} differs from its results:\n" + "\n".join(list(lines)[:20]))
    return wrong


# --- the index of all papers

PAPERS = {  # folder: (who, what)
    "chains": ("Wang", "chains, line searches, quasi-Newton methods, iterative scaling (2017)"),
    "tron": ("Chen", "Newton's method with a trust region (2009)"),
    "grafting_light": ("Zhu et al.", "Grafting-Light (2010)"),
    "agpm": ("Xue, Zhang", "structure by adaptive gradient projection (2016)"),
    "robust_crf": ("Song et al.", "robust fields on grids (2015)"),
}
OUTCOMES = ("reproduced", "partly reproduced", "not reproduced", "not possible")
HEAD = """# Experiments

A page per paper says what the paper proposes, what came out here, and how to run it again; three more pages are about
choices of crfkit's own. Every number in them is written from the results beside them by `experiments/pages.py`, which
also checks every comparison; the tests run it.

```sh
python experiments/run_all.py --quick    # fewer seeds and settings: at most 20 minutes on two cores
python experiments/run_all.py --full     # everything, for hours; the same command continues after an interruption
```

"""
TABLE = """
## What was reproduced

Every table and figure of the five papers, and of texts without experiments every algorithm:

"""


def _facts(name: str, results: Path) -> dict[str, Any]:
    """Return what is known of a paper; nothing where its experiment has not been run."""
    if not (HERE / name / "facts.py").exists() or not results.exists():
        return {}
    return facts_of(HERE / name, results)


def index(results: Path | None = None) -> str:
    """Return the page that lists all experiments and what became of each table and figure of the papers."""
    listed = [f"- [{who}]({name}/README.md): {what}" for name, (who, what) in PAPERS.items()]
    lines = ["| paper | item | what | outcome | why |", "|---|---|---|---|---|"]
    for name, (who, _) in PAPERS.items():
        values = _facts(name, (results or HERE) / name)
        for k, row in enumerate(values.get("coverage", [])):
            if row["outcome"] not in OUTCOMES:
                raise ClaimError(f"{name}: {row['item']} is {row['outcome']!r}, not one of {', '.join(OUTCOMES)}")
            paper = f"[{who}]({name}/README.md)" if k == 0 else ""
            lines.append(f"| {paper} | {row['item']} | {row['what']} | {row['outcome']} | {row['why']} |")
    others = [folder.name for folder in experiments() if folder.name not in PAPERS]
    lines += ["", "## Other experiments", ""]
    for name in others:
        title = (HERE / name / "README.md.j2").read_text("utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"- [{title}]({name}/README.md)")
    return HEAD + "\n".join(listed) + "\n" + TABLE + "\n".join(lines) + "\n"


def check_index() -> list[str]:
    """Return what is wrong with the index."""
    page = HERE / "README.md"
    same = page.exists() and page.read_text("utf-8") == index()
    return [] if same else ["README.md, the index, differs from the results: run python experiments/pages.py"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="experiments; all by default")
    parser.add_argument("--check", action="store_true", help="compare with the committed pages, write nothing")
    parser.add_argument("--results", type=Path, help="another folder of results; the page is written there")
    options = parser.parse_args()
    folders = [HERE / name for name in options.names] or experiments()
    failed = False
    for folder in folders:
        if options.check:
            for complaint in check(folder):
                print(f"{folder.name}: {complaint}")
                failed = True
        else:
            try:
                pages = render(folder, options.results, lenient=options.results is not None)
            except ClaimError as error:
                print(error)
                failed = True
                continue
            for name, text in pages.items():
                ((options.results or folder) / name).write_text(text, encoding="utf-8")
    if not options.names:
        try:
            text = index()
        except ClaimError as error:
            sys.exit(str(error))
        if options.check:
            for complaint in check_index():
                print(complaint)
                failed = True
        else:
            (HERE / "README.md").write_text(text, encoding="utf-8")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
