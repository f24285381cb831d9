"""Sign-in, and a person's own page with their password, sessions and API tokens."""

from __future__ import annotations

from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.accounts import doors, identity
from portal.accounts.audit import person_named, record
from portal.accounts.doors import living_sessions
from portal.accounts.forms import (
    PasswordForm,
    SignInForm,
    TimeZoneForm,
    TokenForm,
    address_of,
    lock_of,
    token_terms,
)
from portal.accounts.identity import is_connected
from portal.accounts.models import User
from portal.accounts.proof import proving
from portal.accounts.sessions import digest_of
from portal.accounts.tries import LockedError
from scheduling.services.errors import ServiceError


class SignIn(LoginView):
    """The only page without a person. ``next`` leads nowhere but into this site."""

    form_class = SignInForm
    template_name = "accounts/sign_in.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        more = {**_demo(), "provider": identity.provider_name()}
        return super().get_context_data(**kwargs, **more)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """On to the second step where the person has a second factor, else in."""
        user = form.get_user()
        record_authentication(self.request, user, "password")
        return perform_login(
            self.request, user, email_verification="none", redirect_url=self.get_success_url()
        )

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The form again; 429 with Retry-After where no password is checked any more."""
        lock, name = lock_of(form), form.cleaned_data.get("username")
        if name is not None:
            verb = "locked" if lock else "failed"
            record(f"sign_in.{verb}", self.request, user=person_named(name), refused=True)
        response = super().form_invalid(form)
        return response if lock is None else _too_many(response, lock)


def _demo() -> dict[str, Any]:
    """The demo's three people and their common password; nothing anywhere else."""
    if not settings.DEMO:
        return {}
    return {"demo_users": ("researcher", "lead", "admin"), "demo_password": "weir"}


def _too_many(response: HttpResponse, lock: LockedError) -> HttpResponse:
    response.status_code = 429
    response["Retry-After"] = str(lock.minutes * 60)
    return response


@login_required
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    return _page(request)


def person(request: HttpRequest) -> User:
    """The person who is signed in; only for views that ask for a sign-in first."""
    assert isinstance(request.user, User)  # noqa: S101 - narrows what login_required made sure
    return request.user


def _page(request: HttpRequest, status: int = 200, **extra: Any) -> HttpResponse:
    user = person(request)
    context = {
        "memberships": user.memberships.select_related("team__queue__cluster", "persona", "rule"),
        "tokens": user.api_tokens.all(),
        "sessions": living_sessions(user, timezone.now()),
        "this_session": digest_of(request.session.session_key or ""),
        "ends": _ends(),
        "factors": _factors(user),
        "provider": identity.provider_name(),
        "is_connected": is_connected(request),
        "real_now": timezone.now(),
        "token_form": TokenForm(),
        "zone_form": TimeZoneForm(initial={"display_time_zone": user.display_time_zone}),
        **extra,
    }
    return render(request, "accounts/account.html", context, status=status)


def _factors(user: User) -> list[Authenticator]:
    """What signing in asks for beside the password; recovery codes only stand in for it."""
    factors = Authenticator.objects.filter(user=user).order_by("created_at")
    return list(factors.exclude(type=Authenticator.Type.RECOVERY_CODES))


def _ends() -> str:
    """When a session ends by itself, in words."""
    idle, longest = (
        f"{hours:g} hours" if hours < 48 else f"{hours / 24:g} days"
        for hours in (settings.WEIR_SESSION_IDLE_S / 3600, settings.SESSION_COOKIE_AGE / 3600)
    )
    return f"Ends after {idle} unused, or {longest}"


@login_required
@proving
@require_POST
def issue_token(request: HttpRequest) -> HttpResponse:
    """Make a token and show it, this once: only its digest is kept, so there is no way back to it."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, 400, token_form=form)
    try:
        token, plain = doors.issue_token(request, person(request), **token_terms(form.cleaned_data))
    except ServiceError as refusal:
        form.add_error(None, str(refusal))
        return _page(request, 400, token_form=form)
    return _page(request, issued=token, plain=plain)


@login_required
@require_POST
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    token = get_object_or_404(person(request).api_tokens, pk=pk)
    doors.revoke_token(request, token)
    messages.success(
        request, f"Token {token.name} is revoked. Programs that use it are refused from now."
    )
    return redirect("accounts:account")


@login_required
@require_POST
def end_sessions(request: HttpRequest) -> HttpResponse:
    """Sign out everywhere but here."""
    ended = doors.end_other_sessions(request, person(request))
    words = {0: "You were signed in nowhere else.", 1: "The other session is ended."}
    messages.success(request, words.get(ended, f"{ended} other sessions are ended."))
    return redirect("accounts:account")


@login_required
@require_POST
def end_session(request: HttpRequest, key: str) -> HttpResponse:
    """Sign out in one place; ``key`` is what the list calls it, not what a browser holds."""
    session = get_object_or_404(person(request).sessions, pk=key)
    doors.end_session(request, session)
    messages.success(request, f"The session of {session.browser or 'that browser'} is ended.")
    return redirect("accounts:account")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """A new password ends every other session; tokens stay, because programs use them."""
    user = person(request)
    form = PasswordForm(user, request.POST or None, address=address_of(request))
    if form.is_valid():
        form.save()
        update_session_auth_hash(request, user)
        record("password.changed", request, user=user)
        doors.end_other_sessions(request, user)
        messages.success(request, "Your password is changed, and your other sessions are ended.")
        return redirect("accounts:account")
    if not form.is_bound:
        return render(request, "accounts/password.html", {"form": form})
    record("password.refused", request, user=user, refused=True)
    response = render(request, "accounts/password.html", {"form": form}, status=400)
    lock = lock_of(form)
    return response if lock is None else _too_many(response, lock)


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
