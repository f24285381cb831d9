"""Letters that died, before operators, with the two things to do about one."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.models import User
from portal.notices import dead
from portal.notices.delivery import MOST_TRIES
from portal.notices.models import Letter
from portal.teams.access import is_operator
from portal.web.frame.requests import PersonRequest
from scheduling.services.errors import ServiceError

MOST = 200


@login_required
@require_safe
def letters(request: PersonRequest) -> HttpResponse:
    """The newest first; whom, where and why, and nothing of what stands in them."""
    _check(request)
    backlog = dead.backlog()
    rows = [(letter, dead.place(letter)) for letter in dead.dead()[:MOST]]
    context = {"rows": rows, "backlog": backlog, "most_tries": MOST_TRIES, "most": MOST}
    return render(request, "web/notices/dead.html", context)


@login_required
@require_POST
def again(request: PersonRequest, pk: int) -> HttpResponse:
    return _act(request, pk, dead.try_again, "It is tried again at once.")


@login_required
@require_POST
def drop(request: PersonRequest, pk: int) -> HttpResponse:
    return _act(request, pk, dead.drop, "It is dropped. The notice itself stays in the inbox.")


def _act(
    request: PersonRequest, pk: int, act: Callable[[User, Letter], None], said: str
) -> HttpResponse:
    _check(request)
    letter = get_object_or_404(dead.dead(), pk=pk)
    try:
        act(request.user, letter)
    except ServiceError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, said)
    return redirect("web:dead_letters")


def _check(request: PersonRequest) -> None:
    if not is_operator(request.user):
        raise Http404
