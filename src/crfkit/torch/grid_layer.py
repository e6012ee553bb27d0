"""A grid CRF on top of a network that scores pixels: `crfkit.torch.GridCRF`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from crfkit._checks import is_whole
from crfkit.errors import DataError, option_error
from crfkit.torch import grid_field
from crfkit.torch.checks import UNKNOWN
from crfkit.torch.grid_checks import check_goes_with, check_image, check_unary, known_labels, possible_scores
from crfkit.torch.grid_field import STEPS, GridScores
from crfkit.torch.recursions import accumulator

FORMS = ("full", "potts")
LOSSES = ("pseudo-likelihood", "marginals")
REDUCTIONS = ("none", "sum", "mean", "pixel_mean")


class GridCRF(nn.Module):
    """A CRF on the pixels of images whose label scores come from a network; neighbours have trainable compatibilities.

    The score of labels y is Σ_i unary_i(y_i) + Σ_ij P_ij(y_i, y_j) over neighbours, where j is right of i or below
    it (also diagonally, with 8 neighbours) and P_ij is the table of that direction. It begins with zeros: with the
    network alone.

    Scores of half precision are widened to float32, and losses are summed in double, inside autocast as well.
    Answers come from mean field: a fixed number of damped updates of all pixels at once, through which gradients go.

    Parameters
    ----------
    num_labels : how many labels there are.
    neighbours : 4 or 8. Default: 4.
    channels_last : whether scores are (batch, height, width, labels). Default: (batch, labels, height, width).
    form : "full" (a table [num_labels, num_labels] per direction) or "potts" (a number per direction: the score of
        equal labels). Default: "full".
    contrast : whether compatibilities also depend on how alike two pixels of an image are. Then every call needs
        `image`; P_ij = T + exp(−precision · mean (x_i − x_j)²) · C with trainable T, C and precision, which starts at 1
        and fits images with values of about 1. Default: False.
    loss : what `forward` returns: "pseudo-likelihood", which needs no inference and is convex in the scores and
        compatibilities, or "marginals", the cross-entropy of the mean-field marginals, which trains what `decode`
        uses and costs `sweeps` times as much. Default: "pseudo-likelihood".
    sweeps : the number of mean-field updates. More follow longer distances. Default: 10.
    damping : share of the old marginals that an update keeps, from 0 to below 1. Raise it where marginals swing.
        Default: 0.5.

    Examples
    --------
    >>> layer = GridCRF(2, form="potts")
    >>> with torch.no_grad():
    ...     _ = layer.compatibility.fill_(1.0)
    >>> unary = torch.zeros(1, 2, 3, 3)
    >>> unary[0, 1] = 1.0  # label 1 everywhere, except for a speck
    >>> unary[0, 0, 1, 1] = 2.0
    >>> layer.decode(unary)[0].tolist()
    [[1, 1, 1], [1, 1, 1], [1, 1, 1]]
    >>> loss = layer(unary, torch.ones(1, 3, 3, dtype=torch.long), reduction="pixel_mean")
    """

    def __init__(
        self,
        num_labels: int,
        neighbours: int = 4,
        *,
        channels_last: bool = False,
        form: str = "full",
        contrast: bool = False,
        loss: str = "pseudo-likelihood",
        sweeps: int = 10,
        damping: float = 0.5,
    ) -> None:
        _check_count("num_labels", num_labels, 2)
        _check_count("sweeps", sweeps, 1)
        _check_name("form", form, FORMS)
        _check_name("loss", loss, LOSSES)
        if neighbours not in STEPS:
            raise option_error("neighbours", f" is {neighbours!r}; expected 4 or 8")
        if isinstance(damping, bool) or not isinstance(damping, (int, float)) or not 0 <= damping < 1:
            raise option_error("damping", f" is {damping!r}; expected a number from 0 to below 1")
        super().__init__()
        self.num_labels = num_labels
        self.neighbours = neighbours
        self.channels_last = channels_last
        self.form = form
        self.contrast = contrast
        self.loss = loss
        self.sweeps = sweeps
        self.damping = float(damping)
        D = len(STEPS[neighbours])
        shape = (D,) if form == "potts" else (D, num_labels, num_labels)
        self.compatibility = nn.Parameter(torch.empty(shape))
        if contrast:
            self.contrast_compatibility = nn.Parameter(torch.empty(shape))
            self.log_precision = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all parameters to zero: labels follow the network alone."""
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def extra_repr(self) -> str:
        return (
            f"num_labels={self.num_labels}, neighbours={self.neighbours}, channels_last={self.channels_last}, "
            f"form={self.form!r}, contrast={self.contrast}, loss={self.loss!r}, sweeps={self.sweeps}, "
            f"damping={self.damping}"
        )

    # --- losses

    def forward(
        self,
        unary: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        reduction: str = "sum",
        *,
        image: Tensor | None = None,
        pixel_weights: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of labels, to be minimised.

        labels: (batch, height, width) integers, −100 where the label is not known. Such pixels have no term of their
        own; the pseudo-likelihood takes them out of the grid, the marginals keep them. mask: (batch, height, width),
        True (or 1) for pixels of the image; others are padding and may hold anything.
        reduction: "none" (one value per image), "sum", "mean" (over images), "pixel_mean" (over labelled pixels).
        pixel_weights: (batch, height, width), the weight of each pixel's term. "pixel_mean" divides by their sum.
        """
        _check_name("reduction", reduction, REDUCTIONS)
        scores = self._scores(unary, mask, image)
        shape = (scores.u.shape[0], *scores.u.shape[2:])
        check_goes_with("labels", labels, shape, unary.device)
        if labels.dtype.is_floating_point or labels.dtype.is_complex or labels.dtype == torch.bool:
            raise DataError(f"labels are of type {labels.dtype}; expected integers")
        if pixel_weights is not None:
            check_goes_with("pixel_weights", pixel_weights, shape, unary.device)
        labels = labels.long()
        inside = scores.u.new_ones(shape, dtype=torch.bool)[:, None] if scores.inside is None else scores.inside
        known = known_labels(labels, inside, scores.u.detach())
        with self._full_precision(unary):
            log_p = self._log_probabilities(scores, labels, known)
            chosen = torch.where(known, log_p.gather(1, torch.where(known, labels, 0)[:, None])[:, 0], 0.0)
            weights = known.to(chosen.dtype)
            if pixel_weights is not None:
                weights = torch.where(known, pixel_weights.to(chosen.dtype), 0.0)
            found = -(weights * chosen).sum((1, 2), dtype=accumulator(chosen))
            return _reduced(found, weights, reduction).to(scores.u.dtype)

    def _log_probabilities(self, scores: GridScores, labels: Tensor, known: Tensor) -> Tensor:
        if self.loss == "pseudo-likelihood":
            return grid_field.conditionals(scores, grid_field.one_hot(labels, known, self.num_labels, scores.u.dtype))
        return grid_field.log_marginals(scores, self.sweeps, self.damping)

    def lower_bound(self, unary: Tensor, mask: Tensor | None = None, *, image: Tensor | None = None) -> Tensor:
        """Return the mean-field lower bound of log Z of each image, (batch); differentiable."""
        scores = self._scores(unary, mask, image)
        with self._full_precision(unary):
            q = grid_field.mean_field(scores, self.sweeps, self.damping)
            return grid_field.lower_bound(scores, q).to(scores.u.dtype)

    # --- answers

    def marginals(self, unary: Tensor, mask: Tensor | None = None, *, image: Tensor | None = None) -> Tensor:
        """Return mean-field probabilities of labels in the order of the unary scores, 0 in the padding.

        They are differentiable, so that further layers and losses can be put on them.
        """
        scores = self._scores(unary, mask, image)
        with self._full_precision(unary):
            q = grid_field.mean_field(scores, self.sweeps, self.damping)
        return q.permute(0, 2, 3, 1) if self.channels_last else q

    @torch.no_grad()
    def decode(self, unary: Tensor, mask: Tensor | None = None, *, image: Tensor | None = None) -> Tensor:
        """Return the most probable label of each pixel by its marginals, (batch, height, width); −100 in padding."""
        q = self.marginals(unary, mask, image=image)
        best = q.argmax(3 if self.channels_last else 1)
        return best if mask is None else torch.where(mask.bool(), best, UNKNOWN)

    # --- inputs

    def tables(self) -> Tensor:
        """Return the compatibilities as tables [directions, num_labels, num_labels]: right, down, diagonals."""
        return self._table(self.compatibility)

    def _table(self, parameter: Tensor) -> Tensor:
        if self.form == "full":
            return parameter
        return parameter[:, None, None] * torch.eye(self.num_labels, dtype=parameter.dtype, device=parameter.device)

    def _scores(self, unary: Tensor, mask: Tensor | None, image: Tensor | None) -> GridScores:
        """Check what was given; return it with the labels first, in float32 or float64."""
        check_unary(unary, self.num_labels, self.compatibility.device, self.channels_last)
        dtype = torch.promote_types(torch.promote_types(unary.dtype, self.compatibility.dtype), torch.float32)
        u = self._channels_first(unary).to(dtype)
        inside = None
        if mask is not None:
            check_goes_with("mask", mask, (u.shape[0], *u.shape[2:]), unary.device)
            inside = mask.bool()[:, None]
        u = possible_scores(u, u.new_ones((1, 1, 1, 1), dtype=torch.bool) if inside is None else inside)
        if self.contrast != (image is not None):
            what = "needs image=, as contrast=True says" if self.contrast else "takes no image; pass contrast=True"
            raise DataError(f"this GridCRF {what}")
        T = self.tables().to(dtype)
        if image is None:
            return GridScores(u, T, None, (), inside)
        check_image(image, tuple(unary.shape), unary.device, self.channels_last)
        x = self._channels_first(image).to(dtype)
        if inside is not None:
            x = torch.where(inside, x, 0.0)
        with self._full_precision(unary):
            alike = grid_field.alikeness(x, self.log_precision.to(dtype).exp(), self.neighbours)
        return GridScores(u, T, self._table(self.contrast_compatibility).to(dtype), alike, inside)

    def _channels_first(self, x: Tensor) -> Tensor:
        return x.permute(0, 3, 1, 2) if self.channels_last else x

    @staticmethod
    def _full_precision(like: Tensor) -> Any:
        """Return a context in which autocast does not narrow products of tables."""
        return torch.autocast(like.device.type, enabled=False)


def _reduced(found: Tensor, weights: Tensor, reduction: str) -> Tensor:
    if reduction == "sum":
        return found.sum()
    if reduction == "mean":
        return found.mean()
    if reduction == "pixel_mean":
        total = weights.sum(dtype=found.dtype)
        return found.sum() / torch.where(total == 0, 1.0, total)
    return found


def _check_count(name: str, n: object, least: int) -> None:
    if not is_whole(n) or n < least:  # type: ignore[operator]
        raise option_error(name, f" is {n!r}; expected a whole number >= {least}")


def _check_name(name: str, given: object, names: tuple[str, ...]) -> None:
    if given not in names:
        raise option_error(name, f" is {given!r}; expected one of {', '.join(names)}")
