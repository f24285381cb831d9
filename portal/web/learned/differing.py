"""Decisions that a version in shadow would have made otherwise, and what that would have led to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.display.format import hmin, number
from scheduling.models import (
    DifferenceKind,
    LearnedDifference,
    LearnedEffect,
    LearnedOrder,
)
from scheduling.services.learned import effects
from scheduling.services.learned.told import uids_of

Json = dict[str, Any]
SHOWN = 12
NOT_YET = "not replayed yet"
AS_ABOVE = "with the one above"
TONES = {DifferenceKind.START: ("ok", "running"), DifferenceKind.EVICT: ("warn", "evicted")}


@dataclass(frozen=True, slots=True)
class Effect:
    """The version less what was decided; ``span`` is its range over lives that differ by little. Of one that
    is not told ``why_not`` says why."""

    wait: str = ""
    span: str = ""
    lost: str = ""
    verdict: str = ""
    horizon: str = ""
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Differs:
    """A decision, what would have been decided in its place, and what speaks for it."""

    at: datetime
    number: int
    word: str
    tone: str
    glyph: str
    decided: Json
    would: Json | None
    decided_uid: str
    would_uid: str
    """Of its page; empty where the ledger has it no more."""
    nobody: str
    why: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class Differing:
    """``rows`` are the newest; the sums are of all that is kept."""

    rows: Sequence[Differs]
    sums: effects.Sums
    total: str
    wait: str
    lost: str

    @property
    def unreplayed(self) -> int:
        return self.sums.cycles - self.sums.replayed

    @property
    def repeats(self) -> int:
        return effects.REPEATS

    @property
    def most_hours(self) -> int:
        return int(effects.MOST.total_seconds()) // 3600

    @property
    def jitter_pct(self) -> float:
        return 100 * effects.JITTER


def differing(order: LearnedOrder) -> Differing:
    """Of a version whose decisions were looked at."""
    found = list(LearnedDifference.objects.filter(order=order).order_by("-number", "id")[:SHOWN])
    numbers = [one.number for one in found]
    lived = {e.number: e for e in LearnedEffect.objects.filter(order=order, number__in=numbers)}
    named = (one["name"] for row in found for one in (row.decided, row.would) if one)
    uids = uids_of(order.cluster, set(named))
    rows, told = [], set[int]()
    for one in found:
        rows.append(_row(one, lived.get(one.number), uids, is_first=one.number not in told))
        told.add(one.number)
    sums = effects.sums(order)
    return Differing(
        rows=rows,
        sums=sums,
        total=_total(sums),
        wait=minutes(sums.wait_s) if sums.replayed else "–",
        lost=gpu_h(sums.lost_gpu_s) if sums.replayed else "–",
    )


def _total(sums: effects.Sums) -> str:
    """'All 14: 9 of order, 5 of victims'."""
    parts = [f"{sums.starts:,} of order"] if sums.starts else []
    parts += [f"{sums.evictions:,} of victims"] if sums.evictions else []
    return f"All {sums.starts + sums.evictions:,}: {', '.join(parts) or 'none is kept'}"


def _row(
    one: LearnedDifference, lived: LearnedEffect | None, uids: dict[str, str], *, is_first: bool
) -> Differs:
    kind = DifferenceKind(one.kind)
    tone, glyph = TONES[kind]
    return Differs(
        at=one.at,
        number=one.number,
        word=kind.value,
        tone=tone,
        glyph=glyph,
        decided=one.decided,
        would=one.would,
        decided_uid=uids.get(one.decided["name"], ""),
        would_uid=uids.get(one.would["name"], "") if one.would else "",
        nobody="nothing of that class" if kind is DifferenceKind.START else "nobody of that class",
        why=why(kind, one.decided, one.would),
        effect=effect(lived) if is_first else Effect(why_not=AS_ABOVE),
    )


def effect(lived: LearnedEffect | None) -> Effect:
    if lived is None:
        return Effect(why_not=NOT_YET)
    if lived.wait_s is None:
        return Effect(why_not=f"not replayed: {lived.why_not[:1].lower()}{lived.why_not[1:]}")
    least_s, most_s = (
        lived.wait_s if each is None else each for each in (lived.least_s, lived.most_s)
    )
    return Effect(
        wait=minutes(lived.wait_s),
        span=span(least_s, most_s),
        lost=gpu_h(lived.lost_gpu_s or 0.0),
        verdict=effects.verdict(lived),
        horizon=f"over {hmin(lived.until - lived.at)} h",
    )


def span(least_s: float, most_s: float) -> str:
    """'−30 to −4 min'; both with hours where one of them has any."""
    least, most = minutes(least_s), minutes(most_s)
    return f"{least} to {most}" if " h " in least + most else f"{least[:-4]} to {most}"


def minutes(seconds: float) -> str:
    """'−19 min', '0 min', '+3 h 10 min'."""
    whole = round(abs(seconds) / 60)
    sign = "" if not whole else "−" if seconds < 0 else "+"
    if whole < 120:
        return f"{sign}{number(whole)} min"
    return f"{sign}{number(whole // 60)} h {whole % 60} min"


def gpu_h(gpu_s: float) -> str:
    """'−0.4', '0'."""
    rounded = round(gpu_s / 3600, 1)
    if not rounded:
        return "0"
    return f"{'−' if rounded < 0 else '+'}{number(abs(rounded), 1)}"


def why(kind: DifferenceKind, decided: Json, would: Json | None) -> str:
    """The figures of both that differ, told one after the other."""
    if would is None:
        return (
            "others of its plan take the GPUs"
            if kind is DifferenceKind.START
            else "it makes no room"
        )
    told = []
    lost, was = would.get("lost_gpu_s") or 0.0, decided.get("lost_gpu_s") or 0.0
    if kind is DifferenceKind.EVICT and lost != was:
        told.append(f"loses {number(lost / 3600, 1)} against {number(was / 3600, 1)} GPU-h")
    mine, theirs = would["expected_s"], decided["expected_s"]
    if mine is not None and theirs is not None and mine != theirs:
        told.append(f"expected {hmin(mine)} against {hmin(theirs)}")
    if kind is DifferenceKind.START:
        told.append(f"waits {hmin(would['waited_s'])} against {hmin(decided['waited_s'])}")
    if would["gpus"] != decided["gpus"]:
        told.append(f"{number(would['gpus'])} against {number(decided['gpus'])} GPUs")
    return ", ".join(told) or "all figures alike"
