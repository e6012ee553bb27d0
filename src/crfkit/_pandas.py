"""pandas, which is needed only by those who ask for a frame."""

from __future__ import annotations

from typing import Any

from crfkit.errors import ParameterError


def pandas() -> Any:
    """Return the module pandas; raise ParameterError, which names the extra, if it is not installed."""
    try:
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise ParameterError("to_frame needs pandas: pip install 'crfkit[frames]'") from None
    return pandas
