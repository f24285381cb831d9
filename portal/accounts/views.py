"""Sign-in, sign-out, and a person's own page with their API tokens."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from portal.accounts.forms import SignInForm, TimeZoneForm, TokenForm
from portal.accounts.models import ApiToken, User
from scheduling.services.errors import ServiceError


class SignIn(LoginView):
    """The only page without a person. ``next`` leads nowhere but into this site."""

    form_class = SignInForm
    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, **_demo())


def _demo() -> dict[str, Any]:
    """The demo's three people and their common password; nothing anywhere else."""
    if not settings.DEMO:
        return {}
    return {"demo_users": ("researcher", "lead", "admin"), "demo_password": "weir"}


def locked_out(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
    """Answer to a sign-in from an address that failed too often with this user name (429)."""
    minutes = round(settings.AXES_COOLOFF_TIME * 60)
    response = render(
        request,
        "accounts/sign_in.html",
        {"form": SignInForm(request), "locked_minutes": minutes},
        status=429,
    )
    response["Retry-After"] = str(minutes * 60)
    return response


@login_required
@require_safe
@never_cache
def account(request: HttpRequest) -> HttpResponse:
    return _page(request)


def person(request: HttpRequest) -> User:
    """Who is signed in; only for views that ask for a sign-in first."""
    assert isinstance(request.user, User)  # noqa: S101 - narrows what login_required made sure
    return request.user


def _page(request: HttpRequest, status: int = 200, **extra: Any) -> HttpResponse:
    user = person(request)
    context = {
        "memberships": user.memberships.select_related("team__queue__cluster", "persona"),
        "tokens": user.api_tokens.all(),
        "real_now": timezone.now(),
        "token_form": TokenForm(),
        "zone_form": TimeZoneForm(initial={"display_time_zone": user.display_time_zone}),
        **extra,
    }
    return render(request, "accounts/account.html", context, status=status)


@login_required
@require_POST
@never_cache
def issue_token(request: HttpRequest) -> HttpResponse:
    """Make a token and show it, this once: only its digest is kept, so there is no way back to it."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, 400, token_form=form)
    try:
        token, plain = ApiToken.issue(
            person(request), form.cleaned_data["name"], expires_at=form.expires_at()
        )
    except ServiceError as refusal:
        form.add_error(None, str(refusal))
        return _page(request, 400, token_form=form)
    return _page(request, issued=token, plain=plain)


@login_required
@require_POST
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    token = get_object_or_404(person(request).api_tokens, pk=pk)
    token.delete()
    messages.success(
        request,
        f"Token {token.name} is revoked. What uses it is refused from now.",
    )
    return redirect("accounts:account")


@login_required
@require_POST
def set_time_zone(request: HttpRequest) -> HttpResponse:
    form = TimeZoneForm(request.POST)
    if not form.is_valid():
        return _page(request, 400, zone_form=form)
    user = person(request)
    user.display_time_zone = form.cleaned_data["display_time_zone"]
    user.save(update_fields=["display_time_zone"])
    return redirect("accounts:account")
