"""What a demo's mail and webhooks brought. Outside of a demo there is no such page."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from portal.notices import arrivals
from portal.web.frame.requests import PersonRequest, page_view

MOST, FIRST = 100, 10


@page_view
def sent(request: PersonRequest) -> HttpResponse:
    """What was sent to the reader, the newest first."""
    _check()
    found = arrivals.of(request.user)
    count, shows_all = min(MOST, found.count()), "all" in request.GET
    context = {"arrivals": found[: MOST if shows_all else FIRST], "count": count}
    context["more"] = 0 if shows_all else max(0, count - FIRST)
    return render(request, "web/notices/sent.html", context)


@csrf_exempt
@require_POST
def sink(request: HttpRequest) -> HttpResponse:
    """The receiver: programs send here, so the signature stands for the session and its token."""
    _check()
    if not arrivals.take(request.headers, request.body):
        raise Http404
    return HttpResponse("ok", content_type="text/plain")


def _check() -> None:
    if not settings.DEMO:
        raise Http404
