"""The entitlement bar in its large form, with one workload's part of the hatch framed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portal.display.bar_labels import WIDTHS_PX, Labels, labels
from portal.display.entitlement import Axis, Bar, axis, bar
from portal.display.units import unit
from portal.selectors.overview import figures_of
from scheduling.models import Share


@dataclass(frozen=True, slots=True)
class LargeBar:
    """``framed`` is the workload's part of the hatch, milli-GPU; 0 frames nothing."""

    bar: Bar
    axis: Axis
    labels: Mapping[str, Labels]
    unit: str
    share: Share
    framed: float

    @property
    def past_limit(self) -> float:
        """Milli-GPU asked for that the limit will never let in at once."""
        limit = self.share.limit
        if limit is None:
            return 0
        return max(0, self.share.allocated + self.share.pending - limit)


def large(share: Share, name: str, *, framed: float = 0) -> LargeBar:
    """The bar of one queue and class on its own axis."""
    one = figures_of(share)
    on = axis([one])
    named = {width: labels(one, on, width=width, framed_gpus=framed) for width in WIDTHS_PX}
    drawn = bar(name, one, on, framed_gpus=framed)
    return LargeBar(drawn, on, named, unit(share.gpu_class), share, framed)
