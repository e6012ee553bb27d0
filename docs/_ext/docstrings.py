"""Docstrings as reStructuredText: their sections become lists, and what only looks like markup is escaped.

A docstring of crfkit has sections in the manner of NumPy, but an entry is `name : what it is`, in prose.
"""

from __future__ import annotations

import re
from typing import Any

SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Yields", "Examples", "Notes", "Methods", "References")
ENTRY = re.compile(r"^(\S[^:]*?)\s+: ?(.*)$")  # within a section
BARE_ENTRY = re.compile(r"^([\w*]+(?:, [\w*]+)*) : (.*)$")  # without one
LITERAL = re.compile(r"(``.+?``|:\w+:`[^`]+`|`[^`]+`)", re.DOTALL)
PAGE = re.compile(r"docs/((?:\w+/)*\w+)\.md")
TRAILING = re.compile(r"(?<=\w)_(?!\w)")


def escape(line: str) -> str:
    """Escape what reStructuredText would take for a reference, a substitution or emphasis, outside of literals."""
    parts = LITERAL.split(PAGE.sub(r":doc:`/\1`", line))
    for k in range(0, len(parts), 2):
        parts[k] = TRAILING.sub(r"\\_", parts[k]).replace("|", r"\|").replace("*", r"\*")
    return "".join(parts)


def sections(lines: list[str]) -> list[str]:
    """Turn `Parameters` over a line of dashes into a heading with a definition list."""
    out: list[str] = []
    k = 0
    inside = False
    while k < len(lines):
        line = lines[k]
        if line.strip() in SECTIONS and k + 1 < len(lines) and set(lines[k + 1].strip()) == {"-"}:
            inside = line.strip() in ("Parameters", "Attributes", "Raises", "Methods")
            out += ["", f".. rubric:: {line.strip()}", ""]
            k += 2
            continue
        if line and not line.startswith((" ", ">>>", "...")):
            match = (ENTRY if inside else BARE_ENTRY).match(line)
            if match:
                out += ["", f"**{match[1].replace('*', chr(92) + '*')}**", f"    {escape(match[2])}"]
                k += 1
                while k < len(lines) and (lines[k].startswith(" ") or not lines[k].strip()):
                    out.append(escape(lines[k]) if lines[k].strip() else "")
                    k += 1
                continue
            inside = False
        out.append(line if line.lstrip().startswith((">>>", "...", "..")) else escape(line))
        k += 1
    return out


def examples(lines: list[str]) -> list[str]:
    """Leave a blank line before an example that follows text directly, and none of its output escaped."""
    out: list[str] = []
    example = False
    for line in lines:
        begins = line.lstrip().startswith(">>>")
        if begins and not example and out and out[-1].strip():
            out.append("")
        example = begins or (example and bool(line.strip()))
        out.append(line.replace("\\_", "_").replace("\\|", "|").replace("\\*", "*") if example else line)
    return out


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the lines of a docstring in place; Sphinx calls this for each."""
    lines[:] = examples(sections(lines))


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
