"""The quotas page: a subtree as a grid to read and, for whoever divides it, to edit.

At which moment the quotas are shown: now, or another that the address names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from portal.accounts.views import person
from portal.approvals import edits
from portal.boundary.reading import instant, whole
from portal.display.format import counted, when, zone
from portal.teams.access import dividable_queues, is_operator, visible_queues
from portal.web.frame.context import Shell
from portal.web.frame.requests import form_view, page_view
from portal.web.frame.shell import get_cluster
from portal.web.quotas import files
from portal.web.quotas.beside import shown_at, told_of
from portal.web.quotas.changes import Reading, coming, entries
from portal.web.quotas.edit_form import PostedEdit, read
from portal.web.quotas.place import crumbs, get_queue, may_divide, may_edit_queue
from portal.web.quotas.preview import EditPreview, planned
from portal.web.quotas.table import make_table
from portal.web.studies import drafts
from portal.web.studies.forms import as_query
from scheduling.models import Queue, QuotaChange
from scheduling.services.errors import ServiceError
from scheduling.services.queues.save import EditFault, Grid, QuotaError, grid
from scheduling.services.queues.values import Field
from scheduling.services.studies.whatif.documents import changes_of

FIELD = "%Y-%m-%dT%H:%M"
"""As a browser's field for a time takes it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """``at`` is None for now, and where what was typed is no time: then ``fault`` says so. ``text`` goes
    back into the field."""

    text: str = ""
    at: datetime | None = None
    fault: str = ""


NOW = Moment()


def moment_of(request: HttpRequest) -> Moment:
    """What ``at`` in the address says, in the person's time zone unless it names one."""
    text = request.GET.get("at", "").strip()
    if not text:
        return NOW
    local = zone(Shell(request).zone)
    try:
        at = instant(text, local)
    except ValidationError as error:
        said = " ".join(error.messages)
        return Moment(text, fault=f"“{text[:30]}”: {said} Write one such as 2026-12-31 18:00.")
    return Moment(at.astimezone(local).strftime(FIELD), at)


LAST_CHANGES = 3
MOST_COMING = 6
STALE = "stale"
"""Code of the fault that reading mends: the page that tells it shows what is in force now."""


@page_view
def index(request: HttpRequest, cluster: str) -> HttpResponse:
    """To the highest queue that the person divides, else the highest of their own."""
    found = get_cluster(request, cluster)
    for queues in (dividable_queues(request.user), visible_queues(request.user)):
        top = queues.filter(cluster=found).order_by("path").first()
        if top is not None:
            return redirect("web:quotas", found.name, top.name)
    raise Http404


@form_view
def quotas(request: HttpRequest, cluster: str, queue: str) -> HttpResponse:
    found = get_cluster(request, cluster)
    top = get_queue(request, found, queue)
    if request.method == "POST":
        return _save(request, top)
    moment = moment_of(request)
    shown = grid(top, moment.at or found.now())
    if files.EXPORT in request.GET and may_divide(request, top):
        return files.exported(top, shown)
    if moment.text:
        return _page(request, top, shown, moment=moment, status=400 if moment.fault else 200)
    if drafts.DRAFT not in request.GET or not may_divide(request, top):
        return _page(request, top, shown)
    typed = read(request.GET, shown, Shell(request).zone)
    return _page(request, top, shown, typed=typed, faults=typed.faults)


def _save(request: HttpRequest, top: Queue) -> HttpResponse:
    if not may_divide(request, top):
        raise Http404
    now = top.cluster.now()
    if files.FILE in request.POST:
        return _filled(request, top, grid(top, now))
    shown = grid(top, shown_at(request, now))
    typed = read(request.POST, shown, Shell(request).zone)
    faults = list(typed.faults)
    if not faults and "what_if" in request.POST and is_operator(request.user):
        changes = changes_of(typed.cells)
        page = reverse("web:what_ifs", args=[top.cluster.name])
        return redirect(f"{page}?{as_query(changes)}")
    if not faults and {"preview", "replay"} & request.POST.keys():
        seen = told_of(request, shown, typed, asks="replay" in request.POST)
        return _page(request, top, grid(top, now), typed=typed, seen=seen)
    if not faults:
        try:
            return _saved(request, top, _store(request, top, typed), len(typed.again))
        except QuotaError as refused:
            faults = list(refused.faults)
        except ServiceError as refused:
            faults = [
                EditFault(refused.code, refused.field or "", refused.sentence, refused.remedy)
            ]
    return _page(request, top, grid(top, now), typed=typed, faults=faults, status=400)


def _filled(request: HttpRequest, top: Queue, shown: Grid) -> HttpResponse:
    """The grid with what a file says typed in; nothing is saved."""
    try:
        typed = files.filled(top, shown, request.POST, Shell(request).zone)
    except ServiceError as refused:
        fault = EditFault(refused.code, files.FILE, refused.sentence, refused.remedy)
        return _page(request, top, shown, faults=[fault], status=400)
    if not typed.cells:
        messages.info(request, "The file says what is in force: nothing differs.")
    return _page(request, top, shown, typed=typed, faults=typed.faults)


def _store(request: HttpRequest, top: Queue, typed: PostedEdit) -> QuotaChange:
    return edits.save(
        queue=top,
        cells=typed.cells,
        author=person(request),
        reason=typed.reason,
        effective_from=typed.start,
        effective_until=typed.end,
        version=_version(request.POST.get("version", "")),
        expected=planned(top.cluster, typed.cells),
        again=typed.again,
    )


def _version(text: str) -> int | None:
    try:
        return whole(text)
    except ValidationError:
        return None


def _saved(request: HttpRequest, top: Queue, change: QuotaChange, again: int = 0) -> HttpResponse:
    count, zone = counted(len(change.cells), "edit"), Shell(request).zone
    start = "with the next cycle"
    if change.effective_from > change.at:
        start = f"from {when(change.effective_from, change.at, zone)}"
    more = f", {again + 1} times" if again else ""
    spared = change.effective_from + timedelta(seconds=top.cluster.lowering_grace_s)
    grace = ""
    if any(map(_lowers, change.cells)):
        grace = f" What it lowers evicts nobody before {when(spared, change.at, zone)}."
    messages.success(request, f"Saved {count}, in force {start}{more}.{grace}")
    return redirect(_here(request))


def _here(request: HttpRequest) -> str:
    """The address of the grid as it is in force, of the classes that are shown."""
    classes = urlencode([("class", name) for name in request.GET.getlist("class")])
    return f"{request.path}?{classes}" if classes else request.path


def _lowers(cell: dict[str, Any]) -> bool:
    """Whether its queue may hold less by it; null is unlimited."""
    if cell["field"] not in (Field.NOMINAL, Field.BORROWING_LIMIT):
        return False
    before, after = (
        float("inf") if cell[side] is None else cell[side] for side in ("before", "after")
    )
    return bool(after < before)


def _changes_around(top: Queue, reading: Reading) -> dict[str, Any]:
    """The last changes and what is to come."""
    listed, count = entries(top, reading, most=LAST_CHANGES)
    steps = coming(top, reading)
    return {
        "changes": listed,
        "change_count": count,
        "coming": steps[:MOST_COMING],
        "coming_count": len(steps),
    }


def _page(
    request: HttpRequest,
    top: Queue,
    shown: Grid,
    *,
    typed: PostedEdit | None = None,
    faults: Sequence[EditFault] = (),
    moment: Moment = NOW,
    seen: EditPreview | None = None,
    status: int = 200,
) -> HttpResponse:
    divides = may_divide(request, top)
    editable = divides and moment.at is None
    table = make_table(
        shown,
        chosen=request.GET.getlist("class"),
        typed=typed,
        faults=faults,
        editable=editable,
        seen=set(
            visible_queues(request.user).filter(cluster=top.cluster).values_list("pk", flat=True)
        ),
    )
    context = {
        "queue": top,
        "crumbs": crumbs(request, top),
        "table": table,
        "moment": moment,
        "told": seen,
        "typed": typed or PostedEdit(),
        "is_draft": drafts.DRAFT in request.GET and typed is not None and not request.POST,
        "file": request.POST.get(files.FILE, ""),
        "is_filled": files.FILE in request.POST and bool(typed and typed.cells),
        "here": _here(request),
        "is_operator": is_operator(request.user),
        "faults": faults,
        "is_stale": any(fault.code == STALE for fault in faults),
        "by_field": {f.field: f for f in faults if f.queue is None},
        "editable": editable and len(table.rows) > 1,
        "may_divide": divides,
        "may_edit_queue": may_edit_queue(request.user, top),
        **_changes_around(top, Reading.of(top, person(request), top.cluster.now())),
    }
    return render(request, "web/quotas/quotas.html", context, status=status)
