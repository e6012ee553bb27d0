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
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import jinja2

HERE = Path(__file__).resolve().parent

# What may hold digits in a template: tags, code, links, names of methods, norms, papers' own numbering.
TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
TARGET = re.compile(r"\]\([^)]*\)")
NAMES = re.compile(
    r"\b(?:Tables?|Figures?|figures?|eqs?\.|Section|Theorem|Algorithm) \(?\d+\)?(?:(?: and |, | to )\(?\d+\)?)*"
    r"|\bL[12]\b|L1-|M-\[\d+\]|\[\d+\]|CoNLL-\d+|\((?:19|20)\d\d\)|\b(?:19|20)\d\d\b|-L1\b|CRF-L1|BB[12]|BS[1-4]|F1|C1\b"
    r"|λ[₀-₉]|κ[₀-₉]|^\d+\. ",
    re.MULTILINE,
)
ALWAYS = "all every each both none never always no any only same equal level first last fastest fewest least most best worst"
THAN = (
    "faster slower fewer more less better worse larger smaller higher lower longer shorter ahead behind twice half "
    "times holds hold held agree agrees differs differ confirmed lose loses win wins exceed exceeds"
)
COMPARES = re.compile(rf"\b(?:{'|'.join((ALWAYS + ' ' + THAN).split())})\b", re.IGNORECASE)


class ClaimError(Exception):
    """A sentence of a page that its results do not support."""


def environment(lenient: bool = False) -> jinja2.Environment:
    """Return the environment of templates; a lenient one marks claims that do not hold instead of raising."""
    made = jinja2.Environment(
        undefined=jinja2.ChainableUndefined if lenient else jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )

    def claim(condition: Any, *, note: str = "") -> str:
        if isinstance(condition, jinja2.Undefined):
            return " **(not measured in this run)**"
        if bool(condition):
            return ""
        if lenient:
            return " **(not so in this run)**"
        raise ClaimError(f"a claim does not hold{': ' + note if note else ''}")

    made.globals |= {"claim": claim, "given": str}
    made.filters |= {name: _shown(show) for name, show in FILTERS.items()}
    return made


def _shown(show: Any) -> Any:
    """Return a filter that shows a missing value of a lenient page as a dash."""

    def of(value: Any, *options: Any) -> str:
        return "–" if value is None or isinstance(value, jinja2.Undefined) else show(value, *options)

    return of


def _fixed(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) != 0 else text.lstrip("-")


FILTERS = {
    "n": lambda value, digits=0: _fixed(value, digits),  # 1,234 or, with digits, 1,234.5
    "pct": lambda value, digits=1: _fixed(100 * value, digits),  # 0.1234 as 12.3, without the sign
    "signed": lambda value, digits=2: ("+" if value > 0 else "") + _fixed(value, digits),
    "g": lambda value, digits=3: f"{value:.{digits}g}".replace("-", "−"),
    "e": lambda value, digits=1: f"{value:.{digits}e}".replace("-", "−"),
    "words": lambda items: ", ".join(map(str, items)),
}


def facts_of(folder: Path, results: Path) -> dict[str, Any]:
    """Return what `facts.py` of an experiment says of the results in a folder."""
    name = f"facts_of_{folder.name}"
    spec = importlib.util.spec_from_file_location(name, folder / "facts.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
        return dict(module.facts(results))
    finally:
        sys.path.remove(str(folder))


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


def lint(text: str) -> list[str]:
    """Return complaints about a template: numbers and comparisons that nothing checks."""
    complaints = []
    bare = CODE.sub(_blank, text)
    for k, line in enumerate(NAMES.sub(_blank, TARGET.sub(_blank, TAG.sub(_blank, bare))).splitlines(), 1):
        if found := re.search(r"\d", line):
            complaints.append(f"line {k}: a number that is not from the results: {line.strip()[:100]!r} ({found[0]})")
    place = 1
    for paragraph in re.split(r"(\n(?=\s*\n|\s*[-*|#] ))", text):
        plain = TARGET.sub(" ", CODE.sub(" ", TAG.sub(" ", paragraph)))
        word = COMPARES.search(plain)
        if word and "{{" not in paragraph and not plain.lstrip().startswith("#"):
            complaints.append(f"line {place}: {word[0]!r} without a claim: {' '.join(plain.split())[:100]!r}")
        place += paragraph.count("\n")
    return complaints


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


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
            lines = difflib.unified_diff(old.splitlines(), text.splitlines(), "committed", "from the results", "", "", 0)
            wrong.append(f"{page.name} differs from its results:\n" + "\n".join(list(lines)[:20]))
    return wrong


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
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
