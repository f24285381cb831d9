"""The ways into the portal beside the password: the organisation's provider, and where refusals lead."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import get_adapter
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from requests import RequestException

from portal.accounts import proof, saml, typed_forms
from portal.accounts.identity import SAML, is_connected, kind, provider_name

View = Callable[..., HttpResponseBase]


@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Lead to the provider: to sign in, or, for whoever is signed in, to connect their account with it.

    By a page that goes on by itself, not by a redirect: ``form-action`` holds every redirect of a form
    to this site, and a provider may lead on to hosts that nobody can list.
    """
    if not provider_name():
        raise Http404
    if request.user.is_authenticated and not (is_connected(request) or proof.is_proved(request)):
        return proof.to_proof(request)
    try:
        address = _question(request)
    except ImmediateHttpResponse as refusal:
        return refusal.response
    except RequestException:
        sentence = f"{provider_name()} does not answer. Try again, or sign in with a password."
        context = {"sentence": sentence}
        return render(request, "accounts/provider_refused.html", context, status=503)
    context = {"address": address, "provider": provider_name()}
    return render(request, "accounts/provider_going.html", context)


def _question(request: HttpRequest) -> str:
    """The address that asks the provider. Raises ImmediateHttpResponse, RequestException."""
    provider = get_adapter().get_provider(request, kind())
    process = "connect" if request.user.is_authenticated else "login"
    # A person asked to prove who they are signs in there anew, whoever sits at a browser that the provider
    # knows.
    anew = process == "connect"
    if kind() == SAML:
        return saml.question(request, provider, process, _next(request), anew=anew)
    parameters = {"auth_params": {"prompt": "login"}} if anew else {}
    answer = provider.redirect(request, process=process, next_url=_next(request), **parameters)
    if "Location" not in answer.headers:
        raise ImmediateHttpResponse(answer)
    return str(answer.headers["Location"])


def _next(request: HttpRequest) -> str | None:
    wanted = request.POST.get("next", "")
    inside = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if inside else None


def confirming(view: View) -> View:
    """``view`` for whoever can confirm who they are; whoever has nothing to show is led back to their
    page."""

    view = proof.renewing(view)

    @login_required
    @wraps(view)
    def led(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not get_account_adapter().get_reauthentication_methods(request.user):
            return redirect("accounts:account")
        return view(request, *args, **kwargs)

    return led


@login_required
@require_safe
def confirm_by_provider(request: HttpRequest) -> HttpResponse:
    """For who has nothing to show here: their provider signs them in once more, in this session."""
    if not is_connected(request) or not provider_name():
        return redirect("accounts:account")
    context = {"provider": provider_name(), "after": request.GET.get("next", "")}
    return render(request, "accounts/confirm_provider.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def go_on(request: HttpRequest) -> HttpResponse:
    """What was typed before the proof, for the person to send or to throw away (POST)."""
    typed = typed_forms.kept_by(request)
    if request.method == "POST" or typed is None or not proof.is_proved(request):
        typed_forms.drop(request)
        return redirect("accounts:account")
    return render(request, "accounts/go_on.html", {"typed": typed})


@require_safe
def refused(request: HttpRequest, organization_slug: str = "") -> HttpResponse:
    """Where allauth leads when a sign-in can't go on, by whichever provider."""
    if not request.user.is_authenticated:
        messages.error(request, "You were not signed in. Begin again.")
    return redirect("accounts:sign_in")
