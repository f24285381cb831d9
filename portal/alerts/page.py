"""The page of alerts: each rule now, when it fired in two weeks, and what an edit would have done."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from portal.accounts.models import User
from portal.alerts import words
from portal.alerts.firing import Episode, RuleState, fired, is_near, is_over
from portal.alerts.models import Firing, Rule
from portal.alerts.past import firings
from portal.alerts.rules import mine, visible
from portal.alerts.series import OF_NOW, OF_PROCESSES, OF_QUEUES, OF_WORK, Series, series
from portal.display.format import duration
from portal.display.periods import Floats
from portal.teams.access import visible_queues, visible_workloads
from scheduling.models import Cluster, GpuClass, Queue, Workload

SPAN = timedelta(days=14)
POINTS = 448
"""Of the last two weeks; the eye sees no more in a chart."""
ROOM = 0.02
"""Of two weeks: nearer to an end a date has no room."""
LEAST_WIDTH = 0.8
"""Of a stretch of the strip, percent: a narrower one is not seen."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of the strip in which it fired, percent of two weeks."""

    x: float
    width: float


@dataclass(frozen=True, slots=True)
class RuleRow:
    """``work`` or ``queue`` it is about now, if the person may see it; ``fires_at`` of what is over, not long
    enough yet."""

    rule: Rule
    verdict: RuleState
    value: str
    firing: Firing | None
    work: Workload | None
    queue: Queue | None
    gpu_class: str
    """That it is about."""
    fires_at: datetime | None
    marks: Sequence[Mark]
    nears: Sequence[Mark]
    """Stretches in which it was near, as far as looks have kept them."""
    fired: int
    """Firings that began or went on in the two weeks."""

    @property
    def since(self) -> datetime | None:
        """Since when it is what it is, where it is not quiet."""
        if self.firing is not None:
            return self.firing.since
        if self.rule.over_since is not None or not self.rule.near or self.rule.near[-1][1]:
            return self.rule.over_since
        return datetime.fromtimestamp(self.rule.near[-1][0], UTC)

    @property
    def when(self) -> str:
        """Where and when it fires."""
        return words.fires(self.rule)

    @property
    def audience(self) -> str:
        return words.whom(self.rule)

    @property
    def circle(self) -> str:
        """The people who are told next, and after how long."""
        return words.circle(self.rule)


@dataclass(frozen=True, slots=True)
class Spell:
    number: int
    since: datetime
    until: datetime
    for_s: float
    peak: str
    as_it_was: str
    work: Workload | None


@dataclass(frozen=True)
class Trial:
    """What a rule would have done; ``before`` the same of the rule as it is."""

    rule: Rule
    before: Rule | None
    times: Floats
    series: Series
    spells: Sequence[Spell]
    fired_before: int
    lasted_s: float

    @property
    def is_kept(self) -> bool:
        return self.rule.figure not in OF_NOW


def moments(now: datetime) -> Floats:
    return np.linspace((now - SPAN).timestamp(), now.timestamp(), POINTS)


def rows(user: User, cluster: Cluster, *, only_mine: bool = False) -> list[RuleRow]:
    """Firing first, then near, then quiet."""
    rules = visible(user, cluster)
    rules = rules.filter(mine(user, cluster)) if only_mine else rules
    now = cluster.now()
    of: dict[int, list[Firing]] = defaultdict(list)
    for one in firings(rules, now - SPAN):
        of[one.rule_id].append(one)
    readings = [(rule, *_value(rule, now)) for rule in rules]
    about = _About.of(user, readings)
    found = [_row(rule, value, who, about, of[rule.pk], now) for rule, value, who in readings]
    order = list(RuleState)
    return sorted(found, key=lambda row: order.index(row.verdict))


def _value(rule: Rule, now: datetime) -> tuple[float, int]:
    """Of its figure and whom it is about, as the last look found it: what fires by it was found then as well.
    What tells whether there are looks at all may be worse since, and is worked out now; so is what none has
    seen."""
    if rule.value is not None and rule.figure not in OF_PROCESSES:
        return rule.value, rule.who
    reading = series(rule, np.array([now.timestamp()]))
    before = np.nan if rule.value is None else rule.value
    return float(np.fmax(reading.values[-1], before)), int(reading.who[-1])


@dataclass(frozen=True, slots=True)
class _About:
    """Work and queues that rules are about, as far as the person may see them; and names of classes."""

    work: Mapping[int, Workload]
    queues: Mapping[int, Queue]
    classes: Mapping[int | None, str]

    @classmethod
    def of(cls, user: User, readings: Sequence[tuple[Rule, float, int]]) -> _About:
        """Three queries at most."""
        named = [(rule.figure, who) for rule, _, who in readings if who]
        works = [who for figure, who in named if figure in OF_WORK]
        queues = [who for figure, who in named if figure in OF_QUEUES]
        classes = {rule.of_class_id for rule, _, _ in readings if rule.of_class_id is not None}
        named_so = GpuClass.objects.filter(pk__in=classes).order_by().values_list("pk", "name")
        seen = visible_workloads(user).select_related("cluster", "queue")
        return cls(
            seen.in_bulk(works) if works else {},
            visible_queues(user).in_bulk(queues) if queues else {},
            dict(named_so) if classes else {},
        )


def _row(
    rule: Rule, value: float, who: int, about: _About, past: Sequence[Firing], now: datetime
) -> RuleRow:
    is_work, is_queue = rule.figure in OF_WORK, rule.figure in OF_QUEUES
    firing = next((one for one in past if one.until is None), None)
    verdict = RuleState.QUIET
    if firing is not None:
        verdict = RuleState.FIRING
    elif is_near(rule, value):
        verdict = RuleState.NEAR
    fires_at = None
    if firing is None and is_over(rule, value) and rule.over_since is not None:
        fires_at = rule.over_since + timedelta(seconds=rule.for_s)
    return RuleRow(
        rule=rule,
        verdict=verdict,
        value=words.value_of(rule, value),
        firing=firing,
        work=about.work.get(who) if is_work and verdict != RuleState.QUIET else None,
        queue=about.queues.get(who) if is_queue and verdict != RuleState.QUIET else None,
        gpu_class="" if verdict == RuleState.QUIET else about.classes.get(rule.of_class_id, ""),
        fires_at=fires_at,
        marks=[_mark(one.since, one.until, now) for one in past],
        nears=list(_nears(rule, now)),
        fired=len(past),
    )


def _nears(rule: Rule, now: datetime) -> Iterator[Mark]:
    for since, until in rule.near or []:
        end = None if until is None else datetime.fromtimestamp(until, UTC)
        if end is None or end > now - SPAN:
            yield _mark(datetime.fromtimestamp(since, UTC), end, now)


def _mark(since: datetime, until: datetime | None, now: datetime) -> Mark:
    begin = now - SPAN
    first, last = max(since, begin), until or now
    width = max(LEAST_WIDTH, 100 * ((last - first) / SPAN))
    return Mark(round(min(100 - width, 100 * ((first - begin) / SPAN)), 2), round(width, 2))


def dates(now: datetime, zone: ZoneInfo) -> list[tuple[float, str]]:
    """(percent of the strip, text): where weeks begin."""
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    mondays = (today - timedelta(days=today.weekday() + 7 * weeks) for weeks in range(3))
    begin = now - SPAN
    return [
        (round(100 * ((at - begin) / SPAN), 2), f"Mon {at.day}")
        for at in reversed(list(mondays))
        if ROOM <= (at - begin) / SPAN <= 1 - ROOM
    ]


def tried(user: User, rule: Rule, before: Rule | None, now: datetime) -> Trial:
    """``rule``, which need not be saved, over what was measured."""
    times = moments(now)
    course = series(rule, times)
    spells = fired(rule, times, course.values)
    earlier: list[Episode] = []
    if before is not None:
        old = course if _same_figure(rule, before) else series(before, times)
        earlier = fired(before, times, old.values)
    names = visible_workloads(user).in_bulk({int(course.who[one.first]) for one in spells})
    shown = [
        _spell(rule, number, one, times, earlier, names.get(int(course.who[one.first])))
        for number, one in enumerate(spells, 1)
    ]
    return Trial(
        rule, before, times, course, shown, len(earlier), math.fsum(one.for_s for one in shown)
    )


def _same_figure(one: Rule, other: Rule) -> bool:
    names = ("figure", "queue_id", "gpu_class_id", "least_gpus")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _spell(
    rule: Rule,
    number: int,
    one: Episode,
    times: Floats,
    earlier: Sequence[Episode],
    work: Workload | None,
) -> Spell:
    since, until = times[one.first], times[min(one.last, len(times) - 1)]
    both = [old for old in earlier if old.first < one.last and one.first < old.last]
    lasted = sum(times[min(o.last, len(times) - 1)] - times[o.first] for o in both)
    return Spell(
        number,
        datetime.fromtimestamp(since, UTC),
        datetime.fromtimestamp(until, UTC),
        float(until - since),
        words.value_of(rule, one.peak),
        duration(lasted) if both else "",
        work if rule.figure in OF_WORK else None,
    )
