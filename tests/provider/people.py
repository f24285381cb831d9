"""Whom the provider knows: what people.json says at the moment of asking."""

import json
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from oauth2_provider.oauth2_validators import OAuth2Validator

from tests.provider import PASSWORD


def people() -> dict[str, dict[str, Any]]:
    return json.loads((settings.FOLDER / "people.json").read_text())


class Backend(ModelBackend):
    def authenticate(self, request, username=None, password=None, **kwargs):
        if username not in people() or password != PASSWORD:
            return None
        user, _ = User.objects.get_or_create(username=username)
        return user


class Validator(OAuth2Validator):
    """Groups and names are of the profile, as most providers have it."""

    oidc_claim_scope = {**OAuth2Validator.oidc_claim_scope, "groups": "profile"}

    def get_additional_claims(self, request):
        return {"sub": request.user.username, **people()[request.user.username]}
