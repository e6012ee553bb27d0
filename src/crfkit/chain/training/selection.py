"""Chains whose attributes are selected as they are trained: where training starts, and what the model keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crfkit._types import Floats
from crfkit.chain.encoding.sequences import Vocabulary
from crfkit.chain.losses.candidates import CandidateChain
from crfkit.errors import ParameterError
from crfkit.files.checkpoint import Checkpoint


def select_start(loss: Any, w0: Floats, resume: Checkpoint | None) -> tuple[Any, Floats]:
    """Return the loss with the attributes that `w0` has weights for or that a checkpoint had selected, and its weights.

    Raise ParameterError if the checkpoint selects attributes that the data do not have.
    """
    if isinstance(resume, Checkpoint) and "active" in resume.state:
        try:
            return loss.activate(resume.state["active"])[0], w0
        except ParameterError:
            raise ParameterError("the checkpoint selects attributes that these data do not have") from None
    used = loss.used_ids(w0)
    loss = loss.activate(used)[0] if len(used) else loss
    return loss, w0[loss.full_places]


def selected_vocabulary(loss: CandidateChain, vocabulary: Vocabulary) -> Vocabulary:
    """Return the vocabulary with the selected attributes only."""
    return replace(
        vocabulary,
        attributes=vocabulary.attributes.take(loss.active["state"]),
        pair_attributes=vocabulary.pair_attributes.take(loss.active["pair"]),
    )
