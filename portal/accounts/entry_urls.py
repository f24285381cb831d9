"""Addresses that allauth leads to by its own names: second factors, and the provider's way back."""

from __future__ import annotations

from functools import partial

from allauth.account.views import reauthenticate
from allauth.mfa.base import views as factors
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as app
from allauth.mfa.webauthn import views as passkeys
from allauth.socialaccount.providers.openid_connect.views import callback
from django.urls import path

from portal.accounts import entry, saml, views
from portal.accounts.proof import proving

proven = partial(proving, reading=True)
"""allauth asks for no proof of people who have nothing to show but their provider."""
FACTORS = "account/second-factor"
CONFIRM = "account/confirm"

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="account_login"),
    path("sign-in/second-step/", factors.authenticate, name="mfa_authenticate"),
    path("sign-in/passkey/", passkeys.login_webauthn, name="mfa_login_webauthn"),
    path("sign-in/<str:provider_id>/callback/", callback, name="openid_connect_callback"),
    path("sign-in/<str:organization_slug>/answer/", saml.answer, name="saml_acs"),
    path("sign-in/<str:organization_slug>/answer/read/", saml.finish, name="saml_finish_acs"),
    path("sign-in/<str:organization_slug>/metadata/", saml.metadata, name="saml_metadata"),
    path("sign-in/refused/", entry.refused, name="account_inactive"),
    path("sign-in/refused/", entry.refused, name="account_signup"),
    path("sign-in/refused/", entry.refused, name="socialaccount_signup"),
    path("sign-in/refused/", entry.refused, name="socialaccount_login_cancelled"),
    path("sign-in/<str:organization_slug>/refused/", entry.refused, name="saml_sls"),
    path(f"{FACTORS}/", factors.index, name="mfa_index"),
    path(f"{FACTORS}/", factors.index, name="mfa_list_webauthn"),
    path(f"{FACTORS}/app/", proven(app.activate_totp), name="mfa_activate_totp"),
    path(f"{FACTORS}/app/remove/", proven(app.deactivate_totp), name="mfa_deactivate_totp"),
    path(f"{FACTORS}/codes/", proven(codes.view_recovery_codes), name="mfa_view_recovery_codes"),
    path(
        f"{FACTORS}/codes/new/",
        proven(codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(f"{FACTORS}/passkeys/add/", proven(passkeys.add_webauthn), name="mfa_add_webauthn"),
    path(
        f"{FACTORS}/passkeys/<int:pk>/remove/",
        proven(passkeys.remove_webauthn),
        name="mfa_remove_webauthn",
    ),
    path(f"{CONFIRM}/", entry.confirming(reauthenticate), name="account_reauthenticate"),
    path(f"{CONFIRM}/code/", entry.confirming(factors.reauthenticate), name="mfa_reauthenticate"),
    path(
        f"{CONFIRM}/passkey/",
        entry.confirming(passkeys.reauthenticate_webauthn),
        name="mfa_reauthenticate_webauthn",
    ),
]
