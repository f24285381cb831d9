"""Acts on a person's own webhooks, by POST alone."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.debug import sensitive_variables

from portal.accounts.proof import proving
from portal.notices import webhooks
from portal.web.frame.requests import PersonRequest, act_view, acted
from portal.web.notices.views import hook_form, page


@act_view
@proving
@sensitive_variables("secret")
def add(request: PersonRequest) -> HttpResponse:
    """Make one, and show its secret, this once."""
    form = hook_form(request)
    added = None
    if form.is_valid():
        added = form.done(lambda: webhooks.add(request.user, **form.cleaned_data))
    if added is None:
        return page(request, 422, hook_form=form)
    made, secret = added
    return page(request, secret=secret, made=made)


@act_view
def remove(request: PersonRequest, pk: int) -> HttpResponse:
    webhook = get_object_or_404(request.user.webhooks, pk=pk)
    webhooks.remove(request.user, webhook)
    messages.success(request, f"Webhook {webhook.name} is removed: nothing goes there any more.")
    return redirect("web:notices")


@act_view
def test(request: PersonRequest, pk: int) -> HttpResponse:
    """Send a letter without news to it."""
    return _test(request, pk)


@act_view
def test_mail(request: PersonRequest) -> HttpResponse:
    return _test(request, None)


def _test(request: PersonRequest, pk: int | None) -> HttpResponse:
    webhook = None if pk is None else get_object_or_404(request.user.webhooks, pk=pk)
    said = "A test is on its way. How it ended shows here in some seconds."
    acted(request, lambda: webhooks.send_test(request.user, webhook), said)
    return redirect("web:notices")
