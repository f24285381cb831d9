"""Numbers that the boosted model sees of work, all of them known before it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from .history import GROUPS, Estimate, Pasts
from .runs import Work

NAN = math.nan
LATEST = 5
LEVELS_SEEN = (0, 1, 3, 4, 6, 7)
"""Places in ``GROUPS`` whose last runs are shown one by one."""
OWN = (
    "limit",
    "gpus",
    "memory",
    "hour",
    "weekday",
    "type",
    "since",
    "since_recipe",
    "open",
    "open_recipe",
    "oldest",
    "newest",
)
SAID = ("p10", "p50", "p90", "weight")
OF_GROUP = ("last", "before", "mean", "least", "most", "count", "since_end")
NAMES = (*OWN, *SAID, *(f"{GROUPS[place]}_{name}" for place in LEVELS_SEEN for name in OF_GROUP))
KINDS = {"training": 0.0, "inference": 1.0, "interactive": 2.0}
MOST_SUBMITTERS = 40_000


@dataclass(slots=True)
class Submissions:
    """When each user, and each recipe of a user, last submitted, and how many of theirs have not ended."""

    last: dict[tuple[str, ...], float] = field(default_factory=dict)
    open: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    """Times of submission, in order."""

    def note(self, work: Work) -> tuple[float, ...]:
        """Add one that is submitted; what stood before it, as ``seen`` says."""
        before = self.seen(work)
        for key in _keys(work):
            self.last.pop(key, None)
            self.last[key] = work.submitted
            self.open.setdefault(key, []).append(work.submitted)
        while len(self.last) > MOST_SUBMITTERS:
            del self.last[next(iter(self.last))]
        return before

    def seen(self, work: Work) -> tuple[float, ...]:
        """What stands before ``work`` is submitted, in the order of the names from ``since`` on."""
        keys = _keys(work)
        since = [_log(work.submitted - self.last[key]) if key in self.last else NAN for key in keys]
        unfinished = [float(len(self.open.get(key, ()))) for key in keys]
        like = self.open.get(keys[1], ())
        ages = (
            (_log(work.submitted - like[0]), _log(work.submitted - like[-1]))
            if like
            else (NAN, NAN)
        )
        return (*since, *unfinished, *ages)

    def end(self, work: Work) -> None:
        for key in _keys(work):
            left = self.open.get(key)
            if left and work.submitted in left:
                left.remove(work.submitted)
                if not left:
                    del self.open[key]


def _keys(work: Work) -> tuple[tuple[str, ...], tuple[str, ...]]:
    recipe = (work.user, work.queue, work.stem, f"{work.gpus:g}", f"{work.limit_s:g}")
    return (work.user,), recipe


def features_of(
    work: Work,
    submitted: tuple[float, ...],
    estimate: Estimate,
    found: Sequence[Pasts | None],
    now: float,
) -> list[float]:
    """In the order of ``NAMES``; NaN where nothing is known."""
    said, day = estimate.quantiles, work.submitted / 86400
    row = [
        _log(work.limit_s) if work.limit_s else NAN,
        _log(work.gpus),
        _log(work.memory_gib),
        day % 1 * 24,
        float(int(day + 4) % 7),
        KINDS.get(work.type, NAN),
        *submitted,
        said.p10,
        said.p50,
        said.p90,
        estimate.weight,
    ]
    for place in LEVELS_SEEN:
        row += _of_group(found[place], now)
    return row


def _of_group(runs: Pasts | None, now: float) -> list[float]:
    if not runs:
        return [NAN, NAN, NAN, NAN, NAN, 0.0, NAN]
    values = [run.log2_s for run in runs]
    latest = values[-LATEST:]
    return [
        values[-1],
        values[-2] if len(values) > 1 else NAN,
        sum(latest) / len(latest),
        min(values),
        max(values),
        float(len(values)),
        _log(now - runs[-1].ended),
    ]


def _log(value: float) -> float:
    return math.log2(1.0 + max(0.0, value))
