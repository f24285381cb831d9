"""What changed the quotas of a subtree: the list, one change with what came of it, its revert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from portal.accounts.models import User
from portal.accounts.views import person
from portal.approvals import edits
from portal.approvals.previews import ReadablePreview, TouchedWork
from portal.display.format import hmin, number
from portal.display.spread import Spread
from portal.plans import asking as plans
from portal.plans.kinds import REVERT
from portal.teams.access import dividable_queues
from portal.web.frame.pages import page_of
from portal.web.frame.requests import form_view, page_view
from portal.web.frame.shell import get_cluster
from portal.web.quotas.changes import Reading, backwards, entries, entry
from portal.web.quotas.place import crumbs, get_queue
from portal.web.quotas.preview import lowered, readable, with_grace
from portal.web.quotas.replay import Replay, replayed
from portal.web.quotas.replay import ReplayWaits as Expected
from scheduling.models import (
    Eviction,
    Outcome,
    Queue,
    QuotaChange,
    State,
    Study,
    Transition,
    Workload,
)
from scheduling.services.errors import ServiceError
from scheduling.services.queues.save import cells_back, grid, history
from scheduling.services.studies.whatif.preview import LEAVES

LOOKED_AT = timedelta(days=7)
"""So long after an edit what came is put down to it."""
Waited = Mapping[str, Spread]


@dataclass(frozen=True, slots=True)
class Effect:
    """``what`` came of one line of the plan, ``how`` and ``at`` when; empty if the work is another team's."""

    line: TouchedWork
    what: str = ""
    at: datetime | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class PastWaits:
    """P50 and P90 of the jobs of one queue, in hours and minutes: (before, expected) and since."""

    queue: str
    p50: tuple[str, str]
    p90: tuple[str, str]
    jobs: int
    p50_since: str
    p90_since: str


@dataclass(frozen=True, slots=True)
class Outcomes:
    """``plan`` has why there are no ``lines`` where it could not be planned; it was looked at from when the
    change is in force to ``until``."""

    begin: datetime
    plan: ReadablePreview | None
    lines: Sequence[Effect]
    replay: Replay | None
    waits: Sequence[PastWaits]
    until: datetime

    @property
    def came(self) -> str:
        """'2 started, 1 still waits', of those that the reader sees."""
        if self.until < self.begin:
            return "not in force yet"
        if self.plan is None or self.plan.fault:
            return "nobody planned it ahead"
        if not self.lines:
            return "nobody was to move"
        counts = Counter(line.what for line in self.lines if line.what)
        return ", ".join(f"{number(n)} {what}" for what, n in counts.items()) or "not yours to see"


def outcomes(person: User, change: QuotaChange, now: datetime) -> Outcomes:
    start = change.effective_from
    until = min(now, start + LOOKED_AT, change.effective_until or now)
    figures = {} if edits.PLANNED_WITH in change.expected else change.expected
    plan = readable(person, change.cluster, figures).plan
    again = replayed(person, _question(change))
    since = _waited(change, [row.queue for row in again.waits], start, until) if again else {}
    return Outcomes(
        begin=start,
        plan=plan,
        lines=_effects(plan.lines, start, until) if plan else (),
        replay=again,
        waits=[
            _beside(row, since.get(row.queue, Spread())) for row in (again.waits if again else ())
        ],
        until=until,
    )


def _question(change: QuotaChange) -> Study | None:
    key: Any = change.expected.get("what_if")
    return Study.objects.filter(pk=key, cluster=change.cluster_id).first() if key else None


def _effects(lines: Iterable[TouchedWork], start: datetime, until: datetime) -> list[Effect]:
    lines = list(lines)
    mine = [line.work.pk for line in lines if line.work]
    starts = Transition.objects.filter(workload__in=mine, to_state=State.ADMITTED).exclude(
        from_state=State.ADMITTED
    )
    ends = Eviction.objects.filter(workload__in=mine)
    first_start, first_end = (_first(rows, start, until) for rows in (starts, ends))
    return [_of(line, first_end if line.kind == LEAVES else first_start) for line in lines]


def _first(rows: QuerySet[Any], start: datetime, until: datetime) -> dict[int, datetime]:
    """Workload -> when first within the time."""
    within = rows.filter(at__gte=start, at__lte=until).order_by("-at")
    return dict(within.values_list("workload", "at"))


def _of(line: TouchedWork, firsts: Mapping[int, datetime]) -> Effect:
    work = line.work
    if work is None:
        return Effect(line)
    at = firsts.get(work.pk)
    if at is not None:
        return Effect(line, "evicted" if line.kind == LEAVES else "started", at)
    if work.finished_at is not None:
        return Effect(line, "ended", work.finished_at, how=work.get_outcome_display().lower())
    return Effect(line, "still runs" if line.kind == LEAVES else "still waits")


def _waited(change: QuotaChange, queues: Sequence[str], start: datetime, until: datetime) -> Waited:
    """Of the jobs submitted within the time, by queue: until their first start, or until its end."""
    rows = Workload.objects.filter(
        cluster=change.cluster_id,
        queue__name__in=queues,
        submitted_at__gte=start,
        submitted_at__lt=until,
        gpus__gt=0,
    ).exclude(outcome=Outcome.CANCELLED, first_started_at=None)
    waits: dict[str, list[float]] = {}
    for queue, submitted, first in rows.values_list(
        "queue__name", "submitted_at", "first_started_at"
    ):
        waits.setdefault(queue, []).append((min(first or until, until) - submitted).total_seconds())
    return {queue: Spread.of(np.array(found)) for queue, found in waits.items()}


def _beside(row: Expected, since: Spread) -> PastWaits:
    return PastWaits(row.queue, row.p50, row.p90, since.count, hmin(since.p50), hmin(since.p90))


@page_view
def changes(request: HttpRequest, cluster: str, queue: str) -> HttpResponse:
    """Everything that changed the subtree's quotas."""
    found = get_cluster(request, cluster)
    top = get_queue(request, found, queue)
    listed, _ = entries(top, Reading.of(top, person(request), found.now()))
    page = page_of(request, listed)
    context = {"queue": top, "crumbs": crumbs(request, top), "changes": page, "page": page}
    return render(request, "web/quotas/changes.html", context)


@page_view
def change(request: HttpRequest, cluster: str, queue: str, pk: int) -> HttpResponse:
    """One change: what was expected of it, and what came."""
    found = get_cluster(request, cluster)
    top = get_queue(request, found, queue)
    saved = get_object_or_404(history(top).select_related("cluster"), pk=pk)
    shown = entry(saved, top, person(request), found.now())
    if shown is None:
        raise Http404
    context = {
        "queue": top,
        "crumbs": crumbs(request, top),
        "entry": shown,
        "outcomes": outcomes(person(request), saved, found.now()),
    }
    return render(request, "web/quotas/change.html", context)


@form_view
def revert(request: HttpRequest, cluster: str, queue: str, pk: int) -> HttpResponse:
    """Say what a revert would do, then, by POST, do it."""
    found = get_cluster(request, cluster)
    top = get_queue(request, found, queue)
    saved = _revertible(request.user, top, pk)
    fault: ServiceError | None = None
    reason = request.POST.get("reason", f"Revert: {saved.reason}"[:500])
    if request.method == "POST":
        try:
            edits.revert(change=saved, author=person(request), reason=reason)
        except ServiceError as refused:
            fault = refused
        else:
            messages.success(request, "Reverted, in force with the next cycle.")
            return redirect("web:quotas", found.name, top.name)
    cells, start = cells_back(saved), max(found.now(), saved.effective_from)
    plan_state = plans.ask(found, REVERT, {"change": saved.pk})
    seen = (
        readable(person(request), found, plan_state.answer)
        if plan_state.answer is not None
        else None
    )
    context = {
        "queue": top,
        "crumbs": crumbs(request, top),
        "change": saved,
        "lines": backwards(saved, person(request)),
        "told": with_grace(seen, lowered(grid(saved.queue, start), cells, start)) if seen else None,
        **plans.context_of(plan_state),
        "reason": reason,
        "fault": fault,
    }
    return render(request, "web/quotas/revert.html", context, status=400 if fault else 200)


def _revertible(user: User | Any, top: Queue, pk: int) -> QuotaChange:
    """A change of this subtree whose own queue the person divides; anything else is absent."""
    mine = history(top).filter(queue__in=dividable_queues(user))
    return get_object_or_404(mine.select_related("cluster"), pk=pk)
