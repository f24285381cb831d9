"""The workload page: what happens to it, why, and what it has cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django_htmx.http import HttpResponseClientRefresh

from portal.accounts.models import User
from portal.display import timeline
from portal.display.bar_labels import WIDTHS_PX, Labels, labels
from portal.display.entitlement import Axis, Bar, axis, bar
from portal.display.units import unit
from portal.selectors import history, run_times
from portal.selectors.costs import STEPS, Prices, cost_of, gpu_seconds, may_read_cost
from portal.selectors.ends import expected_costs, held_back
from portal.selectors.logs import use_of
from portal.selectors.overview import figures_of
from portal.selectors.workloads import gang
from portal.teams.access import may_operate_workload, visible_workloads
from portal.teams.reading import reader_of
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.workloads.ahead_of_quota import standing_of
from scheduling.models import (
    MILLI,
    Cluster,
    Decision,
    Eviction,
    GpuClass,
    Queue,
    Share,
    State,
    Workload,
)
from scheduling.services.starts.tell import PredictedStart, said_of
from scheduling.services.words import endings
from scheduling.services.words.sentences import Reader, home_of, readable
from scheduling.services.workloads.checkpoints import LearnedInterval, Source, outlook
from scheduling.services.workloads.kubectl import commands_for
from scheduling.services.workloads.turns import turn_of


@dataclass(frozen=True, slots=True)
class LargeBar:
    """``framed`` is the workload's part of the hatch, milli-GPU; 0 frames nothing. ``said`` is what the
    sentence above it says that the queue holds, where it says so."""

    bar: Bar
    axis: Axis
    labels: Mapping[str, Labels]
    unit: str
    share: Share
    framed: float
    said: float | None = None

    @property
    def differs(self) -> bool:
        """The division is of what was held before its plan, a sentence of what is held with its acts."""
        return self.said is not None and round(self.said) != self.share.allocated

    @property
    def past_limit(self) -> float:
        """Milli-GPU asked for that the limit will never let in at once."""
        limit = self.share.limit
        if limit is None:
            return 0
        return max(0, self.share.allocated + self.share.pending - limit)


def large(share: Share, name: str, *, framed: float = 0, said: float | None = None) -> LargeBar:
    """The bar of one queue and class on its own axis."""
    one = figures_of(share)
    on = axis([one])
    named = {width: labels(one, on, width=width, framed_gpus=framed) for width in WIDTHS_PX}
    drawn = bar(name, one, on, framed_gpus=framed)
    return LargeBar(drawn, on, named, unit(share.gpu_class), share, framed, said)


SUBMITTED = "submitted"
"""Session key: {uid: {name, namespace, at}} of what the person submitted and no mirror has shown."""
MOST_DECISIONS = 300
"""Of one workload that its history reads."""
KEEP_SUBMITTED = timedelta(minutes=10)
NEVER_ASKS = ("never_fits", "nodes_out", "no_such_class", "misrouted")
"""Reasons of work that no queue asks for: nothing of the hatch is its."""

QUOTES = ("at_limit", "above_fair_share", "waits_for_quota", "waits_for_turn")
"""Reasons whose sentence says what the queue holds, unless another queue is to blame."""


@page_view
def workload(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    work = visible(request.user, found).filter(uid=uid).first()
    if work is None:
        return _waiting(request, found, uid)
    if request.htmx:
        return HttpResponseClientRefresh()
    forget(request, uid)
    note_whose(request, work)
    return render(request, "web/workloads/workload.html", context(request, found, work))


def note_whose(request: PersonRequest, work: Workload) -> None:
    """Tells the menu whether the page is about the person's own work."""
    request.is_own_work = work.user == request.user.get_username()


def visible(user: User, cluster: Cluster) -> QuerySet[Workload]:
    """Workloads of ``cluster`` that ``user`` may see, with what their page reads."""
    evictions = Eviction.objects.select_related(
        "queue", "for_queue", "for_workload__queue", "gpu_class", "cycle"
    )
    return (
        visible_workloads(user)
        .filter(cluster=cluster)
        .select_related("cluster", "queue", "gpu_class", "priority_class", "prediction")
        .prefetch_related(STEPS, Prefetch("evictions", queryset=evictions))
    )


def context(request: PersonRequest, cluster: Cluster, work: Workload) -> dict[str, Any]:
    """Everything the page shows."""
    now, user = cluster.now(), request.user
    transitions, evictions = history.in_order(work.transitions.all()), list(work.evictions.all())
    decisions = _decisions(work)
    may_operate = may_operate_workload(user, work)
    expected = outlook(work, now)
    reader = reader_of(request)
    home = home_of(work, reader)
    classes = {c.name: c for c in cluster.gpu_classes.all()}
    reads_cost = may_read_cost(user, work)
    cost = cost_of(work, now, Prices.of(classes.values())) if reads_cost else None
    start = said_of(work) if work.is_waiting else None
    counted_in = _unit(work, classes)
    entries = history.entries(
        work,
        transitions,
        evictions,
        decisions,
        reader,
        now=now,
        told_starts=list(work.told_starts.all()),
        edits=list(work.edits.all()),
    )
    return {
        "cluster": cluster,
        "work": work,
        "home": home,
        "crumbs": _crumbs(cluster, home),
        "gang": gang(work),
        "turn": turn_of(work),
        "ending": endings.sentence(work),
        "remedy": endings.remedy(work),
        "commands": commands_for(work),
        "waits_since": _waits_since(work, now),
        "start": start,
        "line": _line(user, work, now, start, counted_in),
        "unit": counted_in,
        "entries": entries,
        "history": history.folded(entries),
        "decision": decisions[-1] if decisions else None,
        "classes": [classes[name] for name in work.gpu_classes if name in classes],
        "entitlement": _entitlement(work, home, reader),
        "checkpoints": expected,
        "standing": standing_of(work, now),
        "held_back": held_back(work, now),
        "run_time": run_times.learned_of(work),
        "learned_from": learned_from(work, expected.learned) if expected else "",
        "used_gpu_s": gpu_seconds(work, now),
        "use": use_of(work),
        "cost": cost,
        "expected_costs": expected_costs(work, classes, now, cost) if reads_cost else [],
        "may_cancel": may_operate and work.state != State.FINISHED,
        "may_hold": may_operate and work.is_waiting and not work.held,
        "may_release": may_operate and work.is_waiting and work.held,
    }


def remember(request: PersonRequest, made: dict[str, Any]) -> None:
    """Keeps what was submitted until the cluster reports it, so that its page can say so."""
    meta = made["metadata"]
    memory = request.session.get(SUBMITTED, {})
    memory[meta["uid"]] = {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "at": timezone.now().isoformat(),
    }
    request.session[SUBMITTED] = memory


def forget(request: PersonRequest, uid: str) -> None:
    memory = request.session.get(SUBMITTED, {})
    if memory.pop(uid, None) is not None:
        request.session[SUBMITTED] = memory


def _waiting(request: PersonRequest, cluster: Cluster, uid: str) -> HttpResponse:
    """The page of something just submitted. Raises Http404 for anything else."""
    memory = request.session.get(SUBMITTED, {}).get(uid)
    if memory is None:
        raise Http404
    age = timezone.now() - datetime.fromisoformat(memory["at"])
    if age > KEEP_SUBMITTED:
        forget(request, uid)
    shown = {"cluster": cluster, "uid": uid, "kept": memory, "age_s": age.total_seconds()}
    part = "_waiting.html" if request.htmx else "waiting.html"
    return render(request, f"web/workloads/{part}", shown)


def _crumbs(cluster: Cluster, queue: Queue | None) -> list[tuple[str, str]]:
    """(name, address) of the queues down to its own; a path's parts are queue names."""
    names = queue.path.split("/") if queue and queue.path else []
    return [(name, reverse("web:queue", args=[cluster.name, name])) for name in names]


def _waits_since(work: Workload, now: datetime) -> datetime | None:
    """When the present wait began, if it waits."""
    if not work.is_waiting:
        return None
    began = [t.at for t in work.transitions.all() if t.to_state in (State.PENDING, State.REQUEUED)]
    return max(began, default=work.submitted_at)


def _unit(work: Workload, classes: Mapping[str, GpuClass]) -> str:
    """Of the class that it holds or held last, else of the first that it accepts."""
    found = work.gpu_class or classes.get(next(iter(work.gpu_classes), ""))
    return unit(found) if found else "GPUs"


def _line(
    user: User, work: Workload, now: datetime, start: PredictedStart | None, counted_in: str
) -> timeline.Timeline:
    return timeline.draw(
        history.steps(work, history.in_order(work.transitions.all()), counted_in),
        now=now,
        zone_name=user.display_time_zone or work.cluster.display_time_zone,
        finished=work.finished_at if work.state == State.FINISHED else None,
        ends=_predicted_end(work, now),
        starts=start.band if start else None,
    )


def _predicted_end(work: Workload, now: datetime) -> tuple[datetime, datetime] | None:
    """P50 and P90 of when it ends, as its author says or as was learned, where it is still ahead."""
    p50, p90 = work.predicted_p50_s, work.predicted_p90_s
    if work.state != State.RUNNING or not work.started_at:
        return None
    ends = run_times.end_of(work)
    if p50 is not None and p90 is not None:
        ends = work.started_at + timedelta(seconds=p50), work.started_at + timedelta(seconds=p90)
    return ends if ends and ends[0] > now else None


def _decisions(work: Workload) -> list[Decision]:
    """The newest, in order of their cycles."""
    rows = work.decisions.select_related("cycle", "for_workload__queue")
    newest = list(rows.order_by("-cycle__number", "-id")[:MOST_DECISIONS])
    for one in newest:
        one.workload = work  # its queue is at hand
    return newest[::-1]


def learned_from(work: Workload, learned: LearnedInterval) -> str:
    """Whose checkpoints an interval was learned from: '12 of ann's last 13 workloads in vision'."""
    if learned.source is Source.OWN:
        return f"its own last {learned.announcing}"
    whose = "the" if learned.source is Source.QUEUE else f"{work.user}'s"
    where = "" if learned.source is Source.USER else f" in {work.queue_label}"
    return f"{learned.announcing} of {whose} last {learned.seen} workloads{where}"


def _entitlement(work: Workload, home: Queue | None, reader: Reader) -> LargeBar | None:
    """The bar of its queue and of the class that it holds or is told of, with this gang framed while it
    waits."""
    if home is None or work.state == State.FINISHED:
        return None
    why = readable(work, reader)
    named = work.gpu_class or why.numbers.get("gpu_class") or next(iter(work.gpu_classes), "")
    share = Share.objects.filter(queue=home, gpu_class__name=str(named)).first()
    if share is None:
        return None
    asks = work.is_waiting and work.reason not in NEVER_ASKS
    framed = work.requested_gpus if asks else 0
    is_quoted = work.is_waiting and work.reason in QUOTES and "queue" not in why.numbers
    holds = why.numbers.get("holds") if is_quoted else None
    said = None if holds is None else MILLI * holds
    return large(share, str(home), framed=framed, said=said)
