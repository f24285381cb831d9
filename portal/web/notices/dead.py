"""Letters that died, before operators, with the two things to do about one."""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from portal.accounts.models import User
from portal.notices import dead
from portal.notices.delivery import MOST_TRIES
from portal.notices.models import Letter
from portal.teams.access import is_operator
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, act_view, acted, page_view


@page_view
def letters(request: PersonRequest) -> HttpResponse:
    """The newest first; whom, where and why, and nothing of what stands in them."""
    _check(request)
    backlog = dead.backlog()
    page = page_of(request, dead.dead())
    rows = [(letter, dead.place(letter)) for letter in page]
    context = {"rows": rows, "backlog": backlog, "most_tries": MOST_TRIES, "page": page}
    return render(request, "web/notices/dead.html", context)


@act_view
def again(request: PersonRequest, pk: int) -> HttpResponse:
    return _act(request, pk, dead.try_again, "It is tried again at once.")


@act_view
def drop(request: PersonRequest, pk: int) -> HttpResponse:
    return _act(request, pk, dead.drop, "It is dropped. The notice itself stays in the inbox.")


def _act(
    request: PersonRequest, pk: int, act: Callable[[User, Letter], None], said: str
) -> HttpResponse:
    _check(request)
    letter = get_object_or_404(dead.dead(), pk=pk)
    acted(request, lambda: act(request.user, letter), said)
    return redirect("web:dead_letters")


def _check(request: PersonRequest) -> None:
    if not is_operator(request.user):
        raise Http404
