"""What an edit of the grid would do, beside it: planned as it is typed, and the last days lived again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from portal.accounts.models import User
from portal.accounts.views import person
from portal.approvals import edits
from portal.boundary.reading import instant
from portal.web.frame.context import Shell
from portal.web.frame.requests import act_view, page_view
from portal.web.frame.shell import get_cluster
from portal.web.quotas.edit_form import PostedEdit, read
from portal.web.quotas.place import get_queue, may_divide
from portal.web.quotas.preview import EditPreview, lowered, planned, readable, with_grace
from portal.web.quotas.replay import replayed
from scheduling.models import Queue, Study, StudyKind
from scheduling.services.errors import ServiceError
from scheduling.services.queues.save import Grid, grid
from scheduling.services.studies import doors


def shown_at(request: HttpRequest, now: datetime) -> datetime:
    """When the page that is posted back was made; what stood there then tells edits from the rest."""
    try:
        return min(instant(request.POST.get("shown", "")), now)
    except ValidationError:
        return now


def told_of(
    request: HttpRequest, shown: Grid, typed: PostedEdit, *, asks: bool = False
) -> EditPreview | None:
    """What ``typed`` would do; None where nothing is edited. ``asks`` for the last days again."""
    if typed.faults:
        return EditPreview(faults=typed.faults)
    if not typed.cells:
        return None
    user, cluster = person(request), shown.queue.cluster
    seen = readable(user, cluster, planned(cluster, typed.cells))
    less = lowered(shown, typed.cells, typed.start or cluster.now())
    again = _lived_again(user, shown, typed, asks=asks)
    return replace(with_grace(seen, less), ends=typed.end, **again)


def _lived_again(user: User, shown: Grid, typed: PostedEdit, *, asks: bool) -> dict[str, Any]:
    """``replay`` or why it is ``refused``, as ``Told`` has them; neither where nothing is edited."""
    if typed.faults or not typed.cells:
        return {}
    try:
        question = (
            edits.replay(shown.queue, user, typed.cells)
            if asks
            else edits.replay_of(shown.queue.cluster, user, typed.cells)
        )
    except ServiceError as refused:
        return {"refused": refused}
    return {"replay": replayed(user, question)}


def _read_grid(request: HttpRequest, top: Queue) -> tuple[Grid, PostedEdit]:
    shown = grid(top, shown_at(request, top.cluster.now()))
    return shown, read(request.POST, shown, Shell(request).zone)


def _divided(request: HttpRequest, cluster: str, queue: str) -> Queue:
    top = get_queue(request, get_cluster(request, cluster), queue)
    if not may_divide(request, top):
        raise Http404
    return top


@act_view
def preview(request: HttpRequest, cluster: str, queue: str) -> HttpResponse:
    """What the grid as it is typed would do. Keeps nothing."""
    top = _divided(request, cluster, queue)
    context = {"queue": top, "told": told_of(request, *_read_grid(request, top))}
    return render(request, "web/quotas/_preview.html", context)


@act_view
def replay(request: HttpRequest, cluster: str, queue: str) -> HttpResponse:
    """Have the last days lived again with the grid as it is typed."""
    top = _divided(request, cluster, queue)
    shown, typed = _read_grid(request, top)
    context = {"queue": top, **_lived_again(person(request), shown, typed, asks=True)}
    return render(request, "web/quotas/_replay.html", context)


@page_view
def replay_state(request: HttpRequest, cluster: str, queue: str, pk: int) -> HttpResponse:
    """How far it is, and what came out once it is done."""
    top = _divided(request, cluster, queue)
    return _state(request, top, _own_study(request, top, pk))


@act_view
def replay_cancel(request: HttpRequest, cluster: str, queue: str, pk: int) -> HttpResponse:
    top = _divided(request, cluster, queue)
    question = _own_study(request, top, pk)
    doors.cancel(question)
    if "HX-Request" not in request.headers:
        return redirect("web:quotas", top.cluster.name, top.name)
    question.refresh_from_db()
    return _state(request, top, question)


def _state(request: HttpRequest, top: Queue, question: Study) -> HttpResponse:
    seen = replayed(person(request), question)
    return render(request, "web/quotas/_replay.html", {"queue": top, "replay": seen})


def _own_study(request: HttpRequest, top: Queue, pk: int) -> Study:
    """A question about an edit is its author's."""
    mine = Study.objects.filter(cluster=top.cluster, kind=StudyKind.EDIT)
    return get_object_or_404(mine, pk=pk, author=person(request).get_username())
