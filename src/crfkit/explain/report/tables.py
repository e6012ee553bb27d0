"""Tables of the report page."""

from __future__ import annotations

from collections.abc import Sequence


def table(titles: Sequence[str], rows: Sequence[str], left: int = 1) -> str:
    """Return a table that scrolls sideways where it must; titles and rows are HTML, the first `left` columns texts."""
    head = "".join(f"<th scope='col'{' class=left' if k < left else ''}>{title}</th>" for k, title in enumerate(titles))
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"<div class='scroll' tabindex='0'><table>{body}</table></div>"
