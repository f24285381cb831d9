"""Workloads that could have left, as one reader may have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from portal.display import format as show
from scheduling.models import Cluster, Queue
from scheduling.services.explain.documents import Candidate, VictimSearch, VictimVerdict
from scheduling.services.words.sentences import OTHERS_WORK, Reader

WORDS = {
    VictimVerdict.CHOSEN: ("Chosen", "warn"),
    VictimVerdict.ENOUGH: ("Would have done", "info"),
    VictimVerdict.FIXED: ("Not preemptible", "neutral"),
    VictimVerdict.PROTECTED: ("Protected", "neutral"),
    VictimVerdict.OVER_CAP: ("Over the cap", "neutral"),
    VictimVerdict.BUDGET: ("Budget spent", "neutral"),
    VictimVerdict.NOT_ALONE: ("Not enough alone", "neutral"),
    VictimVerdict.SPARED: ("Spared by the shares", "neutral"),
}
"""Label and tone of a badge."""


@dataclass(frozen=True, slots=True)
class LeaverRow:
    name: str
    queue: str
    gpus: int
    label: str
    tone: str
    text: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Search:
    """One who needed room, and who was looked at; ``hidden`` of them are out of the reader's sight."""

    winner: str
    queue: str
    need: int
    gpu_class: str
    rows: Sequence[LeaverRow]
    hidden: int
    more: int


def searches(found: Sequence[VictimSearch], cluster: Cluster, reader: Reader) -> list[Search]:
    """Those of which the reader sees the winner's queue, or somebody who could have left."""
    paths = dict(Queue.objects.filter(cluster=cluster).values_list("name", "path"))

    def sees(queue: str) -> bool:
        return reader.sees_work(cluster.pk, paths.get(queue, ""))

    return [made for hunt in found if (made := _search(hunt, sees, paths)) is not None]


def _search(
    hunt: VictimSearch, sees: Callable[[str], bool], paths: dict[str, str]
) -> Search | None:
    rows = [_row(one, hunt) for one in hunt.candidates if sees(one.work.queue)]
    named = sees(hunt.winner.queue)
    if not named and not rows:
        return None
    return Search(
        winner=_short(hunt.winner.name) if named else OTHERS_WORK,
        queue=paths.get(hunt.winner.queue, hunt.winner.queue) if named else "",
        need=hunt.need,
        gpu_class=hunt.gpu_class,
        rows=rows,
        hidden=len(hunt.candidates) - len(rows),
        more=hunt.more,
    )


def _row(one: Candidate, hunt: VictimSearch) -> LeaverRow:
    label, tone = WORDS[one.verdict]
    return LeaverRow(
        name=_short(one.work.name),
        queue=one.work.queue,
        gpus=one.gpus,
        label=label,
        tone=tone,
        text=_text(one, hunt),
        until=one.until,
    )


def _text(one: Candidate, hunt: VictimSearch) -> str:
    ratio = show.ratio(one.gpus / hunt.need) if hunt.need else ""
    if one.verdict in (VictimVerdict.CHOSEN, VictimVerdict.ENOUGH):
        past = "lost" if one.verdict is VictimVerdict.CHOSEN else "would have lost"
        return f"{past} {show.gpu_hours(one.lost_gpu_s or 0)} GPU-hours, {ratio} held per GPU asked for"
    if one.verdict is VictimVerdict.OVER_CAP:
        return f"{ratio} held per GPU asked for, more than the eviction cap allows"
    if one.verdict is VictimVerdict.NOT_ALONE:
        return f"holds {show.gpus(one.gpus)} of the {show.gpus(hunt.need)} that were needed"
    return TEXTS[one.verdict]


TEXTS = {
    VictimVerdict.FIXED: "its priority class is not preemptible",
    VictimVerdict.PROTECTED: "inside its min run time or its grace",
    VictimVerdict.BUDGET: "the eviction budget of its queue was spent",
    VictimVerdict.SPARED: "the rules of sharing let it keep what it holds",
}


def _short(name: str) -> str:
    """Names of a snapshot are ``namespace/name``."""
    return name.rpartition("/")[2]
