"""The entitlement bar in its large form: marks with their names and figures above and below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portal.web.entitlement import Axis, Bar, Figures, axis, bar
from portal.web.format import gpus
from portal.web.workloads.labels import Label, roomy
from scheduling.models import Share

WIDE_PX, NARROW_PX = 680, 300


@dataclass(frozen=True, slots=True)
class LargeBar:
    """``framed`` is the workload's part of the hatch, milli-GPU; 0 frames nothing."""

    bar: Bar
    share: Share
    above: Sequence[Label]
    below: Sequence[Label]
    framed: float


def large(share: Share, name: str, *, framed: float = 0) -> LargeBar:
    """The bar of one queue and class on its own axis."""
    one = figures(share)
    on = axis([one])
    return LargeBar(
        bar=bar(name, one, on, framed_gpus=framed),
        share=share,
        above=_roomy(_above(one, on)),
        below=_roomy(_below(one, on, framed)),
        framed=framed,
    )


def figures(share: Share) -> Figures:
    """A row of the division as the bar reads it, without the potential share."""
    return Figures(
        allocated=share.allocated,
        fair_share=share.fair_share,
        nominal=share.nominal,
        limit=share.limit,
        demand=share.demand,
        pending=share.pending,
        lent=share.lent,
        kept_back=share.kept_back,
    )


def _above(one: Figures, on: Axis) -> list[Label]:
    fair = Label(on.at(one.fair_share), "fair share now", "end", gpus(one.fair_share))
    allocated = Label(on.at(one.allocated), "allocated", "start", gpus(one.allocated))
    labels = [fair, allocated]
    if one.limit is not None:
        labels.append(Label(on.at(one.limit), "limit", "middle", gpus(one.limit)))
    return labels


def _below(one: Figures, on: Axis, framed: float) -> list[Label]:
    labels = [Label(on.at(one.nominal), "nominal", "middle", gpus(one.nominal))]
    if framed:
        gang = one.allocated + framed
        labels.append(Label(on.at(gang), "with this gang", "end", gpus(gang)))
    return labels


def _roomy(labels: Sequence[Label]) -> list[Label]:
    return roomy(labels, wide_px=WIDE_PX, narrow_px=NARROW_PX, turn=True)
