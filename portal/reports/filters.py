"""What a report is asked for: a range of time and what to narrow it to. All of it stands in the address."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from scheduling.models.ledger import Resolution

SPANS = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "14d": timedelta(days=14),
    "30d": timedelta(days=30),
}
THIS_MONTH, LAST_MONTH = "this-month", "last-month"
PRESETS = {
    "24h": "Last 24 hours",
    "7d": "Last 7 days",
    "14d": "Last 14 days",
    "30d": "Last 30 days",
    THIS_MONTH: "This month",
    LAST_MONTH: "Last month",
}
"""Names of ranges, and how they read: ``SPANS`` up to now, and months of the calendar."""
DEFAULT_PRESET = "14d"
MINUTES_UP_TO = timedelta(hours=6)
HOURS_UP_TO = timedelta(days=60)
OUTSIDE, OTHERS = "(outside)", "(others)"
"""Queues that the person may not see, as one name. No queue can be called so."""


def month_of(at: datetime, tz: ZoneInfo) -> datetime:
    """When the month of ``tz`` that holds ``at`` begins."""
    return at.astimezone(tz).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def month_before(begin: datetime) -> datetime:
    """When the month before the one that begins at ``begin`` does: by its clock on the wall."""
    return (begin - timedelta(days=1)).replace(day=1)


@dataclass(frozen=True)
class ReportFilters:
    """[start, end) in aware UTC; empty names narrow nothing. ``zone`` says where a day begins."""

    start: datetime
    end: datetime
    gpu_classes: tuple[str, ...] = ()
    queue: str = ""
    """Top of the subtree; empty: all that the person may see."""
    user: str = ""
    type: str = ""
    compare: bool = True
    preset: str = ""
    zone: str = "UTC"
    evicted: str = ""
    asking: str = ""
    """Names of the queues of one cell of who evicted whom; single evictions are told of these alone."""

    @classmethod
    def last(cls, preset: str, now: datetime, **fields: object) -> ReportFilters:
        """The range of a preset that ends at ``now``, cut to the minute, or a month of ``zone``."""
        end = now.astimezone(UTC).replace(second=0, microsecond=0)
        if preset in SPANS:
            start = end - SPANS[preset]
        else:
            month = month_of(end - timedelta(minutes=1), ZoneInfo(str(fields.get("zone", "UTC"))))
            start, end = (month, end) if preset == THIS_MONTH else (month_before(month), month)
            start, end = start.astimezone(UTC), end.astimezone(UTC)
        return cls(start=start, end=end, preset=preset, **fields)  # type: ignore[arg-type]

    @property
    def span(self) -> timedelta:
        return self.end - self.start

    @property
    def tz(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    @property
    def by_work(self) -> bool:
        """True where samples of queues can't answer, because they know no user and no type."""
        return bool(self.user or self.type)

    def resolutions(self) -> tuple[Resolution, ...]:
        """Which samples suit the range, the best first; coarser ones stand in for dropped ones."""
        if self.span <= MINUTES_UP_TO:
            return Resolution.MINUTE, Resolution.HOUR, Resolution.DAY
        if self.span <= HOURS_UP_TO:
            return Resolution.HOUR, Resolution.DAY, Resolution.MINUTE
        return Resolution.DAY, Resolution.HOUR

    def before(self) -> ReportFilters:
        """The same question about the period of the same length that ends where this one begins; of a month
        about the month before, of one that goes on about as much of it."""
        if not self.is_month:
            return replace(self, start=self.start - self.span, end=self.start, preset="")
        start = month_before(self.start.astimezone(self.tz)).astimezone(UTC)
        end = self.start if self.preset == LAST_MONTH else min(start + self.span, self.start)
        return replace(self, start=start, end=end, preset="")

    @property
    def is_month(self) -> bool:
        return self.preset in (THIS_MONTH, LAST_MONTH)

    def _narrowing(self) -> list[tuple[str, str]]:
        pairs = [("class", name) for name in self.gpu_classes]
        for key in ("queue", "user", "type"):
            if value := getattr(self, key):
                pairs.append((key, value))
        pairs += [(key, v) for key, v in (("evicted", self.evicted), ("for", self.asking)) if v]
        return pairs if self.compare else [*pairs, ("compare", "none")]

    def query(self, **changes: str) -> str:
        """The address's query as the person asked it; ``changes`` replace keys, '' drops one."""
        pairs = [("range", self.preset)] if self.preset else self._absolute_range()
        pairs += self._narrowing()
        if {"range", "from", "to"} & set(changes):
            changes = {"range": "", "from": "", "to": "", **changes}
        rest = [(key, value) for key, value in pairs if key not in changes]
        return urlencode(rest + [(key, value) for key, value in changes.items() if value])

    def permanent_query(self) -> str:
        """The query with its range spelt out: it shows the same view next year."""
        return urlencode(self._absolute_range() + self._narrowing())

    def _absolute_range(self) -> list[tuple[str, str]]:
        return [("from", f"{self.start:%Y-%m-%dT%H:%MZ}"), ("to", f"{self.end:%Y-%m-%dT%H:%MZ}")]

    def as_dict(self) -> dict[str, object]:
        return {
            "from": self.start.isoformat(),
            "to": self.end.isoformat(),
            "gpu_classes": list(self.gpu_classes),
            "queue": self.queue or None,
            "user": self.user or None,
            "type": self.type or None,
            "evicted": self.evicted or None,
            "for": self.asking or None,
        }
