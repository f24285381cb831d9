"""What the page of real use shows, and the acts on work whose GPUs idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect

from portal.accounts.models import User
from portal.display.adding_up import percent_column
from portal.display.format import class_number, memory, money, percent
from portal.display.spread import share
from portal.notices import idle as notices
from portal.notices import low_use
from portal.reports import words
from portal.reports.figures import use as figures
from portal.reports.forms import form_of
from portal.reports.requests_and_use import AskedRow, asked_against_used
from portal.reports.scope import report_scope
from portal.reports.use import SHOWN, IdleRow, UseReport
from portal.teams.access import may_operate_workload, operable, visible_workloads
from portal.web.frame.requests import PersonRequest, act_view
from portal.web.frame.shell import get_cluster
from portal.web.reports.pages import Meter
from portal.web.workloads.actions import came_from
from scheduling.models import IdleSpell, Workload, WorkloadType
from scheduling.services.errors import ServiceError
from scheduling.services.workloads import idle

FITTING = 3
"""Rows of what fits as it was asked, beside those that would save something."""


@dataclass(frozen=True, slots=True)
class IdleLine:
    """A spell as it stands in the list: ``does`` is the verb that the person may use on it."""

    row: IdleRow
    colour: int
    memory: str
    fate: str
    does: str
    label: str


@dataclass(frozen=True, slots=True)
class UseLine:
    row: AskedRow
    colour: int
    memory: str
    memory_bar: Meter
    activity_bar: Meter
    saves: str
    tells: bool
    """Whether the person may have its owner told."""
    told_at: datetime | None
    """When the owner was told, if today."""


def use_page(report: UseReport, *, user: User, show_all: bool = False) -> dict[str, Any]:
    currency = report.cluster.currency
    rows = report.requests if show_all else _first(report.requests)
    saved = [row.saves for row in rows if row.saves]
    tellable = [_last_run(row) for row in rows if _has_other_owner(row, user)]
    may = operable(user, [*(row.spell.workload for row in report.now), *tellable])
    tells = may & {work.pk for work in tellable}
    times = low_use.told_today(report.cluster, tells) if tells else {}
    lines = [_line(row, user, may=row.spell.workload.pk in may) for row in report.now]
    return {
        "range_note": words.range_note(report.filters, None),
        "lines": lines,
        "idle_all": words.held_idle(report),
        "idle_cost": _sum(report, [row.cost for row in report.now]),
        "idle_per_hour": _sum(report, [row.per_hour for row in report.now]),
        "cost": None if report.idle_cost is None else money(report.idle_cost, currency),
        "nudge_rows": _nudge_rows(report),
        "nothing_share": share(report.nothing, report.total.idle),
        "partly_share": share(report.partly, report.total.idle),
        "figure": figures.by_period(report) if report.days else None,
        "asked": [
            _asked_and_used(
                report, row, tells=row.newest_id in tells, told_at=times.get(row.newest_id)
            )
            for row in rows
        ],
        "saved": money(sum(saved), currency) if saved else "",
        "saving": len(saved),
        "told_after": report.cluster.idle_after_s,
        "culled_after": report.cluster.cull_after_s,
        "currency": currency,
    }


def _first(rows: Sequence[AskedRow]) -> Sequence[AskedRow]:
    """Those that would save most, and of what fits as it was asked the largest: that is an answer too."""
    fit = [row for row in rows if not row.would_do][:FITTING]
    return [*[row for row in rows if row.would_do][: SHOWN - len(fit)], *fit]


def _nudge_rows(report: UseReport) -> list[tuple[str, int, str]]:
    """(what became of them, how many, the part of all: '18.2 %'; '' where nobody was told)."""
    nudges = report.nudges
    ends = (
        ("given back", nudges.given_back), ("used again", nudges.used),
        ("culled after notice", nudges.culled), ("idle still", nudges.going_on),
    )  # fmt: skip
    on_purpose = ("of all, kept on purpose", nudges.kept_on_purpose)
    if not nudges.count:
        return [(*row, "") for row in (*ends, on_purpose)]
    parts = percent_column([nudges.of_all(count) for _, count in ends]).parts
    rows = zip((*ends, on_purpose), (*parts, percent(nudges.of_all(on_purpose[1]))), strict=True)
    return [(*row, part) for row, part in rows]


def _sum(report: UseReport, costs: list[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    return money(sum(known), report.cluster.currency) if known else ""


def _has_other_owner(row: AskedRow, user: User) -> bool:
    """Whether there is one person, and not ``user``, to tell that less would do."""
    return bool(row.would_do and row.user) and row.user != user.get_username()


def _last_run(row: AskedRow) -> Workload:
    """As far as the right to act on it depends on it; never saved."""
    return Workload(pk=row.newest_id, user=row.user, queue_id=row.queue_id)


def _line(row: IdleRow, user: User, *, may: bool) -> IdleLine:
    spell, work = row.spell, row.spell.workload
    does, label = "", ""
    if work.user == user.get_username() and row.culled is not None:
        does, label = "keep", "Keep 2 h"
    elif may and work.user != user.get_username():
        does, label = "nudge", "Nudge again" if spell.told else "Nudge"
    colour = class_number(spell.gpu_class.position)
    return IdleLine(row, colour, memory(spell.memory_mib), _fate(row), does, label)


def _fate(row: IdleRow) -> str:
    """Empty where the time of its end stands instead."""
    if row.culled is not None:
        return ""
    kind = row.spell.workload.type
    return "service, only told" if kind == WorkloadType.INFERENCE else "only told"


def _asked_and_used(
    report: UseReport, row: AskedRow, *, tells: bool, told_at: datetime | None
) -> UseLine:
    part = share(row.memory_mib, row.memory_total_mib)
    text = f"{memory(row.memory_mib)} of {memory(row.memory_total_mib)}" if part else "–"
    saves = "" if row.saves is None else money(row.saves, report.cluster.currency)
    return UseLine(
        row,
        class_number(row.position),
        text,
        Meter(round(100 * (part or 0.0), 2), 100.0),
        Meter(round(100 * row.activity, 2), 100.0),
        saves,
        tells,
        told_at,
    )


Act = Callable[[IdleSpell, PersonRequest], str]


def _nudge(spell: IdleSpell, request: PersonRequest) -> str:
    if not may_operate_workload(request.user, spell.workload):
        raise Http404
    notices.nudge(spell, by=request.user)
    return f"{spell.workload.user} is told of {spell.workload.name} again."


def _keep(spell: IdleSpell, request: PersonRequest) -> str:
    if spell.workload.user != request.user.get_username():
        raise Http404
    idle.keep(spell, by=request.user.get_username(), now=spell.workload.cluster.now())
    return f"{spell.workload.name} is kept for two hours, whatever runs."


@act_view
def nudge(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """Tell its owner again. For who may act on the work."""
    return _act(request, cluster, uid, _nudge)


@act_view
def keep(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """Its owner keeps the GPUs for a while."""
    return _act(request, cluster, uid, _keep)


def _act(request: PersonRequest, name: str, uid: str, act: Act) -> HttpResponse:
    cluster = get_cluster(request, name)
    works = visible_workloads(request.user).filter(cluster=cluster)
    work = get_object_or_404(works.select_related("cluster", "queue"), uid=uid)
    spell = idle.going_on(cluster).filter(workload=work).select_related("workload__cluster").first()
    try:
        if spell is None:
            _may(request, work)
            raise ServiceError("moved_on", f"The GPUs of {work.name} are no longer idle.")
        messages.success(request, act(spell, request))
    except ServiceError as refused:
        messages.error(request, str(refused))
    there = came_from(request)
    return HttpResponseRedirect(there) if there else redirect("reports:use", cluster.name)


def _may(request: PersonRequest, work: Workload) -> None:
    """Raises Http404 for whoever may do nothing to it, as where there is a spell."""
    if work.user != request.user.get_username() and not may_operate_workload(request.user, work):
        raise Http404


@act_view
def tell(request: PersonRequest, cluster: str, uid: str) -> HttpResponse:
    """Have the owner of a workload told that less would do, as the report of the address says."""
    found = get_cluster(request, cluster)
    works = visible_workloads(request.user).filter(cluster=found)
    work = get_object_or_404(works.select_related("cluster", "queue"), uid=uid)
    if work.user == request.user.get_username() or not may_operate_workload(request.user, work):
        raise Http404
    try:
        row = _asked_row(request, work)
        low_use.tell_owner(work, row, by=request.user)
        messages.success(request, f"{work.user} is told that {row.would_do} would do.")
    except ServiceError as refused:
        messages.error(request, str(refused))
    there = came_from(request)
    return HttpResponseRedirect(there) if there else redirect("reports:use", cluster)


def _asked_row(request: PersonRequest, work: Workload) -> AskedRow:
    """Of which ``work`` is the last run. Raises ServiceError where there is nothing to tell its owner."""
    form = form_of(work.cluster, request.user, request.GET)
    if form.is_valid():
        filters = form.filters()
        scope = report_scope(work.cluster, filters, request.user)
        for row in asked_against_used(scope, filters, request.user, reads_costs=False):
            if row.newest == work.uid and _has_other_owner(row, request.user):
                return row
    raise ServiceError(
        "moved_on", f"The report asks nothing less of {work.name} any more.", "See the page again."
    )
