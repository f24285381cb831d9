"""Which order decided and which was in shadow, on one axis of time; weights on theirs. Pure geometry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.display.line_labels import Label
from portal.web.ahead import Ahead
from portal.web.learned.words import (
    FEATURES,
    HARDLY,
    ORDER_GROUP,
    VICTIM_FEATURES,
    VICTIM_GROUP,
)
from scheduling.models import LearnedOrder, LearnedState, LearnedStep
from scheduling.services.learned.verdicts import SHADOW

LEAST = timedelta(days=7)
LABEL_PCT = 7.0
"""A bar so wide has room for its name."""


@dataclass(frozen=True, slots=True)
class Bar:
    """``kind`` is "hand", "learned", "shadow" or "may"."""

    kind: str
    x: float
    width: float
    label: str


@dataclass(frozen=True, slots=True)
class StateLine:
    """Percent of an axis from the first step to now, and on to when the one in shadow may decide."""

    decides: Sequence[Bar]
    shadow: Sequence[Bar]
    now_x: float
    ticks: Sequence[Label]


Spell = tuple[LearnedOrder, datetime, datetime | None]


def state_line(
    steps: Sequence[LearnedStep], hand: str, now: datetime, zone_name: str
) -> StateLine | None:
    """``steps`` of all versions in order; None where none came to anything yet."""
    if not steps:
        return None
    decided, watched = spells(steps, LearnedState.DECIDING), spells(steps, LearnedState.SHADOW)
    begin = min(steps[0].at, now - LEAST)
    may = [since + SHADOW for _, since, until in watched if until is None]
    end = max([now, *(at + (now - begin) / 6 for at in may)])
    axis = Ahead(begin, end)
    return StateLine(
        decides=[*_decides(axis, decided, hand, begin, now), *_may(axis, watched, now, end)],
        shadow=[_bar(axis, "shadow", f"v{o.version}", since, until or now) for o, since, until in watched],
        now_x=axis.x(now),
        ticks=axis.ticks(zone_name, wide_px=900, narrow_px=280),
    )  # fmt: skip


def spells(steps: Sequence[LearnedStep], state: LearnedState) -> list[Spell]:
    """(version, from, to) of each time that one was in ``state``; to is None while it lasts."""
    found: list[Spell] = []
    by_order: dict[int, list[LearnedStep]] = {}
    for step in steps:
        by_order.setdefault(step.order_id, []).append(step)
    for each in by_order.values():
        for number, step in enumerate(each):
            if step.state == state:
                after = each[number + 1].at if number + 1 < len(each) else None
                found.append((step.order, step.at, after))
    return sorted(found, key=lambda spell: spell[1])


def _decides(
    axis: Ahead, decided: Sequence[Spell], hand: str, begin: datetime, now: datetime
) -> list[Bar]:
    bars, at = [], begin
    for order, since, until in decided:
        if since > at:
            bars.append(_bar(axis, "hand", hand, at, since))
        bars.append(_bar(axis, "learned", f"v{order.version}", since, until or now))
        at = until or now
    if at < now:
        bars.append(_bar(axis, "hand", hand, at, now))
    return bars


def _may(axis: Ahead, watched: Sequence[Spell], now: datetime, end: datetime) -> list[Bar]:
    return [
        _bar(axis, "may", f"v{order.version}", max(now, since + SHADOW), end)
        for order, since, until in watched
        if until is None
    ]


def _bar(axis: Ahead, kind: str, name: str, since: datetime, until: datetime) -> Bar:
    x = axis.x(since)
    width = round(max(0.4, axis.x(until) - x), 3)
    return Bar(kind, x, width, name if width >= LABEL_PCT else "")


@dataclass(frozen=True, slots=True)
class Weight:
    """``x`` and ``width`` of its bar, ``low`` and ``high`` of its range, in percent of an axis whose middle
    is zero; ``before`` is where it stood in the version before."""

    name: str
    says: str
    value: str
    former: str
    x: float
    width: float
    low: float
    high: float
    before: float | None


@dataclass(frozen=True, slots=True)
class Group:
    """Weights of one kind; without any ``said`` tells why."""

    title: str
    weights: Sequence[Weight]
    said: str = ""


Spread = Mapping[str, Sequence[float]]
Words = Mapping[str, tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Kind:
    """What is drawn of one group: by feature its words, weight, range and the weight before."""

    title: str
    words: Words
    weights: Mapping[str, float]
    spread: Spread
    before: Mapping[str, float]

    @property
    def ends(self) -> list[float]:
        ranges = [end for pair in self.spread.values() for end in pair]
        return [*self.weights.values(), *self.before.values(), *ranges]


def weighed(order: LearnedOrder, former: LearnedOrder | None) -> list[Group]:
    """The heaviest first in each group; all on one axis."""
    before, before_victims = (former.weights, former.victim_weights) if former else ({}, {})
    own = Kind(ORDER_GROUP, FEATURES, order.weights, order.spread, before)
    victims = Kind(
        VICTIM_GROUP, VICTIM_FEATURES, order.victim_weights, order.victim_spread, before_victims
    )
    kinds = [one for one in (own, victims) if one.weights]
    most = max(map(abs, [0.01, *(end for one in kinds for end in one.ends)]))
    found = [_group(one, most) for one in kinds]
    if not order.victim_weights and order.victims_said:
        found.append(Group(VICTIM_GROUP, [], order.victims_said))
    return found


def _group(kind: Kind, most: float) -> Group:
    names = sorted(
        (name for name in kind.weights if name in kind.words),
        key=lambda name: (-abs(kind.weights[name]), name),
    )
    return Group(kind.title, [_weight(name, kind, most) for name in names])


def _weight(name: str, kind: Kind, most: float) -> Weight:
    title, above, below = kind.words[name]
    value = kind.weights[name]
    low, high = kind.spread.get(name, [value, value])
    heaviest = max(map(abs, kind.weights.values()))
    says = above if value > 0 else below
    if abs(value) <= HARDLY * heaviest:
        says = "hardly counts"
    at = _x(value, most)
    former = kind.before.get(name)
    return Weight(
        name=title,
        says=says,
        value=signed(value),
        former="" if former is None else signed(former),
        x=min(at, 50.0),
        width=round(abs(at - 50), 2),
        low=_x(low, most),
        high=_x(high, most),
        before=None if former is None else _x(former, most),
    )


def signed(value: float) -> str:
    """'+0.33' with a real minus sign."""
    return f"{value:+.2f}".replace("-", "−")


def _x(value: float, most: float) -> float:
    return round(50 + 48 * value / most, 2)
