"""Tags that tell scikit-learn about inputs: sequences, graphs and images are not tables."""

from __future__ import annotations

from typing import Any


class StructuredInputs:
    """Tag estimators whose samples are sequences, graphs or images, with several labels per sample."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = False
        return several_labels(tags)


class TableInputs:
    """Tag estimators whose inputs are a table and whose labels are another one, with a column for each variable."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return several_labels(tags)


def several_labels(tags: Any) -> Any:
    """Return the tags of an estimator that needs labels and takes several per sample."""
    tags.target_tags.required = True
    tags.target_tags.multi_output = True
    tags.target_tags.single_output = False
    return tags
