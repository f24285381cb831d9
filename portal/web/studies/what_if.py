"""A what-if as its page shows it: the question, who starts and leaves, shares, and waits lived again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from portal.display.format import counted, duration, hmin, hmin_band, money, number, reason_inside
from portal.web.ahead import Ahead, Box
from scheduling.models import Cluster, Queue, Study, Workload
from scheduling.services.explain.asking import rows_of
from scheduling.services.lists import few
from scheduling.services.studies.whatif import answers
from scheduling.services.studies.whatif.changes import read
from scheduling.services.studies.whatif.kinds import Change

Json = Mapping[str, Any]
WORDS = {
    "quota": "Quota",
    "queue": "Queue",
    "capacity": "Capacity",
    "class": "GPU class",
    "priority": "Priority",
    "policy": "Policy",
    "arrival": "Arrival",
}
HOURS_A_WEEK = 168
LEAST_WAIT_S, MOST_WAIT_S = 60.0, 86400.0
WAIT_TICKS = ((60, "1 min"), (600, "10 min"), (3600, "1 h"), (6 * 3600, "6 h"), (86400, "24 h"))
SAME_S = 120.0
"""A P50 that moves by less is no change: futures are drawn."""


@dataclass(frozen=True, slots=True)
class AskedChange:
    """One change of the question."""

    kind: str
    title: str
    change: Change

    @classmethod
    def all_of(cls, question: Study) -> list[AskedChange]:
        each = read(question.changes).each
        return [cls(WORDS[one.kind], answers.short(one), one) for one in each]


@dataclass(frozen=True, slots=True)
class ComparedStart:
    """A workload that waits, without the changes and with them."""

    name: str
    work: Workload | None
    queue: str
    before: tuple[datetime, datetime] | None
    after: tuple[datetime, datetime] | None
    before_box: Box | None
    after_box: Box | None
    starts_now: bool
    moves_s: float | None
    """By how much sooner (negative: later) its P50 is; None where no start is seen on one of the sides."""
    is_known: bool
    """Whether its starts were looked ahead; else only what the next plan does is known of it."""
    sentence: str

    @property
    def turn(self) -> int:
        """1 starts sooner, -1 later, 0 about the same or not known."""
        if not self.is_known:
            return 0
        if self.moves_s is not None:
            return 0 if abs(self.moves_s) < SAME_S else 1 if self.moves_s > 0 else -1
        starts = self.starts_now or self.after is not None
        return starts - (self.before is not None)

    @property
    def moved(self) -> str:
        """'2 h sooner'; empty where it is not known yet."""
        if not self.turn:
            return "no change" if self.is_known else ""
        word = "sooner" if self.turn > 0 else "later"
        return word if self.moves_s is None else f"{duration(abs(self.moves_s))} {word}"


@dataclass(frozen=True, slots=True)
class ShareRow:
    queue: str
    depth: int
    before: float
    after: float
    before_x: float
    after_x: float

    @property
    def is_same(self) -> bool:
        return abs(self.before - self.after) < 0.05


@dataclass(frozen=True, slots=True)
class WaitRow:
    """P90 before (dot) and with the changes (box), percent of a logarithmic axis."""

    queue: str
    jobs: int
    p50: tuple[str, str]
    p90: tuple[str, str]
    band: str
    verdict: str
    dot: float
    box: tuple[float, float]
    mark: float


@dataclass(frozen=True, slots=True)
class WhatIfPage:
    at: datetime
    axis: Ahead
    starts: Sequence[ComparedStart]
    is_looked_ahead: bool
    """Whether the futures are lived: before that nobody knows who starts sooner."""
    leaves: Sequence[Json]
    shares: Sequence[ShareRow]
    waits: Sequence[WaitRow]
    figures: Sequence[tuple[str, str, str]]
    prices: Sequence[tuple[str, str]]
    """(what, a week of it)."""
    alone: Sequence[Json]
    finding: str
    finding_rest: str


def page(question: Study, gpu_class: str) -> WhatIfPage | None:
    """None while nothing is known yet."""
    answer = question.answer
    if "lines" not in answer:
        return None
    at = datetime.fromisoformat(answer["at"])
    axis, starts = _starts(question.cluster, answer, at)
    leaves = [line for line in answer["lines"] if line["leaves"]]
    waits = [_wait(row) for row in answer.get("replay", {}).get("queues", ())]
    bold, rest = _finding(question, starts, leaves, waits)
    return WhatIfPage(
        at=at,
        axis=axis,
        starts=starts,
        is_looked_ahead="starts" in answer,
        leaves=leaves,
        shares=_shares(question.cluster, answer, gpu_class),
        waits=waits,
        figures=_figures(answer, gpu_class),
        prices=_prices(question.cluster, answer),
        alone=answer.get("alone", ()),
        finding=bold,
        finding_rest=rest,
    )


def _starts(cluster: Cluster, answer: Json, at: datetime) -> tuple[Ahead, list[ComparedStart]]:
    lines = {line["workload"]: line for line in answer["lines"]}
    bands = {row["workload"]: row for row in answer.get("starts", ())}
    names = [*bands, *(n for n, line in lines.items() if line["starts"] and n not in bands)]
    rows = {row.name: row for row in rows_of(cluster, names)}
    moments = [
        moment
        for row in bands.values()
        for band in (row["before"], row["after"])
        for moment in _times(band, at)
    ]
    axis = Ahead.over(moments, at)
    return axis, [_start(n, bands.get(n, {}), lines.get(n, {}), rows, axis) for n in names]


def _times(band: Sequence[float] | None, at: datetime) -> tuple[datetime, ...]:
    return tuple(at + timedelta(seconds=s) for s in band or ())


def _start(
    name: str, band: Json, line: Json, rows: Mapping[str, Workload], axis: Ahead
) -> ComparedStart:
    before, after = band.get("before"), band.get("after")
    starts_now = bool(line.get("starts"))
    was, has = _pair(before, axis.now), _pair(after, axis.now)
    moves_s = None
    if before and (after or starts_now):
        moves_s = before[0] - (0.0 if starts_now or not after else after[0])
    return ComparedStart(
        name=name.rpartition("/")[2] or name,
        work=rows.get(name.rpartition("/")[2]),
        queue=band.get("queue") or line.get("queue", ""),
        before=was,
        after=has,
        before_box=axis.box(*was) if was else None,
        after_box=axis.box(*has) if has and not starts_now else None,
        starts_now=starts_now,
        moves_s=moves_s,
        is_known=bool(band),
        sentence=_sentence(line),
    )


def _pair(band: Sequence[float] | None, at: datetime) -> tuple[datetime, datetime] | None:
    times = _times(band, at)
    return (times[0], times[1]) if times else None


def _sentence(line: Json) -> str:
    if not line:
        return ""
    before, after = line.get("before"), line.get("after")
    if line["starts"]:
        return str(line["sentence"])
    if before and after and before["reason"] != after["reason"]:
        return f"{reason_inside(before['reason'])} → {reason_inside(after['reason'])}"
    return str(line["sentence"])


def _shares(cluster: Cluster, answer: Json, gpu_class: str) -> list[ShareRow]:
    mine = {row["queue"]: row for row in answer["shares"] if row["gpu_class"] == gpu_class}
    most = max((max(row["fair_share"]) for name, row in mine.items() if name), default=1.0) or 1.0
    order = [
        (q.name, q.path.count("/")) for q in Queue.objects.filter(cluster=cluster) if q.parent_id
    ]
    known = {name for name, _ in order}
    order += [(name, 1) for name in mine if name and name not in known]
    rows = []
    for name, depth in order:
        if name in mine:
            before, after = mine[name]["fair_share"]
            x = 100 / most
            rows.append(ShareRow(name, depth, before, after, before * x, after * x))
    return rows


def wait_x(seconds: float) -> float:
    """Percent of an axis from a minute to a day, logarithmic."""
    low, high = math.log(LEAST_WAIT_S), math.log(MOST_WAIT_S)
    at = (math.log(min(MOST_WAIT_S, max(LEAST_WAIT_S, seconds))) - low) / (high - low)
    return round(100 * at, 2)


def wait_ticks() -> list[tuple[float, str]]:
    return [(wait_x(seconds), text) for seconds, text in WAIT_TICKS]


def _wait(row: Json) -> WaitRow:
    p50, p90 = row["p50_s"], row["p90_s"]
    left, right = wait_x(p90["low"]), wait_x(p90["high"])
    return WaitRow(
        queue=row["queue"],
        jobs=row["jobs"],
        p50=(hmin(p50["before"]), hmin(p50["after"])),
        p90=(hmin(p90["before"]), hmin(p90["after"])),
        band=hmin_band(p90["low"], p90["high"]),
        verdict=p90["verdict"],
        dot=wait_x(p90["before"]),
        box=(left, max(0.6, round(right - left, 2))),
        mark=wait_x(p90["after"]),
    )


def _figures(answer: Json, gpu_class: str) -> list[tuple[str, str, str]]:
    """(what, before, after); in replays the value is the middle one, with its band."""
    rows = []
    if gpu_class in answer["ready"]:
        before, after = answer["ready"][gpu_class]
        rows.append((f"Ready, {gpu_class}", number(before, 1), number(after, 1)))
    words = {
        "used_gpu_hours": "GPU-hours held, all classes",
        "started": "Workloads started",
        "evictions": "Evictions, all classes",
        "lost_gpu_hours": "GPU-hours lost",
        "later_than_alone": "Ended later than on their own quota",
    }
    for name, side in answer.get("replay", {}).get("figures", {}).items():
        low, high = number(side["low"], 1), number(side["high"], 1)
        band = "" if low == high else f" ({low} – {high})"
        rows.append((words[name], number(side["before"], 1), number(side["after"], 1) + band))
    return rows


def _prices(cluster: Cluster, answer: Json) -> list[tuple[str, str]]:
    """Of GPUs that are there only with the changes, or no more, at the price of their class."""
    prices = dict(cluster.gpu_classes.values_list("name", "price_per_gpu_hour"))
    found = []
    for name, (before, after) in answer["ready"].items():
        more = Decimal(str(after)) - Decimal(str(before))
        if more and prices.get(name):
            word = "more" if more > 0 else "fewer"
            what = f"{number(float(abs(more)), 1)} {name} {word}, a week"
            found.append((what, money(more * prices[name] * HOURS_A_WEEK, cluster.currency)))
    return found


def _finding(
    question: Study,
    starts: Sequence[ComparedStart],
    leaves: Sequence[Json],
    waits: Sequence[WaitRow],
) -> tuple[str, str]:
    """The answer in one sentence, and what is less sure."""
    count = len(question.changes)
    opening = {1: "With this change", 2: "With both changes"}.get(
        count, f"With all {count} changes"
    )
    parts = _moves(question, starts)
    gone = len(leaves)
    parts.append(
        "nobody is evicted" if not gone else f"{gone} {'is' if gone == 1 else 'are'} evicted"
    )
    rest = ""
    if waits:
        all_ = waits[-1]
        days = "day" if question.days == 1 else f"{question.days} days"
        rest = f"Over the last {days} the P90 wait goes from {all_.p90[0]} to {all_.p90[1]}"
        worse = [row.queue for row in waits[:-1] if row.verdict == "longer"]
        rest += (
            f"; longer in {few(worse, 3)}."
            if worse
            else "; no queue waits longer than chance would have it."
        )
    return f"{opening}, {', '.join(parts[:-1])}, and {parts[-1]}.", rest


def _moves(question: Study, starts: Sequence[ComparedStart]) -> list[str]:
    """Work that starts sooner and later; before the futures are lived only what starts at once, which is
    known."""
    if "starts" not in question.answer:
        now = counted(question.answer["started"], "more workload")
        return [f"{now} {'starts' if question.answer['started'] == 1 else 'start'} at once"]
    if not starts:
        return ["nothing waits"]
    sooner = [one for one in starts if one.turn > 0]
    parts = [f"{len(sooner)} of {counted(len(starts), 'workload')} "
             f"{'starts' if len(sooner) == 1 else 'start'} sooner"]  # fmt: skip
    best = max(sooner, key=lambda one: one.moves_s or 0.0, default=None)
    if best is not None and best.moves_s:
        parts[0] += f", {best.name} by {duration(best.moves_s)}"
    if later := sum(one.turn < 0 for one in starts):
        parts.append(f"{later} later")
    return parts


def chosen_class(question: Study, classes: list[Any]) -> Any:
    """The class that the question is about, else the first."""
    names = [
        name
        for change in question.changes
        for name in (change.get("gpu_class"), *change.get("gpu_classes", ()))
        if name
    ]
    return next((c for c in classes if c.name in names), classes[0] if classes else None)
