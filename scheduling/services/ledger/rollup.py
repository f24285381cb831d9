"""Minute samples into hours, hours into days; running it again changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction

from scheduling.models import Cluster, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.lifetimes import HOURS_KEPT, MINUTES_KEPT

STEPS = (
    (Resolution.MINUTE, Resolution.HOUR, MINUTES_KEPT),
    (Resolution.HOUR, Resolution.DAY, HOURS_KEPT),
)
SEEN_IN_PART = {
    Resolution.HOUR: ("used_gpus", "fragmented_gpus"),
    Resolution.DAY: ("used_gpus", "fragmented_gpus", "demand_gpus"),
}
"""Means over the time in which somebody looked. Demand is worked out by the hour."""
LOOK_BACK = timedelta(hours=6)
"""Finer samples change no more after that: a worker that was down for longer has none to add."""
LOOK_BACK_WALL = timedelta(minutes=10)
"""The same for a cluster whose clock runs fast, in wall time."""
MEANS = [
    "installed_gpus",
    "ready_gpus",
    "allocated_gpus",
    "nominal_gpus",
    "fair_share_gpus",
    "pending_gpus",
]


def floor_minute(when: datetime) -> datetime:
    return when.replace(second=0, microsecond=0)


HOURLY = Resolution.HOUR


def settled_before(cluster: Cluster) -> datetime:
    """Hours that begin before it are whole and change no more, not by a pass of the hour before either."""
    return floor(cluster.now() - _back(cluster), Resolution.HOUR) - timedelta(hours=1)


def _back(cluster: Cluster) -> timedelta:
    return max(LOOK_BACK, LOOK_BACK_WALL * max(1.0, cluster.clock_speed))


def roll_up(cluster: Cluster, *, since: datetime | None = None) -> int:
    """Bring hours and days from ``since`` (cluster time; default: some hours back) into line with the
    finer samples; how many rows were written."""
    now = cluster.now()
    back = _back(cluster)
    written = 0
    for fine, coarse, span in STEPS:
        first = floor(since or now - back, coarse)
        # Periods of which retention has dropped a part would lose it here.
        whole = floor(now - span, coarse) + _length(coarse)
        written += _roll(cluster, fine, coarse, max(first, whole))
    return written


@transaction.atomic
def _roll(cluster: Cluster, fine: Resolution, coarse: Resolution, first: datetime) -> int:
    samples = UsageSample.objects.filter(
        queue__cluster=cluster, resolution=fine, start__gte=first
    ).order_by("start")
    made = merge(samples, coarse)
    known = {
        (s.queue_id, s.gpu_class_id, s.start): s
        for s in UsageSample.objects.filter(
            queue__cluster=cluster, resolution=coarse, start__gte=first
        )
    }
    changed = [s for s in made if _improves(s, known.get((s.queue_id, s.gpu_class_id, s.start)))]
    UsageSample.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["queue", "gpu_class", "resolution", "start"],
        update_fields=["seconds", *MEANS, *SEEN_IN_PART[coarse]],
        batch_size=200,
    )
    return len(changed)


def merge(samples: Iterable[UsageSample], coarse: Resolution) -> list[UsageSample]:
    """Unsaved samples of resolution ``coarse``: means of the finer ones weighed by their seconds."""
    groups: dict[tuple[int, int, datetime], list[UsageSample]] = {}
    for sample in samples:
        key = (sample.queue_id, sample.gpu_class_id, floor(sample.start, coarse))
        groups.setdefault(key, []).append(sample)
    return [_mean(key, members, coarse) for key, members in groups.items()]


def _mean(
    key: tuple[int, int, datetime], members: list[UsageSample], coarse: Resolution
) -> UsageSample:
    seconds = sum(s.seconds for s in members)
    return UsageSample(
        queue_id=key[0],
        gpu_class_id=key[1],
        resolution=coarse,
        start=key[2],
        seconds=seconds,
        **{name: _known_mean(members, name) for name in SEEN_IN_PART[coarse]},
        **{name: sum(getattr(s, name) * s.seconds for s in members) / seconds for name in MEANS},
    )


def _known_mean(members: list[UsageSample], name: str) -> float | None:
    """The mean over those in which it is known."""
    known = [(getattr(s, name), s.seconds) for s in members if getattr(s, name) is not None]
    seconds = sum(length for _, length in known)
    return sum(value * length for value, length in known) / seconds if seconds else None


def _improves(made: UsageSample, known: UsageSample | None) -> bool:
    """A coarse row that covers more than the finer ones (imported, or they were dropped) stays."""
    if known is None:
        return True
    if known.seconds > made.seconds:
        return False
    columns = ("seconds", *MEANS, *SEEN_IN_PART[Resolution(made.resolution)])
    return any(getattr(made, name) != getattr(known, name) for name in columns)


def floor(when: datetime, resolution: Resolution) -> datetime:
    """Start of the hour, day or minute (UTC) that holds ``when``."""
    if resolution == Resolution.DAY:
        return when.replace(hour=0, minute=0, second=0, microsecond=0)
    if resolution == Resolution.HOUR:
        return when.replace(minute=0, second=0, microsecond=0)
    return when.replace(second=0, microsecond=0)


def _length(resolution: Resolution) -> timedelta:
    return timedelta(days=1) if resolution == Resolution.DAY else timedelta(hours=1)
