"""Acts on a person's own webhooks, by POST alone."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from portal.accounts.proof import proving
from portal.notices import webhooks
from portal.web.frame.requests import PersonRequest
from portal.web.notices.views import page
from scheduling.services.errors import ServiceError


@login_required
@proving
@require_POST
@sensitive_variables("secret")
def add(request: PersonRequest) -> HttpResponse:
    """Make one, and show its secret, this once."""
    typed = {name: request.POST.get(name, "").strip() for name in ("name", "address")}
    try:
        made, secret = webhooks.add(request.user, **typed)
    except ServiceError as refusal:
        return page(request, 422, refusal=refusal, **typed)
    return page(request, secret=secret, made=made)


@login_required
@require_POST
def remove(request: PersonRequest, pk: int) -> HttpResponse:
    webhook = get_object_or_404(request.user.webhooks, pk=pk)
    webhooks.remove(request.user, webhook)
    messages.success(request, f"Webhook {webhook.name} is removed: nothing goes there any more.")
    return redirect("web:notices")


@login_required
@require_POST
def test(request: PersonRequest, pk: int) -> HttpResponse:
    """Send a letter without news to it."""
    return _test(request, pk)


@login_required
@require_POST
def test_mail(request: PersonRequest) -> HttpResponse:
    return _test(request, None)


def _test(request: PersonRequest, pk: int | None) -> HttpResponse:
    webhook = None if pk is None else get_object_or_404(request.user.webhooks, pk=pk)
    try:
        webhooks.send_test(request.user, webhook)
    except ServiceError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, "A test is on its way. How it ended shows here in some seconds.")
    return redirect("web:notices")
