"""The request of a signed-in person, the three kinds of views, and what forms share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.middleware import HtmxDetails

from portal.accounts.models import User
from portal.display.csv import Table, csv_lines
from scheduling.services.errors import ServiceError


class PersonRequest(HttpRequest):
    user: User
    htmx: HtmxDetails
    is_own_work: bool
    """Of a page about one workload; absent elsewhere."""


View = TypeVar("View", bound=Callable[..., Any])
Made = TypeVar("Made")


def page_view(view: View) -> View:
    """For who is signed in: it shows, and changes nothing."""
    return login_required(require_safe(view))


def form_view(view: View) -> View:
    """For who is signed in: it shows a form, and takes what is posted."""
    return login_required(require_http_methods(["GET", "HEAD", "POST"])(view))


def act_view(view: View) -> View:
    """For who is signed in: it does something, by POST alone."""
    return login_required(require_POST(view))


def acted(
    request: HttpRequest, act: Callable[[], Made], said: str | Callable[[Made], str] = ""
) -> bool:
    """Whether the service did it; what is ``said`` of it, or its refusal, stands on the page that follows."""
    try:
        made = act()
    except ServiceError as refused:
        messages.error(request, str(refused))
        return False
    if said:
        messages.success(request, said if isinstance(said, str) else said(made))
    return True


def attached(text: str, name: str, content_type: str) -> HttpResponse:
    """A file that the browser keeps under ``name``."""
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type=content_type, headers=disposition)


def attached_csv(table: Table, name: str) -> HttpResponse:
    return attached("".join(csv_lines(table)), name, "text/csv; charset=utf-8")


TURN = "turn"
"""Of the buttons of a form that asks for other fields: which kind of it is shown next."""


def turned(request: HttpRequest) -> HttpResponse | None:
    """To the address of the form of another kind with what was typed; None where no such button was pressed.

    Such a button posts: sent by GET, a form takes its CSRF token into the address, histories and logs.
    """
    if TURN not in request.POST:
        return None
    typed = request.POST.copy()
    kind = typed.pop(TURN)[-1]
    typed.pop("csrfmiddlewaretoken", None)
    typed["kind"] = kind
    return HttpResponseRedirect(f"{request.path}?{typed.urlencode()}")
