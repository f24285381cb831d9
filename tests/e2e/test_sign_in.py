"""Ways into the portal in a browser: a passkey, an app with codes, and the organisation's provider."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from portal.accounts.models import Session
from tests.e2e.conftest import axe
from tests.factories import make_user
from tests.portal.accounts.codes import code_of
from tests.provider import PASSWORD as AT_PROVIDER
from tests.provider import provider

PASSWORD = "correct horse battery"


@pytest.fixture
def at(live) -> str:
    """The portal by a name: browsers keep passkeys for names, not for addresses."""
    return live.replace("127.0.0.1", "localhost")


@pytest.fixture
def person(live):
    user = make_user("m.okafor")
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def device(page: Page) -> None:
    """A device that keeps passkeys, whose owner always says yes."""
    chromium = page.context.new_cdp_session(page)
    chromium.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    chromium.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def knock(page: Page, at: str) -> None:
    page.goto(f"{at}/sign-in/?next=/account/")
    page.get_by_label("User name").fill("m.okafor")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def confirm(page: Page) -> None:
    expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def heading(page: Page, name: str) -> None:
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()


def test_person_adds_a_passkey_and_signs_in_with_it_alone_or_after_the_password(
    page, at, person, device
):
    knock(page, at)
    page.get_by_role("link", name="Set up").click()
    page.get_by_role("link", name="Add a passkey").click()
    confirm(page)
    page.get_by_label("Name").fill("Laptop")
    assert axe(page) == []
    page.get_by_role("button", name="Add it").click()
    heading(page, "Recovery codes")
    assert page.locator(".codes li").count() == 10
    page.get_by_role("link", name="I have kept them").click()
    expect(page.get_by_role("row", name="Laptop")).to_be_visible()
    assert axe(page) == []

    page.context.clear_cookies()
    page.goto(f"{at}/sign-in/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(lambda url: "sign-in" not in url)
    assert Session.objects.filter(user=person, how="passkey").exists()

    page.context.clear_cookies()
    knock(page, at)
    heading(page, "One more step")
    assert axe(page) == []
    page.get_by_role("button", name="Use a passkey").click()
    heading(page, "My account")
    expect(page.get_by_text("Signing in asks for Laptop")).to_be_visible()


def test_person_sets_up_an_app_and_a_wrong_code_keeps_them_out(page, at, person):
    knock(page, at)
    page.goto(f"{at}/account/second-factor/app/")
    confirm(page)
    key = page.locator("code.token").inner_text()
    assert axe(page) == []
    page.get_by_label("Code that the app shows now").fill(code_of(key))
    page.get_by_role("button", name="Turn it on").click()
    heading(page, "Recovery codes")

    page.context.clear_cookies()
    knock(page, at)
    page.get_by_label("Code of your app").fill("000000")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("not right")
    page.get_by_label("Code of your app").fill(code_of(key))
    page.get_by_role("button", name="Sign in", exact=True).click()
    heading(page, "My account")


def test_person_comes_in_through_the_provider_and_lands_where_they_wanted(
    page, at, settings, tmp_path
):
    with provider(tmp_path / "provider", [f"{at}/sign-in/oidc/callback/"]) as sso:
        settings.SOCIALACCOUNT_PROVIDERS = sso.settings()
        sso.keep({"sub-1": {"preferred_username": "i.haddad", "given_name": "Ines"}})
        page.goto(f"{at}/account/")
        page.get_by_role("button", name="Sign in with Example SSO").click()
        page.get_by_label("Name").fill("sub-1")
        page.get_by_label("Password").fill(AT_PROVIDER)
        page.get_by_role("button", name="Go").click()
        heading(page, "My account")
        expect(page.get_by_text("Example SSO signs you in")).to_be_visible()
