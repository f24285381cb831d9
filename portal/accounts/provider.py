"""The account of somebody whom the organisation's provider (OpenID Connect or SAML) has signed in.

A person whom it names is looked up by the provider's own key of them (the subject, or the NameID), never by a
name that could be given to somebody else. At the first sign-in the account is made; one that is there already
is taken over only where it has no password, such as one made for this person beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from allauth.account.internal.flows.login import record_authentication
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.shortcuts import render
from django.urls import reverse

from portal.accounts.audit import record
from portal.accounts.identity import SAML, kind
from portal.accounts.models import User
from portal.accounts.proof import SENTENCE, is_proved, remedy
from portal.boundary.reading import one_line

MOST_GROUPS = 1000
LONGEST_GROUP = 255
LONGEST_WHY = 200
NAME_ID = "NameID"
"""Under which claims have a SAML provider's key of its person."""
PROGRAMS = "svc-"
"""Begins the names of service accounts, so that nobody takes one for a person, here and at the API server."""
NAME = User._meta.get_field("username")


class ProviderAdapter(DefaultSocialAccountAdapter):
    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        if sociallogin.state.get("process") == "connect":
            _confirm(request, sociallogin)
            return
        if sociallogin.is_existing:
            return
        name = name_in(claims_of(sociallogin.account))
        if fault := fault_of(name):
            _refuse(request, None, fault)
        known = User.objects.filter(username=name).first()
        if known is None:
            return
        if not is_free(known):
            _refuse(
                request, known,
                f"There is an account {name} here already."
                " Sign in with its password, then connect it on 'My account'.",
            )  # fmt: skip
        sociallogin.connect(request, known)

    def populate_user(
        self, request: HttpRequest, sociallogin: SocialLogin, data: Mapping[str, Any]
    ) -> User:
        user: User = super().populate_user(request, sociallogin, data)
        user.username = name_in(claims_of(sociallogin.account))
        for field in ("first_name", "last_name"):
            setattr(user, field, cut(getattr(user, field), 150))
        return user

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Everybody whom the provider signs in has an account; what they may do their teams say."""
        return True

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: SocialAccount) -> str:
        return reverse("accounts:account")

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Mapping[str, Any] | None = None,
    ) -> None:
        """The person broke it off, the answer is not of this browser's question, or the provider is away."""
        if error == "cancelled":
            _refuse(request, None, f"{provider.name} did not sign you in. Try again.")
        fallback = type(exception).__name__ if exception else "no_question"
        why = (
            cut((extra_context or {}).get("saml_last_error_reason") or "", LONGEST_WHY) or fallback
        )
        _refuse(
            request, None,
            f"{provider.name} gave no answer that counts."
            " Begin again; if it stays, tell an admin when it happened.",
            why=why,
        )  # fmt: skip


def _confirm(request: HttpRequest, sociallogin: SocialLogin) -> None:
    """Somebody is signed in already. Where the provider names them, that proves who they are. Somebody
    new would come in as them from now on, so only who proved who they are connects them."""
    if sociallogin.is_existing:
        if sociallogin.user.pk == request.user.pk:
            account = sociallogin.account
            facts = {"provider": account.provider, "uid": account.uid}
            record_authentication(request, request.user, "socialaccount", **facts)
            request.session.cycle_key()
        return
    if not is_proved(request):
        _refuse(request, known_in(request), f"{SENTENCE} {remedy(request)}")


def known_in(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, User) else None


def claims_of(account: SocialAccount) -> Mapping[str, Any]:
    """What the provider says of its person; userinfo stands over the ID token."""
    data = account.extra_data
    if kind() == SAML:
        return {**data, NAME_ID: account.uid}
    return {**(data.get("id_token") or {}), **(data.get("userinfo") or {})}


def name_in(claims: Mapping[str, Any]) -> str:
    said = claims.get(user_claim(), "")
    # A SAML provider says a list of each attribute.
    if isinstance(said, list) and len(said) == 1:
        said = said[0]
    return said if isinstance(said, str) else ""


def user_claim() -> str:
    """The claim or attribute that says a person's name."""
    by_saml = settings.WEIR_SAML_USER_ATTRIBUTE or NAME_ID
    return by_saml if kind() == SAML else settings.WEIR_OIDC_USER_CLAIM


def groups_in(claims: Mapping[str, Any]) -> list[str] | None:
    """The groups that the claim names, sorted; None where the provider says nothing of groups."""
    claim = settings.WEIR_OIDC_GROUPS_CLAIM
    said = claims.get(settings.WEIR_SAML_GROUPS_ATTRIBUTE if kind() == SAML else claim)
    if said is None:
        return None
    listed = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    names = {name for name in listed if isinstance(name, str) and 0 < len(name) <= LONGEST_GROUP}
    return sorted(names)[:MOST_GROUPS]


def fault_of(name: str, claim: str = "") -> str:
    """Why a person of this name, which ``claim`` says, can't be kept; empty where they can."""
    claim = claim or user_claim()
    if not name:
        return f"The provider says no name of yours ('{claim}'). Tell an admin."
    if name.startswith(PROGRAMS):
        return (
            f"The provider's name of you ('{claim}') begins as those of programs do. Tell an admin."
        )
    try:
        NAME.run_validators(name)
    except ValidationError:
        return f"The provider's name of you ('{claim}') has characters that no name has here."
    return ""


def is_free(user: User) -> bool:
    """Nobody can be locked out of it, or act by it, when a person of the provider or directory has it."""
    is_program = hasattr(user, "service_account")
    connected = SocialAccount.objects.filter(user=user).exists()
    return not (user.has_usable_password() or user.is_superuser or is_program or connected)


def cut(text: str, most: int) -> str:
    try:
        one_line(text)
    except ValidationError:
        return ""
    return text[:most]


def _refuse(request: HttpRequest, user: User | None, sentence: str, **facts: Any) -> NoReturn:
    record("sign_in.failed", request, user=user, refused=True, by=kind(), **facts)
    page = render(request, "accounts/provider_refused.html", {"sentence": sentence}, status=403)
    raise ImmediateHttpResponse(page)
