"""When work would start, as it is typed: a page asks for it, a worker lives the futures.

A person has one question of a kind at a time: the next takes its place, and no further future is lived of the
one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.plans.models import PlanQuestion
from portal.teams import changing, submission
from scheduling.models import Cluster, StartForecast, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.explain import starts
from scheduling.services.starts.tell import PredictedStart, predicted_start
from scheduling.services.workloads.change import WorkloadChange

Json = dict[str, Any]
DRAFT, CHANGED = "start", "start_changed"
MOST_S = 4.0
"""CPU seconds of one question, whatever it asks about."""
TIMES = ("at", "p50_at", "p90_at")
UNSAID = frozenset({"env", "envFrom", "command", "args"})
"""Of a container, what says nothing of where it would run, and may be secret."""


def draft_question(user: User, manifest: Mapping[str, Any], gpu_classes: Sequence[str]) -> Json:
    """When ``manifest`` would start as the work of ``user``, on each of ``gpu_classes`` alone (an empty name:
    on all that it accepts)."""
    said = _without_secrets(manifest)
    said["metadata"] = {**said.get("metadata", {}), "name": "draft"}
    return {"person": user.pk, "manifest": said, "gpu_classes": list(gpu_classes)}


def _without_secrets(said: Any) -> Any:
    if isinstance(said, Mapping):
        return {key: _without_secrets(part) for key, part in said.items() if key not in UNSAID}
    return [_without_secrets(part) for part in said] if isinstance(said, list) else said


def of_draft(cluster: Cluster, question: Json) -> Json:
    """The answer to a ``draft_question``."""
    user = User.objects.get(pk=question["person"])

    def plan() -> Mapping[str, StartForecast]:
        draft = submission.asked_of(user, cluster, question["manifest"])
        if draft is None:
            return {}
        goes_on = _Time(cluster, DRAFT, question).goes_on
        return starts.of_draft(cluster, draft.observed, question["gpu_classes"], goes_on)

    return _document(cluster, plan)


def change_question(user: User, work: Workload, change: WorkloadChange) -> Json:
    """When ``work``, which waits, would start with ``change``, and without."""
    said = {name: _plain(getattr(change, name)) for name in sorted(change.fields)}
    return {"person": user.pk, "work": work.pk, "change": said}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def of_change(cluster: Cluster, question: Json) -> Json:
    """The answer to a ``change_question``: of ``before`` and ``after``."""
    user = User.objects.get(pk=question["person"])
    work = Workload.objects.select_related("cluster", "queue").get(pk=question["work"])

    def plan() -> Mapping[str, StartForecast]:
        drafted, keeps_back = changing.drafted(user, work, _change(question["change"]))
        goes_on = _Time(cluster, CHANGED, question).goes_on
        return starts.of_change(work, drafted.after, goes_on, on_hold=keeps_back is not None)

    return _document(cluster, plan)


def _change(said: Json) -> WorkloadChange:
    read: Json = {name: tuple(v) if isinstance(v, list) else v for name, v in said.items()}
    if read.get("not_before"):
        read["not_before"] = datetime.fromisoformat(read["not_before"])
    return WorkloadChange(**read)


class _Time:
    """Until its seconds are used up, or its person asks something else; shorter questions come between."""

    def __init__(self, cluster: Cluster, kind: str, question: Json) -> None:
        self._rows = PlanQuestion.objects.filter(cluster=cluster, kind=kind, question=question)
        self._cluster = cluster
        self._until_s = time.thread_time() + MOST_S

    def goes_on(self) -> bool:
        from portal.plans.asking import answer_short  # it imports what is asked, and so this

        began_s = time.thread_time()
        answer_short(self._cluster)
        self._until_s += time.thread_time() - began_s
        return time.thread_time() < self._until_s and self._rows.exists()


def _document(cluster: Cluster, plan: Callable[[], Mapping[str, StartForecast]]) -> Json:
    """As JSON; where nothing can be planned, the page has the plan's own words for it."""
    try:
        found = plan()
    except ServiceError as refused:
        return {"fault": refused.code, "starts": {}}
    return {"starts": {key: _written(one) for key, one in found.items()}}


def _written(one: StartForecast) -> Json:
    times = {name: getattr(one, name) for name in TIMES}
    return {n: at and at.isoformat() for n, at in times.items()} | {"why_not": one.why_not}


@dataclass(frozen=True, slots=True)
class PredictedStarts:
    """What is known of them by now; more is on its way while they are ``is_open``."""

    found: Mapping[str, PredictedStart]
    is_open: bool


NOTHING_ASKED = PredictedStarts({}, is_open=False)


def read(answer: Json | None, now: datetime, *, is_open: bool) -> PredictedStarts:
    """What the ``answer`` of a worker says at ``now``, or that there is none yet."""
    starts = (answer or {}).get("starts", {})
    return PredictedStarts(
        {k: predicted_start(_read(one), now) for k, one in starts.items()}, is_open
    )


def _read(one: Json) -> StartForecast:
    times = {name: datetime.fromisoformat(one[name]) if one[name] else None for name in TIMES}
    return StartForecast(**times, why_not=one["why_not"])
