"""What would start a waiting workload sooner: each change computed by planning again, with what it would
cost and the way to do it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from portal.display.format import gpus_counted, money, number
from portal.plans import asking as plans
from portal.plans.kinds import SOONER
from portal.selectors import sooner as selectors
from portal.selectors.costs import amount_of, may_read_cost
from portal.selectors.ends import Elsewhere, elsewhere, question_elsewhere
from portal.teams.access import may_operate_workload
from portal.web.ahead import Ahead, Box
from portal.web.frame.requests import PersonRequest, page_view
from portal.web.frame.shell import get_cluster
from portal.web.workloads.detail import visible
from scheduling.models import MILLI, GpuClass, Workload
from scheduling.services.starts.tell import PredictedStart, predicted_start

Json = Mapping[str, Any]
FIELDS: Mapping[str, str] = {
    "gpu_class": "class_1",
    "queue": "queue",
    "fewer_members": "pods_min",
    "fewer_gpus": "gpus_per_pod",
    "fewer_cpus": "cpus_per_pod",
    "less_memory": "memory_gib_per_pod",
}
"""Change -> the field of the submit form that makes it."""
QUOTAS = ("limit", "gpu_hours")
COLUMN_PX = 170
"""The axis of time at its narrowest beside the words of a change."""
RUN_TIME_S = 0.5
"""A fragment that is loaded on its own waits so long for a worker's answer."""


@dataclass(frozen=True, slots=True)
class SoonerWay:
    """A change: when it starts with it, what an hour costs there (empty for whoever reads no costs), and how
    to make it: by an address, or by setting ``priority``."""

    change: Json
    end: Elsewhere | None
    starts: str
    box: Box | None
    """Its start, and its run where that is known, on the axis of all; None where there is none."""
    cost: str
    label: str = ""
    address: str = ""
    priority: str = ""


@page_view
def sooner(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """The fragment that the workload page loads once it stands: as planned in the background, or ``now``."""
    found = get_cluster(request, cluster)
    rows = visible(request.user, found).select_related("start_forecast__gpu_class")
    work = rows.filter(uid=uid).first()
    if work is None:
        raise Http404
    if not work.is_waiting:
        # It started between the page and this part of it, so the whole page is out of date.
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    anew = request.GET.get("now") == "1"
    shown = {"cluster": found, "work": work, **_answer(request, work, anew=anew)}
    return render(request, "web/workloads/_sooner_found.html", shown)


def _answer(request: PersonRequest, work: Workload, *, anew: bool) -> dict[str, object]:
    """What is kept; where that is nothing, or it is planned ``anew``, how the plan stands."""
    question = {"work": work.pk, "person": request.user.pk}
    plan_state = plans.look(work.cluster, SOONER, question)
    plan = selectors.planned(request.user, work)
    if anew or plan is None:
        is_refused = plan_state is not None and "fault" in (plan_state.answer or {})
        plan_state = plans.ask(work.cluster, SOONER, question, anew=anew or not is_refused)
        plan = selectors.planned(request.user, work)
    if plan_state is not None and (plan_state.is_open or plan is None):
        answer = plan_state.answer or {}
        is_open = plan_state.is_open or "fault" not in answer
        return {**plans.context_of(plan_state), **answer, "is_open": is_open}
    assert plan is not None  # noqa: S101 - where there was none, it was asked for
    changes = plan.changes
    names = [one["value"] for one in changes if one["change"] == "gpu_class"]
    run_times = question_elsewhere(work, names)
    runs = plans.ask_run_times(work.cluster, run_times, wait_s=RUN_TIME_S) or {}
    now = work.cluster.now()
    ends = elsewhere(work, names, runs, now)
    as_it_is = predicted_start(getattr(work, "start_forecast", None), now)
    axis = _axis(as_it_is, ends.values(), now)
    classes = {one.name: one for one in work.cluster.gpu_classes.all()}
    reads, may = may_read_cost(request.user, work), may_operate_workload(request.user, work)
    found = [
        SoonerWay(
            one,
            end,
            _starts(one),
            _box(axis, end),
            _an_hour(work, one, classes.get(one.get("gpu_class", ""))) if reads else "",
            *_way(work, one, may_operate=may),
        )
        for one in changes
        for end in (ends.get(str(one["value"])) if one["change"] == "gpu_class" else None,)
    ]
    drawing = _drawing(
        axis, as_it_is, request.user.display_time_zone or work.cluster.display_time_zone
    )
    return {"found": found, "at": plan.at, "reads_cost": reads, "as_it_is": as_it_is, **drawing}


def _axis(as_it_is: PredictedStart, ends: Iterable[Elsewhere], now: datetime) -> Ahead | None:
    """From now to its start as it is, and to what would end elsewhere; None where neither is known."""
    known = [as_it_is.p90, *(one.ends[0] for one in ends if one.ends)]
    return Ahead.over(known, now) if any(known) else None


def _box(axis: Ahead | None, end: Elsewhere | None) -> Box | None:
    """Of a start now."""
    if axis is None:
        return None
    run_s = (end.ends[0] - axis.now).total_seconds() if end and end.ends else None
    return axis.box(axis.now, axis.now, run_s)


def _drawing(axis: Ahead | None, as_it_is: PredictedStart, zone_name: str) -> dict[str, object]:
    if axis is None:
        return {}
    p90 = as_it_is.p90
    box = axis.box(as_it_is.p50 or axis.now, p90) if p90 else None
    return {"ticks": axis.ticks(zone_name, origin="now", wide_px=COLUMN_PX), "as_it_is_box": box}


def _starts(change: Json) -> str:
    evicts = change.get("evicts_gpus") or 0
    return f"once others have left {gpus_counted(evicts * MILLI)}" if evicts else "now"


def _an_hour(work: Workload, change: Json, gpu_class: GpuClass | None) -> str:
    """Of the gang at its smallest, as changed."""
    if gpu_class is None:
        return ""
    gpus, members = work.gpus / MILLI, work.min_members
    gpus = float(change["value"]) if change["change"] == "fewer_gpus" else gpus
    members = int(change["value"]) if change["change"] == "fewer_members" else members
    return money(amount_of(gpu_class, gpus * members * 3600), work.cluster.currency)


def _way(work: Workload, change: Json, *, may_operate: bool) -> tuple[str, str, str]:
    """The words of the button, its address, or the priority class that it sets."""
    kind, value = change["change"], change["value"]
    if kind == "priority":
        return (f"Set {value}", "", value) if may_operate else ("", "", "")
    if kind in QUOTAS:
        query = {
            "kind": "quota",
            "queue": change["queue"],
            "gpu_class": change.get("gpu_class", ""),
        }
        page = reverse("web:request_new", args=[work.cluster.name])
        return "Ask for quota", f"{page}?{urlencode(query)}", ""
    if kind not in FIELDS:
        return "", "", ""
    page = reverse("web:submit", args=[work.cluster.name])
    text = number(value, 3).replace(",", "") if isinstance(value, int | float) else value
    return "Clone with this", f"{page}?{urlencode({'clone': work.uid, FIELDS[kind]: text})}", ""
