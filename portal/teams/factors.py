"""People who must have a second factor, and what keeps somebody without one from everything else.

The installation's setting ``WEIR_SECOND_FACTOR`` says whom it asks: nobody, everybody, or whoever holds one
of the capabilities that it lists. A session that began at the organisation's provider is the provider's
affair, and a token is a program's: neither is asked.
"""

from __future__ import annotations

from collections.abc import Callable

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse

from portal.accounts.capabilities import EVERYBODY, MEANINGS, Capability
from portal.accounts.middleware import is_unattended
from portal.accounts.models import User
from portal.accounts.sessions import HOW
from portal.accounts.signals import PROOFS
from portal.teams.rights import rights_of

ASKED = "Set up a second factor first: this installation asks you for one."
CODE = "second_factor_needed"
OPEN = frozenset(
    {
        "accounts:sign_out", "accounts:password", "account_reauthenticate", "mfa_reauthenticate",
        "mfa_reauthenticate_webauthn", "mfa_index", "mfa_list_webauthn", "mfa_activate_totp",
        "mfa_add_webauthn", "mfa_view_recovery_codes", "mfa_generate_recovery_codes",
        "mfa_authenticate", "mfa_login_webauthn", "accounts:sign_in", "account_login",
    }
)  # fmt: skip
"""Where somebody without one may still go: to set one up, or away."""


def asked_of() -> str:
    """Whom the installation asks, in words; empty where it asks nobody."""
    wanted = settings.WEIR_SECOND_FACTOR
    if not wanted:
        return ""
    if EVERYBODY in wanted:
        return EVERYBODY
    verbs = [MEANINGS[Capability(name)].name.lower() for name in wanted]
    return f"whoever may: {', '.join(verbs)}"


def must_have(user: User) -> bool:
    """Whether the installation asks ``user`` for one. Superusers hold every capability."""
    wanted = settings.WEIR_SECOND_FACTOR
    if not wanted or EVERYBODY in wanted:
        return bool(wanted)
    rights = rights_of(user)
    return rights.is_superuser or any(any(rights.holding(Capability(name))) for name in wanted)


def has_one(user: User) -> bool:
    """Recovery codes only stand in for one."""
    factors = Authenticator.objects.filter(user=user)
    return factors.exclude(type=Authenticator.Type.RECOVERY_CODES).exists()


def is_kept_out(request: HttpRequest) -> bool:
    """Whether who asks has to set up a second factor before anything else."""
    user = request.user
    if not settings.WEIR_SECOND_FACTOR or not user.is_authenticated:
        return False
    if PROOFS["socialaccount"] in request.session.get(HOW, "").split(", "):
        return False
    return must_have(user) and not has_one(user)


class SecondFactorMiddleware:
    """Leads who lacks one to where it is set up; programs and pages that ask by themselves are told."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponseBase | None:
        match = request.resolver_match
        if match is None or match.view_name in OPEN or not is_kept_out(request):
            return None
        if request.path.startswith("/api/"):
            return _refusal()
        if is_unattended(request):
            return HttpResponse(ASKED, status=403, content_type="text/plain")
        messages.warning(request, ASKED)
        if request.headers.get("HX-Request"):
            answer = HttpResponse(status=204)
            answer["HX-Redirect"] = reverse("mfa_index")
            return answer
        return redirect("mfa_index")


def _refusal() -> JsonResponse:
    body = {"code": CODE, "sentence": ASKED, "remedy": f"Set it up at {reverse('mfa_index')}."}
    return JsonResponse(body, status=403)
