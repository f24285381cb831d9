"""A new key: everything that is enciphered is written anew, and what cannot be read is named."""

from __future__ import annotations

import io
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.utils import decrypt
from cryptography.fernet import InvalidToken
from django.core.management import CommandError, call_command

from portal.accounts.models import User
from portal.notices import webhooks
from scheduling.models import Cluster, LostCredentialError
from scheduling.models.credentials import keep, read

pytestmark = pytest.mark.django_db
NEXT = "the-key-after-" + "0123456789abcdef" * 4


class World:
    """One of each kind that is enciphered."""

    def __init__(self) -> None:
        self.user = User.objects.create_user("amara")
        self.place = keep(Cluster.objects.create(name="fra1"), "token_file", "a token")
        self.webhook, self.secret = webhooks.add(
            self.user, name="chat", address="https://hooks.example.org/x"
        )
        TOTP.activate(self.user, "JBSWY3DPEHPK3PXP")
        self.codes = RecoveryCodes.activate(self.user).get_unused_codes()

    def is_read(self) -> bool:
        held = {one.type: one for one in Authenticator.objects.all()}
        codes = RecoveryCodes(held["recovery_codes"]).get_unused_codes()
        self.webhook.refresh_from_db()
        return (
            read(self.place) == "a token"
            and webhooks.secret_of(self.webhook) == self.secret
            and decrypt(held["totp"].data["secret"]) == "JBSWY3DPEHPK3PXP"
            and codes == self.codes
        )


@pytest.fixture
def world(settings: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(webhooks, "target_of", lambda _: type("Target", (), {"host": "hooks"}))
    return World()


def rotate() -> str:
    out = io.StringIO()
    call_command("rotate-keys", stdout=out)
    return out.getvalue()


def test_after_it_the_key_of_before_can_go(world: World, settings: Any) -> None:
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], NEXT

    told = rotate()

    assert "credentials of clusters: 1 written" in told
    assert "secrets of webhooks: 1 written" in told
    assert "second factors: 2 written" in told
    settings.SECRET_KEY_FALLBACKS = []
    assert world.is_read()


def test_without_it_the_key_of_before_is_needed(world: World, settings: Any) -> None:
    settings.SECRET_KEY = NEXT

    with pytest.raises(LostCredentialError, match="another key"):
        read(world.place)
    with pytest.raises(InvalidToken):
        world.is_read()


def test_what_no_key_reads_is_named_and_the_command_fails(world: World, settings: Any) -> None:
    settings.SECRET_KEY = NEXT

    with pytest.raises(CommandError, match="4 cannot be read"):
        rotate()


def test_twice_is_as_good_as_once(world: World, settings: Any) -> None:
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], NEXT
    rotate()
    rotate()

    assert world.is_read()


def test_first_admin_gets_a_link_until_there_is_one(settings: Any) -> None:
    settings.WEIR_ADDRESS = "https://gpus.example.org"
    out = io.StringIO()
    call_command("first-admin", stdout=out)
    assert out.getvalue().startswith("https://gpus.example.org/set-up/first/")

    User.objects.create_superuser("boss", password="correct horse battery")
    with pytest.raises(CommandError, match="administers Weir already"):
        call_command("first-admin")
