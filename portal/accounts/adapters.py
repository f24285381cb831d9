"""How allauth signs people in here: its steps, its words, and how the secrets of factors are kept."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from portal.accounts import ldap_backend
from portal.accounts.models import User
from scheduling.models.ciphers import cipher

PURPOSE = "weir second factors"

SAID = {
    "mfa/messages/totp_activated.txt": "Your app is set up. Signing in asks for its code from now.",
    "mfa/messages/totp_deactivated.txt": "The app is removed: its codes are refused from now.",
    "mfa/messages/webauthn_added.txt": "The passkey is kept. You can sign in with it alone.",
    "mfa/messages/webauthn_removed.txt": "The passkey is removed: it is refused from now.",
}
"""What a page says after a change of factors; allauth's other messages say what the page shows anyway."""


class AccountAdapter(DefaultAccountAdapter):
    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "incorrect_password": "That is not your password.",
    }

    def get_login_stages(self) -> list[str]:
        """Between the first proof and the session stands the second factor, and nothing else."""
        return ["allauth.mfa.stages.AuthenticateStage"]

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Connecting a provider asks for its proof itself (``provider``); what allauth would keep to be done
        after one, whoever left it, is not done."""
        return app != "allauth.socialaccount" and bool(
            super().is_reauthentication_required(app=app, **kwargs)
        )

    def get_reauthentication_methods(self, user: User) -> list[dict[str, Any]]:
        """The directory checks the password of its people, who have none here."""
        ways: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        if not user.is_authenticated or not ldap_backend.is_connected(user):
            return ways
        url = reverse("account_reauthenticate")
        return [{"id": "reauthenticate", "description": "Use your password", "url": url}, *ways]

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        messages.error(request, "This account is not active. Ask an admin.")
        return redirect("accounts:sign_in")

    def get_client_ip(self, request: HttpRequest) -> str:
        """What the middleware for proxies made sure of."""
        return str(request.META.get("REMOTE_ADDR", ""))

    def add_message(
        self, request: HttpRequest, level: int, message_template: str | None = None, *args: Any,
        message: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        said = message or SAID.get(message_template or "")
        if said:
            messages.add_message(request, level, said)


class FactorAdapter(DefaultMFAAdapter):
    """Secrets of apps and recovery codes lie encrypted, so a copy of the database gives no second factor."""

    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": "That code is not right, or it was used already. Wait for the next one.",
    }

    def encrypt(self, text: str) -> str:
        return cipher(PURPOSE).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return cipher(PURPOSE).decrypt(encrypted_text.encode()).decode()

    def generate_authenticator_name(self, user: User, type: Authenticator.Type) -> str:
        number = Authenticator.objects.filter(user=user, type=type).count()
        return f"Passkey {number + 1}"

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {**super().get_public_key_credential_rp_entity(), "name": "Weir"}
