"""What a form's service made of it, and the page of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from portal.boundary.forms import Made, WeirForm


def sent_fields(request: HttpRequest) -> QueryDict | None:
    """What was sent, be it nothing; None of a page that is only looked at."""
    return request.POST if request.method == "POST" else None


def saved(
    request: HttpRequest, form: WeirForm, save: Callable[[], Made], said: Callable[[Made], str]
) -> Made | None:
    """What the service made of a right form, and what is ``said`` of it on the page that follows; None where
    nothing was sent or there are faults, each at its field then."""
    if request.method != "POST" or not form.is_valid():
        return None
    made = form.done(save)
    if made is not None:
        messages.success(request, said(made))
    return made


def form_page(
    request: HttpRequest, template: str, form: WeirForm | None, context: Mapping[str, Any]
) -> HttpResponse:
    """The page with the form: 400 where it has faults."""
    status = 400 if form is not None and form.errors else 200
    return render(request, template, {**context, "form": form}, status=status)
