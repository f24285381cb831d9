"""What fired in the last 90 days, rule by rule and day by day, and how long people took."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from django.db.models import Q

from portal.accounts.models import User
from portal.alerts import words
from portal.alerts.models import Firing, Rule
from portal.alerts.rules import mine, visible
from portal.display.csv import Table
from portal.display.format import counted
from scheduling.models import Cluster

DAYS = 90


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds until something, over those firings that came to it; NaN where none did."""

    count: int
    median_s: float
    p90_s: float

    @classmethod
    def of(cls, spans: Iterable[timedelta]) -> Took:
        seconds = [span.total_seconds() for span in spans]
        if not seconds:
            return cls(0, math.nan, math.nan)
        median, p90 = np.quantile(seconds, (0.5, 0.9)).tolist()
        return cls(len(seconds), median, p90)


@dataclass(frozen=True, slots=True)
class Day:
    """``begun`` on it; ``fired``: whether the rule fired at any time of it."""

    day: date
    begun: int
    fired: bool

    @property
    def said(self) -> str:
        said = counted(self.begun, "time") if self.begun else "went on" if self.fired else "quiet"
        return f"{self.day.day} {self.day:%b}: {said}"


HIGH, LOW = 28.0, 4.0
"""Of the strip, and of a day without a beginning, pixels."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A day of the strip: ``x`` in days from its left, the rest in pixels."""

    x: int
    y: float
    height: float
    begun: int
    said: str


@dataclass(frozen=True, slots=True)
class RulePast:
    """``fired``: firings that began or went on in the 90 days; ``escalated`` of them to a second circle.
    ``most``: that began on one day of any rule, by which all strips have one scale.
    """

    rule: Rule
    days: Sequence[Day]
    most: int
    fired: int
    unacknowledged: int
    escalated: int
    acknowledged: Took
    resolved: Took

    @property
    def when(self) -> str:
        return words.fires(self.rule)

    @property
    def bars(self) -> list[Bar]:
        """Of the days on which it fired."""
        return [_bar(x, day, self.most) for x, day in enumerate(self.days) if day.fired]


def _bar(x: int, day: Day, most: int) -> Bar:
    height = LOW + (HIGH - LOW) * day.begun / most if day.begun else LOW
    return Bar(x, round(HIGH - height, 2), round(height, 2), day.begun, day.said)


@dataclass(frozen=True)
class PastFirings:
    """``rows``: who fired most first."""

    first: date
    last: date
    rows: Sequence[RulePast]
    firings: Sequence[Firing]
    acknowledged: Took
    resolved: Took

    @property
    def unacknowledged(self) -> int:
        return sum(row.unacknowledged for row in self.rows)

    @property
    def escalated(self) -> int:
        return sum(row.escalated for row in self.rows)


def past(user: User, cluster: Cluster, zone: ZoneInfo, *, only_mine: bool = False) -> PastFirings:
    """Of the rules that ``user`` sees; days are those of ``zone``, the last one is today."""
    now = cluster.now()
    last = now.astimezone(zone).date()
    first = last - timedelta(days=DAYS - 1)
    begin = datetime.combine(first, datetime.min.time(), zone)
    rules = visible(user, cluster)
    rules = rules.filter(mine(user, cluster)) if only_mine else rules
    found = firings(rules, begin)
    of = defaultdict(list)
    for one in found:
        of[one.rule_id].append(one)
    begun = Counter(
        (one.rule_id, one.since.astimezone(zone).date()) for one in found if one.since >= begin
    )
    most = max(begun.values(), default=1)
    rows = [_row(rule, of[rule.pk], first, zone, now, most) for rule in rules]
    rows.sort(key=lambda row: (-row.fired, row.rule.figure, row.rule.pk))
    return PastFirings(first, last, rows, found, _acknowledged(found), _resolved(found))


def firings(rules: Iterable[Rule], begin: datetime) -> list[Firing]:
    """Those that began or went on since ``begin``, the first first."""
    lasted = Q(until=None) | Q(until__gte=begin)
    rows = Firing.objects.filter(lasted, rule__in=rules).order_by("since", "pk")
    return list(rows.select_related("rule__cluster", "rule__queue", "rule__gpu_class"))


def _row(
    rule: Rule, firings: Sequence[Firing], first: date, zone: ZoneInfo, now: datetime, most: int
) -> RulePast:
    begun: Counter[date] = Counter()
    fired: set[date] = set()
    for one in firings:
        since, until = (at.astimezone(zone).date() for at in (one.since, one.until or now))
        begun[since] += 1
        since = max(since, first)
        fired |= {since + timedelta(days=n) for n in range((until - since).days + 1)}
    days = [first + timedelta(days=n) for n in range(DAYS)]
    return RulePast(
        rule=rule,
        days=[Day(day, begun[day], day in fired) for day in days],
        most=most,
        fired=len(firings),
        unacknowledged=sum(one.acknowledged_at is None for one in firings),
        escalated=sum(one.escalated_at is not None for one in firings),
        acknowledged=_acknowledged(firings),
        resolved=_resolved(firings),
    )


def _acknowledged(firings: Iterable[Firing]) -> Took:
    return Took.of(one.acknowledged_at - one.since for one in firings if one.acknowledged_at)


def _resolved(firings: Iterable[Firing]) -> Took:
    return Took.of(one.until - one.since for one in firings if one.until)


COLUMNS = (
    "rule", "figure", "queue", "gpu_class", "fires", "since", "until", "peak", "people_told",
    "acknowledged_at", "acknowledged_by", "escalated_at", "until_acknowledged_s", "until_resolved_s",
)  # fmt: skip


def table(found: PastFirings) -> Table:
    """A line a firing, the first first; ``peak`` in the unit of the rule's figure (s, GPUs, a count)."""
    return Table("alerts", "Alerts of 90 days", COLUMNS, [_line(one) for one in found.firings])


def _line(one: Firing) -> tuple[str | int | float | datetime | None, ...]:
    rule = one.rule
    return (
        rule.pk, rule.figure, rule.queue.path if rule.queue else "",
        rule.gpu_class.name if rule.gpu_class else "", words.fires(rule), one.since, one.until, one.peak,
        one.told, one.acknowledged_at, one.acknowledged_by, one.escalated_at,
        (one.acknowledged_at - one.since).total_seconds() if one.acknowledged_at else None,
        (one.until - one.since).total_seconds() if one.until else None,
    )  # fmt: skip
