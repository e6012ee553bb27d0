"""Write unicode_tables.inl: classes and lower case of all characters, as ranges. Run it by hand; the result is kept."""

from __future__ import annotations

import unicodedata
from pathlib import Path

CLASSES = {"Lu": "upper", "Lt": "upper", "Ll": "lower", "Lo": "letter", "Lm": "letter"}
MAJOR = {"M": "mark", "N": "digit", "Z": "space"}


def class_of(c: int) -> str:
    category = unicodedata.category(chr(c))
    return CLASSES.get(category) or MAJOR.get(category[0], "other")


def lower_delta(c: int) -> int:
    low = chr(c).lower()
    return ord(low) - c if len(low) == 1 else 0


def ranges(values: dict[int, object]) -> list[tuple[int, int, int, object]]:
    """Return (first, last, step, value) of runs with one value; step 2 where every other character has it."""
    found: list[tuple[int, int, int, object]] = []
    left = dict(values)
    for c in sorted(values):
        if c not in left:
            continue
        ends = {}
        for step in (1, 2):
            end = c
            while left.get(end + step) == left[c]:
                end += step
            ends[step] = end
        step = 1 if ends[1] - c >= (ends[2] - c) // 2 else 2
        found.append((c, ends[step], step, left[c]))
        for k in range(c, ends[step] + 1, step):
            del left[k]
    return found


def _packed(entries: list[str], n: int) -> list[str]:
    return ["    " + ", ".join(entries[k : k + n]) + "," for k in range(0, len(entries), n)]


def main() -> None:
    everything = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    classes = ranges({c: name for c in everything if (name := class_of(c)) != "other"})
    lower = ranges({c: delta for c in everything if (delta := lower_delta(c)) != 0})
    lines = [f"// Unicode {unicodedata.unidata_version}; written by make_unicode_tables.py.", "// clang-format off"]
    lines.append("constexpr ClassRange class_ranges[] = {")
    lines += _packed([f"{{0x{a:x}, 0x{b:x}, {s}, CharClass::{v}}}" for a, b, s, v in classes], 3)
    lines += ["};", "constexpr LowerRange lower_ranges[] = {"]
    lines += _packed([f"{{0x{a:x}, 0x{b:x}, {s}, {v}}}" for a, b, s, v in lower], 4)
    lines += ["};", "// clang-format on"]
    Path(__file__).with_name("unicode_tables.inl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
